//! `grpc.health.v1.Health/Watch`: the status now, and each time it changes.

use std::time::Duration;

use hyper::Response;
use prost::Message as _;
use switchyard_protocol::grpc::Status;
use switchyard_protocol::grpc::messages::health::health_check_response::ServingStatus;
use switchyard_protocol::grpc::messages::health::{HealthCheckRequest, HealthCheckResponse};
use switchyard_protocol::{InferError, RequestFailure};
use tokio::time::sleep;

use super::super::backend::Backend;
use super::super::service::Stage;
use super::answer::{AnswerBody, Outbound};
use super::call::Call;
use super::calls::{malformed, plain, serving_status, written};
use super::inbound::Inbound;

/// How often the status is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Serves the call until the client or the server ends.
pub(super) async fn watch<B: Backend>(
    call: Call<B>,
    mut inbound: Inbound,
) -> Result<Response<AnswerBody>, RequestFailure> {
    let exchange = call.exchange();
    let message = call.one_message(&mut inbound).await?;
    drop(exchange);
    let request = HealthCheckRequest::decode(plain(message)?).map_err(malformed)?;
    let (response, outbound) = AnswerBody::many(&call.connection);
    tokio::spawn(report(call, request.service, outbound));
    Ok(response)
}

async fn report<B: Backend>(call: Call<B>, service: String, outbound: Outbound) {
    let mut known = None;
    while call.service.is_before(Stage::Draining).is_ok() {
        let status = serving_status(&call.service.begin(), &service);
        let status = status.unwrap_or(ServingStatus::ServiceUnknown);
        if known.replace(status) != Some(status) {
            let status = status.into();
            let Ok(message) = written(&HealthCheckResponse { status }) else {
                return;
            };
            if outbound.send(message).await.is_err() {
                return;
            }
        }
        tokio::select! {
            () = outbound.closed() => return,
            () = call.service.draining() => {}
            () = sleep(LOOK_EVERY) => {}
        }
    }
    outbound
        .end(Status::from(&InferError::Draining.into()))
        .await;
}
