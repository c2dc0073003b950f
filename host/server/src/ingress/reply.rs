//! HTTP responses.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use switchyard_protocol::RequestFailure;

use super::connection_state::Counted;

/// A response whose body is whole.
pub(super) type Reply = Response<Full<Bytes>>;

/// The body of a reply over HTTP/2, which counts until the client has taken it.
pub(super) struct CountedBody {
    body: Full<Bytes>,
    _untaken: Counted,
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Status 200, and `value` as the JSON body.
pub(super) fn json<T: Serialize>(value: &T) -> Reply {
    let body = serde_json::to_vec(value)
        .expect("the ingress serialises only its own structs with string keys, which cannot fail");
    json_bytes(StatusCode::OK, body.into())
}

/// A JSON body that is already written.
pub(super) fn json_bytes(status: StatusCode, body: Bytes) -> Reply {
    typed_bytes(status, body, JSON)
}

/// A body of this type.
pub(super) fn typed_bytes(status: StatusCode, body: Bytes, content_type: HeaderValue) -> Reply {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// The answer to a request that failed.
pub(super) fn failure(failure: &RequestFailure) -> Reply {
    let mut response = json_bytes(failure.status(), failure.body().into());
    if let Some((name, value)) = failure.header() {
        response.headers_mut().insert(name, value);
    }
    response
}

// === impl CountedBody ===

impl CountedBody {
    pub(super) fn new(body: Full<Bytes>, untaken: Counted) -> Self {
        Self {
            body,
            _untaken: untaken,
        }
    }
}

impl Body for CountedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
