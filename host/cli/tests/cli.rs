//! The program as people and scripts see it: help, exit codes, what it prints, and that the
//! documentation of its configuration is true.

#![allow(clippy::unwrap_used)]

#[path = "../../../models/tests/common/onnx.rs"]
#[allow(dead_code)]
mod onnx;
#[path = "../../../models/tests/common/onnx_zoo.rs"]
#[allow(dead_code)]
mod onnx_zoo;

mod cli {
    mod binary;
    mod codes;
    mod configuration;
    mod mistakes;
    mod models;
    mod onnx;
    mod policy;
    mod prepare;
    mod profile;
    mod replay;
    mod simulate;
}
