//! The fall detection application's data: three seconds of one subject, as accelerations and as a
//! clip.
//!
//! A sample is one subject's motion, recorded by a tri-axial accelerometer at the waist and by a
//! camera whose image has been reduced to a silhouette. One motion drives both, so they agree where
//! both record it. Their faults (a loose sensor, a dark room) are drawn independently, so a model
//! that reads both can know more than either. Task and rarity of falls follow SneakPeek (section
//! 6.1), whose own data (MMAct) cannot be shipped.
//!
//! `layout` is the layout of a sample. `script` holds the activities of daily living and the falls,
//! written as moves of the few coordinates in `motion`. `accelerometer` differentiates the motion,
//! `figure` poses a body along it and `camera` draws the body. `space` is their vector arithmetic.

mod accelerometer;
mod camera;
mod figure;
mod layout;
mod motion;
mod script;
mod space;

use rand_pcg::Pcg64;

pub use self::layout::{AXES, CLIP, FRAMES, SAMPLE_RATE_HZ, SAMPLES, SIDE, WIDTH, WINDOW_S};
use crate::data::Data;

/// Number of classes: no fall, fall.
pub const CLASSES: usize = 2;

/// Label of an activity of daily living.
pub const NO_FALL: usize = 0;

/// Label of a fall.
pub const FALL: usize = 1;

/// Names of the classes, by label.
pub const CLASS_NAMES: [&str; CLASSES] = ["adl", "fall"];

/// Share of falls in the workload (SneakPeek, section 6.1).
pub const FALL_SHARE: f64 = 0.05;

/// The application's data.
pub struct Fall;

// === impl Fall ===

impl Data for Fall {
    fn classes(&self) -> usize {
        CLASSES
    }

    fn width(&self) -> usize {
        WIDTH
    }

    /// 150 accelerations of 3 axes in g, then 16 frames of 24 x 24 in 0..1.
    fn draw(&self, label: usize, rng: &mut Pcg64) -> Vec<f32> {
        let motion = script::draw(label == FALL, rng);
        let mut values = Vec::with_capacity(WIDTH);
        accelerometer::record(&motion, rng, &mut values);
        camera::film(&motion, rng, &mut values);
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Sample, stratified};

    /// Magnitudes of a sample's accelerations, in g.
    fn magnitudes(sample: &Sample) -> Vec<f32> {
        let felt = &sample.values[..SAMPLES * AXES];
        let magnitude = |moment: &[f32]| moment.iter().map(|v| v * v).sum::<f32>().sqrt();
        felt.chunks_exact(AXES).map(magnitude).collect()
    }

    fn mean(values: impl ExactSizeIterator<Item = f32>) -> f32 {
        let count = values.len() as f32;
        values.sum::<f32>() / count
    }

    #[test]
    fn samples_have_their_width_and_range() {
        for sample in stratified(&Fall, 1, 60) {
            assert_eq!(sample.values.len(), WIDTH);
            let (felt, seen) = sample.values.split_at(SAMPLES * AXES);
            assert!(felt.iter().all(|g| g.abs() <= 8.0));
            assert!(seen.iter().all(|value| (0.0..=1.0).contains(value)));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_samples() {
        assert_eq!(stratified(&Fall, 4, 5), stratified(&Fall, 4, 5));
        assert_ne!(stratified(&Fall, 4, 5), stratified(&Fall, 5, 5));
    }

    #[test]
    fn falls_hit_harder_but_not_all_of_them() {
        let samples = stratified(&Fall, 2, 300);
        let peaks: Vec<f32> = samples
            .iter()
            .map(|sample| magnitudes(sample).into_iter().fold(0.0, f32::max))
            .collect();
        let (daily, falls) = peaks.split_at(300);
        let (daily_mean, fall_mean) = (mean(daily.iter().copied()), mean(falls.iter().copied()));
        assert!(fall_mean > 1.4 * daily_mean, "{daily_mean} {fall_mean}");
        // No threshold on the peak separates them: some of each lie beyond the other's mean.
        assert!(daily.iter().filter(|peak| **peak > fall_mean).count() > 15);
        assert!(falls.iter().filter(|peak| **peak < daily_mean).count() > 15);
    }

    #[test]
    fn at_rest_the_sensor_feels_gravity() {
        let first = |sample: &Sample| mean(magnitudes(sample)[..20].iter().copied());
        let samples = stratified(&Fall, 3, 200);
        let all = mean(samples.iter().map(first));
        assert!((all - 1.0).abs() < 0.05, "{all}");
    }

    /// Middle line of a frame's figure, from 0 at the top to 24.
    fn middle(frame: &[f32]) -> f32 {
        let weight: f32 = frame.iter().sum();
        let lines = frame.chunks_exact(SIDE).enumerate();
        let sum: f32 = lines
            .map(|(i, line)| i as f32 * line.iter().sum::<f32>())
            .sum();
        sum / weight.max(1e-6)
    }

    #[test]
    fn a_subject_that_falls_ends_lower_in_the_image() {
        let sunk = |sample: &Sample| {
            let clip = &sample.values[SAMPLES * AXES..];
            middle(&clip[CLIP - SIDE * SIDE..]) - middle(&clip[..SIDE * SIDE])
        };
        let samples = stratified(&Fall, 6, 300);
        let daily = mean(samples[..300].iter().map(sunk));
        let falls = mean(samples[300..].iter().map(sunk));
        assert!(falls > daily + 1.0 && falls > 1.5, "{daily} {falls}");
    }

    /// One motion causes the impact and the lowest frame of a fall, so they coincide.
    #[test]
    fn both_inputs_show_the_same_moment() {
        let mut together = 0;
        let samples = stratified(&Fall, 7, 200);
        let falls = &samples[200..];
        for sample in falls {
            let felt = magnitudes(sample);
            let peak = (0..SAMPLES)
                .max_by(|&a, &b| felt[a].total_cmp(&felt[b]))
                .unwrap_or(0);
            let frames: Vec<f32> = sample.values[SAMPLES * AXES..]
                .chunks_exact(SIDE * SIDE)
                .map(middle)
                .collect();
            let frame = peak * FRAMES / SAMPLES;
            let before = mean(frames[..frame.max(1)].iter().copied());
            let after = mean(frames[frame..].iter().copied());
            together += usize::from(after > before + 1.0);
        }
        assert!(together > 100, "{together} of {}", falls.len());
    }
}
