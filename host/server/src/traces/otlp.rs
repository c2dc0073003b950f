//! The messages of OTLP that carry spans: the fields of `trace.proto` that the server writes.

/// The body of `POST /v1/traces`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportTraceServiceRequest {
    /// Spans by process.
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

/// The spans of one process.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ResourceSpans {
    /// The process.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// Its spans by library.
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

/// A process.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Resource {
    /// Its name and version.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// The spans of one library.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ScopeSpans {
    /// The library.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    /// Its spans.
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<Span>,
}

/// A library.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Scope {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its version.
    #[prost(string, tag = "2")]
    pub version: String,
}

/// A step with its begin and end.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Span {
    /// 16 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    /// 8 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
    /// 8 bytes, or none of a root.
    #[prost(bytes = "vec", tag = "4")]
    pub parent_span_id: Vec<u8>,
    /// The kind of step.
    #[prost(string, tag = "5")]
    pub name: String,
    /// 1 within the process, 2 for a client.
    #[prost(int32, tag = "6")]
    pub kind: i32,
    /// Begin in ns since 1970.
    #[prost(fixed64, tag = "7")]
    pub start_time_unix_nano: u64,
    /// End in ns since 1970.
    #[prost(fixed64, tag = "8")]
    pub end_time_unix_nano: u64,
    /// Names and values.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    /// Unset, or an error.
    #[prost(message, optional, tag = "15")]
    pub status: Option<Status>,
}

/// The end of a step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Status {
    /// The reason of an error.
    #[prost(string, tag = "2")]
    pub message: String,
    /// 2 is an error.
    #[prost(int32, tag = "3")]
    pub code: i32,
}

/// An attribute.
#[derive(Clone, PartialEq, prost::Message)]
pub struct KeyValue {
    /// Its name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AnyValue {
    /// A value of one type.
    #[prost(oneof = "Value", tags = "1, 3")]
    pub value: Option<Value>,
}

/// A value of one type.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Value {
    /// Text.
    #[prost(string, tag = "1")]
    String(String),
    /// An integer.
    #[prost(int64, tag = "3")]
    Int(i64),
}
