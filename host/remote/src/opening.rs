//! A connection that is fit for batches: the server is ready, and its models are those of the apps.

use std::time::Duration;

use switchyard_protocol::STAGE_RANGES;
use switchyard_protocol::grpc::Rpc;
use switchyard_protocol::grpc::messages::health::health_check_response::ServingStatus;
use switchyard_protocol::grpc::messages::health::{HealthCheckRequest, HealthCheckResponse};
use switchyard_protocol::grpc::messages::inference::{
    ModelMetadataRequest, ModelMetadataResponse, ServerMetadataRequest, ServerMetadataResponse,
    ServerReadyRequest, ServerReadyResponse,
};

use crate::channel::{CallError, Channel, WORKER_PINGS};
use crate::metadata::check;
use crate::options::{ConnectError, RemoteOptions, StageRanges};

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
    let mut channel = channel.map_err(away)?;
    if !is_ready(&channel, QUESTION_TIMEOUT).await.map_err(away)? {
        return Err(ConnectError::Away(format!("{address}: is not ready")));
    }
    if options.stages != StageRanges::Never {
        channel.runs_stages = runs_stages(&channel).await.map_err(away)?;
        if options.stages == StageRanges::Required && !channel.runs_stages {
            let address = address.to_string();
            return Err(ConnectError::Stages { address });
        }
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

/// Whether the server's metadata lists ranges of stages.
async fn runs_stages(channel: &Channel) -> Result<bool, CallError> {
    let question = ServerMetadataRequest {};
    let path = Rpc::ServerMetadata.path();
    let found = channel.call::<ServerMetadataResponse>(path, &question, QUESTION_TIMEOUT);
    match found.await {
        Ok(found) => Ok(found.extensions.iter().any(|name| name == STAGE_RANGES)),
        Err(CallError::Refused { .. }) => Ok(false),
        Err(error) => Err(error),
    }
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
