//! One inference, from body to response.

use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use switchyard_protocol::{
    AppIndex, BodyFormat, ContentCoding, DecodeTarget, DecodedRequest, EncodedAnswer, InferAnswer,
    InferError, JSON_LENGTH, ProtocolError, RequestFailure, VariantIndex, WantedOutputs, compress,
    decode, decompress, encode,
};

use super::backend::Backend;
use super::body;
use super::limits::Limits;
use super::reply::{Reply, json_bytes};

/// Largest body that is decoded or encoded on a connection's thread, in bytes. Larger ones go to
/// the blocking pool, so that one client's megabytes do not delay the others.
const INLINE_BYTES_MAX: usize = 256 << 10;

/// Serves `POST .../infer` of an app that exists.
pub(super) async fn infer<B: Backend>(
    backend: &Arc<B>,
    limits: &Limits,
    (app, variant): (AppIndex, Option<VariantIndex>),
    headers: &HeaderMap,
    body: &mut Incoming,
) -> Result<Reply, RequestFailure> {
    let format = BodyFormat::of(headers)?;
    let body = body::read(body, limits).await?;
    let large = format.request != ContentCoding::Identity || body.len() > INLINE_BYTES_MAX;
    let limit_bytes = limits.max_body_bytes;
    let request = if large {
        let backend = Arc::clone(backend);
        let unpacked = move || unpack(&*backend, (app, variant), format, &body, limit_bytes);
        off_thread(unpacked).await?
    } else {
        unpack(&**backend, (app, variant), format, &body, limit_bytes)
    }?;
    let DecodedRequest { call, id, wanted } = request;
    let answer = backend.infer(call).await?;
    let large =
        format.answer != ContentCoding::Identity || estimated_bytes(&answer) > INLINE_BYTES_MAX;
    if large {
        let backend = Arc::clone(backend);
        let packed = move || pack(&*backend, app, id.as_deref(), &wanted, &answer, format);
        off_thread(packed).await?
    } else {
        pack(&**backend, app, id.as_deref(), &wanted, &answer, format)
    }
}

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RequestFailure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| InferError::Failed(format!("the codec stopped: {error}")).into())
}

/// At most 8 bytes per number.
fn estimated_bytes(answer: &InferAnswer) -> usize {
    let sizes = answer
        .outputs
        .iter()
        .map(|output| output.tensor.data.len() * 8);
    sizes.sum()
}

fn unpack<B: Backend>(
    backend: &B,
    (app_index, variant): (AppIndex, Option<VariantIndex>),
    format: BodyFormat,
    body: &Bytes,
    limit_bytes: usize,
) -> Result<DecodedRequest, ProtocolError> {
    let plain = decompress(format.request, body, limit_bytes)?;
    let target = DecodeTarget {
        app_index,
        app: &backend.apps()[app_index.0],
        variant,
        framing: format.framing,
    };
    decode(target, &plain)
}

fn pack<B: Backend>(
    backend: &B,
    app: AppIndex,
    id: Option<&str>,
    wanted: &WantedOutputs,
    answer: &InferAnswer,
    format: BodyFormat,
) -> Result<Reply, RequestFailure> {
    let encoded = encode(&backend.apps()[app.0], id, wanted, answer)?;
    let EncodedAnswer { bytes, json_length } = encoded;
    let bytes = compress(format.answer, bytes)
        .map_err(|error| InferError::Failed(format!("compressing the answer: {error}")))?;
    let mut response = json_bytes(StatusCode::OK, bytes.into());
    let headers = response.headers_mut();
    if let Some(json_length) = json_length {
        let binary = HeaderValue::from_static("application/octet-stream");
        headers.insert(CONTENT_TYPE, binary);
        headers.insert(JSON_LENGTH.clone(), HeaderValue::from(json_length));
    }
    if format.answer != ContentCoding::Identity {
        let coding = HeaderValue::from_static(format.answer.name());
        headers.insert(CONTENT_ENCODING, coding);
    }
    Ok(response)
}
