//! Training of the shipped models: labelled data from a seed, and the runs that fit networks to it.
//!
//! - [`data`] is the interface of an application's generator. [`fall`] makes windows of a subject's
//!   motion, [`heart`] heartbeats, [`images`] images and [`voice`] spoken keywords: for training,
//!   validation and load
//! - [`train`] fits the networks of `switchyard-models` and writes cards, weights and evidence
//!
//! The trainer is bit-reproducible: the same seed gives the same files on the same kind of CPU. A
//! process that trains runs better with `CANDLE_NUM_THREADS=1`: candle splits elementwise
//! operations above 64 Ki values over threads of its own, and training already uses a thread per
//! shard.
#![forbid(unsafe_code)]

mod confusion;
pub mod data;
pub mod fall;
pub mod heart;
pub mod images;
pub mod train;
pub mod voice;

pub use self::confusion::Confusion;
