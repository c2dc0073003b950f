//! Layout of a sample: a window of an accelerometer, then a clip.

pub use switchyard_models::features::motion::{AXES, CLIP, FRAMES, SAMPLES, SIDE, WIDTH};

/// Length of a window in seconds, of both inputs.
pub const WINDOW_S: f64 = 3.0;

/// Accelerometer samples per second.
pub const SAMPLE_RATE_HZ: f64 = 50.0;
