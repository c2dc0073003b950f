//! Runs batches: worker threads, candle models, the model cache, measured profiles.
//!
//! In data order:
//! - [`job`]: what goes to a worker and what comes back; [`error`]: why there is no answer
//! - [`worker`]: a thread that owns an executor; [`threads`]: how candle shares the cores
//! - [`executor`]: the trait; [`candle_executor`] and [`synthetic`] implement it
//! - [`source`]: where models come from and how workers share them; [`zoo`]: from the model
//!   zoo; [`cache`]: which of them a worker holds; `loader`: loads beside the batches;
//!   [`trial`]: what a model must do before it serves
//! - [`device`]: what a worker computes on; [`memory`]: what its memory has; [`fault`]: what its
//!   errors mean; `cuda`: NVIDIA's cards, where this is built for them
//! - [`tally`]: how much memory a batch takes; [`energy`]: how much energy
//! - [`manifest`]: the zoo's cards as the core's catalog; [`profile`]: how long things take
//!
//! candle appears here and in `switchyard-models` only.

mod batch;
pub mod cache;
pub mod candle_executor;
mod cuda;
pub mod device;
pub mod energy;
pub mod error;
pub mod executor;
pub mod fault;
pub mod job;
mod loader;
pub mod manifest;
pub mod memory;
pub mod profile;
pub mod source;
mod stages;
pub mod synthetic;
pub mod tally;
pub mod threads;
pub mod trial;
pub mod values;
pub mod worker;
pub mod zoo;

pub use cache::ModelCache;
pub use candle_core::Device;
pub use candle_executor::CandleExecutor;
pub use device::{DeviceError, DeviceName, Place};
pub use error::{CacheError, ExecuteError, LoadError};
pub use executor::{Executor, Ran};
pub use fault::Fault;
pub use job::{BatchOutput, CacheCounts, Finished, InputTensor, InputType, Job, Residency, Row};
pub use source::{InputSpec, LoadedModel, ModelSource, Weights};
pub use synthetic::SyntheticExecutor;
pub use values::{Number, Values};
pub use worker::{Preloaded, Refused, Unloaded, Worker, WorkerDown, WorkerEvent, WorkerOptions};
