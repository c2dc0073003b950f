//! Made of proto/inference.proto (CRC f3bfad79) by `cargo xtask protobuf`; its proto file has the words.

#![allow(missing_docs, clippy::all)]

#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ServerLiveRequest {}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ServerLiveResponse {
    #[prost(bool, tag = "1")]
    pub live: bool,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ServerReadyRequest {}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ServerReadyResponse {
    #[prost(bool, tag = "1")]
    pub ready: bool,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ModelReadyRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub version: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ModelReadyResponse {
    #[prost(bool, tag = "1")]
    pub ready: bool,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ServerMetadataRequest {}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ServerMetadataResponse {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub version: ::prost::alloc::string::String,
    #[prost(string, repeated, tag = "3")]
    pub extensions: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ModelMetadataRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub version: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ModelMetadataResponse {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, repeated, tag = "2")]
    pub versions: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, tag = "3")]
    pub platform: ::prost::alloc::string::String,
    #[prost(message, repeated, tag = "4")]
    pub inputs: ::prost::alloc::vec::Vec<model_metadata_response::TensorMetadata>,
    #[prost(message, repeated, tag = "5")]
    pub outputs: ::prost::alloc::vec::Vec<model_metadata_response::TensorMetadata>,
}
/// Nested message and enum types in `ModelMetadataResponse`.
pub mod model_metadata_response {
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct TensorMetadata {
        #[prost(string, tag = "1")]
        pub name: ::prost::alloc::string::String,
        #[prost(string, tag = "2")]
        pub datatype: ::prost::alloc::string::String,
        #[prost(int64, repeated, tag = "3")]
        pub shape: ::prost::alloc::vec::Vec<i64>,
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct InferParameter {
    #[prost(oneof = "infer_parameter::ParameterChoice", tags = "1, 2, 3, 4, 5")]
    pub parameter_choice: ::core::option::Option<infer_parameter::ParameterChoice>,
}
/// Nested message and enum types in `InferParameter`.
pub mod infer_parameter {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum ParameterChoice {
        #[prost(bool, tag = "1")]
        BoolParam(bool),
        #[prost(int64, tag = "2")]
        Int64Param(i64),
        #[prost(string, tag = "3")]
        StringParam(::prost::alloc::string::String),
        #[prost(double, tag = "4")]
        DoubleParam(f64),
        #[prost(uint64, tag = "5")]
        Uint64Param(u64),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct InferTensorContents {
    #[prost(bool, repeated, tag = "1")]
    pub bool_contents: ::prost::alloc::vec::Vec<bool>,
    #[prost(int32, repeated, tag = "2")]
    pub int_contents: ::prost::alloc::vec::Vec<i32>,
    #[prost(int64, repeated, tag = "3")]
    pub int64_contents: ::prost::alloc::vec::Vec<i64>,
    #[prost(uint32, repeated, tag = "4")]
    pub uint_contents: ::prost::alloc::vec::Vec<u32>,
    #[prost(uint64, repeated, tag = "5")]
    pub uint64_contents: ::prost::alloc::vec::Vec<u64>,
    #[prost(float, repeated, tag = "6")]
    pub fp32_contents: ::prost::alloc::vec::Vec<f32>,
    #[prost(double, repeated, tag = "7")]
    pub fp64_contents: ::prost::alloc::vec::Vec<f64>,
    #[prost(bytes = "bytes", repeated, tag = "8")]
    pub bytes_contents: ::prost::alloc::vec::Vec<::prost::bytes::Bytes>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ModelInferRequest {
    #[prost(string, tag = "1")]
    pub model_name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub model_version: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub id: ::prost::alloc::string::String,
    #[prost(btree_map = "string, message", tag = "4")]
    pub parameters:
        ::prost::alloc::collections::BTreeMap<::prost::alloc::string::String, InferParameter>,
    #[prost(message, repeated, tag = "5")]
    pub inputs: ::prost::alloc::vec::Vec<model_infer_request::InferInputTensor>,
    #[prost(message, repeated, tag = "6")]
    pub outputs: ::prost::alloc::vec::Vec<model_infer_request::InferRequestedOutputTensor>,
    #[prost(bytes = "bytes", repeated, tag = "7")]
    pub raw_input_contents: ::prost::alloc::vec::Vec<::prost::bytes::Bytes>,
}
/// Nested message and enum types in `ModelInferRequest`.
pub mod model_infer_request {
    #[derive(Clone, PartialEq, ::prost::Message)]
    pub struct InferInputTensor {
        #[prost(string, tag = "1")]
        pub name: ::prost::alloc::string::String,
        #[prost(string, tag = "2")]
        pub datatype: ::prost::alloc::string::String,
        #[prost(int64, repeated, tag = "3")]
        pub shape: ::prost::alloc::vec::Vec<i64>,
        #[prost(btree_map = "string, message", tag = "4")]
        pub parameters: ::prost::alloc::collections::BTreeMap<
            ::prost::alloc::string::String,
            super::InferParameter,
        >,
        #[prost(message, optional, tag = "5")]
        pub contents: ::core::option::Option<super::InferTensorContents>,
    }
    #[derive(Clone, PartialEq, ::prost::Message)]
    pub struct InferRequestedOutputTensor {
        #[prost(string, tag = "1")]
        pub name: ::prost::alloc::string::String,
        #[prost(btree_map = "string, message", tag = "2")]
        pub parameters: ::prost::alloc::collections::BTreeMap<
            ::prost::alloc::string::String,
            super::InferParameter,
        >,
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ModelInferResponse {
    #[prost(string, tag = "1")]
    pub model_name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub model_version: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub id: ::prost::alloc::string::String,
    #[prost(btree_map = "string, message", tag = "4")]
    pub parameters:
        ::prost::alloc::collections::BTreeMap<::prost::alloc::string::String, InferParameter>,
    #[prost(message, repeated, tag = "5")]
    pub outputs: ::prost::alloc::vec::Vec<model_infer_response::InferOutputTensor>,
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub raw_output_contents: ::prost::alloc::vec::Vec<::prost::bytes::Bytes>,
}
/// Nested message and enum types in `ModelInferResponse`.
pub mod model_infer_response {
    #[derive(Clone, PartialEq, ::prost::Message)]
    pub struct InferOutputTensor {
        #[prost(string, tag = "1")]
        pub name: ::prost::alloc::string::String,
        #[prost(string, tag = "2")]
        pub datatype: ::prost::alloc::string::String,
        #[prost(int64, repeated, tag = "3")]
        pub shape: ::prost::alloc::vec::Vec<i64>,
        #[prost(btree_map = "string, message", tag = "4")]
        pub parameters: ::prost::alloc::collections::BTreeMap<
            ::prost::alloc::string::String,
            super::InferParameter,
        >,
        #[prost(message, optional, tag = "5")]
        pub contents: ::core::option::Option<super::InferTensorContents>,
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ModelStreamInferResponse {
    #[prost(string, tag = "1")]
    pub error_message: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub infer_response: ::core::option::Option<ModelInferResponse>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ModelConfigRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub version: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ModelConfigResponse {
    #[prost(message, optional, tag = "1")]
    pub config: ::core::option::Option<ModelConfig>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ModelConfig {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub platform: ::prost::alloc::string::String,
    #[prost(int32, tag = "4")]
    pub max_batch_size: i32,
    #[prost(message, repeated, tag = "5")]
    pub input: ::prost::alloc::vec::Vec<ModelInput>,
    #[prost(message, repeated, tag = "6")]
    pub output: ::prost::alloc::vec::Vec<ModelOutput>,
    #[prost(message, optional, tag = "11")]
    pub dynamic_batching: ::core::option::Option<ModelDynamicBatching>,
    #[prost(btree_map = "string, message", tag = "14")]
    pub parameters:
        ::prost::alloc::collections::BTreeMap<::prost::alloc::string::String, ModelParameter>,
    #[prost(string, tag = "17")]
    pub backend: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "19")]
    pub model_transaction_policy: ::core::option::Option<ModelTransactionPolicy>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ModelInput {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(enumeration = "DataType", tag = "2")]
    pub data_type: i32,
    #[prost(int64, repeated, tag = "4")]
    pub dims: ::prost::alloc::vec::Vec<i64>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ModelOutput {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(enumeration = "DataType", tag = "2")]
    pub data_type: i32,
    #[prost(int64, repeated, tag = "3")]
    pub dims: ::prost::alloc::vec::Vec<i64>,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ModelDynamicBatching {}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ModelParameter {
    #[prost(string, tag = "1")]
    pub string_value: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ModelTransactionPolicy {
    #[prost(bool, tag = "1")]
    pub decoupled: bool,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ModelStatisticsRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub version: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ModelStatisticsResponse {
    #[prost(message, repeated, tag = "1")]
    pub model_stats: ::prost::alloc::vec::Vec<ModelStatistics>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ModelStatistics {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub version: ::prost::alloc::string::String,
    #[prost(uint64, tag = "3")]
    pub last_inference: u64,
    #[prost(uint64, tag = "4")]
    pub inference_count: u64,
    #[prost(uint64, tag = "5")]
    pub execution_count: u64,
    #[prost(message, optional, tag = "6")]
    pub inference_stats: ::core::option::Option<InferStatistics>,
    #[prost(message, repeated, tag = "7")]
    pub batch_stats: ::prost::alloc::vec::Vec<InferBatchStatistics>,
    #[prost(message, repeated, tag = "8")]
    pub memory_usage: ::prost::alloc::vec::Vec<MemoryUsage>,
    #[prost(btree_map = "string, message", tag = "9")]
    pub response_stats: ::prost::alloc::collections::BTreeMap<
        ::prost::alloc::string::String,
        InferResponseStatistics,
    >,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct StatisticDuration {
    #[prost(uint64, tag = "1")]
    pub count: u64,
    #[prost(uint64, tag = "2")]
    pub ns: u64,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct InferStatistics {
    #[prost(message, optional, tag = "1")]
    pub success: ::core::option::Option<StatisticDuration>,
    #[prost(message, optional, tag = "2")]
    pub fail: ::core::option::Option<StatisticDuration>,
    #[prost(message, optional, tag = "3")]
    pub queue: ::core::option::Option<StatisticDuration>,
    #[prost(message, optional, tag = "4")]
    pub compute_input: ::core::option::Option<StatisticDuration>,
    #[prost(message, optional, tag = "5")]
    pub compute_infer: ::core::option::Option<StatisticDuration>,
    #[prost(message, optional, tag = "6")]
    pub compute_output: ::core::option::Option<StatisticDuration>,
    #[prost(message, optional, tag = "7")]
    pub cache_hit: ::core::option::Option<StatisticDuration>,
    #[prost(message, optional, tag = "8")]
    pub cache_miss: ::core::option::Option<StatisticDuration>,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct InferBatchStatistics {
    #[prost(uint64, tag = "1")]
    pub batch_size: u64,
    #[prost(message, optional, tag = "2")]
    pub compute_input: ::core::option::Option<StatisticDuration>,
    #[prost(message, optional, tag = "3")]
    pub compute_infer: ::core::option::Option<StatisticDuration>,
    #[prost(message, optional, tag = "4")]
    pub compute_output: ::core::option::Option<StatisticDuration>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct MemoryUsage {
    #[prost(string, tag = "1")]
    pub r#type: ::prost::alloc::string::String,
    #[prost(int64, tag = "2")]
    pub id: i64,
    #[prost(uint64, tag = "3")]
    pub byte_size: u64,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct InferResponseStatistics {
    #[prost(message, optional, tag = "1")]
    pub compute_infer: ::core::option::Option<StatisticDuration>,
    #[prost(message, optional, tag = "2")]
    pub compute_output: ::core::option::Option<StatisticDuration>,
    #[prost(message, optional, tag = "3")]
    pub success: ::core::option::Option<StatisticDuration>,
    #[prost(message, optional, tag = "4")]
    pub fail: ::core::option::Option<StatisticDuration>,
    #[prost(message, optional, tag = "5")]
    pub empty_response: ::core::option::Option<StatisticDuration>,
    #[prost(message, optional, tag = "6")]
    pub cancel: ::core::option::Option<StatisticDuration>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ModelRepositoryParameter {
    #[prost(
        oneof = "model_repository_parameter::ParameterChoice",
        tags = "1, 2, 3, 4"
    )]
    pub parameter_choice: ::core::option::Option<model_repository_parameter::ParameterChoice>,
}
/// Nested message and enum types in `ModelRepositoryParameter`.
pub mod model_repository_parameter {
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Oneof)]
    pub enum ParameterChoice {
        #[prost(bool, tag = "1")]
        BoolParam(bool),
        #[prost(int64, tag = "2")]
        Int64Param(i64),
        #[prost(string, tag = "3")]
        StringParam(::prost::alloc::string::String),
        #[prost(bytes, tag = "4")]
        BytesParam(::prost::bytes::Bytes),
    }
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct RepositoryIndexRequest {
    #[prost(string, tag = "1")]
    pub repository_name: ::prost::alloc::string::String,
    #[prost(bool, tag = "2")]
    pub ready: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RepositoryIndexResponse {
    #[prost(message, repeated, tag = "1")]
    pub models: ::prost::alloc::vec::Vec<repository_index_response::ModelIndex>,
}
/// Nested message and enum types in `RepositoryIndexResponse`.
pub mod repository_index_response {
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct ModelIndex {
        #[prost(string, tag = "1")]
        pub name: ::prost::alloc::string::String,
        #[prost(string, tag = "2")]
        pub version: ::prost::alloc::string::String,
        #[prost(string, tag = "3")]
        pub state: ::prost::alloc::string::String,
        #[prost(string, tag = "4")]
        pub reason: ::prost::alloc::string::String,
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RepositoryModelLoadRequest {
    #[prost(string, tag = "1")]
    pub repository_name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub model_name: ::prost::alloc::string::String,
    #[prost(btree_map = "string, message", tag = "3")]
    pub parameters: ::prost::alloc::collections::BTreeMap<
        ::prost::alloc::string::String,
        ModelRepositoryParameter,
    >,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct RepositoryModelLoadResponse {}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RepositoryModelUnloadRequest {
    #[prost(string, tag = "1")]
    pub repository_name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub model_name: ::prost::alloc::string::String,
    #[prost(btree_map = "string, message", tag = "3")]
    pub parameters: ::prost::alloc::collections::BTreeMap<
        ::prost::alloc::string::String,
        ModelRepositoryParameter,
    >,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct RepositoryModelUnloadResponse {}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum DataType {
    TypeInvalid = 0,
    TypeBool = 1,
    TypeUint8 = 2,
    TypeUint16 = 3,
    TypeUint32 = 4,
    TypeUint64 = 5,
    TypeInt8 = 6,
    TypeInt16 = 7,
    TypeInt32 = 8,
    TypeInt64 = 9,
    TypeFp16 = 10,
    TypeFp32 = 11,
    TypeFp64 = 12,
    TypeString = 13,
    TypeBf16 = 14,
}
impl DataType {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::TypeInvalid => "TYPE_INVALID",
            Self::TypeBool => "TYPE_BOOL",
            Self::TypeUint8 => "TYPE_UINT8",
            Self::TypeUint16 => "TYPE_UINT16",
            Self::TypeUint32 => "TYPE_UINT32",
            Self::TypeUint64 => "TYPE_UINT64",
            Self::TypeInt8 => "TYPE_INT8",
            Self::TypeInt16 => "TYPE_INT16",
            Self::TypeInt32 => "TYPE_INT32",
            Self::TypeInt64 => "TYPE_INT64",
            Self::TypeFp16 => "TYPE_FP16",
            Self::TypeFp32 => "TYPE_FP32",
            Self::TypeFp64 => "TYPE_FP64",
            Self::TypeString => "TYPE_STRING",
            Self::TypeBf16 => "TYPE_BF16",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "TYPE_INVALID" => Some(Self::TypeInvalid),
            "TYPE_BOOL" => Some(Self::TypeBool),
            "TYPE_UINT8" => Some(Self::TypeUint8),
            "TYPE_UINT16" => Some(Self::TypeUint16),
            "TYPE_UINT32" => Some(Self::TypeUint32),
            "TYPE_UINT64" => Some(Self::TypeUint64),
            "TYPE_INT8" => Some(Self::TypeInt8),
            "TYPE_INT16" => Some(Self::TypeInt16),
            "TYPE_INT32" => Some(Self::TypeInt32),
            "TYPE_INT64" => Some(Self::TypeInt64),
            "TYPE_FP16" => Some(Self::TypeFp16),
            "TYPE_FP32" => Some(Self::TypeFp32),
            "TYPE_FP64" => Some(Self::TypeFp64),
            "TYPE_STRING" => Some(Self::TypeString),
            "TYPE_BF16" => Some(Self::TypeBf16),
            _ => None,
        }
    }
}
