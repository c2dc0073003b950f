//! The end of a call: code, message and trailers.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::error::{InferError, ProtocolError, RequestFailure};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// When the client may try again, as gRPC's retry policies read it.
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// Bytes of ASCII that a message may not hold as they are; all other bytes are escaped anyway.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// gRPC's status codes, as far as the server uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are gRPC's own")]
pub enum Code {
    Ok = 0,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The code.
    pub code: Code,
    /// The same text as over HTTP; empty for a call that succeeded.
    pub message: String,
    /// Milliseconds after which the client may try again.
    pushback_ms: Option<u64>,
}

// === impl Status ===

impl Status {
    /// The call succeeded.
    pub const OK: Self = Self {
        code: Code::Ok,
        message: String::new(),
        pushback_ms: None,
    };

    /// Writes the status into the headers or trailers of an answer.
    pub fn write(&self, headers: &mut HeaderMap) {
        headers.insert(STATUS, HeaderValue::from(self.code as u16));
        if !self.message.is_empty() {
            let text = utf8_percent_encode(&self.message, ESCAPED).to_string();
            // Only visible ASCII and spaces are left.
            if let Ok(text) = HeaderValue::try_from(text) {
                headers.insert(MESSAGE, text);
            }
        }
        if let Some(pushback_ms) = self.pushback_ms {
            headers.insert(PUSHBACK, HeaderValue::from(pushback_ms));
        }
    }
}

impl From<&RequestFailure> for Status {
    fn from(failure: &RequestFailure) -> Self {
        let code = match failure {
            RequestFailure::Protocol(error) => protocol_code(error),
            RequestFailure::Infer { error, .. } => infer_code(error),
        };
        Self {
            code,
            message: failure.message(),
            pushback_ms: failure.retry_after_s().map(|s| u64::from(s) * 1_000),
        }
    }
}

const fn protocol_code(error: &ProtocolError) -> Code {
    match error {
        ProtocolError::Malformed { .. } => Code::InvalidArgument,
        ProtocolError::UnknownApp { .. } | ProtocolError::UnknownVariant { .. } => Code::NotFound,
        ProtocolError::UnknownPath { .. }
        | ProtocolError::UnknownCall { .. }
        | ProtocolError::MethodNotAllowed { .. }
        | ProtocolError::UnsupportedEncoding { .. } => Code::Unimplemented,
        ProtocolError::BodyTooLarge { .. } => Code::ResourceExhausted,
        ProtocolError::BodyTimeout { .. } | ProtocolError::BodyTooSlow { .. } => {
            Code::DeadlineExceeded
        }
        ProtocolError::Forbidden { .. } => Code::PermissionDenied,
        ProtocolError::Busy { .. } => Code::Unavailable,
    }
}

const fn infer_code(error: &InferError) -> Code {
    match error {
        InferError::QueueFull { .. }
        | InferError::Overloaded { .. }
        | InferError::AboveShare { .. }
        | InferError::RefusedByPolicy { .. } => Code::ResourceExhausted,
        InferError::NotReady(_) | InferError::Draining => Code::Unavailable,
        InferError::DeadlineDropped { .. } | InferError::DeadlineTooShort => Code::DeadlineExceeded,
        InferError::Failed(_) => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(failure: impl Into<RequestFailure>) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        Status::from(&failure.into()).write(&mut headers);
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        let pairs = headers
            .iter()
            .map(|(name, value)| (name.to_string(), text(value)));
        pairs.collect()
    }

    #[test]
    fn a_failure_is_a_code_and_the_text_of_http() {
        let full = written(InferError::QueueFull {
            queue: "pending requests".to_owned(),
            retry_after_s: 2,
        });
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            full,
            [
                pair("grpc-status", "8"),
                pair("grpc-message", "queue full: pending requests"),
                pair("grpc-retry-pushback-ms", "2000"),
            ]
        );
        let wrong = written(ProtocolError::malformed("id", "100 % \u{1}é"));
        assert_eq!(
            wrong,
            [
                pair("grpc-status", "3"),
                pair("grpc-message", "id: 100 %25 %01%C3%A9"),
            ]
        );
    }

    #[test]
    fn a_message_is_short_enough_for_a_header() {
        let long = "\u{1}é".repeat(1 << 20);
        let [_, (_, message)] = &written(InferError::Failed(long))[..] else {
            panic!("no message");
        };
        assert!(message.len() < 8 << 10, "{}", message.len());
    }
}
