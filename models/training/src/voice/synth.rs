//! Source and filter: glottal pulses and breath through a cascade of formants, with frication in
//! parallel.

use std::f32::consts::{PI, TAU};

use rand::Rng;
use rand_pcg::Pcg64;

use super::sound::{SAMPLE_RATE_HZ, rms, white};
use super::speaker::Speaker;
use super::track::{FRAME_MS, SpeechFrame, SpeechTrack};

/// Samples per frame of a track.
pub(super) const FRAME_SAMPLES: usize = (FRAME_MS * SAMPLE_RATE_HZ / 1000.0) as usize;

/// Formants that carry a voice but no vowel: frequency and bandwidth in an adult man's tract.
const UPPER_HZ: [[f32; 2]; 2] = [[3500.0, 250.0], [4500.0, 300.0]];

/// Level of the breath in front of the tract, so that an aspiration of 1 is as loud as a vowel.
const BREATH: f32 = 0.3;

/// Level of the noise of a constriction, so that a frication of 1 is as loud as a vowel.
const FRICATION: f32 = 0.4;

/// Renders a track: 80 samples per frame, scaled to a root mean square of 1.
pub(super) fn speak(track: &SpeechTrack, speaker: &Speaker, rng: &mut Pcg64) -> Vec<f32> {
    let mut tract = Tract::new(speaker.tract);
    let mut glottis = Glottis::new(speaker, rng);
    let mut samples = Vec::with_capacity(track.frames.len() * FRAME_SAMPLES);
    let count = track.frames.len();
    for (at, frame) in track.frames.iter().enumerate() {
        tract.shape(frame);
        let position = at as f32 / count as f32 - 0.5;
        glottis.pitch_hz = speaker.pitch_hz * (1.0 + speaker.intonation * position);
        let next = track.frames.get(at + 1).unwrap_or(frame);
        let mut levels = frame.levels;
        let steps: [f32; 3] =
            std::array::from_fn(|i| (next.levels[i] - frame.levels[i]) / FRAME_SAMPLES as f32);
        for _ in 0..FRAME_SAMPLES {
            let noise = white(rng);
            let (pulse, open) = glottis.tick(rng);
            let breath = BREATH * noise * (levels[1] + levels[0] * speaker.breathiness * open);
            samples.push(tract.tick(levels[0] * pulse + breath, FRICATION * levels[2] * noise));
            for (level, step) in levels.iter_mut().zip(steps) {
                *level += step;
            }
        }
    }
    let gain = 1.0 / rms(&samples).max(f32::MIN_POSITIVE);
    samples.iter_mut().for_each(|sample| *sample *= gain);
    samples
}

/// Pulses of air flow, differentiated: the sound that the lips radiate.
struct Glottis {
    pitch_hz: f32,
    jitter: f32,
    shimmer: f32,
    open_quotient: f32,
    /// Position in the current period, 0 to 1.
    phase: f32,
    /// Relative length and height of the current period.
    period: f32,
    height: f32,
}

/// Second-order resonator.
#[derive(Clone, Copy, Default)]
struct Resonator {
    gain: f32,
    feedback: [f32; 2],
    past: [f32; 2],
}

/// The vocal tract.
struct Tract {
    formants: [Resonator; 3],
    upper: [Resonator; 2],
    constriction: Resonator,
    /// The last sample of frication noise.
    before: f32,
}

// === impl Glottis ===

impl Glottis {
    fn new(speaker: &Speaker, rng: &mut Pcg64) -> Self {
        Self {
            pitch_hz: speaker.pitch_hz,
            jitter: speaker.jitter,
            shimmer: speaker.shimmer,
            open_quotient: speaker.open_quotient,
            phase: rng.random(),
            period: 1.0,
            height: 1.0,
        }
    }

    /// The next sample of the pulse train, and 1 while the glottis is open, else 0.
    fn tick(&mut self, rng: &mut Pcg64) -> (f32, f32) {
        self.phase += self.pitch_hz * self.period / SAMPLE_RATE_HZ;
        if self.phase >= 1.0 {
            self.phase -= 1.0;
            self.period = 1.0 + self.jitter * rng.random_range(-1.0..1.0);
            self.height = 1.0 + self.shimmer * rng.random_range(-1.0..1.0);
        }
        let along = self.phase / self.open_quotient;
        if along < 1.0 {
            // Derivative of the flow t^2 - t^3 (Klatt and Klatt 1990, equation A1).
            (self.height * along * (2.0 - 3.0 * along), 1.0)
        } else {
            (0.0, 0.0)
        }
    }
}

// === impl Resonator ===

impl Resonator {
    /// Poles of a resonance: radius, and cosine of the angle.
    fn poles(hz: f32, bandwidth_hz: f32) -> (f32, f32) {
        let radius = (-PI * bandwidth_hz / SAMPLE_RATE_HZ).exp();
        (radius, (TAU * hz / SAMPLE_RATE_HZ).cos())
    }

    /// As part of a cascade: unit gain at frequency 0.
    fn cascade(&mut self, hz: f32, bandwidth_hz: f32) {
        let (radius, cosine) = Self::poles(hz, bandwidth_hz);
        self.feedback = [2.0 * radius * cosine, -radius * radius];
        self.gain = 1.0 - self.feedback[0] - self.feedback[1];
    }

    /// Alone and behind a differentiator, as a constriction radiates: about the same power of white
    /// noise for every frequency and bandwidth.
    fn alone(&mut self, hz: f32, bandwidth_hz: f32) {
        let (radius, cosine) = Self::poles(hz, bandwidth_hz);
        self.feedback = [2.0 * radius * cosine, -radius * radius];
        // Variance of an AR(2) process over that of its noise (Box and Jenkins), and the
        // differentiator's gain at the centre.
        let [a, b] = self.feedback;
        let power = (1.0 - b) / ((1.0 + b) * ((1.0 - b) * (1.0 - b) - a * a));
        let rise = 2.0 * (PI * hz / SAMPLE_RATE_HZ).sin();
        self.gain = 1.0 / (power.sqrt() * rise);
    }

    fn tick(&mut self, x: f32) -> f32 {
        // The newest value enters last: the shorter the loop, the more samples overlap.
        let y = (self.gain * x + self.feedback[1] * self.past[1]) + self.feedback[0] * self.past[0];
        self.past = [y, self.past[0]];
        y
    }
}

// === impl Tract ===

impl Tract {
    fn new(scale: f32) -> Self {
        let mut upper = [Resonator::default(); 2];
        for (resonator, [hz, bandwidth_hz]) in upper.iter_mut().zip(UPPER_HZ) {
            resonator.cascade(hz * scale, bandwidth_hz);
        }
        Self {
            formants: [Resonator::default(); 3],
            upper,
            constriction: Resonator::default(),
            before: 0.0,
        }
    }

    fn shape(&mut self, frame: &SpeechFrame) {
        let [f1, f2, f3, b1, b2, b3, centre, width] = frame.shape_hz;
        let formants = [(f1, b1), (f2, b2), (f3, b3)];
        for (resonator, (hz, bandwidth_hz)) in self.formants.iter_mut().zip(formants) {
            resonator.cascade(hz, bandwidth_hz);
        }
        self.constriction.alone(centre, width);
    }

    fn tick(&mut self, voice: f32, frication: f32) -> f32 {
        let mut voiced = voice;
        for resonator in self.formants.iter_mut().chain(&mut self.upper) {
            voiced = resonator.tick(voiced);
        }
        let rise = frication - self.before;
        self.before = frication;
        voiced + self.constriction.tick(rise)
    }
}
