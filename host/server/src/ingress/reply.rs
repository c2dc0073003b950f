//! Building HTTP responses.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

/// What every handler returns: the body is always whole.
pub(super) type Reply = Response<Full<Bytes>>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A response with `value` as its JSON body.
pub(super) fn json<T: Serialize>(status: StatusCode, value: &T) -> Reply {
    let body = serde_json::to_vec(value)
        .expect("the ingress serialises only its own structs with string keys, which cannot fail");
    with_body(status, body.into())
}

/// A response whose JSON body is already written.
pub(super) fn with_body(status: StatusCode, body: Bytes) -> Reply {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}
