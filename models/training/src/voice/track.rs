//! The path from target to target: the synthesiser's parameters every 5 ms.

use rand::Rng;
use rand_pcg::Pcg64;

use super::phonemes::SpeechSegment;
use super::speaker::Speaker;

/// Time between two frames.
pub(super) const FRAME_MS: f32 = 5.0;

/// Time over which amplitudes change: short, so that a burst remains one.
const ATTACK_MS: f32 = 10.0;

/// Largest relative deviation of one segment's duration.
const TIMING: f32 = 0.2;

/// State of the tract and its sources at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SpeechFrame {
    /// The lowest three formants, their bandwidths, centre and bandwidth of frication; in hertz.
    pub(super) shape_hz: [f32; 8],
    /// Voicing, aspiration, frication.
    pub(super) levels: [f32; 3],
}

/// An utterance as frames, first to last.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SpeechTrack {
    pub(super) frames: Vec<SpeechFrame>,
}

// === impl SpeechTrack ===

impl SpeechTrack {
    /// Spreads `script` over time as `speaker` would.
    ///
    /// Targets are averaged over the speaker's glide, twice: sounds influence their neighbours, and
    /// fast speech is not fully articulated.
    pub(super) fn draw(script: &[SpeechSegment], speaker: &Speaker, rng: &mut Pcg64) -> Self {
        let mut frames = Vec::new();
        for segment in script {
            if segment.optional && !speaker.releases {
                continue;
            }
            let timing = speaker.slowness * rng.random_range(1.0 - TIMING..1.0 + TIMING);
            let count = (segment.duration_ms * timing / FRAME_MS).round().max(1.0) as usize;
            frames.extend(std::iter::repeat_n(target(segment, speaker, rng), count));
        }
        // Half a frame of silence at both ends lets the voice start and end gradually.
        let fade = |frame: Option<&SpeechFrame>| SpeechFrame {
            levels: [0.0; 3],
            ..frame.copied().unwrap_or_default()
        };
        let (first, last) = (fade(frames.first()), fade(frames.last()));
        frames.insert(0, first);
        frames.push(last);
        let glide = (speaker.glide_ms / FRAME_MS).round() as usize / 2;
        let attack = (ATTACK_MS / FRAME_MS).round() as usize / 2;
        let shapes = smoothed(&smoothed(&frames, glide), glide);
        let levels = smoothed(&frames, attack);
        let merged = shapes
            .iter()
            .zip(&levels)
            .map(|(shape, level)| SpeechFrame {
                shape_hz: shape.shape_hz,
                levels: level.levels,
            });
        Self {
            frames: merged.collect(),
        }
    }
}

/// The segment's target in this speaker's tract.
fn target(segment: &SpeechSegment, speaker: &Speaker, rng: &mut Pcg64) -> SpeechFrame {
    let mut accent = || 1.0 + speaker.accent * rng.random_range(-1.0..1.0f32);
    let [f1, f2, f3] = segment.formants_hz.map(|hz| hz * speaker.tract * accent());
    let [b1, b2, b3] = segment.bandwidths_hz;
    let [centre, width] = segment.frication_hz;
    SpeechFrame {
        shape_hz: [f1, f2, f3, b1, b2, b3, centre * accent(), width],
        levels: [segment.voicing, segment.aspiration, segment.frication],
    }
}

/// Every frame as the mean of its neighbours up to `reach` away.
fn smoothed(frames: &[SpeechFrame], reach: usize) -> Vec<SpeechFrame> {
    (0..frames.len())
        .map(|at| {
            let near = &frames[at.saturating_sub(reach)..(at + reach + 1).min(frames.len())];
            let share = 1.0 / near.len() as f32;
            let mut mean = SpeechFrame::default();
            for frame in near {
                for (sum, value) in mean.shape_hz.iter_mut().zip(frame.shape_hz) {
                    *sum += share * value;
                }
                for (sum, value) in mean.levels.iter_mut().zip(frame.levels) {
                    *sum += share * value;
                }
            }
            mean
        })
        .collect()
}
