//! A server as an executor: each batch is one call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use switchyard_core::ids::{RequestId, VariantId};
use switchyard_core::time::Micros;
use switchyard_executor::{
    BatchOutput, CacheError, DeviceFault, ExecuteError, Executor, Job, JobOutcome, LoadError,
    Residency,
};
use switchyard_protocol::grpc::Rpc;
use switchyard_protocol::grpc::messages::inference::{
    ModelMetadataRequest, ModelMetadataResponse, ServerReadyRequest, ServerReadyResponse,
};
use thiserror::Error;

use crate::address::RemoteAddress;
use crate::channel::{CallError, Channel};
use crate::metadata::{Misfit, check};
use crate::model::RemoteModel;
use crate::request;
use crate::response;

/// Longest wait for an answer about the server or a model.
const QUESTION_TIMEOUT: Duration = Duration::from_millis(500);

/// How a server is used.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// The server.
    pub address: RemoteAddress,
    /// Longest time of a batch; then the worker counts as lost.
    pub timeout: Duration,
    /// Its models, by variant.
    pub models: Arc<[RemoteModel]>,
}

/// Why a server is not used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// It does not answer, or is not ready. Later it may be.
    #[error("{0}")]
    Away(String),
    /// It lacks a model.
    #[error("{address}: {model}: {reason}")]
    Model {
        /// The server.
        address: String,
        /// `app/variant`.
        model: String,
        /// Its answer.
        reason: String,
    },
    /// A model differs from the app's card.
    #[error("{address}: {misfit}; correct the names of the worker's `remote.models`, or the card")]
    Misfit {
        /// The server.
        address: String,
        /// The difference.
        misfit: Misfit,
    },
}

/// A server that runs batches. It keeps the models itself: all of them count as resident.
pub struct RemoteExecutor {
    options: RemoteOptions,
    /// Or why there is none.
    channel: Result<Channel, String>,
    reports: u64,
}

// === impl RemoteExecutor ===

impl RemoteExecutor {
    /// Connects to the server, and compares its models with the apps' cards.
    ///
    /// # Errors
    /// The server does not answer or is not ready, or a model does not fit.
    pub fn connect(options: RemoteOptions) -> Result<Self, ConnectError> {
        let address = &options.address;
        let away = |error| match error {
            CallError::Lost(reason) | CallError::Refused { reason, .. } => {
                ConnectError::Away(reason)
            }
        };
        let mut channel = Channel::connect(address).map_err(away)?;
        let ready: ServerReadyResponse = channel
            .call(Rpc::ServerReady, &ServerReadyRequest {}, QUESTION_TIMEOUT)
            .map_err(away)?;
        if !ready.ready {
            return Err(ConnectError::Away(format!("{address}: is not ready")));
        }
        for model in &*options.models {
            for version in &model.versions {
                let question = ModelMetadataRequest {
                    name: model.model.clone(),
                    version: version.clone(),
                };
                let found: ModelMetadataResponse = channel
                    .call(Rpc::ModelMetadata, &question, QUESTION_TIMEOUT)
                    .map_err(|error| match error {
                        CallError::Lost(reason) => ConnectError::Away(reason),
                        CallError::Refused { reason, .. } => ConnectError::Model {
                            address: address.to_string(),
                            model: model.name.clone(),
                            reason,
                        },
                    })?;
                check(model, &found).map_err(|misfit| ConnectError::Misfit {
                    address: address.to_string(),
                    misfit,
                })?;
            }
        }
        Ok(Self {
            options,
            channel: Ok(channel),
            reports: 0,
        })
    }

    /// A server that is away: the first command ends its worker, which is then started anew until the
    /// server answers.
    pub fn away(options: RemoteOptions, reason: String) -> Self {
        Self {
            options,
            channel: Err(reason),
            reports: 0,
        }
    }

    fn answer(&mut self, job: &mut Job) -> Result<BatchOutput, ExecuteError> {
        let channel = match &mut self.channel {
            Ok(channel) => channel,
            Err(reason) => {
                let reason = reason.clone();
                return Err(ExecuteError::Away { reason });
            }
        };
        let model = self.options.models.get(job.variant.index());
        let model = model.ok_or_else(|| ExecuteError::Job {
            variant: format!("variant {}", job.variant.0),
            reason: "the worker has no such variant".to_owned(),
        })?;
        let version = job.exit.and_then(|exit| model.versions.get(exit.index()));
        let (Some(version), 0) = (version, job.from_stage) else {
            return Err(ExecuteError::Job {
                variant: model.name.clone(),
                reason: "a remote worker runs from the first stage to an exit".to_owned(),
            });
        };
        let rows = job.rows.len();
        let body = request::infer(model, version, job)?;
        let answer = channel.send(Rpc::ModelInfer, body, self.options.timeout);
        let answer = answer.map_err(|error| match error {
            CallError::Lost(reason) => ExecuteError::Away { reason },
            CallError::Refused { reason, repeatable } => ExecuteError::Remote {
                variant: model.name.clone(),
                reason,
                repeatable,
            },
        })?;
        response::output(model, rows, &answer).map_err(|reason| ExecuteError::Remote {
            variant: model.name.clone(),
            reason,
            repeatable: true,
        })
    }
}

impl Executor for RemoteExecutor {
    fn run(&mut self, job: &mut Job) -> JobOutcome {
        let start = Instant::now();
        let result = self.answer(job);
        self.reports += 1;
        JobOutcome {
            result,
            // With the way there and back, as in the profile.
            compute: Micros::from(start.elapsed()),
            load: Micros::ZERO,
        }
    }

    fn release(&mut self, _: RequestId) {}

    fn preload(&mut self, variant: VariantId) -> Result<Micros, CacheError> {
        let Err(reason) = &self.channel else {
            return Ok(Micros::ZERO);
        };
        let model = self.options.models.get(variant.index());
        Err(CacheError::Load(LoadError {
            variant: model.map_or_else(String::new, |model| model.name.clone()),
            reason: reason.clone(),
            repeated: false,
            fault: Some(DeviceFault::Lost),
        }))
    }

    fn residency(&self) -> Residency {
        let models = match &self.channel {
            Ok(_) => self.options.models.len() as u32,
            Err(_) => 0,
        };
        Residency {
            resident: (0..models).map(VariantId).collect(),
            version: self.reports,
            ..Residency::default()
        }
    }
}
