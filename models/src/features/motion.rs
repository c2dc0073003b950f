//! A sample of the fall application in about a hundred features, and the layout of a sample.
//!
//! Raw accelerations depend on the sensor's orientation and raw pixels on the camera's position.
//! Independent of both, or less dependent, are the extremes of acceleration, the change of the
//! upward direction, and position and width of the silhouette. Costs one pass over the
//! accelerations and half of the frames.

/// Accelerometer samples of a window.
pub const SAMPLES: usize = 150;

/// Axes of the accelerometer; neighbours in memory.
pub const AXES: usize = 3;

/// Frames of a clip, evenly over the window.
pub const FRAMES: usize = 16;

/// Lines and columns of a frame.
pub const SIDE: usize = 24;

/// Values of a clip: frames, lines, columns.
pub const CLIP: usize = FRAMES * SIDE * SIDE;

/// Values of a sample: the accelerometer's window, then the clip.
pub const WIDTH: usize = SAMPLES * AXES + CLIP;

/// Accelerometer samples that share an extreme.
const SPAN: usize = 10;
/// Accelerometer samples at each end over which gravity is averaged.
const END: usize = 25;
/// Every `EVERY`th frame is read, the last one of each group.
const EVERY: usize = 2;
/// Values above this are part of the figure.
const FIGURE: f32 = 0.35;
/// Features per frame read.
const PER_FRAME: usize = 5;

/// Number of features.
pub(super) const FEATURES: usize = 2 * (SAMPLES / SPAN) + 1 + PER_FRAME * (FRAMES / EVERY);

/// The features of a sample; zeros if the sample has another width.
pub(super) fn summary(input: &[f32]) -> Vec<f32> {
    let mut features = Vec::with_capacity(FEATURES);
    if input.len() == WIDTH {
        let (felt, seen) = input.split_at(WIDTH - CLIP);
        feel(felt, &mut features);
        for frame in seen
            .chunks_exact(SIDE * SIDE)
            .skip(EVERY - 1)
            .step_by(EVERY)
        {
            features.extend(see(frame));
        }
    }
    features.resize(FEATURES, 0.0);
    features
}

/// Largest and smallest magnitude per span, and the cosine between the upward directions at start
/// and end.
fn feel(felt: &[f32], features: &mut Vec<f32>) {
    let magnitude = |moment: &[f32]| moment.iter().map(|v| v * v).sum::<f32>().sqrt();
    for span in felt.chunks_exact(SPAN * AXES) {
        let magnitudes = span.chunks_exact(AXES).map(magnitude);
        features.push(magnitudes.clone().fold(0.0, f32::max));
        features.push(magnitudes.fold(f32::MAX, f32::min));
    }
    let up = |part: &[f32]| {
        let mut sum = [0.0; AXES];
        for moment in part.chunks_exact(AXES) {
            for (sum, value) in sum.iter_mut().zip(moment) {
                *sum += value;
            }
        }
        sum
    };
    let (before, after) = (
        up(&felt[..END * AXES]),
        up(&felt[felt.len() - END * AXES..]),
    );
    let dot: f32 = before.iter().zip(&after).map(|(a, b)| a * b).sum();
    features.push(dot / (magnitude(&before) * magnitude(&after)).max(1e-6));
}

/// Share of the frame that the figure covers, its middle and its spread; relative to the frame's
/// side.
fn see(frame: &[f32]) -> [f32; PER_FRAME] {
    let (mut count, mut sums, mut squares) = (0.0f32, [0.0f32; 2], [0.0f32; 2]);
    for (i, _) in frame
        .iter()
        .enumerate()
        .filter(|(_, value)| **value > FIGURE)
    {
        count += 1.0;
        for (axis, at) in [i % SIDE, i / SIDE].into_iter().enumerate() {
            let at = at as f32 / SIDE as f32 - 0.5;
            sums[axis] += at;
            squares[axis] += at * at;
        }
    }
    let mean = |sum: f32| sum / count.max(1.0);
    let spread = |axis: usize| {
        let middle = mean(sums[axis]);
        (mean(squares[axis]) - middle * middle).max(0.0).sqrt()
    };
    let share = count / (SIDE * SIDE) as f32;
    [share, mean(sums[0]), mean(sums[1]), spread(0), spread(1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_position_of_the_figure_and_the_hardness_of_its_fall() {
        let mut input = vec![0.0; WIDTH];
        // Upright at 1 g, one moment of 5 g, then lying on a side.
        for (i, moment) in input[..SAMPLES * AXES].chunks_exact_mut(AXES).enumerate() {
            moment[if i < 75 { 2 } else { 0 }] = if i == 75 { 5.0 } else { 1.0 };
        }
        // A bar of two lines over half the width, in the last frame.
        let last = WIDTH - SIDE * SIDE;
        for line in [20, 21] {
            input[last + line * SIDE..][..SIDE / 2].fill(1.0);
        }
        let features = summary(&input);
        assert_eq!(features.len(), FEATURES);
        assert_eq!(features[..2], [1.0, 1.0]);
        assert_eq!(features[2 * (75 / SPAN)], 5.0);
        assert_eq!(
            features[2 * (SAMPLES / SPAN)],
            0.0,
            "up has turned by 90 degrees"
        );
        let [share, column, line, wide, high] = features[FEATURES - PER_FRAME..] else {
            panic!("{PER_FRAME} features per frame");
        };
        assert!((share - 1.0 / 24.0).abs() < 1e-6);
        assert!(column < -0.2 && line > 0.3 && wide > 3.0 * high);
    }

    #[test]
    fn inputs_of_another_width_have_an_empty_summary() {
        assert_eq!(summary(&[1.0; 7]), vec![0.0; FEATURES]);
    }
}
