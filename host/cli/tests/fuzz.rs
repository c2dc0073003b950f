//! Every reader of outside data on mutations of real files: no panic, bounded memory and time, errors that
//! say something, and values that are the same when they are written and read again.
//!
//! - `allocator`: memory held by this thread
//! - `mutate`: from a real file to a damaged one
//! - `target`: runs a reader on many of them, and prints a line per target
//! - the others: targets; `found`: inputs that broke one once
//!
//! `cargo xtask fuzz --seconds 60` runs each target for a minute. `SWITCHYARD_FUZZ_SECONDS` does the same
//! for `cargo test --test fuzz`, and `SWITCHYARD_FUZZ_SEED` chooses other mutations.

#![allow(clippy::unwrap_used)]

#[path = "../../../tests/common/hostile.rs"]
#[allow(dead_code)]
mod hostile_parts;
#[path = "../../../models/tests/common/onnx.rs"]
#[allow(dead_code)]
mod onnx;
#[path = "../../../models/tests/common/onnx_zoo.rs"]
#[allow(dead_code)]
mod onnx_zoo;
#[path = "../../../models/tests/common/text.rs"]
#[allow(dead_code)]
mod text_zoo;

mod fuzz {
    mod allocator;
    mod cards;
    mod components;
    mod config;
    mod found;
    mod graphs;
    mod inference;
    mod mutate;
    mod profiles;
    mod recordings;
    mod target;
    mod weights;
    mod workloads;
}
