//! Comparisons of tensors for the tests of operations.
#![allow(clippy::unwrap_used)]

use candle_core::Tensor;

/// All values, flat.
pub(crate) fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

/// Differences are below `bound`, or for values above 1 below `bound` times the value.
pub(crate) fn assert_close(a: &Tensor, b: &Tensor, bound: f32, name: &str) {
    assert_eq!(a.dims(), b.dims(), "{name}");
    for (a, b) in values(a).iter().zip(values(b)) {
        assert!((a - b).abs() < bound * b.abs().max(1.0), "{name}: {a} {b}");
    }
}
