//! Class morphologies: the waves of a beat, with their amplitudes, positions and widths.
//!
//! A wave is a dipole: an amplitude along an axis in the frontal plane. A lead records its
//! projection, so turning the lead mixes the waves instead of scaling all of them equally.

use rand::Rng;
use rand_distr::{Distribution, LogNormal, Normal};
use rand_pcg::Pcg64;

use super::beat::BeatClass;

/// One Gaussian wave of a beat.
#[derive(Clone, Copy, Debug)]
pub(super) struct BeatWave {
    /// Height along the axis, in millivolts.
    pub(super) amplitude_mv: f64,
    /// Direction in the frontal plane, in degrees.
    pub(super) axis_deg: f64,
    /// Centre relative to the R peak of a normal beat, in milliseconds.
    pub(super) offset_ms: f64,
    /// Standard deviation in milliseconds.
    pub(super) width_ms: f64,
}

/// Standard deviation of the logarithm of amplitudes and widths between patients.
const SHAPE_SPREAD: f64 = 0.18;
/// Standard deviation of wave centres between patients, as a share of their distance from R.
const OFFSET_SPREAD: f64 = 0.06;

const fn wave(amplitude_mv: f64, axis_deg: f64, offset_ms: f64, width_ms: f64) -> BeatWave {
    BeatWave {
        amplitude_mv,
        axis_deg,
        offset_ms,
        width_ms,
    }
}

const P_WAVE: BeatWave = wave(0.16, 55.0, -165.0, 22.0);

const NORMAL: [BeatWave; 5] = [
    P_WAVE,
    wave(-0.12, 20.0, -30.0, 9.0),
    wave(1.10, 50.0, 0.0, 11.0),
    wave(-0.28, 80.0, 30.0, 11.0),
    wave(0.30, 40.0, 270.0, 48.0),
];

/// Broad, notched R; discordant T.
const LEFT_BLOCK: [BeatWave; 5] = [
    P_WAVE,
    wave(0.72, 30.0, -12.0, 17.0),
    wave(0.80, 10.0, 34.0, 20.0),
    wave(-0.22, 75.0, 75.0, 14.0),
    wave(-0.26, 15.0, 300.0, 52.0),
];

/// r, S, then a late R' towards the right.
const RIGHT_BLOCK: [BeatWave; 5] = [
    P_WAVE,
    wave(0.90, 50.0, 0.0, 11.0),
    wave(-0.42, 40.0, 30.0, 13.0),
    wave(0.42, 120.0, 68.0, 19.0),
    wave(0.16, 10.0, 285.0, 50.0),
];

/// A P wave from another point of the atrium, narrow QRS.
const ATRIAL: [BeatWave; 5] = [
    wave(0.19, -40.0, -120.0, 15.0),
    NORMAL[1],
    NORMAL[2],
    NORMAL[3],
    wave(0.27, 40.0, 262.0, 46.0),
];

/// No P, broad QRS from another axis, discordant T.
const VENTRICULAR: [BeatWave; 3] = [
    wave(1.25, 50.0, 8.0, 31.0),
    wave(-0.50, 70.0, 82.0, 34.0),
    wave(-0.42, 50.0, 320.0, 58.0),
];

/// A spike, then a broad QRS from the right ventricle and a discordant T.
const PACED: [BeatWave; 4] = [
    wave(0.42, 20.0, -48.0, 3.2),
    wave(0.95, 0.0, 6.0, 26.0),
    wave(-0.35, 60.0, 66.0, 26.0),
    wave(-0.36, 0.0, 305.0, 58.0),
];

/// Draws one patient's waves for a class.
pub(super) fn draw(class: BeatClass, rng: &mut Pcg64) -> Vec<BeatWave> {
    let shape = vary(template(class), rng);
    match class {
        BeatClass::Fusion => fuse(shape, vary(template(BeatClass::Ventricular), rng), rng),
        BeatClass::Ventricular => turn(shape, rng),
        _ => shape,
    }
}

fn template(class: BeatClass) -> &'static [BeatWave] {
    match class {
        BeatClass::Normal | BeatClass::Fusion => &NORMAL,
        BeatClass::LeftBlock => &LEFT_BLOCK,
        BeatClass::RightBlock => &RIGHT_BLOCK,
        BeatClass::Atrial => &ATRIAL,
        BeatClass::Ventricular => &VENTRICULAR,
        BeatClass::Paced => &PACED,
    }
}

/// Differences between patients.
fn vary(waves: &[BeatWave], rng: &mut Pcg64) -> Vec<BeatWave> {
    let spread = LogNormal::new(0.0, SHAPE_SPREAD).expect("the spread is a positive constant");
    let shift = Normal::new(1.0, OFFSET_SPREAD).expect("the spread is a positive constant");
    waves
        .iter()
        .map(|wave| BeatWave {
            amplitude_mv: wave.amplitude_mv * spread.sample(rng),
            axis_deg: wave.axis_deg + 15.0 * (rng.random::<f64>() - 0.5),
            offset_ms: wave.offset_ms * shift.sample(rng),
            width_ms: wave.width_ms * spread.sample(rng).sqrt(),
        })
        .collect()
}

/// A ventricular focus may lie anywhere: the whole beat is turned.
fn turn(mut waves: Vec<BeatWave>, rng: &mut Pcg64) -> Vec<BeatWave> {
    let by = rng.random_range(-90.0..90.0);
    for wave in &mut waves {
        wave.axis_deg += by;
    }
    waves
}

/// Both fronts meet: the sum of a share of each beat.
fn fuse(normal: Vec<BeatWave>, ventricular: Vec<BeatWave>, rng: &mut Pcg64) -> Vec<BeatWave> {
    let share: f64 = rng.random_range(0.3..0.7);
    let scaled = |wave: BeatWave, by: f64| BeatWave {
        amplitude_mv: wave.amplitude_mv * by,
        ..wave
    };
    // The P wave is the atrium's and keeps its size.
    let (p_wave, rest) = normal.split_at(1);
    p_wave
        .iter()
        .copied()
        .chain(rest.iter().map(|&wave| scaled(wave, 1.0 - share)))
        .chain(ventricular.into_iter().map(|wave| scaled(wave, share)))
        .collect()
}
