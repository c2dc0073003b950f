//! The speaker's voice and manner.

use rand::Rng;
use rand_pcg::Pcg64;

/// Pitch of the deepest and the highest voice.
const PITCH_HZ: [f32; 2] = [90.0, 260.0];
/// Formants relative to an adult man's at both ends of the pitch range: a high voice mostly comes
/// from a short tract.
const TRACT: [f32; 2] = [0.94, 1.22];
/// Largest deviation of a tract from that rule.
const TRACT_SPREAD: f32 = 0.05;

/// A voice and a manner of speaking.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speaker {
    /// Mean fundamental frequency.
    pub(super) pitch_hz: f32,
    /// Relative change of the pitch from the start of a word to its end.
    pub(super) intonation: f32,
    /// Largest relative deviation of one glottal period.
    pub(super) jitter: f32,
    /// Largest relative deviation of one glottal pulse's amplitude.
    pub(super) shimmer: f32,
    /// Share of a period in which the glottis is open.
    pub(super) open_quotient: f32,
    /// Noise of the breath while the glottis is open, relative to its pulses.
    pub(super) breathiness: f32,
    /// Formants relative to an adult man's.
    pub(super) tract: f32,
    /// Durations relative to the script's.
    pub(super) slowness: f32,
    /// Time over which articulators pass from one target to the next; at fast rates they leave a
    /// target before they reach it.
    pub(super) glide_ms: f32,
    /// Largest relative deviation of a target: the accent.
    pub(super) accent: f32,
    /// Whether a final stop is audibly released.
    pub(super) releases: bool,
}

// === impl Speaker ===

impl Speaker {
    pub(super) fn draw(rng: &mut Pcg64) -> Self {
        let height: f32 = rng.random();
        let tract = TRACT[0] + (TRACT[1] - TRACT[0]) * height;
        Self {
            pitch_hz: PITCH_HZ[0] * (PITCH_HZ[1] / PITCH_HZ[0]).powf(height),
            intonation: rng.random_range(-0.35..0.15),
            jitter: rng.random_range(0.005..0.03),
            shimmer: rng.random_range(0.02..0.15),
            open_quotient: rng.random_range(0.5..0.8),
            breathiness: rng.random_range(0.02..0.2),
            tract: tract + rng.random_range(-TRACT_SPREAD..TRACT_SPREAD),
            slowness: rng.random_range(0.65..1.4),
            glide_ms: rng.random_range(40.0..100.0),
            accent: rng.random_range(0.02..0.1),
            releases: rng.random_bool(0.6),
        }
    }
}
