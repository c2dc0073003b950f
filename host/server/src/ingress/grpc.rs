//! The protocol over gRPC, on hyper directly.
//!
//! No framework stands between the socket and the server's limits: `inbound` cuts messages out of a
//! body under the rules of every body (time, rate, size, shared memory), [`switchyard_protocol::grpc`]
//! reads them, `calls` answers every `call` but inferences, `infer` and `stream` answer those, `health`
//! reports changes, and `answer` is the body of a response with its trailers.

mod answer;
mod call;
mod calls;
mod health;
mod inbound;
mod infer;
mod stream;

use std::sync::Arc;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use switchyard_protocol::grpc::{CONTENT_TYPE_PREFIX, ClientTimeout, Rpc, Status};
use switchyard_protocol::{AppIndex, ContentCoding, RequestFailure};

use self::answer::AnswerBody;
use self::call::Call;
use self::inbound::Inbound;
use super::backend::Backend;
use super::connection_state::ConnectionState;
use super::service::Service;

/// The coding of the messages of a request.
const ENCODING: &str = "grpc-encoding";

/// Answers one call, also one that fails.
pub(super) async fn respond<B: Backend>(
    service: Arc<Service<B>>,
    request: Request<Incoming>,
    connection: Arc<ConnectionState>,
) -> Response<AnswerBody> {
    let (head, body) = request.into_parts();
    if let Some(refusal) = refuse_other_protocols(&head) {
        return refusal;
    }
    let mut app = None;
    let path = head.uri.path();
    let answered = match Rpc::of(path) {
        Ok(rpc) => {
            let (service, connection) = (Arc::clone(&service), Arc::clone(&connection));
            dispatch(service, connection, head.headers, rpc, body, &mut app).await
        }
        Err(error) => Err(error.into()),
    };
    answered.unwrap_or_else(|failure| {
        service.begin().on_failure(app, &failure, path);
        AnswerBody::failed(&Status::from(&failure))
    })
}

async fn dispatch<B: Backend>(
    service: Arc<Service<B>>,
    connection: Arc<ConnectionState>,
    headers: HeaderMap,
    rpc: Rpc,
    body: Incoming,
    app: &mut Option<AppIndex>,
) -> Result<Response<AnswerBody>, RequestFailure> {
    let coding = headers.get(ENCODING).map(HeaderValue::as_bytes);
    let inbound = Inbound::new(body, ContentCoding::of_request(coding)?);
    let call = Call {
        timeout: ClientTimeout::of(&headers)?,
        service,
        connection,
        headers,
        began: Instant::now(),
    };
    match rpc {
        Rpc::ModelInfer => infer::infer(&call, inbound, app).await,
        Rpc::ModelStreamInfer => Ok(stream::infer(call, inbound)),
        // Boxed: an inference is not to carry the size of the others.
        Rpc::HealthWatch => Box::pin(health::watch(call, inbound)).await,
        _ => Box::pin(calls::answer(&call, rpc, inbound, app)).await,
    }
}

/// The answer to a request that is no gRPC, as gRPC asks.
fn refuse_other_protocols(head: &Parts) -> Option<Response<AnswerBody>> {
    let content_type = head.headers.get(CONTENT_TYPE);
    let is_grpc =
        content_type.is_some_and(|value| value.as_bytes().starts_with(CONTENT_TYPE_PREFIX));
    match (is_grpc, head.method == Method::POST) {
        (true, true) => None,
        (true, false) => Some(AnswerBody::refused(StatusCode::METHOD_NOT_ALLOWED)),
        (false, _) => Some(AnswerBody::refused(StatusCode::UNSUPPORTED_MEDIA_TYPE)),
    }
}
