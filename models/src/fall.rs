//! The fall detection application's data: three seconds of one subject, felt and seen.
//!
//! A sample is one subject's motion, recorded by a tri-axial accelerometer at the waist and by a
//! camera whose picture has been reduced to a silhouette. One motion drives both, so they agree
//! where both see it; what each of them misses (a loose sensor, a dark room) is drawn apart, so a
//! model that reads both can know more than either. Task and rarity of falls follow SneakPeek
//! (section 6.1), whose own data (MMAct) cannot be shipped.
//!
//! `script` holds the activities of daily living and the falls, written as moves of the few
//! coordinates in `motion`. `accelerometer` differentiates the motion, `figure` poses a body along
//! it and `camera` draws that. `space` is the vector arithmetic they share.

mod accelerometer;
mod camera;
mod figure;
mod motion;
mod script;
mod space;
mod summary;

use rand_pcg::Pcg64;

use crate::data::Data;

pub(crate) use summary::{SUMMARY, summary};

/// Length of a window in seconds, of both inputs.
pub const WINDOW_S: f64 = 3.0;

/// Accelerometer samples per second.
pub const SAMPLE_RATE_HZ: f64 = 50.0;

/// Accelerometer samples of a window.
pub const SAMPLES: usize = 150;

/// Axes of the accelerometer; neighbours in memory.
pub const AXES: usize = 3;

/// Frames of a clip, evenly over the window.
pub const FRAMES: usize = 16;

/// Lines and columns of a frame.
pub const SIDE: usize = 24;

/// Numbers of a clip: frames, lines, columns.
pub const CLIP: usize = FRAMES * SIDE * SIDE;

/// Numbers of a sample: the accelerometer's window, then the clip.
pub const WIDTH: usize = SAMPLES * AXES + CLIP;

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
