//! Layout and loudness of a clip, and noise.

use rand::Rng;
use rand_pcg::Pcg64;

/// Samples of one clip.
pub const SAMPLES: usize = 16_000;

/// Samples per second.
pub const SAMPLE_RATE_HZ: f32 = 16_000.0;

/// An amplitude ratio from decibels.
pub(super) fn decibels(db: f32) -> f32 {
    10f32.powf(db / 20.0)
}

/// Root mean square.
pub(super) fn rms(samples: &[f32]) -> f32 {
    let power: f32 = samples.iter().map(|sample| sample * sample).sum();
    (power / samples.len().max(1) as f32).sqrt()
}

/// White noise of unit variance: uniform, which a filter bank cannot distinguish from a Gaussian.
pub(super) fn white(rng: &mut Pcg64) -> f32 {
    const PEAK: f32 = 1.732_050_8;
    // The upper half of the state's output, read as a signed integer.
    let bits = (rng.random::<u64>() >> 32) as u32 as i32;
    bits as f32 * (PEAK / 2_147_483_648.0)
}
