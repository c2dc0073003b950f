//! The room: a few reflections, each later one weaker.

use std::ops::Range;

use rand::Rng;
use rand_pcg::Pcg64;

use super::sound::SAMPLE_RATE_HZ;

/// Reflections that are rendered.
const REFLECTIONS: usize = 6;
/// When they arrive.
const DELAY_MS: Range<f32> = 4.0..120.0;
/// Time in which reflections lose 60 dB.
const DECAY_MS: Range<f32> = 80.0..500.0;
/// Amplitude of a reflection at no delay, relative to the direct sound.
const STRENGTH: Range<f32> = 0.0..0.6;

/// `dry` as it sounds in a room.
pub(super) fn reflect(dry: &[f32], rng: &mut Pcg64) -> Vec<f32> {
    let decay_ms = rng.random_range(DECAY_MS);
    let strength = rng.random_range(STRENGTH);
    let mut wet = dry.to_vec();
    for _ in 0..REFLECTIONS {
        let delay_ms = rng.random_range(DELAY_MS);
        let sign = if rng.random() { 1.0 } else { -1.0 };
        let gain = sign * strength * 10f32.powf(-3.0 * delay_ms / decay_ms);
        let delay = (delay_ms * SAMPLE_RATE_HZ / 1000.0) as usize;
        for (sum, sample) in wet.iter_mut().skip(delay).zip(dry) {
            *sum += gain * sample;
        }
    }
    wet
}
