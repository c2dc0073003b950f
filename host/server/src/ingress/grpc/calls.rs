//! Every call but inferences and the watch of health.

use bytes::Bytes;
use hyper::Response;
use prost::Message as _;
use switchyard_protocol::grpc::messages::health::health_check_response::ServingStatus;
use switchyard_protocol::grpc::messages::health::{HealthCheckRequest, HealthCheckResponse};
use switchyard_protocol::grpc::messages::inference as proto;
use switchyard_protocol::grpc::{Rpc, check_control, describe, frame};
use switchyard_protocol::{
    AppIndex, Control, InferError, ProtocolError, RequestFailure, decompress,
};

use super::super::backend::Backend;
use super::super::service::{Exchange, Version, VersionStats, find_version};
use super::answer::AnswerBody;
use super::call::Call;
use super::inbound::{Inbound, Message};

/// The largest message but of an inference: names and booleans.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// The services of health checks that are about the whole server; others are apps.
const SERVICES: [&str; 2] = ["", "inference.GRPCInferenceService"];

/// Serves a call of one message; sets `app` once the app is known, for the count of refused requests.
pub(super) async fn answer<B: Backend>(
    call: &Call<B>,
    rpc: Rpc,
    mut inbound: Inbound,
    app: &mut Option<AppIndex>,
) -> Result<Response<AnswerBody>, RequestFailure> {
    let _exchange = call.exchange();
    let message = call.one_message(&mut inbound).await?;
    let bytes = plain(message)?;
    let exchange = call.service.begin();
    let answer = match rpc {
        Rpc::RepositoryModelLoad => {
            let request = proto::RepositoryModelLoadRequest::decode(bytes).map_err(malformed)?;
            let what = (&*request.model_name, Control::Load);
            control(call, &exchange, what, &request.parameters, app).await?;
            written(&proto::RepositoryModelLoadResponse {})
        }
        Rpc::RepositoryModelUnload => {
            let request = proto::RepositoryModelUnloadRequest::decode(bytes).map_err(malformed)?;
            let what = (&*request.model_name, Control::Unload);
            control(call, &exchange, what, &request.parameters, app).await?;
            written(&proto::RepositoryModelUnloadResponse {})
        }
        _ => describe(&exchange, rpc, bytes, app)?,
    };
    Ok(AnswerBody::one(answer?, &call.connection))
}

/// A small message without its coding.
pub(super) fn plain(message: Message) -> Result<Bytes, ProtocolError> {
    let too_large = |length: usize| ProtocolError::BodyTooLarge {
        field: "body",
        found: format!("{length} bytes"),
        limit_bytes: MESSAGE_BYTES_MAX,
        scope: " for a request about the server".to_owned(),
    };
    if message.bytes.len() > MESSAGE_BYTES_MAX {
        return Err(too_large(message.bytes.len()));
    }
    decompress(
        message.coding,
        &message.bytes,
        MESSAGE_BYTES_MAX,
        |_| Ok(()),
    )
}

pub(super) fn malformed(error: prost::DecodeError) -> ProtocolError {
    ProtocolError::malformed("body", error.to_string())
}

fn describe<B: Backend>(
    exchange: &Exchange<'_, B>,
    rpc: Rpc,
    bytes: Bytes,
    app: &mut Option<AppIndex>,
) -> Result<Result<Vec<u8>, InferError>, RequestFailure> {
    Ok(match rpc {
        Rpc::ServerLive => written(&proto::ServerLiveResponse {
            live: exchange.backend().live().is_ok(),
        }),
        Rpc::ServerReady => written(&proto::ServerReadyResponse {
            ready: exchange.ready().is_ok(),
        }),
        Rpc::ModelReady => {
            let request = proto::ModelReadyRequest::decode(bytes).map_err(malformed)?;
            // As Triton: an app that is not there is not ready.
            let named = named(exchange, &request.name, &request.version, app);
            let ready = named
                .is_ok_and(|(index, version)| exchange.app_ready(index, version.pinned()).is_ok());
            written(&proto::ModelReadyResponse { ready })
        }
        Rpc::ServerMetadata => {
            let runs_stages = exchange.backend().runs_stages();
            written(&describe::server(env!("CARGO_PKG_VERSION"), runs_stages))
        }
        Rpc::ModelMetadata => {
            let request = proto::ModelMetadataRequest::decode(bytes).map_err(malformed)?;
            let (index, version) = named(exchange, &request.name, &request.version, app)?;
            written(&describe::app(exchange.info(index), version.pinned()))
        }
        Rpc::ModelConfig => {
            let request = proto::ModelConfigRequest::decode(bytes).map_err(malformed)?;
            let (index, _) = named(exchange, &request.name, &request.version, app)?;
            written(&describe::config(exchange.info(index)))
        }
        Rpc::ModelStatistics => {
            let request = proto::ModelStatisticsRequest::decode(bytes).map_err(malformed)?;
            let stats = match request.name.as_str() {
                "" => exchange.all_stats(),
                name => {
                    let (index, version) = named(exchange, name, &request.version, app)?;
                    exchange.stats(index, version)
                }
            };
            let of = |entry: &VersionStats<'_>| {
                describe::variant_stats(entry.app, entry.version, &entry.stats)
            };
            written(&proto::ModelStatisticsResponse {
                model_stats: stats.iter().map(of).collect(),
            })
        }
        Rpc::RepositoryIndex => {
            let request = proto::RepositoryIndexRequest::decode(bytes).map_err(malformed)?;
            let entries = exchange.repository(request.ready);
            let entries = entries.iter().map(|entry| {
                describe::repository_entry(entry.app, entry.variant, entry.state, &entry.reason)
            });
            written(&proto::RepositoryIndexResponse {
                models: entries.collect(),
            })
        }
        Rpc::HealthCheck => {
            let request = HealthCheckRequest::decode(bytes).map_err(malformed)?;
            let status = serving_status(exchange, &request.service)?;
            written(&HealthCheckResponse {
                status: status.into(),
            })
        }
        // The caller has these.
        Rpc::ModelInfer
        | Rpc::ModelStreamInfer
        | Rpc::HealthWatch
        | Rpc::RepositoryModelLoad
        | Rpc::RepositoryModelUnload => {
            return Err(InferError::Failed(format!("{rpc:?} has another way")).into());
        }
    })
}

/// The app and the version of these names.
fn named<B: Backend>(
    exchange: &Exchange<'_, B>,
    name: &str,
    version: &str,
    app: &mut Option<AppIndex>,
) -> Result<(AppIndex, Version), ProtocolError> {
    let index = exchange.app(name)?;
    *app = Some(index);
    let version = match version {
        "" => Version::Unnamed,
        version => find_version(exchange.info(index), version)?,
    };
    Ok((index, version))
}

/// Whether the server, or the app of this name, should get requests.
pub(super) fn serving_status<B: Backend>(
    exchange: &Exchange<'_, B>,
    service: &str,
) -> Result<ServingStatus, ProtocolError> {
    let ready = if SERVICES.contains(&service) {
        exchange.ready()
    } else {
        exchange.app_ready(exchange.app(service)?, None)
    };
    Ok(match ready {
        Ok(()) => ServingStatus::Serving,
        Err(_) => ServingStatus::NotServing,
    })
}

async fn control<B: Backend>(
    call: &Call<B>,
    exchange: &Exchange<'_, B>,
    what: (&str, Control),
    parameters: &std::collections::BTreeMap<String, proto::ModelRepositoryParameter>,
    app: &mut Option<AppIndex>,
) -> Result<(), RequestFailure> {
    // The content type is gRPC's: no form of a web page has it.
    let index = exchange.may_control(what, &call.headers, false, app)?;
    check_control(what.1, parameters)?;
    exchange.control(what, index, call.connection.peer).await
}

/// A message with its frame.
pub(super) fn written(message: &impl prost::Message) -> Result<Vec<u8>, InferError> {
    frame(message).ok_or_else(|| InferError::Failed("the answer is longer than 4 GiB".to_owned()))
}
