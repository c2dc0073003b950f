//! Why a request ends without the answer it asked for, and the one mapping of that to HTTP.

use http::header::{ALLOW, CONNECTION, HeaderName, HeaderValue, RETRY_AFTER};
use http::status::StatusCode;
use serde::Serialize;
use thiserror::Error;

/// A wrong request: the HTTP port refuses it, and the backend never sees it. The message begins
/// with the field at fault.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// A field of the body, a header or the path has a wrong value. HTTP 400.
    #[error("{field}: {reason}")]
    Malformed {
        /// The field at fault, such as `inputs[0].data`.
        field: String,
        /// The expected and the found value.
        reason: String,
    },
    /// The path names an app that the server does not have. HTTP 404.
    #[error("path: unknown app {name:?}; apps of this server: {known}")]
    UnknownApp {
        /// The name in the path.
        name: String,
        /// The names of all apps.
        known: String,
    },
    /// The path pins a variant that the app does not have. HTTP 404.
    #[error("path: unknown variant {name:?} of app {app:?}; its variants: {known}")]
    UnknownVariant {
        /// The app.
        app: String,
        /// The name in the path.
        name: String,
        /// The names of its variants.
        known: String,
    },
    /// No endpoint has this path. HTTP 404.
    #[error(
        "path: no endpoint at {path:?}; endpoints start with /v2/health/, /v2/models/ or \
         /v2/repository/"
    )]
    UnknownPath {
        /// The path of the request.
        path: String,
    },
    /// The endpoint has another method. HTTP 405.
    #[error("method: {path:?} does not accept {method}; allowed: {allow}")]
    MethodNotAllowed {
        /// The method of the request.
        method: String,
        /// The path of the request.
        path: String,
        /// The methods of the endpoint, as the `Allow` header lists them.
        allow: &'static str,
    },
    /// The body is larger than the limit. HTTP 413.
    #[error("{field}: the body has {found}, the limit is {limit_bytes} bytes")]
    BodyTooLarge {
        /// `Content-Length`, `body` or `Content-Encoding` (once decompressed).
        field: &'static str,
        /// Its size, as far as it is known.
        found: String,
        /// The limit in bytes.
        limit_bytes: usize,
    },
    /// The body did not arrive in time. HTTP 408.
    #[error("body: only {received_bytes} bytes arrived within the limit of {limit_ms} ms")]
    BodyTimeout {
        /// Bytes that had arrived.
        received_bytes: usize,
        /// The limit in milliseconds.
        limit_ms: u128,
    },
    /// The body has a content coding that the server does not know. HTTP 415.
    #[error("Content-Encoding: {found:?} is not supported; supported: gzip, deflate, identity")]
    UnsupportedEncoding {
        /// The header's value.
        found: String,
    },
}

/// Why the backend gave no answer to a call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InferError {
    /// A bounded queue is full. HTTP 429.
    #[error("queue full: {queue}")]
    QueueFull {
        /// Which queue, with its bound.
        queue: String,
        /// Seconds after which the client may try again.
        retry_after_s: u32,
    },
    /// The app or variant cannot serve now. HTTP 503.
    #[error("not ready: {0}")]
    NotReady(String),
    /// The server is shutting down. HTTP 503.
    #[error("draining: the server is shutting down")]
    Draining,
    /// The policy rejected the request. HTTP 503.
    #[error("refused by the policy: {0}")]
    RefusedByPolicy(String),
    /// The requests ahead leave no time to answer before the deadline. HTTP 429.
    #[error("overloaded: the requests ahead leave no time to answer before the deadline")]
    Overloaded {
        /// Seconds after which the client may try again.
        retry_after_s: u32,
    },
    /// No variant is fast enough for the deadline, even on an idle worker. HTTP 504.
    #[error(
        "deadline too short: even the fastest variant takes longer on an idle worker; \
         allow more time with the parameter timeout, in microseconds"
    )]
    DeadlineTooShort,
    /// The deadline passed or could no longer be met, and the request was dropped unserved. HTTP
    /// 504.
    #[error(
        "dropped: no answer was possible before the deadline, after {waited_us} us in the queue"
    )]
    DeadlineDropped {
        /// Microseconds since arrival.
        waited_us: u64,
    },
    /// The backend failed on the request. HTTP 500.
    #[error("failed: {0}")]
    Failed(String),
}

/// Either side's reason to end a request without the answer it asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestFailure {
    /// The client's request is wrong.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The backend gave no answer.
    #[error(transparent)]
    Infer(#[from] InferError),
}

/// Body of every failure.
#[derive(Serialize)]
struct ErrorBody {
    error: String,
}

// === impl ProtocolError ===

impl ProtocolError {
    /// A field with a wrong value.
    pub fn malformed(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Malformed {
            field: field.into(),
            reason: reason.into(),
        }
    }

    /// The HTTP status of the answer.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Malformed { .. } => StatusCode::BAD_REQUEST,
            Self::UnknownApp { .. } | Self::UnknownVariant { .. } | Self::UnknownPath { .. } => {
                StatusCode::NOT_FOUND
            }
            Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTimeout { .. } => StatusCode::REQUEST_TIMEOUT,
            Self::UnsupportedEncoding { .. } => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }
}

// === impl InferError ===

impl InferError {
    /// The HTTP status of the answer.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::QueueFull { .. } | Self::Overloaded { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::NotReady(_) | Self::Draining | Self::RefusedByPolicy(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::DeadlineDropped { .. } | Self::DeadlineTooShort => StatusCode::GATEWAY_TIMEOUT,
            Self::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

// === impl RequestFailure ===

impl RequestFailure {
    /// The HTTP status of the answer.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Protocol(error) => error.status(),
            Self::Infer(error) => error.status(),
        }
    }

    /// The JSON body of the answer: `{"error": "..."}`.
    pub fn body(&self) -> Vec<u8> {
        let error = self.to_string();
        serde_json::to_vec(&ErrorBody { error }).expect("one string is always valid JSON")
    }

    /// The header that this status calls for, such as `Retry-After`.
    pub fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Self::Infer(
                InferError::QueueFull { retry_after_s, .. }
                | InferError::Overloaded { retry_after_s },
            ) => Some((RETRY_AFTER, HeaderValue::from(*retry_after_s))),
            Self::Protocol(ProtocolError::MethodNotAllowed { allow, .. }) => {
                Some((ALLOW, HeaderValue::from_static(allow)))
            }
            // The rest of the body may still arrive: the connection cannot be reused.
            Self::Protocol(ProtocolError::BodyTimeout { .. }) => {
                Some((CONNECTION, HeaderValue::from_static("close")))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_a_status_a_header_and_a_body() {
        let full = RequestFailure::from(InferError::QueueFull {
            queue: "pending requests".to_owned(),
            retry_after_s: 2,
        });
        assert_eq!(full.status(), 429);
        assert_eq!(full.header(), Some((RETRY_AFTER, HeaderValue::from(2_u32))));
        assert_eq!(full.body(), br#"{"error":"queue full: pending requests"}"#);

        let late = RequestFailure::from(ProtocolError::BodyTimeout {
            received_bytes: 4,
            limit_ms: 100,
        });
        assert_eq!(late.status(), 408);
        assert_eq!(late.header(), Some((CONNECTION, "close".parse().unwrap())));

        let wrong = RequestFailure::from(ProtocolError::malformed("id", "\"7\""));
        assert_eq!(
            (wrong.status(), wrong.header()),
            (StatusCode::BAD_REQUEST, None)
        );
        assert_eq!(wrong.body(), br#"{"error":"id: \"7\""}"#);
    }
}
