//! Runs batches: worker threads, candle models, the model cache.
//!
//! In data order:
//! - [`job`]: jobs and their results; [`error`]: why a job has no answers
//! - [`worker`]: a thread that owns an executor; [`claim`]: batches that are cancelled while they wait
//!   for it; `loader`: a thread that loads models while batches run; [`event`]: the events of both
//! - [`executor`]: the trait; [`candle_executor`] and [`synthetic`] implement it;
//!   [`candle_threads`]: how many threads candle uses
//! - [`source`]: where models come from; [`zoo`]: from the model zoo; [`manifest`]: the zoo's model
//!   cards as the core's catalog
//! - [`weights`]: weights that workers share; [`cache`]: the models that one worker holds;
//!   [`trial`]: the trial of a model before it serves; [`every_exit`]: its answers, for measuring
//! - `batch`, `stages`, `parked`: assembling a batch, running its stages, activations between them;
//!   `graphs`: batches of networks that take named tensors; `sizes`: their requests of different sizes
//! - [`device`]: the devices that workers compute on; [`memory`]: their memory; [`fault`]: the
//!   meaning of their errors; `cuda`: NVIDIA's GPUs, in programs that are built for them
//! - [`mod@bench`]: measuring for `switchyard-profile`; [`allocator`]: the memory that a batch takes;
//!   [`energy`]: the energy; [`versions()`]: versions that latencies depend on
//!
//! candle appears here and in `switchyard-models` only.

// Exceptions, each with its reason: `allocator`, `candle_threads`, and the calls of CUDA in `cuda`.
#![deny(unsafe_code)]

pub mod allocator;
mod batch;
pub mod bench;
pub mod cache;
pub mod candle_executor;
pub mod candle_threads;
mod choice;
pub mod claim;
mod command;
mod cuda;
pub mod device;
pub mod energy;
pub mod error;
pub mod event;
pub mod every_exit;
pub mod executor;
pub mod fault;
mod graphs;
pub mod job;
mod loader;
pub mod manifest;
pub mod memory;
mod parked;
mod pool;
mod sample;
mod sizes;
pub mod source;
mod stages;
pub mod synthetic;
mod text;
#[cfg(test)]
mod toy;
pub mod trial;
pub mod values;
mod versions;
pub mod weights;
pub mod worker;
mod worker_thread;
pub mod zoo;

pub use bench::{BuildBenched, CandleBench, KindToMeasure};
pub use cache::ModelCache;
pub use candle_core::Device;
pub use candle_executor::CandleExecutor;
pub use claim::Claim;
pub use device::{DeviceError, DeviceName, OpenedDevice};
pub use error::{CacheError, ExecuteError, LoadError};
pub use event::{Preloaded, Unloaded, WorkerDown, WorkerEvent};
pub use executor::{Absence, Executor, GiveUp, JobOutcome, ReleaseAtOnce, ReportAbsence};
pub use fault::DeviceFault;
pub use job::{
    BatchOutput, CacheCounts, Finished, InputTensor, InputType, Job, JobRow, Residency, RowTensors,
};
pub use sizes::open_values;
pub use source::{InputSpec, LoadedModel, ModelSource, OpenDimension};
pub use synthetic::SyntheticExecutor;
pub use text::TextInput;
pub use values::{Number, Values};
pub use versions::versions;
pub use weights::Weights;
pub use worker::{Refused, Worker, WorkerOptions};
