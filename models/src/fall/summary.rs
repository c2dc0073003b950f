//! A sample in a hundred numbers whose neighbours mean something, for the evidence.
//!
//! Raw accelerations turn with the sensor and raw pixels move with the camera; how hard the
//! hardest moment was, whether up has changed, and where and how wide the silhouette is do not, or
//! less. It is one pass over the accelerations and half of the frames.

use super::{AXES, CLIP, FRAMES, SAMPLES, SIDE, WIDTH};

/// Accelerometer samples that share an extreme.
const SPAN: usize = 10;
/// Accelerometer samples at each end over which gravity is averaged.
const END: usize = 25;
/// Frames read are the last of every so many.
const EVERY: usize = 2;
/// Values above this are figure.
const FIGURE: f32 = 0.35;
/// Numbers per frame read.
const PER_FRAME: usize = 5;

/// Numbers of a summary.
pub(crate) const SUMMARY: usize = 2 * (SAMPLES / SPAN) + 1 + PER_FRAME * (FRAMES / EVERY);

/// The summary of a sample; of zeros in its place when it has another width.
pub(crate) fn summary(input: &[f32]) -> Vec<f32> {
    let mut numbers = Vec::with_capacity(SUMMARY);
    if input.len() == WIDTH {
        let (felt, seen) = input.split_at(WIDTH - CLIP);
        feel(felt, &mut numbers);
        for frame in seen
            .chunks_exact(SIDE * SIDE)
            .skip(EVERY - 1)
            .step_by(EVERY)
        {
            numbers.extend(see(frame));
        }
    }
    numbers.resize(SUMMARY, 0.0);
    numbers
}

/// Largest and smallest magnitude per span, and the cosine between up before and up after.
fn feel(felt: &[f32], numbers: &mut Vec<f32>) {
    let magnitude = |moment: &[f32]| moment.iter().map(|v| v * v).sum::<f32>().sqrt();
    for span in felt.chunks_exact(SPAN * AXES) {
        let magnitudes = span.chunks_exact(AXES).map(magnitude);
        numbers.push(magnitudes.clone().fold(0.0, f32::max));
        numbers.push(magnitudes.fold(f32::MAX, f32::min));
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
    numbers.push(dot / (magnitude(&before) * magnitude(&after)).max(1e-6));
}

/// Share of the frame that is figure, its middle and its spread; relative to the frame's side.
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
    fn a_summary_says_where_the_figure_is_and_how_hard_it_fell() {
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
        let numbers = summary(&input);
        assert_eq!(numbers.len(), SUMMARY);
        assert_eq!(numbers[..2], [1.0, 1.0]);
        assert_eq!(numbers[2 * (75 / SPAN)], 5.0);
        assert_eq!(
            numbers[2 * (SAMPLES / SPAN)],
            0.0,
            "up has turned by 90 degrees"
        );
        let [share, column, line, wide, high] = numbers[SUMMARY - PER_FRAME..] else {
            panic!("{PER_FRAME} numbers per frame");
        };
        assert!((share - 1.0 / 24.0).abs() < 1e-6);
        assert!(column < -0.2 && line > 0.3 && wide > 3.0 * high);
    }

    #[test]
    fn inputs_of_another_width_have_an_empty_summary() {
        assert_eq!(summary(&[1.0; 7]), vec![0.0; SUMMARY]);
    }
}
