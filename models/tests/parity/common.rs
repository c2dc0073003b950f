//! Weights as a function of tensor name and index, the same in `common.py`, and the files of a
//! variant around them.

use std::collections::HashMap;
use std::path::Path;

use candle_core::{Device, Tensor};
use serde_json::Value;

/// A number in [-1, 1) that f32 holds exactly: FNV-1a of the name, SplitMix64 over the index.
pub(crate) fn value(name: &str, index: u64) -> f32 {
    mixed(seed(name), index)
}

fn seed(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

fn mixed(seed: u64, index: u64) -> f32 {
    let z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15u64.wrapping_mul(index + 1));
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    let z = z ^ (z >> 31);
    (z >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

/// Tensors to be saved, by name.
#[derive(Default)]
pub(crate) struct Tensors(HashMap<String, Tensor>);

impl Tensors {
    /// `offset + scale * value`, row-major.
    pub(crate) fn add(&mut self, name: &str, shape: &[usize], scale: f32, offset: f32) {
        self.add_as(name, name, shape, scale, offset);
    }

    /// As [`add`](Self::add), with the values of another name.
    pub(crate) fn add_as(
        &mut self,
        name: &str,
        values: &str,
        shape: &[usize],
        scale: f32,
        offset: f32,
    ) {
        let seed = seed(values);
        let count = shape.iter().product::<usize>() as u64;
        let numbers = (0..count).map(|i| offset + scale * mixed(seed, i));
        let tensor = Tensor::from_vec(numbers.collect::<Vec<f32>>(), shape, &Device::Cpu);
        self.0.insert(name.to_owned(), tensor.unwrap());
    }

    pub(crate) fn insert(&mut self, name: &str, tensor: Tensor) {
        self.0.insert(name.to_owned(), tensor);
    }

    pub(crate) fn save(&self, file: &Path) {
        candle_core::safetensors::save(&self.0, file).unwrap();
    }
}

/// The power of two next below the deviation that keeps a layer's outputs as large as its inputs.
pub(crate) fn fan_in_scale(fan_in: usize) -> f32 {
    (3.0 / fan_in as f64).sqrt().log2().floor().exp2() as f32
}

/// The recorded output of a script, for one of its cases.
pub(crate) fn recorded(file: &str, case: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity");
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    all[case].clone()
}

/// The numbers of a JSON array.
pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    let array = value.as_array().unwrap();
    array.iter().map(|v| v.as_f64().unwrap()).collect()
}

/// The largest difference between computed and recorded values.
pub(crate) fn distance(ours: &[f32], theirs: &[f64]) -> f64 {
    assert_eq!(ours.len(), theirs.len());
    assert!(ours.iter().all(|v| v.is_finite()));
    let apart = ours
        .iter()
        .zip(theirs)
        .map(|(a, b)| (f64::from(*a) - b).abs());
    apart.fold(0.0, f64::max)
}

#[test]
fn values_are_those_of_the_scripts() {
    // As printed by `values("x", 3)` in common.py.
    let want = [-0.597_583_53, 0.617_053_5, 0.286_647_2];
    for (i, want) in want.into_iter().enumerate() {
        assert_eq!(value("x", i as u64), want);
    }
    assert!((0..1000).all(|i| (-1.0..1.0).contains(&value("y", i))));
}
