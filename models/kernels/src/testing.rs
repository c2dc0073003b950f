//! Inputs and reference implementations for the tests.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;

use rand::SeedableRng;
use rand_distr::{Distribution, Normal};
use rand_pcg::Pcg64;

use crate::activation::Activation;
use crate::gates;
use crate::memory::FeatureMap;
use crate::window::{Padding, Window2d};

thread_local! {
    /// Seed of the next random values, so that no two calls of a test get the same.
    static NEXT_SEED: Cell<u64> = const { Cell::new(1) };
}

/// Normally distributed around 0.
pub(crate) fn random(count: usize, deviation: f32) -> Vec<f32> {
    let seed = NEXT_SEED.replace(NEXT_SEED.get() + 1);
    let normal = Normal::new(0.0, deviation).unwrap();
    let values = normal.sample_iter(Pcg64::seed_from_u64(seed));
    values.take(count).collect()
}

/// Random values with a deviation of 1.
pub(crate) fn random_map(dims: [usize; 4]) -> FeatureMap {
    map(&random(dims.iter().product(), 1.0), dims)
}

pub(crate) fn map(values: &[f32], dims: [usize; 4]) -> FeatureMap {
    let mut map = FeatureMap::new(dims);
    map.values.copy_from_slice(values);
    map
}

/// Image `index` of a batch.
pub(crate) fn image(x: &FeatureMap, index: usize) -> FeatureMap {
    let [_, height, width, channels] = x.dims();
    let len = x.image_len();
    map(
        &x.values[index * len..][..len],
        [1, height, width, channels],
    )
}

pub(crate) fn lopsided(
    kernel: [usize; 2],
    stride: [usize; 2],
    [top, left, bottom, right]: [usize; 4],
) -> Window2d {
    Window2d {
        kernel,
        stride,
        padding: Padding {
            top,
            left,
            bottom,
            right,
        },
    }
}

/// Square windows with the same padding on all sides.
pub(crate) fn centred_windows() -> Vec<Window2d> {
    let sizes = [(1, 1), (1, 2), (3, 1), (3, 2), (7, 2)];
    let windows = sizes.map(|(kernel, stride)| Window2d::centred(kernel, stride));
    windows.to_vec()
}

/// A pool of this many threads.
pub(crate) fn pool(threads: usize) -> rayon::ThreadPool {
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
    builder.build().unwrap()
}

/// For each window, the value of each of its slots and channels, 0 outside the image.
pub(crate) fn slots(x: &FeatureMap, window: Window2d) -> Vec<Vec<f32>> {
    let [images, height, width, channels] = x.dims();
    let [lines, columns] = window.output(height, width).unwrap();
    let mut windows = Vec::new();
    for index in 0..images * lines * columns {
        let (image, line, column) = (
            index / (lines * columns),
            index / columns % lines,
            index % columns,
        );
        let mut slots = Vec::new();
        for slot in 0..window.positions() {
            let (y, x_slot) = (slot / window.kernel[1], slot % window.kernel[1]);
            let y = (line * window.stride[0] + y).checked_sub(window.padding.top);
            let at = (column * window.stride[1] + x_slot).checked_sub(window.padding.left);
            let inside = match (y, at) {
                (Some(y), Some(at)) if y < height && at < width => Some([y, at]),
                _ => None,
            };
            slots.extend((0..channels).map(|channel| match inside {
                Some([y, at]) => x.values[((image * height + y) * width + at) * channels + channel],
                None => 0.0,
            }));
        }
        windows.push(slots);
    }
    windows
}

/// The convolution by its definition, with weights `[positions * input + 1, output]`.
pub(crate) fn convolved(
    x: &FeatureMap,
    weight: &[f32],
    window: Window2d,
    output: usize,
) -> Vec<f32> {
    let mut out = Vec::new();
    for slots in slots(x, window) {
        for to in 0..output {
            let products = slots.iter().enumerate();
            let products =
                products.map(|(row, x)| f64::from(*x) * f64::from(weight[row * output + to]));
            let bias = f64::from(weight[slots.len() * output + to]);
            out.push((products.sum::<f64>() + bias) as f32);
        }
    }
    out
}

/// The depthwise convolution by its definition, with weights `[positions + 1, channels]`.
pub(crate) fn depthwise_convolved(x: &FeatureMap, weight: &[f32], window: Window2d) -> Vec<f32> {
    let channels = x.dims()[3];
    let mut out = Vec::new();
    for slots in slots(x, window) {
        for channel in 0..channels {
            let of_channel = slots.iter().skip(channel).step_by(channels).enumerate();
            let products = of_channel
                .map(|(slot, x)| f64::from(*x) * f64::from(weight[slot * channels + channel]));
            let bias = f64::from(weight[window.positions() * channels + channel]);
            out.push((products.sum::<f64>() + bias) as f32);
        }
    }
    out
}

/// All of them.
pub(crate) const ACTIVATIONS: [Activation; 6] = [
    Activation::None,
    Activation::Relu,
    Activation::Silu,
    Activation::HardSwish,
    Activation::Gelu,
    Activation::GeluTanh,
];

/// Applies an activation to values that a layer was to apply it to.
pub(crate) fn apply(activation: Activation, values: &mut [f32]) {
    match activation {
        Activation::None => {}
        Activation::Relu => values.iter_mut().for_each(|x| *x = x.max(0.0)),
        Activation::Silu => gates::silu(values),
        Activation::HardSwish => gates::hard_swish(values),
        Activation::Gelu => gates::gelu(values),
        Activation::GeluTanh => gates::gelu_tanh(values),
    }
}

pub(crate) fn assert_close(ours: &[f32], theirs: &[f32], bound: f32, name: &str) {
    assert_eq!(ours.len(), theirs.len(), "{name}");
    for (i, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!((a - b).abs() < bound, "{name}, value {i}: {a} {b}");
    }
}
