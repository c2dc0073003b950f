//! Jobs, which go to a worker, and results, which come back.

use std::ops::AddAssign;
use std::time::Instant;

use smallvec::SmallVec;
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::residents::Soon;
use switchyard_core::time::Micros;
use switchyard_models::card::Datatype;
use switchyard_models::{NamedTensor, RawTensor};

use crate::error::ExecuteError;
use crate::text::TextInput;
use crate::values::Values;

/// One batch to run: stages `[from_stage, to_stage)` of a variant, then the head of an exit.
#[derive(Debug)]
pub struct Job {
    /// The id that [`Finished`] repeats.
    pub batch: BatchId,
    /// The app of its requests.
    pub app: AppId,
    /// The variant to run.
    pub variant: VariantId,
    /// First stage to run; 0 starts from the inputs, a later one from parked activations.
    pub from_stage: u32,
    /// One past the last stage to run.
    pub to_stage: u32,
    /// The exit that answers after the last stage; without an exit the activations are parked.
    pub exit: Option<ExitId>,
    /// The requests, in the order in which they are answered.
    pub rows: Vec<JobRow>,
    /// Variants that the batches behind this one need: they are evicted last.
    pub soon: Soon,
    /// Its answer has no use afterwards; none: it always has one.
    pub until: Option<Instant>,
}

/// One request of a batch.
#[derive(Debug)]
pub struct JobRow {
    /// The request.
    pub request: RequestId,
    /// The request's tensors; `None` when its activations are parked here.
    pub input: Option<RowTensors>,
}

/// The tensors of one request, one per input of its app. Clones share the values, so that the
/// driver keeps a request's tensors until its answer, for another try.
pub type RowTensors = SmallVec<[InputTensor; 1]>;

/// The flat values of one input tensor of one request; its shape is the app's.
#[derive(Clone, Debug, PartialEq)]
pub enum InputTensor {
    /// v2 datatype FP32.
    F32(Values<f32>),
    /// v2 datatype INT64.
    I64(Values<i64>),
    /// v2 datatype UINT8.
    Bytes(Values<u8>),
    /// v2 datatype BYTES: one text.
    Text(TextInput),
    /// Any other: one row, with its shape.
    Raw(RawTensor),
}

/// Type of the values of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputType {
    /// 32-bit floating point.
    F32,
    /// 64-bit integers.
    I64,
    /// 8-bit unsigned integers.
    Bytes,
    /// Text.
    Text,
    /// Any other, or one whose shape differs from request to request.
    Raw(Datatype),
}

/// The result of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum BatchOutput {
    /// An exit ran.
    Answered {
        /// Probabilities per request.
        classes: usize,
        /// Class probabilities, request after request; `rows * classes` numbers.
        probabilities: Vec<f32>,
    },
    /// The outputs of a graph, request after request.
    Tensors(Vec<Vec<NamedTensor>>),
    /// No exit ran; the activations wait on the worker.
    Parked,
}

/// The one end of a [`Job`].
#[derive(Debug)]
pub struct Finished {
    /// The worker that ran it.
    pub worker: WorkerId,
    /// The batch.
    pub batch: BatchId,
    /// Its answers, or why there are none. After an error none of its requests is parked.
    pub result: Result<BatchOutput, ExecuteError>,
    /// Time spent on assembly, stages, head and output.
    pub compute: Micros,
    /// Time spent making the variant resident; zero if it was already.
    pub load: Micros,
    /// The worker's memory now.
    pub residency: Residency,
}

/// The content of a worker's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    /// Variants that need no load, in the order of their ids.
    pub resident: Vec<VariantId>,
    /// Part of the budget that neither models nor parked activations use.
    pub free_bytes: u64,
    /// Grows from one report of this worker to the next. Two threads report: a report with a lower
    /// version than the last one is outdated.
    pub version: u64,
    /// Counts since the start.
    pub counts: CacheCounts,
}

/// Counts of a worker's model cache since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Batches whose variant was resident.
    pub hits: u64,
    /// Batches that waited for a load.
    pub misses: u64,
    /// Variants evicted to make room.
    pub evictions: u64,
    /// Variants made resident, for a batch or ahead of one.
    pub loads: u64,
    /// Loads that failed.
    pub load_errors: u64,
}

impl AddAssign for CacheCounts {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.evictions += other.evictions;
        self.loads += other.loads;
        self.load_errors += other.load_errors;
    }
}

// === impl InputTensor ===

impl InputTensor {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::Bytes(values) => values.len(),
            Self::Text(_) => 1,
            Self::Raw(tensor) => tensor.shape.iter().product(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type of its values.
    pub fn input_type(&self) -> InputType {
        match self {
            Self::F32(_) => InputType::F32,
            Self::I64(_) => InputType::I64,
            Self::Bytes(_) => InputType::Bytes,
            Self::Text(_) => InputType::Text,
            Self::Raw(tensor) => InputType::Raw(tensor.datatype),
        }
    }
}

// === impl BatchOutput ===

impl BatchOutput {
    /// Class probabilities per request, in the order of the job's rows; no rows without classes, or
    /// if parked.
    pub fn rows(&self) -> impl Iterator<Item = &[f32]> {
        let (classes, probabilities): (usize, &[f32]) = match self {
            Self::Answered {
                classes,
                probabilities,
            } => (*classes, probabilities),
            Self::Tensors(_) | Self::Parked => (1, &[]),
        };
        // A head without classes has no rows; chunks of 0 panic.
        probabilities.chunks_exact(classes.max(1))
    }
}
