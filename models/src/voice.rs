//! The voice application's data: one second of a spoken keyword, 16 kHz mono.
//!
//! Words come from a small formant synthesiser after Klatt, "Software for a cascade/parallel
//! formant synthesizer" (1980): `phonemes` holds the words as targets, `speaker` who speaks and
//! how fast, `track` the way from target to target, `synth` source and filters. `room` then adds
//! reflections and `noise` what else is to be heard. The keywords are of the Speech Commands set
//! and chosen to be mistaken for one another: `no` and `go` differ in 80 ms of onset, `up` is the
//! end of `stop`, and `down` begins and ends near `no`.
//!
//! Every clip is a function of (label, random stream) alone.

mod noise;
mod phonemes;
mod room;
mod speaker;
mod synth;
mod track;

use rand::Rng;
use rand_pcg::Pcg64;

use crate::data::Data;
use speaker::Speaker;
use track::Track;

/// Samples of one clip.
pub const SAMPLES: usize = 16_000;

/// Samples per second.
pub const SAMPLE_RATE_HZ: f32 = 16_000.0;

/// Number of keywords.
pub const CLASSES: usize = 6;

/// Root mean square of a whole clip in decibels below full scale: quietest and loudest.
const LEVEL_DB: std::ops::Range<f32> = -36.0..-18.0;

/// A keyword. Its discriminant is the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    /// /jɛs/.
    Yes,
    /// /noʊ/.
    No,
    /// /ɡoʊ/.
    Go,
    /// /stɑp/.
    Stop,
    /// /ʌp/.
    Up,
    /// /daʊn/.
    Down,
}

// === impl Keyword ===

impl Keyword {
    /// Every keyword, in order of label.
    pub const ALL: [Self; CLASSES] = [
        Self::Yes,
        Self::No,
        Self::Go,
        Self::Stop,
        Self::Up,
        Self::Down,
    ];

    /// As it is spelled.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Go => "go",
            Self::Stop => "stop",
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// Clips by label.
pub struct Voice;

impl Data for Voice {
    fn classes(&self) -> usize {
        CLASSES
    }

    fn width(&self) -> usize {
        SAMPLES
    }

    fn draw(&self, label: usize, rng: &mut Pcg64) -> Vec<f32> {
        // A label beyond the last class is none of ours; the first keyword is as good as any.
        let keyword = Keyword::ALL.get(label).copied();
        clip(keyword.unwrap_or(Keyword::Yes), rng)
    }
}

/// A clip of `keyword`: 16,000 samples in [-1, 1].
///
/// The word lies anywhere in the clip, spoken once by a new speaker, in a new room, before new
/// noise.
pub fn clip(keyword: Keyword, rng: &mut Pcg64) -> Vec<f32> {
    let speaker = Speaker::draw(rng);
    let track = Track::draw(phonemes::script(keyword), &speaker, rng);
    let mut word = synth::speak(&track, &speaker, rng);
    word.truncate(SAMPLES);
    let start = rng.random_range(0..=SAMPLES - word.len());
    let mut dry = vec![0.0; SAMPLES];
    dry[start..start + word.len()].copy_from_slice(&word);
    let mut clip = room::reflect(&dry, rng);
    noise::add(&mut clip, rng);
    let level = decibels(rng.random_range(LEVEL_DB)) / rms(&clip).max(f32::MIN_POSITIVE);
    for sample in &mut clip {
        // Peaks of the loudest clips saturate, as in a cheap microphone.
        *sample = (*sample * level).clamp(-1.0, 1.0);
    }
    clip
}

/// An amplitude ratio from decibels.
fn decibels(db: f32) -> f32 {
    10f32.powf(db / 20.0)
}

fn rms(samples: &[f32]) -> f32 {
    let power: f32 = samples.iter().map(|sample| sample * sample).sum();
    (power / samples.len().max(1) as f32).sqrt()
}

/// White noise of unit variance: uniform, which no filter bank tells from a Gaussian.
fn white(rng: &mut Pcg64) -> f32 {
    const PEAK: f32 = 1.732_050_8;
    // The upper half of the state's output is a signed integer in disguise.
    let bits = (rng.random::<u64>() >> 32) as u32 as i32;
    bits as f32 * (PEAK / 2_147_483_648.0)
}

#[cfg(test)]
mod tests;
