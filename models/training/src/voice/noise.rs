//! Background: hiss, other people, machines.

use std::f32::consts::TAU;
use std::ops::Range;

use rand::Rng;
use rand_pcg::Pcg64;

use super::phonemes::{CHATTER, SpeechSegment};
use super::sound::{SAMPLE_RATE_HZ, SAMPLES, decibels, rms, white};
use super::speaker::Speaker;
use super::synth;
use super::track::SpeechTrack;

/// Power of the word, reflections included, over the power of the noise.
const SNR_DB: Range<f32> = -10.0..14.0;
/// People talking in the background.
const TALKERS: usize = 2;
/// Syllables that fill a clip at any speaking rate.
const SYLLABLES: usize = 10;
/// Harmonics of the mains.
const HARMONICS: usize = 12;
/// The microphone's own noise beneath a hum, in decibels.
const FLOOR_DB: f32 = -20.0;

/// Adds one kind of noise to a clip, in place.
pub(super) fn add(clip: &mut [f32], rng: &mut Pcg64) {
    let noise = match rng.random_range(0..3) {
        0 => hiss(rng),
        1 => babble(rng),
        _ => hum(rng),
    };
    // The word fills only part of the clip: its loudness while it lasts counts.
    let speaking = clip.iter().filter(|sample| **sample != 0.0).count();
    let share = speaking as f32 / clip.len().max(1) as f32;
    let word = rms(clip) / share.max(f32::MIN_POSITIVE).sqrt();
    let level = word / (decibels(rng.random_range(SNR_DB)) * rms(&noise).max(f32::MIN_POSITIVE));
    for (sample, noise) in clip.iter_mut().zip(noise) {
        *sample += level * noise;
    }
}

/// White to brown noise.
fn hiss(rng: &mut Pcg64) -> Vec<f32> {
    let memory = rng.random_range(0.0..0.95);
    let mut value = 0.0;
    (0..SAMPLES)
        .map(|_| {
            value = memory * value + white(rng);
            value
        })
        .collect()
}

/// Other people's talk.
fn babble(rng: &mut Pcg64) -> Vec<f32> {
    let mut sum = vec![0.0; SAMPLES];
    for _ in 0..TALKERS {
        let speaker = Speaker::draw(rng);
        let script: Vec<SpeechSegment> = (0..SYLLABLES)
            .flat_map(|_| CHATTER[rng.random_range(0..CHATTER.len())])
            .collect();
        let mut track = SpeechTrack::draw(&script, &speaker, rng);
        track.frames.truncate(SAMPLES / synth::FRAME_SAMPLES);
        let nearness = rng.random_range(0.3..1.0);
        for (sum, sample) in sum.iter_mut().zip(synth::speak(&track, &speaker, rng)) {
            *sum += nearness * sample;
        }
    }
    sum
}

/// Mains hum and its harmonics above a weak hiss, as near a ventilator.
fn hum(rng: &mut Pcg64) -> Vec<f32> {
    let base_hz = if rng.random() { 50.0 } else { 60.0 } * rng.random_range(0.99..1.01);
    let floor = decibels(FLOOR_DB);
    let mut samples: Vec<f32> = hiss(rng).iter().map(|sample| floor * sample).collect();
    // Rotating phasors: one sine per harmonic instead of one per sample. All of them turn together,
    // so no sample waits for the previous one.
    let mut heights = [0.0; HARMONICS];
    let mut turns = [(0.0, 0.0); HARMONICS];
    let mut pointers = [(0.0, 0.0); HARMONICS];
    for (at, height) in heights.iter_mut().enumerate() {
        let harmonic = (at + 1) as f32;
        *height = rng.random_range(0.0..1.0) / harmonic;
        turns[at] = (TAU * base_hz * harmonic / SAMPLE_RATE_HZ).sin_cos();
        pointers[at] = rng.random_range(0.0..TAU).sin_cos();
    }
    for sample in &mut samples {
        for at in 0..HARMONICS {
            let ((y, x), (sine, cosine)) = (pointers[at], turns[at]);
            *sample += heights[at] * y;
            pointers[at] = (x * sine + y * cosine, x * cosine - y * sine);
        }
    }
    samples
}
