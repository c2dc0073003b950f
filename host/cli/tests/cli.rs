//! The program as a user and a script see it: exit codes, output, errors, and the documentation of
//! its configuration.

#![allow(clippy::unwrap_used)]

#[path = "../../../models/tests/common/onnx.rs"]
#[allow(dead_code)]
mod onnx;
#[path = "../../../models/tests/common/onnx_zoo.rs"]
#[allow(dead_code)]
mod onnx_zoo;
#[path = "../../../models/tests/common/text.rs"]
#[allow(dead_code)]
mod text_zoo;

mod cli {
    mod add;
    mod arena;
    mod binary;
    mod checking;
    mod codes;
    mod configuration;
    mod hub;
    mod live_runs;
    mod measure;
    mod mistakes;
    mod models;
    mod onnx;
    mod overload;
    mod policy;
    mod prepare;
    mod profile;
    mod remove;
    mod replay;
    mod simulate;
    mod soak;
}
