//! Why a batch failed.

use switchyard_core::ids::RequestId;
use thiserror::Error;

use crate::fault::Fault;

/// Why a batch has no answers. Variants are named `app/variant`.
#[derive(Debug, Error)]
pub enum ExecuteError {
    /// The model could not be made resident.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A request's input is not what the model takes.
    #[error("request {}: input `{input}`: {reason}", request.0)]
    Input {
        /// The request at fault.
        request: RequestId,
        /// Name of the input.
        input: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A job continues a request that is not parked here as the job says.
    #[error("request {}: cannot continue: {reason}", request.0)]
    NotParked {
        /// The request at fault.
        request: RequestId,
        /// What is parked instead.
        reason: String,
    },
    /// The job's stages or exit do not exist, or it has no rows.
    #[error("{variant}: {reason}")]
    Job {
        /// The variant asked for.
        variant: String,
        /// What is wrong with the job.
        reason: String,
    },
    /// A tensor computation failed.
    #[error("{variant}: {what}: {reason}")]
    Compute {
        /// The variant that ran.
        variant: String,
        /// The part of it, such as `stage 2`.
        what: String,
        /// What candle said.
        reason: String,
    },
    /// The device had no memory left for it, also when nothing was there but what was in use.
    #[error("{variant}: {what}: the device is out of memory: {reason}")]
    OutOfMemory {
        /// The variant that ran.
        variant: String,
        /// The part of it, such as `stage 2`.
        what: String,
        /// What candle said.
        reason: String,
    },
    /// Something panicked while the batch ran; the worker goes on.
    #[error("the batch panicked: {reason}")]
    Panicked {
        /// The panic's message.
        reason: String,
    },
    /// A [`SyntheticExecutor`](crate::synthetic::SyntheticExecutor) was told to fail.
    #[error("injected: {0}")]
    Injected(String),
    /// The device is gone; so is the worker.
    #[error("device lost: {reason}")]
    DeviceLost {
        /// What happened to it.
        reason: String,
    },
    /// The worker stopped before the batch began.
    #[error("the worker stopped before the batch began")]
    Stopped,
}

/// Why a variant is not resident.
#[derive(Debug, Error)]
pub enum CacheError {
    /// It would not fit an empty worker.
    #[error("{variant}: takes {bytes} bytes, the worker's budget is {budget_bytes}")]
    TooLarge {
        /// The variant asked for.
        variant: String,
        /// What it takes.
        bytes: u64,
        /// What the worker has.
        budget_bytes: u64,
    },
    /// What may not be evicted leaves too little room for it.
    #[error(
        "{variant}: takes {bytes} bytes, {free_bytes} are left beside pinned models, models in \
         use and parked activations"
    )]
    NoRoom {
        /// The variant asked for.
        variant: String,
        /// What it takes.
        bytes: u64,
        /// What could be had at most.
        free_bytes: u64,
    },
    /// It could not be read.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Why a model could not be loaded.
#[derive(Clone, Debug, Error)]
#[error("{variant}: {reason}")]
pub struct LoadError {
    /// The variant asked for.
    pub variant: String,
    /// What the source said; names the file and the field.
    pub reason: String,
    /// Nothing was tried this time: the last attempt failed so, and the next one is not due.
    pub repeated: bool,
    /// What it tells of the device.
    pub fault: Option<Fault>,
}

// === impl LoadError ===

impl LoadError {
    /// A load that was tried and failed.
    pub fn new(variant: impl Into<String>, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self {
            variant: variant.into(),
            fault: Fault::of(&reason),
            reason,
            repeated: false,
        }
    }
}

// === impl CacheError ===

impl CacheError {
    /// Whether it only says again what an earlier attempt has said.
    pub fn is_repeated(&self) -> bool {
        matches!(self, Self::Load(LoadError { repeated: true, .. }))
    }

    /// What it tells of the device.
    pub fn fault(&self) -> Option<Fault> {
        match self {
            Self::Load(error) => error.fault,
            Self::TooLarge { .. } | Self::NoRoom { .. } => None,
        }
    }
}

// === impl ExecuteError ===

impl ExecuteError {
    /// Whether it only says again what an earlier batch has said.
    pub fn is_repeated(&self) -> bool {
        matches!(self, Self::Cache(error) if error.is_repeated())
    }

    /// Whether the worker cannot run anything after this.
    pub fn is_fatal(&self) -> bool {
        self.fault() == Some(Fault::Lost)
    }

    /// What it tells of the device.
    pub fn fault(&self) -> Option<Fault> {
        match self {
            Self::DeviceLost { .. } => Some(Fault::Lost),
            Self::OutOfMemory { .. } => Some(Fault::OutOfMemory),
            Self::Cache(error) => error.fault(),
            _ => None,
        }
    }

    pub(crate) fn input(request: RequestId, input: &str, reason: impl Into<String>) -> Self {
        Self::Input {
            request,
            input: input.to_owned(),
            reason: reason.into(),
        }
    }

    pub(crate) fn not_parked(request: RequestId, reason: impl Into<String>) -> Self {
        Self::NotParked {
            request,
            reason: reason.into(),
        }
    }

    pub(crate) fn job(variant: &str, reason: impl Into<String>) -> Self {
        Self::Job {
            variant: variant.to_owned(),
            reason: reason.into(),
        }
    }

    pub(crate) fn compute(
        variant: &str,
        what: impl Into<String>,
        error: &candle_core::Error,
    ) -> Self {
        let (variant, what, reason) = (variant.to_owned(), what.into(), error.to_string());
        match Fault::of(&reason) {
            Some(Fault::Lost) => Self::DeviceLost {
                reason: format!("{variant}: {what}: {reason}"),
            },
            Some(Fault::OutOfMemory) => Self::OutOfMemory {
                variant,
                what,
                reason,
            },
            None => Self::Compute {
                variant,
                what,
                reason,
            },
        }
    }
}
