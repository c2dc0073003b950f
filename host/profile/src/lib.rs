//! Profiles: how long each variant takes on each kind of worker, measured.
//!
//! In data order:
//! - [`measure()`]: from a [`Bench`], which runs variants, to a [`Measurement`], which holds samples
//! - [`UnfinishedMeasurement`]: the file that an interrupted measurement continues from
//! - [`ProfileFile`]: percentiles, memory, accuracies and energy; read and written as JSON
//! - [`import`]: profiles from public layouts
//! - [`Machine`]: a profile belongs to the machine that it was measured on
//! - [`CatalogNames`] and [`Percentile`]: from a file to the core's table; a file that brings its
//!   own apps also becomes a whole catalog
//!
//! This crate depends on no deep-learning framework, so that a simulator can read profiles without
//! one. `switchyard-executor` implements [`Bench`] with candle.

#![forbid(unsafe_code)]

mod catalog;
mod check;
mod confusions;
mod costs;
mod energy;
mod error;
mod file;
pub mod import;
mod json;
mod machine;
mod measure;
mod measurement;
mod percentile;
mod samples;
mod schema;
mod table;
mod unfinished;
mod update;

pub use error::{ProfileError, ProfileFileError, ProfileMismatch};
pub use machine::Machine;
pub use measure::{
    Bench, BenchError, KindBench, Lengths, MeasureError, MeasureOptions, MeasureProgress,
    MeasureSubject, MeasureWatch, StageRange, VariantLoad, measure,
};
pub use measurement::Measurement;
pub use percentile::Percentile;
pub use schema::{
    AccuracyCell, AccuracySource, AppCell, EnergyCell, EnergySource, LatencyCell, LengthCell,
    ModelCell, ProfileFile, Provenance, SCHEMA, SCHEMA_OLDEST, SlicingCell,
};
pub use table::CatalogNames;
pub use unfinished::{MeasurementId, UnfinishedMeasurement};
