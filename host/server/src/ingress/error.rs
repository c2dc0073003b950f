//! What can be wrong with a request, and the one place that maps it to HTTP.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CONNECTION, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde::Serialize;
use thiserror::Error;

use super::backend::InferError;
use super::reply;

/// A request the ingress itself refuses. The message names the field.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// A field of the body, a header or the path does not hold what it must.
    #[error("{field}: {reason}")]
    Malformed {
        /// Where, such as `inputs[0].data`.
        field: String,
        /// What was expected and what was there.
        reason: String,
    },
    /// The path names an app that is not served.
    #[error("path: unknown app {name:?}; this server has: {known}")]
    UnknownApp {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The path pins a variant that the app does not have.
    #[error("path: unknown variant {name:?} of app {app:?}; it has: {known}")]
    UnknownVariant {
        /// The app.
        app: String,
        /// The variant asked for.
        name: String,
        /// The variants there are.
        known: String,
    },
    /// No endpoint has this path.
    #[error("path: nothing is served at {path:?}")]
    UnknownPath {
        /// The path asked for.
        path: String,
    },
    /// The endpoint has another method.
    #[error("method: {path:?} does not take {method}, only {allow}")]
    MethodNotAllowed {
        /// The method asked for.
        method: String,
        /// The path asked for.
        path: String,
        /// The methods it takes, as the `Allow` header lists them.
        allow: &'static str,
    },
    /// The body passes the limit.
    #[error("{field}: the body has {found}, the limit is {limit_bytes} bytes")]
    BodyTooLarge {
        /// `Content-Length`, `body` or `Content-Encoding` (once decompressed).
        field: &'static str,
        /// What is known of its size.
        found: String,
        /// The limit in bytes.
        limit_bytes: usize,
    },
    /// The body did not arrive in time.
    #[error("body: {received_bytes} bytes arrived within {limit_ms} ms, then time was up")]
    BodyTimeout {
        /// What had arrived.
        received_bytes: usize,
        /// The limit in milliseconds.
        limit_ms: u128,
    },
    /// The body is in an encoding the server cannot undo.
    #[error("Content-Encoding: {found:?} is not supported; gzip, deflate and identity are")]
    UnsupportedEncoding {
        /// The header's value.
        found: String,
    },
}

impl ProtocolError {
    /// A malformed field.
    pub(super) fn malformed(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Malformed {
            field: field.into(),
            reason: reason.into(),
        }
    }

    /// The HTTP status a client gets.
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

impl InferError {
    /// The HTTP status a client gets.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::QueueFull { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::NotReady(_) | Self::Draining | Self::RefusedByPolicy(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::DeadlineDropped { .. } => StatusCode::GATEWAY_TIMEOUT,
            Self::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Anything that ends a request without the answer it asked for.
#[derive(Debug, Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    #[error(transparent)]
    Infer(#[from] InferError),
}

impl Failure {
    /// `{"error": "..."}` with its status and the headers that status calls for.
    pub(super) fn reply(&self) -> Response<Full<Bytes>> {
        let status = match self {
            Self::Protocol(error) => error.status(),
            Self::Infer(error) => error.status(),
        };
        let mut response = reply::json(
            status,
            &ErrorBody {
                error: self.to_string(),
            },
        );
        let headers = response.headers_mut();
        match self {
            Self::Infer(InferError::QueueFull { retry_after_s, .. }) => {
                headers.insert(RETRY_AFTER, HeaderValue::from(*retry_after_s));
            }
            Self::Protocol(ProtocolError::MethodNotAllowed { allow, .. }) => {
                headers.insert(ALLOW, HeaderValue::from_static(allow));
            }
            // The rest of the body may still come: the connection cannot be reused.
            Self::Protocol(ProtocolError::BodyTimeout { .. }) => {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}

#[derive(Serialize)]
struct ErrorBody {
    error: String,
}
