//! Frames of clips: the ones that a network reads, and means over them.

use crate::error::KernelError;
use crate::memory::FeatureMap;
use crate::simd::dispatch;
use crate::simd::vectors::{Simd, Vectorized};

/// The frames of clips that a network reads.
#[derive(Clone, Copy, Debug)]
pub struct FrameSampling {
    /// Lines and columns of a frame.
    pub side: usize,
    /// Reads the last of every `every` frames.
    pub every: usize,
    /// Averages squares of `shrink` lines and columns; divides `side`.
    pub shrink: usize,
}

/// `[clips, frames, lines, columns, channels]`.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names say all")]
pub struct ClipShape {
    pub clips: usize,
    pub frames: usize,
    pub lines: usize,
    pub columns: usize,
    pub channels: usize,
}

/// Means of the columns of each line, over the frames of a segment.
struct SegmentMeans<'a> {
    /// `[frames, lines, columns, channels]` of a segment.
    segment: &'a [f32],
    shape: ClipShape,
    /// `[lines, channels]`.
    means: &'a mut [f32],
}

// === impl FrameSampling ===

impl FrameSampling {
    /// From frames of one channel, one clip after another, to the images that are read.
    ///
    /// # Errors
    /// `clips` are not whole groups of `every` frames, or `shrink` does not divide `side`.
    pub fn read(self, clips: &[f32]) -> Result<FeatureMap, KernelError> {
        let Self {
            side,
            every,
            shrink,
        } = self;
        let frame = side * side;
        let group = every * frame;
        if group == 0 || !clips.len().is_multiple_of(group) || !side.is_multiple_of(shrink) {
            let len = clips.len();
            return Err(KernelError::Shape(format!(
                "{len} values cannot be read as {self:?}"
            )));
        }
        let small = side / shrink;
        let mut images = FeatureMap::new([clips.len() / group, small, small, 1]);
        let share = 1.0 / (shrink * shrink) as f32;
        let groups = clips.chunks_exact(group);
        for (image, group) in images.values.chunks_exact_mut(small * small).zip(groups) {
            let from = &group[group.len() - frame..];
            if shrink == 1 {
                image.copy_from_slice(from);
                continue;
            }
            let squares = from.chunks_exact(shrink * side);
            for (means, lines) in image.chunks_exact_mut(small).zip(squares) {
                means.fill(0.0);
                for line in lines.chunks_exact(side) {
                    for (mean, values) in means.iter_mut().zip(line.chunks_exact(shrink)) {
                        *mean += values.iter().sum::<f32>();
                    }
                }
                for mean in means {
                    *mean *= share;
                }
            }
        }
        Ok(images)
    }
}

/// Means of `values` over the frames of each of `segments` parts of a clip and the columns of a
/// line: `[clips, segments, lines, channels]`.
///
/// # Errors
/// `values` have another shape, or `segments` does not divide the frames.
pub fn segment_means(
    values: &[f32],
    shape: ClipShape,
    segments: usize,
) -> Result<FeatureMap, KernelError> {
    let ClipShape {
        clips,
        frames,
        lines,
        columns,
        channels,
    } = shape;
    let segment = frames / segments.max(1) * lines * columns * channels;
    if values.len() != clips * segments * segment || segment == 0 {
        let len = values.len();
        return Err(KernelError::Shape(format!(
            "{len} values cannot be seen as {segments} segments of {shape:?}"
        )));
    }
    let mut means = FeatureMap::new([clips, segments, lines, channels]);
    let parts = means.values.chunks_exact_mut(lines * channels);
    for (means, segment) in parts.zip(values.chunks_exact(segment)) {
        dispatch(SegmentMeans {
            segment,
            shape,
            means,
        });
    }
    Ok(means)
}

impl Vectorized for SegmentMeans<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self {
            segment,
            shape,
            means,
        } = self;
        let line = shape.columns * shape.channels;
        means.fill(0.0);
        for frame in segment.chunks_exact(shape.lines * line) {
            let lines = means.chunks_exact_mut(shape.channels);
            for (means, line) in lines.zip(frame.chunks_exact(line)) {
                for column in line.chunks_exact(shape.channels) {
                    for (mean, value) in means.iter_mut().zip(column) {
                        *mean += value;
                    }
                }
            }
        }
        let frames = segment.len() / (shape.lines * line);
        let share = 1.0 / (frames * shape.columns) as f32;
        for mean in means {
            *mean *= share;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::{assert_close, random};

    #[test]
    fn the_last_frame_of_each_group_is_read() {
        let clips: Vec<f32> = (0..4 * 16).map(|v| v as f32).collect();
        let mut sampling = FrameSampling {
            side: 4,
            every: 2,
            shrink: 1,
        };
        let images = sampling.read(&clips).unwrap();
        assert_eq!(images.dims(), [2, 4, 4, 1]);
        assert_eq!(images.values[..16], clips[16..32]);
        assert_eq!(images.values[16..], clips[48..]);
        sampling.shrink = 2;
        let images = sampling.read(&clips).unwrap();
        assert_eq!(images.dims(), [2, 2, 2, 1]);
        assert_eq!(images.values[..4], [18.5, 20.5, 26.5, 28.5]);
        sampling.shrink = 3;
        assert!(sampling.read(&clips).is_err());
        sampling.shrink = 2;
        assert!(sampling.read(&clips[1..]).is_err());
    }

    #[test]
    fn means_are_those_of_segments_and_lines() {
        let shape = ClipShape {
            clips: 2,
            frames: 6,
            lines: 3,
            columns: 5,
            channels: 7,
        };
        let values = random(2 * 6 * 3 * 5 * 7, 1.0);
        let mut want = vec![0.0; 2 * 2 * 3 * 7];
        for (i, value) in values.iter().enumerate() {
            let (frame, line, channel) = (i / (3 * 5 * 7), i / (5 * 7) % 3, i % 7);
            want[(frame / 3 * 3 + line) * 7 + channel] += value / 15.0;
        }
        let ours = segment_means(&values, shape, 2).unwrap();
        assert_eq!(ours.dims(), [2, 2, 3, 7]);
        assert_close(&ours.values, &want, 1e-5, "means");
        assert!(segment_means(&values, shape, 4).is_err());
        assert!(segment_means(&values[1..], shape, 2).is_err());
    }
}
