//! Networks with public weights, compared with implementations in NumPy.
//!
//! The weights are a hash of tensor name and index, computed alike here and in the scripts; the
//! scripts' output is in the JSON files. Weights are written in the public naming and loaded as any
//! published model is.
#![allow(clippy::unwrap_used)]

#[path = "../common/text.rs"]
#[allow(dead_code)]
mod text;

mod bad_files;
mod bert;
mod common;
mod efficientnet;
mod pairs;
mod resnet;
mod vision;
