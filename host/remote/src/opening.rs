//! A connection that is fit for batches: the server is ready, and its models are those of the apps.

use std::time::Duration;

use switchyard_protocol::grpc::Rpc;
use switchyard_protocol::grpc::messages::health::health_check_response::ServingStatus;
use switchyard_protocol::grpc::messages::health::{HealthCheckRequest, HealthCheckResponse};
use switchyard_protocol::grpc::messages::inference::{
    ModelMetadataRequest, ModelMetadataResponse, ServerReadyRequest, ServerReadyResponse,
};

use crate::channel::{CallError, Channel, WORKER_PINGS};
use crate::metadata::check;
use crate::options::{ConnectError, RemoteOptions};

/// Longest wait for an answer about the server or a model.
const QUESTION_TIMEOUT: Duration = Duration::from_millis(500);

/// Connects to the server, and compares its models with the apps' cards.
///
/// # Errors
/// The server does not answer or is not ready, or a model does not fit.
pub(crate) async fn open(options: &RemoteOptions) -> Result<Channel, ConnectError> {
    let address = &options.address;
    let away = |error: CallError| ConnectError::Away(error.reason());
    let channel = Channel::connect(address, options.tls.as_ref(), WORKER_PINGS).await;
    let channel = channel.map_err(away)?;
    if !is_ready(&channel, QUESTION_TIMEOUT).await.map_err(away)? {
        return Err(ConnectError::Away(format!("{address}: is not ready")));
    }
    for model in &*options.models {
        for version in &model.versions {
            let question = ModelMetadataRequest {
                name: model.model.clone(),
                version: version.clone(),
            };
            let found = channel.call(Rpc::ModelMetadata.path(), &question, QUESTION_TIMEOUT);
            let found: ModelMetadataResponse = found.await.map_err(|error| match error {
                CallError::Refused { reason, .. } => ConnectError::Model {
                    address: address.to_string(),
                    model: model.name.clone(),
                    reason,
                },
                error => away(error),
            })?;
            check(model, &found).map_err(|misfit| ConnectError::Misfit {
                address: address.to_string(),
                misfit,
            })?;
        }
    }
    Ok(channel)
}

/// Whether the server takes batches. A server without `ServerReady` is asked for its health.
///
/// # Errors
/// There is no answer in this time.
pub(crate) async fn is_ready(channel: &Channel, limit: Duration) -> Result<bool, CallError> {
    let question = ServerReadyRequest {};
    let ready = channel.call::<ServerReadyResponse>(Rpc::ServerReady.path(), &question, limit);
    match ready.await {
        Ok(ready) => return Ok(ready.ready),
        Err(CallError::Refused { .. }) => {}
        Err(error) => return Err(error),
    }
    let question = HealthCheckRequest::default();
    let health = channel.call::<HealthCheckResponse>(Rpc::HealthCheck.path(), &question, limit);
    Ok(health.await?.status == ServingStatus::Serving as i32)
}
