//! Means and maxima over positions.

use super::Map;
use super::simd::{Simd, Vectorized, dispatch};
use crate::unfold2d::Window2d;

/// Mean over all positions: `[pictures, height, width, channels]` to `[pictures, 1, 1, channels]`.
pub(crate) fn mean(x: &Map) -> Map {
    let [pictures, height, width, channels] = x.dims();
    let mut result = Map::new([pictures, 1, 1, channels]);
    let share = 1.0 / (height * width) as f32;
    let sums = result.numbers.chunks_exact_mut(channels.max(1));
    for (sums, picture) in sums.zip(x.numbers.chunks_exact(x.picture_len().max(1))) {
        dispatch(Mean {
            sums,
            picture,
            share,
        });
    }
    result
}

/// Largest number of each window and channel; what lies outside the picture counts as 0.
///
/// # Errors
/// A picture with its padding is smaller than a window.
pub(crate) fn max(x: &Map, window: Window2d) -> candle_core::Result<Map> {
    let [pictures, height, width, channels] = x.dims();
    let output = window.output(height, width)?;
    let mut result = Map::new([pictures, output[0], output[1], channels]);
    let len = (output[0] * output[1] * channels).max(1);
    let from = x.numbers.chunks_exact(x.picture_len().max(1));
    for (to, from) in result.numbers.chunks_exact_mut(len).zip(from) {
        dispatch(Max {
            window,
            size: [height, width],
            output,
            channels,
            from,
            to,
        });
    }
    Ok(result)
}

struct Mean<'a> {
    sums: &'a mut [f32],
    picture: &'a [f32],
    share: f32,
}

struct Max<'a> {
    window: Window2d,
    size: [usize; 2],
    output: [usize; 2],
    channels: usize,
    from: &'a [f32],
    to: &'a mut [f32],
}

impl Vectorized for Mean<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        self.sums.fill(0.0);
        for position in self.picture.chunks_exact(self.sums.len()) {
            for (sum, value) in self.sums.iter_mut().zip(position) {
                *sum += value;
            }
        }
        for sum in self.sums {
            *sum *= self.share;
        }
    }
}

impl Vectorized for Max<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self {
            window,
            size,
            output,
            channels,
            from,
            to,
        } = self;
        to.fill(0.0);
        window.for_each_run(size, output, |run| {
            let onto = &mut to[run.window * channels..][..channels];
            let values = &from[run.position * channels..][..run.count * channels];
            for value in values.chunks_exact(channels) {
                for (largest, value) in onto.iter_mut().zip(value) {
                    *largest = largest.max(*value);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::{Device, Tensor};

    use super::*;
    use crate::layers2d;

    #[test]
    fn both_are_those_of_the_plain_operations() {
        let x = Tensor::randn(0f32, 1.0, (3, 9, 7, 21), &Device::Cpu).unwrap();
        let map = Map::of(&x, [3, 9, 7, 21]).unwrap();
        let numbers = |t: &Tensor| t.flatten_all().and_then(|t| t.to_vec1::<f32>()).unwrap();
        for (a, b) in mean(&map)
            .numbers
            .iter()
            .zip(numbers(&layers2d::mean_pool(&x).unwrap()))
        {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
        for window in [Window2d::centred(3, 2), Window2d::centred(1, 1)] {
            let ours = max(&map, window).unwrap();
            let theirs = layers2d::max_pool(&x, window).unwrap();
            assert_eq!(ours.dims().as_slice(), theirs.dims());
            assert_eq!(*ours.numbers, numbers(&theirs));
        }
    }
}
