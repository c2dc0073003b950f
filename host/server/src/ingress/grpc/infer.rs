//! One inference, from message to message.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use hyper::Response;
use switchyard_protocol::grpc::{Envelope, InferMessage, decode_infer, encode_infer};
use switchyard_protocol::{
    AppIndex, ContentCoding, DecodedRequest, ProtocolError, RequestFailure, TraceParent, decompress,
};

use super::super::backend::Backend;
use super::super::backends::Exposed;
use super::super::infer::{INLINE_BYTES_MAX, estimated_bytes, off_thread};
use super::super::service::{Exchange, Stage, Version, find_app, find_version};
use super::answer::AnswerBody;
use super::call::Call;
use super::inbound::{Inbound, Message};

/// A request that has been decoded, and its memory without its message.
type Unpacked = (DecodedRequest, usize);

/// Serves `ModelInfer`.
pub(super) async fn infer<B: Backend>(
    call: &Call<B>,
    mut inbound: Inbound,
    app: &mut Option<AppIndex>,
) -> Result<Response<AnswerBody>, RequestFailure> {
    let _exchange = call.exchange();
    let message = call.one_message(&mut inbound).await?;
    let bytes = infer_message(call, message, Envelope::Call, app).await?;
    Ok(AnswerBody::one(bytes, &call.connection))
}

/// Serves one message; sets `app` once the app is known, for the count of refused requests.
pub(super) async fn infer_message<B: Backend>(
    call: &Call<B>,
    message: Message,
    envelope: Envelope,
    app: &mut Option<AppIndex>,
) -> Result<Vec<u8>, RequestFailure> {
    let service = &*call.service;
    let exchange = service.begin();
    let under_way = service.turnstiles.enter();
    let mut waited = under_way.request().await;
    let Message {
        bytes,
        coding,
        mut share,
    } = message;
    let length = bytes.len();
    let is_small = coding == ContentCoding::Identity && length <= INLINE_BYTES_MAX;
    let scanned = match is_small {
        true => Some(InferMessage::scan(bytes.clone())?),
        false => None,
    };
    let inline = scanned.filter(|message| !takes_images(&exchange, message));
    let unpacked = if let Some(message) = inline {
        drop(bytes);
        let held = length.saturating_add(message.decoded_bytes());
        service.memory.grow(&mut share, held).await?;
        unpack(&exchange.exposed, message, app, &mut |_| Ok(()))
    } else {
        let began = Instant::now();
        let job = service.memory.begin_job().await?;
        let (exposed, memory) = (Arc::clone(&exchange.exposed), Arc::clone(&service.memory));
        let limit_bytes = service.limits().max_body_bytes;
        let unpacked = move || {
            let _job = job;
            let mut app = None;
            let mut grow =
                |more: usize| memory.grow_blocking(&mut share, length.saturating_add(more));
            let unpacked = decompress(coding, &bytes, limit_bytes, &mut grow).and_then(|plain| {
                drop(bytes);
                let inflated = match coding {
                    ContentCoding::Identity => 0,
                    ContentCoding::Gzip | ContentCoding::Deflate => plain.len(),
                };
                let message = InferMessage::scan(plain)?;
                grow(inflated.saturating_add(message.decoded_bytes()))?;
                let mut grow = |more: usize| grow(inflated.saturating_add(more));
                let (request, held) = unpack(&exposed, message, &mut app, &mut grow)?;
                Ok((request, inflated.saturating_add(held)))
            });
            if let Ok((_, kept)) = &unpacked {
                share.shrink(length + kept);
            }
            (unpacked, app, share)
        };
        let (unpacked, found, held) = off_thread(unpacked).await?;
        *app = found;
        share = held;
        waited += began.elapsed();
        unpacked
    };
    let (request, _) = unpacked?;
    // After the app: an unknown one stays unknown.
    service.is_before(Stage::Draining)?;
    let DecodedRequest {
        call: mut pool_call,
        id,
        wanted,
    } = request;
    let index = pool_call.app;
    let elapsed = call.began.elapsed().saturating_sub(waited);
    let max_us = exchange.info(index).max_timeout_us;
    pool_call.timeout_us = call.timeout.bound(elapsed, pool_call.timeout_us, max_us)?;
    pool_call.waited_us = waited.as_micros() as u64;
    if exchange.backend().wants_parents() {
        pool_call.parent = TraceParent::of(&call.headers);
    }
    let answer = match pool_call.stages {
        None => exchange.backend().infer(pool_call).await,
        Some(_) => {
            let connection: Arc<dyn Any + Send + Sync> = Arc::clone(&call.connection) as _;
            let connection = Arc::downgrade(&connection);
            // Boxed: a whole inference is not to carry the size of the others.
            Box::pin(exchange.backend().infer_stages(pool_call, connection)).await
        }
    };
    under_way.answer().await;
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Err(RequestFailure::Infer { error, id }),
    };
    let encoded = if estimated_bytes(&answer) > INLINE_BYTES_MAX {
        let job = service.memory.begin_answer_job().await;
        let exposed = Arc::clone(&exchange.exposed);
        off_thread(move || {
            let _job = job;
            let app = &exposed.backend.apps()[index.0];
            encode_infer(app, id.as_deref(), &wanted, &answer, envelope)
        })
        .await?
    } else {
        encode_infer(
            exchange.info(index),
            id.as_deref(),
            &wanted,
            &answer,
            envelope,
        )
    };
    // Tensors may have been in the message until here.
    drop(share);
    Ok(encoded?)
}

/// Decoding images takes time.
fn takes_images<B: Backend>(exchange: &Exchange<'_, B>, message: &InferMessage) -> bool {
    let name = message.model_name().unwrap_or_default();
    let app = exchange.backend().app_index(name);
    app.is_some_and(|app| exchange.exposed.bodies[app.0].images)
}

/// Decodes a message. Images become tensors, off the async threads.
fn unpack<B: Backend>(
    exposed: &Exposed<B>,
    message: InferMessage,
    app: &mut Option<AppIndex>,
    grow: &mut dyn FnMut(usize) -> Result<(), ProtocolError>,
) -> Result<Unpacked, ProtocolError> {
    let backend = &*exposed.backend;
    let mut held = message.decoded_bytes();
    let length = message.length();
    let request = message.read()?;
    let index = find_app(backend, &request.model_name)?;
    *app = Some(index);
    exposed.bodies[index.0].grpc_limit().check_message(length)?;
    let info = &backend.apps()[index.0];
    let version = match request.model_version.as_str() {
        "" => Version::Unnamed,
        name => find_version(info, name)?,
    };
    let mut request = decode_infer((index, info), version.pinned(), request)?;
    if info.takes_images() {
        let decoded = held;
        backend.decode_images(&mut request.call, &mut |bytes| {
            held = decoded.saturating_add(bytes);
            grow(held)
        })?;
    }
    Ok((request, held))
}
