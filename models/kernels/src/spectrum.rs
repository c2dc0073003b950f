//! Logarithms of the power in bands of frequencies, frame by frame, as features of sounds.
//!
//! Each lane of a vector computes another frame. So no value moves between lanes, and a frame's
//! result does not depend on the other frames. The frames of a vector stay in the first two levels
//! of cache: sixteen of 512 points take 32 KiB.

mod fft;

use self::fft::RealFft;
use crate::functions::ln;
use crate::memory::Buffer;
use crate::simd::dispatch;
use crate::simd::vectors::{Simd, Vectorized};

/// Frames of a signal.
#[derive(Clone, Debug)]
pub struct Frames {
    /// Samples between the starts of two frames.
    pub hop: usize,
    /// Zeros before the first sample, which the first frame starts with.
    pub left: usize,
    /// Factors of a frame's samples.
    pub window: Vec<f32>,
}

/// A weighted sum of the powers of neighbouring frequencies.
#[derive(Clone, Debug)]
pub struct Band {
    /// The lowest frequency, in bins of the transform.
    pub first: usize,
    /// Weights of the powers from there on.
    pub heights: Vec<f32>,
}

/// The logarithms of the power in the bands of each frame.
pub struct LogBands {
    frames: Frames,
    fft: RealFft,
    bands: Vec<Band>,
    floor: f32,
}

/// All frames of one signal.
struct AllFrames<'a> {
    spec: &'a LogBands,
    samples: &'a [f32],
    /// `[frames, bands]`.
    out: &'a mut [f32],
}

// === impl Frames ===

impl Frames {
    /// Frames of a signal: as many as hops, the last of which may be incomplete.
    fn count(&self, samples: usize) -> usize {
        samples.div_ceil(self.hop)
    }

    /// Hops that `count` neighbouring frames touch.
    fn hops(&self, count: usize) -> usize {
        count + self.window.len().div_ceil(self.hop) - 1
    }

    /// Copies hops `first..first + stride` to the columns of `[hop, stride]`; samples outside of the
    /// signal are 0.
    ///
    /// Then the samples at the same position of neighbouring frames are neighbours in a row, and a
    /// sample of overlapping frames is copied once.
    #[inline(always)]
    fn transpose(&self, samples: &[f32], first: usize, stride: usize, to: &mut [f32]) {
        for column in 0..stride {
            let start = (first + column) * self.hop;
            let skipped = self.left.saturating_sub(start).min(self.hop);
            let from = (start + skipped).saturating_sub(self.left);
            let inside = samples.get(from..).unwrap_or_default();
            let inside = &inside[..inside.len().min(self.hop - skipped)];
            if inside.len() < self.hop {
                for row in to.chunks_exact_mut(stride) {
                    row[column] = 0.0;
                }
            }
            let rows = to.chunks_exact_mut(stride).skip(skipped);
            for (row, sample) in rows.zip(inside) {
                row[column] = *sample;
            }
        }
    }

    /// Multiplies the frames that start in the first hops by the window, `[sample][lane]`; zeros
    /// follow.
    #[inline(always)]
    fn weigh<S: Simd>(&self, simd: S, hops: &[f32], stride: usize, to: &mut [f32]) {
        let (inside, behind) = to.split_at_mut(self.window.len() * S::LANES);
        let parts = inside.chunks_mut(self.hop * S::LANES);
        for (hop, (part, window)) in parts.zip(self.window.chunks(self.hop)).enumerate() {
            let rows = hops.chunks_exact(stride).zip(window);
            for (to, (row, weight)) in part.chunks_exact_mut(S::LANES).zip(rows) {
                let samples = simd.load(&row[hop..][..S::LANES]);
                simd.store(to, simd.mul(samples, simd.splat(*weight)));
            }
        }
        behind.fill(0.0);
    }
}

// === impl LogBands ===

impl LogBands {
    /// Bands of the spectra of `points` values: a frame, followed by zeros. `floor` is added to a
    /// band's power; it must be a normal number above 0.
    ///
    /// # Panics
    /// `points` is not twice a power of 4 or less than 8, the window is empty or longer, there are
    /// no bands, or a band's frequencies are above half the sampling rate.
    pub fn new(frames: Frames, points: usize, bands: Vec<Band>, floor: f32) -> Self {
        let fft = RealFft::new(points);
        assert!(frames.hop > 0, "frames that advance");
        assert!((1..=points).contains(&frames.window.len()), "a window");
        let mut ends = bands.iter().map(|band| band.first + band.heights.len());
        assert!(
            !bands.is_empty() && ends.all(|end| end <= fft.bins()),
            "bands"
        );
        Self {
            frames,
            fft,
            bands,
            floor,
        }
    }

    /// Writes the natural logarithm of each band's power plus the floor, `[frames, bands]`.
    ///
    /// # Panics
    /// `out` has another length.
    pub fn write(&self, samples: &[f32], out: &mut [f32]) {
        let frames = self.frames.count(samples.len());
        assert_eq!(out.len(), frames * self.bands.len(), "frames of bands");
        dispatch(AllFrames {
            spec: self,
            samples,
            out,
        });
    }

    /// The logarithms `[band][lane]` of powers `[bin][lane]`.
    #[inline(always)]
    fn logarithms<S: Simd>(&self, simd: S, powers: &[f32], to: &mut [f32]) {
        for (band, to) in self.bands.iter().zip(to.chunks_exact_mut(S::LANES)) {
            let mut sum = simd.splat(self.floor);
            let powers = powers[band.first * S::LANES..].chunks_exact(S::LANES);
            for (height, power) in band.heights.iter().zip(powers) {
                sum = simd.mul_add(simd.load(power), simd.splat(*height), sum);
            }
            simd.store(to, ln(simd, sum));
        }
    }
}

// === impl AllFrames ===

impl Vectorized for AllFrames<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let LogBands {
            frames, fft, bands, ..
        } = self.spec;
        let stride = frames.hops(S::LANES);
        let mut hops = Buffer::take(frames.hop * stride);
        let mut signals = Buffer::take(fft.points() * S::LANES);
        let mut powers = Buffer::take(fft.bins() * S::LANES);
        let mut logarithms = Buffer::take(bands.len() * S::LANES);
        let blocks = self.out.chunks_mut(S::LANES * bands.len());
        for (block, out) in blocks.enumerate() {
            frames.transpose(self.samples, block * S::LANES, stride, &mut hops);
            frames.weigh(simd, &hops, stride, &mut signals);
            fft.powers(simd, &mut signals, &mut powers);
            self.spec.logarithms(simd, &powers, &mut logarithms);
            for (lane, frame) in out.chunks_exact_mut(bands.len()).enumerate() {
                for (value, logarithms) in frame.iter_mut().zip(logarithms.chunks_exact(S::LANES)) {
                    *value = logarithms[lane];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
