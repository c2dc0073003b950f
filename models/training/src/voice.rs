//! The voice application's data: one second of a spoken keyword, 16 kHz mono.
//!
//! Words come from a small formant synthesiser after Klatt, "Software for a cascade/parallel
//! formant synthesizer" (1980): `phonemes` holds the words as targets, `speaker` the voice and its
//! tempo, `track` the path from target to target, `synth` source and filters. `room` then adds
//! reflections and `noise` the background. The keywords are of the Speech Commands set and chosen
//! to be confused: `no` and `go` differ in 80 ms of onset, `up` is the end of `stop`, and `down`
//! begins and ends like `no`.
//!
//! Every clip is a function of (label, random stream) alone.

mod keyword;
mod noise;
mod phonemes;
mod room;
mod sound;
mod speaker;
mod synth;
mod track;

use rand::Rng;
use rand_pcg::Pcg64;

pub use self::keyword::{CLASSES, Keyword};
pub use self::sound::{SAMPLE_RATE_HZ, SAMPLES};
use self::sound::{decibels, rms};
use self::speaker::Speaker;
use self::track::SpeechTrack;
use crate::data::Data;

/// Root mean square of a whole clip in decibels below full scale: quietest and loudest.
const LEVEL_DB: std::ops::Range<f32> = -36.0..-18.0;

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
        // A label beyond the last class counts as the first keyword.
        let keyword = Keyword::ALL.get(label).copied();
        clip(keyword.unwrap_or(Keyword::Yes), rng)
    }
}

/// A clip of `keyword`: 16,000 samples in [-1, 1].
///
/// The word lies anywhere in the clip, spoken once by a new speaker, in a new room, with new noise.
pub fn clip(keyword: Keyword, rng: &mut Pcg64) -> Vec<f32> {
    let speaker = Speaker::draw(rng);
    let track = SpeechTrack::draw(phonemes::script(keyword), &speaker, rng);
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

#[cfg(test)]
mod tests;
