//! One inference, from body to response.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, HeaderMap, HeaderValue};
use switchyard_protocol::{
    AppIndex, AppInfo, BodyFormat, BodyFraming, BodySizes, ContentCoding, DecodeTarget,
    DecodedRequest, EncodedAnswer, InferAnswer, InferError, JSON_LENGTH, ProtocolError,
    RequestFailure, TraceParent, VariantIndex, WantedOutputs, compress, decode, decompress, encode,
};

use super::backend::Backend;
use super::body::{BodyLimit, BodyReader};
use super::limits::Limits;
use super::memory::{MemoryShare, RequestMemory};
use super::reply::{Reply, json_bytes, typed_bytes};
use super::turnstile::Turnstiles;

/// Largest body that is decoded or encoded on a connection's thread, in bytes. Larger ones go to
/// the blocking pool, so that one client's megabytes do not delay the others.
pub(super) const INLINE_BYTES_MAX: usize = 256 << 10;

/// Serves `POST .../infer` of an app that exists.
pub(super) async fn infer<B: Backend>(
    backend: &Arc<B>,
    memory: &Arc<RequestMemory>,
    turnstiles: &Turnstiles,
    bodies: &AppBodies,
    (app, variant): (AppIndex, Option<VariantIndex>),
    headers: &HeaderMap,
    body: BodyReader<'_, Incoming>,
) -> Result<Reply, RequestFailure> {
    let format = BodyFormat::of(headers)?;
    let under_way = turnstiles.enter();
    let limit = bodies.limit(format.framing);
    // Held until the answer is written: tensors may stay in the body.
    let mut share = MemoryShare::of(body.connection);
    let body = body.read(limit, &mut share).await?;
    let mut waited = under_way.request().await;
    let large =
        format.request != ContentCoding::Identity || body.len() > INLINE_BYTES_MAX || bodies.images;
    let target = (app, variant);
    let request = if large {
        let began = Instant::now();
        let limit_bytes = limit.bytes;
        // Boxed, as below: it takes no room in the futures of small requests.
        let unpacked = unpack_large(backend, memory, target, format, body, limit_bytes, share);
        let (unpacked, held) = Box::pin(unpacked).await?;
        share = held;
        waited += began.elapsed();
        unpacked.map_err(|error| limit.explain(error))
    } else {
        let unpacked = unpack(&**backend, target, format, &body, limit.bytes, &mut |_| {
            Ok(())
        });
        drop(body);
        unpacked.map(|(request, _)| request)
    }?;
    let DecodedRequest {
        mut call,
        id,
        wanted,
    } = request;
    call.waited_us = waited.as_micros() as u64;
    if backend.wants_parents() {
        call.parent = TraceParent::of(headers);
    }
    let answer = backend.infer(call).await;
    under_way.answer().await;
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Err(RequestFailure::Infer { error, id }),
    };
    let large =
        format.answer != ContentCoding::Identity || estimated_bytes(&answer) > INLINE_BYTES_MAX;
    let packed = if large {
        Box::pin(pack_large(backend, memory, app, id, wanted, answer, format)).await
    } else {
        pack(&**backend, app, id.as_deref(), &wanted, &answer, format)
    };
    drop(share);
    packed
}

/// [`unpack`] on a thread that may block, with the share of memory that the request then has.
async fn unpack_large<B: Backend>(
    backend: &Arc<B>,
    memory: &Arc<RequestMemory>,
    target: (AppIndex, Option<VariantIndex>),
    format: BodyFormat,
    body: Bytes,
    limit_bytes: usize,
    mut share: MemoryShare,
) -> Result<(Result<DecodedRequest, ProtocolError>, MemoryShare), RequestFailure> {
    let job = memory.begin_job().await?;
    let (backend, memory) = (Arc::clone(backend), Arc::clone(memory));
    let unpacked = move || {
        let _job = job;
        let mut grow = |bytes: usize| {
            let bytes = bytes.saturating_add(body.len());
            memory.grow_blocking(&mut share, bytes)
        };
        let unpacked = unpack(&*backend, target, format, &body, limit_bytes, &mut grow);
        let unpacked = unpacked.map(|(request, kept)| {
            share.shrink(body.len() + kept);
            request
        });
        (unpacked, share)
    };
    off_thread(unpacked).await
}

/// [`pack`] on a thread that may block.
async fn pack_large<B: Backend>(
    backend: &Arc<B>,
    memory: &RequestMemory,
    app: AppIndex,
    id: Option<String>,
    wanted: WantedOutputs,
    answer: InferAnswer,
    format: BodyFormat,
) -> Result<Reply, RequestFailure> {
    let job = memory.begin_answer_job().await;
    let backend = Arc::clone(backend);
    let packed = move || {
        let _job = job;
        pack(&*backend, app, id.as_deref(), &wanted, &answer, format)
    };
    off_thread(packed).await?
}

/// The largest bodies of one app.
#[derive(Debug)]
pub(super) struct AppBodies {
    /// The sizes that the app's inputs allow.
    sizes: BodySizes,
    /// The limit of all requests.
    all: usize,
    /// Whether they have images, which take time to decode.
    pub(super) images: bool,
    scope: String,
}

impl AppBodies {
    pub(super) fn new(app: &AppInfo, limits: &Limits) -> Self {
        let unlimited = BodySizes {
            json: usize::MAX,
            raw: usize::MAX,
            grpc: usize::MAX,
        };
        Self {
            sizes: app.body_sizes().unwrap_or(unlimited),
            all: limits.max_body_bytes,
            images: app.takes_images(),
            scope: format!(
                " for {} rows of app {:?} (server.rows_max)",
                app.max_batch_rows, app.name
            ),
        }
    }

    fn limit(&self, framing: BodyFraming) -> BodyLimit<'_> {
        self.limit_of(match framing {
            BodyFraming::Raw => self.sizes.raw,
            BodyFraming::Json | BodyFraming::JsonThenBlobs(_) => self.sizes.json,
        })
    }

    /// The limit of a message of gRPC.
    pub(super) fn grpc_limit(&self) -> BodyLimit<'_> {
        self.limit_of(self.sizes.grpc)
    }

    fn limit_of(&self, own: usize) -> BodyLimit<'_> {
        BodyLimit {
            bytes: own.min(self.all),
            scope: if own < self.all { &self.scope } else { "" },
        }
    }
}

pub(super) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RequestFailure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| InferError::Failed(format!("the codec stopped: {error}")).into())
}

/// At most 8 bytes per number.
pub(super) fn estimated_bytes(answer: &InferAnswer) -> usize {
    let sizes = answer
        .outputs
        .iter()
        .map(|output| output.tensor.data.len() * 8);
    sizes.sum()
}

/// The request, and the bytes that it holds without its body. Images become tensors only with
/// `grow`, off the async threads.
fn unpack<B: Backend>(
    backend: &B,
    (app_index, variant): (AppIndex, Option<VariantIndex>),
    format: BodyFormat,
    body: &Bytes,
    limit_bytes: usize,
    grow: &mut dyn FnMut(usize) -> Result<(), ProtocolError>,
) -> Result<(DecodedRequest, usize), ProtocolError> {
    let plain = decompress(format.request, body, limit_bytes, &mut *grow)?;
    let target = DecodeTarget {
        app_index,
        app: &backend.apps()[app_index.0],
        variant,
        framing: format.framing,
    };
    let mut request = decode(target, &plain)?;
    let mut held = match format.request {
        ContentCoding::Identity => 0,
        ContentCoding::Gzip | ContentCoding::Deflate => plain.len(),
    };
    if target.app.takes_images() {
        let unpacked = held;
        backend.decode_images(&mut request.call, &mut |bytes| {
            held = unpacked.saturating_add(bytes);
            grow(held)
        })?;
    }
    Ok((request, held))
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
    let mut response = match json_length {
        None => json_bytes(StatusCode::OK, bytes.into()),
        Some(json_length) => {
            let binary = HeaderValue::from_static("application/octet-stream");
            let mut response = typed_bytes(StatusCode::OK, bytes.into(), binary);
            let headers = response.headers_mut();
            headers.insert(JSON_LENGTH.clone(), HeaderValue::from(json_length));
            response
        }
    };
    if format.answer != ContentCoding::Identity {
        let coding = HeaderValue::from_static(format.answer.name());
        response.headers_mut().insert(CONTENT_ENCODING, coding);
    }
    Ok(response)
}
