//! One inference, from body to response.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
};
use hyper::{Response, StatusCode};

use super::backend::{Backend, InferAnswer, InferError};
use super::body;
use super::decode::{DecodedRequest, Framing, JSON_LENGTH, Target, WantedOutputs, decode};
use super::encoding::{Coding, compress, decompress};
use super::error::{Failure, ProtocolError};
use super::limits::Limits;
use super::reply::{Reply, with_body};
use super::response::{Encoded, encode};

/// Bytes decoded or encoded on a connection's own thread; more go to the
/// blocking pool, so that one client's megabytes do not delay the others.
const INLINE_BYTES_MAX: usize = 256 << 10;

/// What the headers say of the bodies.
#[derive(Clone, Copy)]
struct Wire {
    framing: Framing,
    request: Coding,
    response: Coding,
}

impl Wire {
    fn of(headers: &HeaderMap) -> Result<Self, ProtocolError> {
        let bytes = |name: &HeaderName| headers.get(name).map(HeaderValue::as_bytes);
        Ok(Self {
            framing: Framing::from_header(bytes(&JSON_LENGTH))?,
            request: Coding::of_request(bytes(&CONTENT_ENCODING))?,
            response: Coding::of_response(bytes(&ACCEPT_ENCODING)),
        })
    }
}

/// Serves `POST .../infer` of an app whose name is known.
pub(super) async fn infer<B: Backend>(
    backend: &Arc<B>,
    limits: &Limits,
    (app, variant): (usize, Option<usize>),
    headers: &HeaderMap,
    body: &mut Incoming,
) -> Result<Reply, Failure> {
    let wire = Wire::of(headers)?;
    let body = body::read(body, limits).await?;
    let large = wire.request != Coding::Identity || body.len() > INLINE_BYTES_MAX;
    let limit_bytes = limits.max_body_bytes;
    let request = if large {
        let backend = Arc::clone(backend);
        let unpacked = move || unpack(&*backend, (app, variant), wire, &body, limit_bytes);
        off_thread(unpacked).await?
    } else {
        unpack(&**backend, (app, variant), wire, &body, limit_bytes)
    }?;
    let DecodedRequest { call, id, wanted } = request;
    let answer = backend.infer(call).await?;
    let large = wire.response != Coding::Identity || answered_bytes(&answer) > INLINE_BYTES_MAX;
    if large {
        let backend = Arc::clone(backend);
        let packed = move || pack(&*backend, app, id.as_deref(), &wanted, &answer, wire);
        off_thread(packed).await?
    } else {
        pack(&**backend, app, id.as_deref(), &wanted, &answer, wire)
    }
}

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| InferError::Failed(format!("the codec stopped: {error}")).into())
}

fn answered_bytes(answer: &InferAnswer) -> usize {
    let sizes = answer
        .outputs
        .iter()
        .map(|output| output.tensor.data.len() * 8);
    sizes.sum()
}

fn unpack<B: Backend>(
    backend: &B,
    (app_index, variant): (usize, Option<usize>),
    wire: Wire,
    body: &Bytes,
    limit_bytes: usize,
) -> Result<DecodedRequest, ProtocolError> {
    let plain = decompress(wire.request, body, limit_bytes)?;
    let target = Target {
        app_index,
        app: &backend.apps()[app_index],
        variant,
        framing: wire.framing,
    };
    decode(target, &plain)
}

fn pack<B: Backend>(
    backend: &B,
    app: usize,
    id: Option<&str>,
    wanted: &WantedOutputs,
    answer: &InferAnswer,
    wire: Wire,
) -> Result<Reply, Failure> {
    let Encoded { bytes, json_length } = encode(&backend.apps()[app], id, wanted, answer)?;
    let bytes = compress(wire.response, bytes)
        .map_err(|error| InferError::Failed(format!("compressing the answer: {error}")))?;
    let mut response: Response<Full<Bytes>> = with_body(StatusCode::OK, bytes.into());
    let headers = response.headers_mut();
    if let Some(json_length) = json_length {
        let binary = HeaderValue::from_static("application/octet-stream");
        headers.insert(CONTENT_TYPE, binary);
        headers.insert(JSON_LENGTH.clone(), HeaderValue::from(json_length));
    }
    if wire.response != Coding::Identity {
        let coding = HeaderValue::from_static(wire.response.name());
        headers.insert(CONTENT_ENCODING, coding);
    }
    Ok(response)
}
