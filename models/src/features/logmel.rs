//! Log-mel features of 16 kHz audio: 25 ms Hann windows every 10 ms, 40 bands.
//!
//! Mel frequencies by HTK's formula, `mel = 2595 log10(1 + f / 700)`; triangles of height 1, evenly
//! spaced in mel between 60 and 7,600 Hz; natural logarithm of the power plus a floor. The clip's
//! mean is subtracted, so loudness does not matter, and the result is divided by its usual
//! deviation, so networks start from values around 1. Nothing here is trained and no gradient
//! passes.
//!
//! On a CPU a kernel transforms a frame per vector lane. On other devices the transform is a product
//! with a table of cosines and sines: thirty times the arithmetic, in one matrix product.

use std::f64::consts::TAU;
use std::sync::LazyLock;

use candle_core::{CpuStorage, CustomOp1, D, Device, Layout, Result, Shape, Tensor};
use switchyard_kernels::norm::centre;
use switchyard_kernels::spectrum::{Band, Frames, LogBands};

use crate::ops::device::has_kernels;
use crate::ops::tensors::contiguous;

/// Samples per second that bands and windows are made for.
const SAMPLE_RATE_HZ: f64 = 16_000.0;

/// Bands per frame.
pub(crate) const BANDS: usize = 40;

/// Samples between two frames: 10 ms.
pub(crate) const HOP: usize = 160;

/// Samples of a window: 25 ms. The first is centred on the first hop, so a clip has as many frames
/// as hops.
const WINDOW: usize = 400;

/// Zeros before the first sample.
const LEFT: usize = (WINDOW - HOP) / 2;

/// Hops that a window touches.
const HOPS: usize = WINDOW.div_ceil(HOP);

/// Points of the transform; the window is padded with zeros.
const POINTS: usize = 512;

/// Bins from frequency 0 to half the sampling rate.
const BINS: usize = POINTS / 2 + 1;

/// Lower edge of the first triangle and upper edge of the last.
const RANGE_HZ: [f64; 2] = [60.0, 7_600.0];

/// Added to a band's power: 60 dB below a quiet clip's.
const FLOOR: f32 = 1e-6;

/// Divisor of the features: about their standard deviation over speech in noise.
const SPREAD: f32 = 2.5;

/// Parts into which [`pooled`] cuts a clip.
const PARTS: usize = 4;

/// Length of the result of [`pooled`].
pub(crate) const POOLED: usize = (PARTS + 1) * BANDS;

/// Frames of a clip.
pub(crate) fn frames(samples: usize) -> usize {
    samples.div_ceil(HOP)
}

/// `[batch, samples]` to `[batch, frames, 40]`.
///
/// # Errors
/// `x` is no matrix of f32.
pub(crate) fn features(x: &Tensor) -> Result<Tensor> {
    let x = x.detach();
    if has_kernels(&x) {
        x.contiguous()?.apply_op1_no_bwd(&LogMel)
    } else {
        composed(&x)
    }
}

/// [`features`] of a network's input, which must hold `samples` a row.
///
/// # Errors
/// As [`features`], or the rows hold another number.
pub(crate) fn of_input(x: &Tensor, samples: usize) -> Result<Tensor> {
    let (_, width) = x.dims2()?;
    if width != samples {
        candle_core::bail!("input has {width} samples, the model takes {samples}");
    }
    features(x)
}

/// A clip as one vector for nearest neighbours: the mean bands of each quarter of the clip's
/// loudness, one after another, then those of the whole clip.
///
/// Loudness is counted above the quietest frames, so the start and the length of a word do not
/// matter. Costs about 0.04 ms for one second of audio on one core, nearly all of it for the
/// features.
pub(crate) fn pooled(samples: &[f32]) -> Vec<f32> {
    let count = frames(samples.len());
    let mut features = vec![0.0; count * BANDS];
    write_features(samples, &mut features);
    let loudness: Vec<f32> = features
        .chunks_exact(BANDS)
        .map(|frame| frame.iter().sum::<f32>() / BANDS as f32)
        .collect();
    let mut sorted = loudness.clone();
    sorted.sort_by(f32::total_cmp);
    let quiet = sorted.get(count / 4).copied().unwrap_or_default();
    let weights: Vec<f32> = loudness
        .iter()
        .map(|value| (value - quiet).max(0.0))
        .collect();
    let total = weights.iter().sum::<f32>().max(f32::MIN_POSITIVE);

    let mut pooled = vec![0.0; POOLED];
    let mut shares = [0.0f32; PARTS];
    let mut passed = 0.0;
    for (frame, weight) in features.chunks_exact(BANDS).zip(weights) {
        let part = ((passed / total * PARTS as f32) as usize).min(PARTS - 1);
        passed += weight;
        shares[part] += weight;
        for (band, value) in frame.iter().enumerate() {
            pooled[part * BANDS + band] += weight * value;
            pooled[PARTS * BANDS + band] += value / count as f32;
        }
    }
    for (part, share) in pooled.chunks_exact_mut(BANDS).zip(shares) {
        for value in part {
            *value /= share.max(f32::MIN_POSITIVE);
        }
    }
    pooled
}

/// [`features`] on a CPU.
struct LogMel;

static LOG_BANDS: LazyLock<LogBands> = LazyLock::new(|| {
    let frames = Frames {
        hop: HOP,
        left: LEFT,
        window: (0..WINDOW).map(hann).collect(),
    };
    LogBands::new(frames, POINTS, bands(), FLOOR)
});

/// The periodic Hann window.
fn hann(at: usize) -> f32 {
    (0.5 - 0.5 * (TAU * at as f64 / WINDOW as f64).cos()) as f32
}

fn mel(hz: f64) -> f64 {
    2595.0 * (1.0 + hz / 700.0).log10()
}

/// The triangles.
fn bands() -> Vec<Band> {
    let [low, high] = RANGE_HZ.map(mel);
    let edge = |at: usize| low + (high - low) * at as f64 / (BANDS + 1) as f64;
    (0..BANDS)
        .map(|band| {
            let (left, centre, right) = (edge(band), edge(band + 1), edge(band + 2));
            let height = |bin: usize| {
                let at = mel(bin as f64 * SAMPLE_RATE_HZ / POINTS as f64);
                ((at - left) / (centre - left)).min((right - at) / (right - centre))
            };
            let inside: Vec<usize> = (0..BINS).filter(|&bin| height(bin) > 0.0).collect();
            Band {
                first: inside.first().copied().unwrap_or_default(),
                heights: inside.iter().map(|&bin| height(bin) as f32).collect(),
            }
        })
        .collect()
}

/// Writes `[frames, 40]` of one clip.
fn write_features(samples: &[f32], out: &mut [f32]) {
    LOG_BANDS.write(samples, out);
    centre(out, 1.0 / SPREAD);
}

/// Whether no sample is NaN or infinite. Without an early exit, so that the compiler vectorizes it.
fn all_finite(samples: &[f32]) -> bool {
    let finite = |all: bool, sample: &f32| all & sample.is_finite();
    samples.iter().fold(true, finite)
}

// === impl LogMel ===

impl CustomOp1 for LogMel {
    fn name(&self) -> &'static str {
        "log-mel"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (batch, samples) = layout.shape().dims2()?;
        let clips = contiguous(storage, layout)?;
        let width = frames(samples) * BANDS;
        let mut out = vec![0.0; batch * width];
        for (index, out) in out.chunks_exact_mut(width.max(1)).enumerate() {
            let clip = &clips[index * samples..][..samples];
            match all_finite(clip) {
                true => write_features(clip, out),
                // The floor below the logarithm would hide it.
                false => out.fill(f32::NAN),
            }
        }
        Ok((CpuStorage::F32(out), (batch, width / BANDS, BANDS).into()))
    }
}

/// [`features`] made of candle's own operations.
fn composed(x: &Tensor) -> Result<Tensor> {
    let (batch, samples) = x.dims2()?;
    let frames = frames(samples);
    let hops = frames + HOPS - 1;
    let right = (hops * HOP).saturating_sub(samples + LEFT);
    let blocks = x
        .pad_with_zeros(1, LEFT, right)?
        .narrow(1, 0, hops * HOP)?
        .reshape((batch, hops, HOP))?;
    let windows = (0..HOPS)
        .map(|hop| blocks.narrow(1, hop, frames))
        .collect::<Result<Vec<_>>>()?;
    let windows = Tensor::cat(&windows, 2)?.reshape((batch * frames, HOPS * HOP))?;
    let (fourier, triangles) = product_tables(x.device())?;
    let parts = windows.matmul(&fourier)?.sqr()?;
    let powers = (parts.narrow(1, 0, BINS)? + parts.narrow(1, BINS, BINS)?)?;
    let bands = (powers.matmul(&triangles)? + f64::from(FLOOR))?.log()?;
    let bands = bands.reshape((batch, frames * BANDS))?;
    let centred = bands.broadcast_sub(&bands.mean_keepdim(D::Minus1)?)?;
    (centred / f64::from(SPREAD))?.reshape((batch, frames, BANDS))
}

/// The windowed Fourier table `[hops * hop, cosines | sines]` and the triangles `[bins, bands]`.
fn product_tables(device: &Device) -> Result<(Tensor, Tensor)> {
    let mut fourier = vec![0.0f32; HOPS * HOP * 2 * BINS];
    for (at, row) in fourier.chunks_exact_mut(2 * BINS).enumerate().take(WINDOW) {
        for bin in 0..BINS {
            // The product may exceed the integers that f32 holds exactly; the remainder does not.
            let turn = TAU * ((at * bin) % POINTS) as f64 / POINTS as f64;
            row[bin] = hann(at) * turn.cos() as f32;
            row[BINS + bin] = hann(at) * turn.sin() as f32;
        }
    }
    let mut triangles = vec![0.0f32; BINS * BANDS];
    for (band, Band { first, heights }) in bands().iter().enumerate() {
        for (at, height) in heights.iter().enumerate() {
            triangles[(first + at) * BANDS + band] = *height;
        }
    }
    Ok((
        Tensor::from_vec(fourier, (HOPS * HOP, 2 * BINS), device)?,
        Tensor::from_vec(triangles, (BINS, BANDS), device)?,
    ))
}

#[cfg(test)]
mod tests;
