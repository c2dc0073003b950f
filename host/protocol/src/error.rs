//! Why a request ends without the answer it asked for, and the one mapping of that to HTTP.

use std::sync::Arc;

use http::header::{ALLOW, CONNECTION, HeaderName, HeaderValue, RETRY_AFTER};
use http::status::StatusCode;
use serde::Serialize;
use thiserror::Error;

use crate::excerpt::{REASON_CHARS_MAX, cut, excerpt};

/// Largest message of a failure, in bytes. Every message is made of bounded parts; this bound
/// holds for the sum of them and for messages of the backend.
const MESSAGE_BYTES_MAX: usize = 2_048;

/// The `reason` in the answer to a request that the policy refused, as metrics name the outcome.
/// Longest id of a client that an error repeats, in bytes.
const ID_BYTES_MAX: usize = 256;

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
    #[error("path: unknown app {:?}; apps of this server: {known}", excerpt(name))]
    UnknownApp {
        /// The name in the path.
        name: String,
        /// The names of all apps.
        known: String,
    },
    /// The path pins a variant that the app does not have. HTTP 404.
    #[error(
        "path: unknown variant {:?} of app {app:?}; its variants: {known}",
        excerpt(name)
    )]
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
        "path: no endpoint at {:?}; endpoints start with /v2/health/, /v2/models/ or \
         /v2/repository/",
        excerpt(path)
    )]
    UnknownPath {
        /// The path of the request.
        path: String,
    },
    /// The gRPC port has no call of this path. HTTP 404.
    #[error(
        "path: no call {:?}; this port has grpc.health.v1.Health, and \
         inference.GRPCInferenceService without shared memory, trace and log settings",
        excerpt(path)
    )]
    UnknownCall {
        /// The path of the call.
        path: String,
    },
    /// The endpoint has another method. HTTP 405.
    #[error(
        "method: {:?} does not accept {}; allowed: {allow}",
        excerpt(path),
        excerpt(method)
    )]
    MethodNotAllowed {
        /// The method of the request.
        method: String,
        /// The path of the request.
        path: String,
        /// The methods of the endpoint, as the `Allow` header lists them.
        allow: &'static str,
    },
    /// The body is larger than the limit. HTTP 413.
    #[error("{field}: the body has {found}, the limit is {limit_bytes} bytes{scope}")]
    BodyTooLarge {
        /// `Content-Length`, `body` or `Content-Encoding` (once decompressed).
        field: &'static str,
        /// Its size, as far as it is known.
        found: String,
        /// The limit in bytes.
        limit_bytes: usize,
        /// The requests that the limit is for, such as ` for 8 rows of app "heart"`; empty for
        /// the limit of all requests.
        scope: String,
    },
    /// The body did not arrive in time. HTTP 408.
    #[error("body: only {received_bytes} bytes arrived within the limit of {limit_ms} ms")]
    BodyTimeout {
        /// Bytes that had arrived.
        received_bytes: usize,
        /// The limit in milliseconds.
        limit_ms: u128,
    },
    /// The body arrives more slowly than the server waits for. HTTP 408.
    #[error(
        "body: {received_bytes} bytes arrived in {elapsed_ms} ms, the least rate is {least_rate} \
         bytes/s (server.rate_min)"
    )]
    BodyTooSlow {
        /// Bytes that had arrived.
        received_bytes: usize,
        /// Since the end of the headers, in milliseconds.
        elapsed_ms: u128,
        /// Bytes per second.
        least_rate: u64,
    },
    /// The server does not allow the request on this port. HTTP 403.
    #[error("{field}: {reason}")]
    Forbidden {
        /// The field at fault, such as `Origin`.
        field: &'static str,
        /// The rule, and the way out.
        reason: String,
    },
    /// A resource that requests share had no room within the wait. HTTP 503.
    #[error("busy: {resource}")]
    Busy {
        /// The resource, with its bound.
        resource: String,
        /// Seconds after which the client may try again.
        retry_after_s: u32,
    },
    /// The body has a content coding that the server does not know. HTTP 415.
    #[error(
        "Content-Encoding: {:?} is not supported; supported: gzip, deflate, identity",
        excerpt(found)
    )]
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
    /// The policy rejected the request. HTTP 429.
    #[error("refused by the policy: {policy} rejected this request in window {window}")]
    RefusedByPolicy {
        /// Label of the policy.
        policy: Arc<str>,
        /// The window of the decision.
        window: u64,
    },
    /// The requests ahead leave no time to answer before the deadline. HTTP 429.
    #[error("overloaded: the requests ahead leave no time to answer before the deadline")]
    Overloaded {
        /// Seconds after which the client may try again.
        retry_after_s: u32,
    },
    /// The app asks for more than its fair share of the workers, and its short queue is full. HTTP 429.
    #[error(
        "above share: the app asks for more than its fair share of the workers, and its queue is \
         full; ask less often, or add workers"
    )]
    AboveShare {
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
    #[error("{error}")]
    Infer {
        /// Why.
        error: InferError,
        /// The id that the client gave to its request.
        id: Option<String>,
    },
}

/// Body of every failure.
#[derive(Serialize)]
struct ErrorBody<'a> {
    error: &'a str,
    #[serde(flatten)]
    refusal: Option<RefusalBody<'a>>,
}

/// Further fields of the answer to a request that the backend did not answer.
#[derive(Default, Serialize)]
struct RefusalBody<'a> {
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
}

// === impl ProtocolError ===

impl ProtocolError {
    /// A field with a wrong value. Both texts are cut: they may repeat the request.
    pub fn malformed(field: impl AsRef<str>, reason: impl AsRef<str>) -> Self {
        Self::Malformed {
            field: excerpt(field.as_ref()).into_owned(),
            reason: cut(reason.as_ref(), REASON_CHARS_MAX).into_owned(),
        }
    }

    /// The HTTP status of the answer.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Malformed { .. } => StatusCode::BAD_REQUEST,
            Self::UnknownApp { .. }
            | Self::UnknownVariant { .. }
            | Self::UnknownPath { .. }
            | Self::UnknownCall { .. } => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTimeout { .. } | Self::BodyTooSlow { .. } => StatusCode::REQUEST_TIMEOUT,
            Self::Forbidden { .. } => StatusCode::FORBIDDEN,
            Self::Busy { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::UnsupportedEncoding { .. } => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }
}

// === impl InferError ===

impl InferError {
    /// The HTTP status of the answer.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::QueueFull { .. }
            | Self::Overloaded { .. }
            | Self::AboveShare { .. }
            | Self::RefusedByPolicy { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::NotReady(_) | Self::Draining => StatusCode::SERVICE_UNAVAILABLE,
            Self::DeadlineDropped { .. } | Self::DeadlineTooShort => StatusCode::GATEWAY_TIMEOUT,
            Self::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl InferError {
    /// The code of the reason, as bodies have it.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::QueueFull { .. } => "queue_full",
            Self::NotReady(_) => "not_ready",
            Self::Draining => "draining",
            Self::RefusedByPolicy { .. } => "rejected_by_policy",
            Self::Overloaded { .. } => "overloaded",
            Self::AboveShare { .. } => "above_share",
            Self::DeadlineTooShort => "deadline_too_short",
            Self::DeadlineDropped { .. } => "dropped",
            Self::Failed(_) => "failed",
        }
    }

    fn fields(&self) -> RefusalBody<'_> {
        let fields = RefusalBody {
            reason: self.reason(),
            ..RefusalBody::default()
        };
        match self {
            Self::RefusedByPolicy { policy, window } => RefusalBody {
                policy: Some(policy),
                window: Some(*window),
                ..fields
            },
            Self::DeadlineDropped { waited_us } => RefusalBody {
                waited_us: Some(*waited_us),
                ..fields
            },
            _ => fields,
        }
    }
}

// === impl RequestFailure ===

impl From<InferError> for RequestFailure {
    fn from(error: InferError) -> Self {
        Self::Infer { error, id: None }
    }
}

impl RequestFailure {
    /// The HTTP status of the answer.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Protocol(error) => error.status(),
            Self::Infer { error, .. } => error.status(),
        }
    }

    /// The text of the failure, of two kilobytes at most.
    pub fn message(&self) -> String {
        let mut message = self.to_string();
        if message.len() > MESSAGE_BYTES_MAX {
            message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
            message.push('…');
        }
        message
    }

    /// Seconds after which the client may try again, if waiting helps.
    pub const fn retry_after_s(&self) -> Option<u32> {
        match self {
            Self::Infer {
                error:
                    InferError::QueueFull { retry_after_s, .. }
                    | InferError::Overloaded { retry_after_s }
                    | InferError::AboveShare { retry_after_s },
                ..
            }
            | Self::Protocol(ProtocolError::Busy { retry_after_s, .. }) => Some(*retry_after_s),
            _ => None,
        }
    }

    /// The JSON body of the answer: `{"error": "..."}`, of a few kilobytes at most. A request that was not
    /// answered has a code, and the id that its client gave.
    pub fn body(&self) -> Vec<u8> {
        let message = self.message();
        let refusal = match self {
            Self::Infer { error, id } => Some(RefusalBody {
                id: id.as_deref().filter(|id| id.len() <= ID_BYTES_MAX),
                ..error.fields()
            }),
            Self::Protocol(_) => None,
        };
        let error = &*message;
        serde_json::to_vec(&ErrorBody { error, refusal })
            .expect("strings and one number are always valid JSON")
    }

    /// The header that this status calls for, such as `Retry-After`.
    pub fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        if let Some(retry_after_s) = self.retry_after_s() {
            return Some((RETRY_AFTER, HeaderValue::from(retry_after_s)));
        }
        match self {
            Self::Protocol(ProtocolError::MethodNotAllowed { allow, .. }) => {
                Some((ALLOW, HeaderValue::from_static(allow)))
            }
            // The rest of the body may still arrive: the connection cannot be reused.
            Self::Protocol(
                ProtocolError::BodyTimeout { .. } | ProtocolError::BodyTooSlow { .. },
            ) => Some((CONNECTION, HeaderValue::from_static("close"))),
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
        let body = br#"{"error":"queue full: pending requests","reason":"queue_full"}"#;
        assert_eq!(full.body(), body);

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

    #[test]
    fn a_refusal_by_the_policy_names_request_window_policy_and_reason() {
        let error = InferError::RefusedByPolicy {
            policy: "stability@3".into(),
            window: 12,
        };
        let with = |id: Option<&str>| RequestFailure::Infer {
            error: error.clone(),
            id: id.map(str::to_owned),
        };
        let text = "refused by the policy: stability@3 rejected this request in window 12";
        let fields = r#""reason":"rejected_by_policy","policy":"stability@3","window":12"#;
        let whole = format!(r#"{{"error":"{text}",{fields},"id":"r1"}}"#);
        assert_eq!(with(Some("r1")).body(), whole.as_bytes());
        assert_eq!(error.status(), StatusCode::TOO_MANY_REQUESTS);
        let without = format!(r#"{{"error":"{text}",{fields}}}"#);
        assert_eq!(with(None).body(), without.as_bytes());
        // A long id is not repeated.
        assert_eq!(with(Some(&"r".repeat(300))).body(), without.as_bytes());
    }

    #[test]
    fn a_late_request_names_its_wait_and_its_id() {
        let failure = RequestFailure::Infer {
            error: InferError::DeadlineDropped { waited_us: 7 },
            id: Some("r1".to_owned()),
        };
        let body = String::from_utf8(failure.body()).unwrap();
        let fields = r#""reason":"dropped","waited_us":7,"id":"r1"}"#;
        assert!(body.ends_with(fields), "{body}");
    }

    #[test]
    fn the_body_of_an_error_is_bounded() {
        let long = "\u{1}é".repeat(1 << 20);
        let errors = [
            RequestFailure::from(ProtocolError::malformed(&long, &long)),
            RequestFailure::from(ProtocolError::UnknownPath { path: long.clone() }),
            RequestFailure::from(InferError::Failed(long)),
        ];
        for error in errors {
            let length = error.body().len();
            assert!(length < 16_384, "{length}");
        }
    }
}
