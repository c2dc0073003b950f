//! Why a batch failed.

use switchyard_core::ids::RequestId;
use thiserror::Error;

use crate::fault::DeviceFault;

/// Why a batch has no answers. Variants are named `app/variant`.
#[derive(Debug, Error)]
pub enum ExecuteError {
    /// The model could not be made resident.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A request's input does not fit the model.
    #[error("request {}: input `{input}`: {reason}", request.0)]
    Input {
        /// The request at fault.
        request: RequestId,
        /// Name of the input.
        input: String,
        /// Why it does not fit.
        reason: String,
    },
    /// A job continues a request whose activations are not parked here at that stage.
    #[error("request {}: cannot continue: {reason}", request.0)]
    NotParked {
        /// The request at fault.
        request: RequestId,
        /// The parked activations, if any.
        reason: String,
    },
    /// The job's stages or exit do not exist, or it has no rows.
    #[error("{variant}: {reason}")]
    Job {
        /// The variant of the job.
        variant: String,
        /// Why it cannot run.
        reason: String,
    },
    /// A tensor computation failed.
    #[error("{variant}: {part}: {reason}")]
    Compute {
        /// The variant that ran.
        variant: String,
        /// The part that failed, such as `stage 2`.
        part: String,
        /// candle's reason.
        reason: String,
    },
    /// The device has too little memory, even with only the models in use resident.
    #[error("{variant}: {part}: the device is out of memory: {reason}")]
    OutOfMemory {
        /// The variant that ran.
        variant: String,
        /// The part that failed, such as `stage 2`.
        part: String,
        /// candle's reason.
        reason: String,
    },
    /// The executor panicked while the batch ran; the worker continues.
    #[error("the batch panicked: {reason}")]
    Panicked {
        /// The panic's message.
        reason: String,
    },
    /// A [`SyntheticExecutor`](crate::synthetic::SyntheticExecutor) injected the failure.
    #[error("injected: {0}")]
    Injected(String),
    /// The device is lost, and the worker with it.
    #[error("device lost: {reason}")]
    DeviceLost {
        /// The device's error.
        reason: String,
    },
    /// The worker is on another machine and does not answer.
    #[error("{reason}")]
    Away {
        /// Its address, and the reason.
        reason: String,
    },
    /// The worker is on another machine, which answered with an error.
    #[error("{variant}: {reason}")]
    Remote {
        /// The variant that should run.
        variant: String,
        /// The answer.
        reason: String,
        /// Another try may succeed.
        repeatable: bool,
    },
    /// Another scheduler is active: this one begins no batch.
    #[error("{reason}")]
    NotActive {
        /// The active one.
        reason: String,
    },
    /// Its claim was dropped before it began.
    #[error("the batch was cancelled before it began")]
    Cancelled,
    /// The worker stopped before the batch began.
    #[error("the worker stopped before the batch began")]
    Stopped,
}

/// Why a variant is not resident.
#[derive(Debug, Error)]
pub enum CacheError {
    /// It does not fit an empty worker.
    #[error("{variant}: takes {bytes} bytes, the worker's budget is {budget_bytes}")]
    TooLarge {
        /// The variant.
        variant: String,
        /// Bytes it takes.
        bytes: u64,
        /// Bytes the worker has.
        budget_bytes: u64,
    },
    /// It does not fit next to the models that cannot be evicted.
    #[error(
        "{variant}: takes {bytes} bytes, {free_bytes} are left next to pinned models, models in \
         use and parked activations"
    )]
    NoRoom {
        /// The variant.
        variant: String,
        /// Bytes it takes.
        bytes: u64,
        /// Bytes that evictions can free, at most.
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
    /// The variant.
    pub variant: String,
    /// The source's reason; names the file and the field.
    pub reason: String,
    /// The error of an earlier attempt; the next attempt is not due yet.
    pub repeated: bool,
    /// The fault of the device, if it caused the error.
    pub fault: Option<DeviceFault>,
}

// === impl LoadError ===

impl LoadError {
    /// A load that was tried and failed.
    pub fn new(variant: impl Into<String>, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self {
            variant: variant.into(),
            fault: DeviceFault::of(&reason),
            reason,
            repeated: false,
        }
    }
}

// === impl CacheError ===

impl CacheError {
    /// Whether it is the error of an earlier attempt.
    pub fn is_repeated(&self) -> bool {
        matches!(self, Self::Load(LoadError { repeated: true, .. }))
    }

    /// The fault of the device, if it caused the error.
    pub fn fault(&self) -> Option<DeviceFault> {
        match self {
            Self::Load(error) => error.fault,
            Self::TooLarge { .. } | Self::NoRoom { .. } => None,
        }
    }
}

// === impl ExecuteError ===

impl ExecuteError {
    /// Whether it is the error of an earlier attempt to load.
    pub fn is_repeated(&self) -> bool {
        matches!(self, Self::Cache(error) if error.is_repeated())
    }

    /// Whether another try may succeed: of the whole batch, or of its requests one by one.
    pub fn is_repeatable(&self) -> bool {
        match self {
            Self::Input { .. }
            | Self::NotParked { .. }
            | Self::Compute { .. }
            | Self::OutOfMemory { .. }
            | Self::Panicked { .. }
            | Self::Injected(_)
            | Self::Cancelled
            | Self::Stopped
            | Self::Away { .. }
            | Self::DeviceLost { .. } => true,
            Self::Remote { repeatable, .. } => *repeatable,
            // The next try finds the same files, budget and stages.
            Self::Cache(_) | Self::Job { .. } | Self::NotActive { .. } => false,
        }
    }

    /// Whether the worker cannot run another batch.
    pub fn is_fatal(&self) -> bool {
        self.fault() == Some(DeviceFault::Lost)
    }

    /// The fault of the device, if it caused the error.
    pub fn fault(&self) -> Option<DeviceFault> {
        match self {
            Self::DeviceLost { .. } | Self::Away { .. } => Some(DeviceFault::Lost),
            Self::OutOfMemory { .. } => Some(DeviceFault::OutOfMemory),
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
        part: impl Into<String>,
        error: &candle_core::Error,
    ) -> Self {
        let (variant, part, reason) = (variant.to_owned(), part.into(), error.to_string());
        match DeviceFault::of(&reason) {
            Some(DeviceFault::Lost) => Self::DeviceLost {
                reason: format!("{variant}: {part}: {reason}"),
            },
            Some(DeviceFault::OutOfMemory) => Self::OutOfMemory {
                variant,
                part,
                reason,
            },
            None => Self::Compute {
                variant,
                part,
                reason,
            },
        }
    }
}
