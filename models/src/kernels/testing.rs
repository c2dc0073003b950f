//! What tests of kernels begin with.

#![allow(clippy::unwrap_used)]

use candle_core::{Device, Tensor};

use super::Map;

/// Normally distributed, about 0.
pub(super) fn random(shape: &[usize], deviation: f32) -> Tensor {
    Tensor::randn(0f32, deviation, shape, &Device::Cpu).unwrap()
}

pub(super) fn numbers(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

/// Of four dimensions.
pub(super) fn map(x: &Tensor) -> Map {
    Map::of(x, x.dims4().unwrap().into()).unwrap()
}
