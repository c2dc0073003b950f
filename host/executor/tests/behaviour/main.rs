//! The executor's promises to the rest of the host, on tiny hand-made models.
#![allow(clippy::unwrap_used)]

mod bench;
mod cache;
mod faults;
mod manifest;
#[path = "../../../../models/tests/common/onnx.rs"]
#[allow(dead_code)]
mod onnx;
#[path = "onnx.rs"]
mod onnx_graphs;
#[path = "../../../../models/tests/common/onnx_zoo.rs"]
#[allow(dead_code)]
mod onnx_zoo;
mod reload;
mod staged;
mod synthetic;
mod text;
#[path = "../../../../models/tests/common/text.rs"]
#[allow(dead_code)]
mod text_zoo;
mod toy;
mod worker;
