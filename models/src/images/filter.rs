//! Resampling filters, in Pillow's fixed point.

use std::f64::consts::PI;

use super::card::Filter;

/// Bits after the point of a weight: 32 less 8 of a value and 2 of head room for negative lobes.
const PRECISION: u32 = 22;

/// Half a unit, so that [`level`] rounds.
pub(super) const HALF: i32 = 1 << (PRECISION - 1);

/// The source pixels that make up each of a row of resized pixels, and their weights.
pub(super) struct Taps {
    /// First source pixel and its weights' range, per resized pixel.
    spans: Vec<(usize, std::ops::Range<usize>)>,
    weights: Vec<i32>,
}

/// One axis of a resize.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    /// Length of the source.
    pub(super) source: usize,
    /// Length after the resize.
    pub(super) resized: usize,
    /// First resized pixel that is kept.
    pub(super) start: usize,
    /// Number of resized pixels that are kept.
    pub(super) kept: usize,
    /// The kept pixels are those of the reversed source.
    pub(super) flipped: bool,
}

/// Rounds a sum of weighted values, [`HALF`] included, to a value from 0 to 255.
#[inline]
pub(super) fn level(sum: i32) -> u8 {
    (sum >> PRECISION).clamp(0, 255) as u8
}

// === impl Taps ===

impl Taps {
    /// The taps of the kept pixels of `axis`.
    pub(super) fn new(filter: Filter, axis: Axis) -> Self {
        let mut taps = Self {
            spans: Vec::with_capacity(axis.kept),
            weights: Vec::new(),
        };
        let mut exact = Vec::new();
        for pixel in axis.start..axis.start + axis.kept {
            let pixel = if axis.flipped {
                axis.resized - 1 - pixel
            } else {
                pixel
            };
            let first = weigh(filter, axis, pixel, &mut exact);
            let from = taps.weights.len();
            taps.weights
                .extend(exact.iter().map(|&weight| fixed(weight)));
            taps.spans.push((first, from..taps.weights.len()));
        }
        taps
    }

    /// Number of resized pixels.
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// First source pixel and weights, per resized pixel.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &[i32])> {
        let weights = |range: &std::ops::Range<usize>| &self.weights[range.clone()];
        self.spans
            .iter()
            .map(move |(first, range)| (*first, weights(range)))
    }

    /// Range of the source pixels that have a weight.
    pub(super) fn sources(&self) -> std::ops::Range<usize> {
        let first = self.spans.iter().map(|(first, _)| *first).min();
        let end = self.spans.iter().map(|(first, range)| first + range.len());
        first.unwrap_or(0)..end.max().unwrap_or(0)
    }
}

/// Writes the weights of resized pixel `pixel`, which sum to 1; returns the first source pixel.
fn weigh(filter: Filter, axis: Axis, pixel: usize, weights: &mut Vec<f64>) -> usize {
    weights.clear();
    let scale = axis.source as f64 / axis.resized as f64;
    let centre = (pixel as f64 + 0.5) * scale;
    if filter == Filter::Nearest {
        weights.push(1.0);
        return (centre as usize).min(axis.source - 1);
    }
    // Downwards the filter widens, which is the antialiasing; upwards it does not narrow.
    let widening = scale.max(1.0);
    let support = radius(filter) * widening;
    let first = (centre - support + 0.5).max(0.0) as usize;
    let end = ((centre + support + 0.5) as usize).min(axis.source);
    let weight = |source| value(filter, (source as f64 - centre + 0.5) * (1.0 / widening));
    weights.extend((first..end).map(weight));
    let sum: f64 = weights.iter().sum();
    if sum != 0.0 {
        weights.iter_mut().for_each(|weight| *weight *= 1.0 / sum);
    }
    first
}

/// A weight in fixed point, rounded half away from zero.
fn fixed(weight: f64) -> i32 {
    (weight * f64::from(1 << PRECISION)).round() as i32
}

/// Distance in pixels at which a filter ends.
fn radius(filter: Filter) -> f64 {
    match filter {
        Filter::Nearest => 0.5,
        Filter::Bilinear => 1.0,
        Filter::Bicubic => 2.0,
        Filter::Lanczos => 3.0,
    }
}

/// Value of a filter at distance `x`.
fn value(filter: Filter, x: f64) -> f64 {
    /// Slope of the cubic at distance 1.
    const A: f64 = -0.5;
    let sinc = |x: f64| {
        if x == 0.0 {
            1.0
        } else {
            (x * PI).sin() / (x * PI)
        }
    };
    let distance = x.abs();
    match filter {
        _ if distance >= radius(filter) => 0.0,
        Filter::Nearest => 1.0,
        Filter::Bilinear => 1.0 - distance,
        Filter::Bicubic if distance < 1.0 => {
            ((A + 2.0) * distance - (A + 3.0)) * distance * distance + 1.0
        }
        Filter::Bicubic => (((distance - 5.0) * distance + 8.0) * distance - 4.0) * A,
        Filter::Lanczos => sinc(x) * sinc(x / 3.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(source: usize, resized: usize) -> Axis {
        Axis {
            source,
            resized,
            start: 0,
            kept: resized,
            flipped: false,
        }
    }

    #[test]
    fn weights_sum_to_one_within_rounding() {
        for filter in [
            Filter::Nearest,
            Filter::Bilinear,
            Filter::Bicubic,
            Filter::Lanczos,
        ] {
            for (source, resized) in [(1, 7), (7, 1), (640, 224), (224, 640), (65_535, 1)] {
                let taps = Taps::new(filter, axis(source, resized));
                assert!(taps.sources().end <= source);
                for (_, weights) in taps.iter() {
                    let sum: i64 = weights.iter().map(|&weight| i64::from(weight)).sum();
                    let error = sum.abs_diff(1 << PRECISION);
                    assert!(
                        error <= weights.len() as u64,
                        "{filter:?} {source} {resized}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_axis_of_equal_lengths_changes_nothing() {
        for filter in [
            Filter::Nearest,
            Filter::Bilinear,
            Filter::Bicubic,
            Filter::Lanczos,
        ] {
            let taps = Taps::new(filter, axis(9, 9));
            for (i, (first, weights)) in taps.iter().enumerate() {
                for (at, &weight) in weights.iter().enumerate() {
                    let whole = if first + at == i { 1 << PRECISION } else { 0 };
                    assert_eq!(weight, whole, "{filter:?}");
                }
            }
        }
    }
}
