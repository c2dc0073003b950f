//! Resize, crop and normalisation in one go.

use super::card::{Channels, ImageCard, Layout};
use super::filter::{HALF, Taps, level};
use super::geometry::Geometry;
use super::pixels::Pixels;

/// Where values lie in the tensor: distances between neighbours along the file's axes.
struct Strides {
    first: usize,
    x: usize,
    y: usize,
    channel: usize,
}

/// Writes the tensor of `pixels` to `out`.
///
/// As in Pillow, rows are resized first and rounded to 8 bits, then columns. Only the pixels of the
/// crop are computed.
pub(super) fn resample(card: &ImageCard, pixels: &Pixels, geometry: &Geometry, out: &mut Vec<f32>) {
    let across = Taps::new(card.filter, geometry.x);
    let down = Taps::new(card.filter, geometry.y);
    let rows = down.sources();
    let line = pixels.width * pixels.stride;
    let source = &pixels.data[rows.start * line..rows.end * line];
    let colours = if pixels.stride < 3 { 1 } else { 3 };
    let narrow = match pixels.stride {
        1 => squeeze::<1, 1>(source, line, &across),
        2 => squeeze::<2, 1>(source, line, &across),
        3 => squeeze::<3, 3>(source, line, &across),
        _ => squeeze::<4, 3>(source, line, &across),
    };
    let levels = card.levels();
    prepare(card, &levels, out);
    let strides = Strides::new(card, geometry);
    let line = across.len() * colours;
    let mut sums = vec![0; line];
    for (y, (first, weights)) in down.iter().enumerate() {
        sums.fill(HALF);
        let first = (first - rows.start) * line;
        for (row, &weight) in narrow[first..].chunks_exact(line).zip(weights) {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += i32::from(value) * weight;
            }
        }
        for (channel, levels) in levels.iter().enumerate() {
            let colour = match card.channels {
                _ if colours == 1 => 0,
                Channels::Bgr => 2 - channel,
                Channels::Rgb | Channels::Grey => channel,
            };
            let first = strides.first + y * strides.y + channel * strides.channel;
            let places = out[first..].iter_mut().step_by(strides.x);
            for (place, &sum) in places.zip(sums[colour..].iter().step_by(colours)) {
                *place = levels[usize::from(level(sum))];
            }
        }
    }
}

/// Resizes rows of pixels of `STRIDE` bytes, of which the first `COLOURS` count.
fn squeeze<const STRIDE: usize, const COLOURS: usize>(
    source: &[u8],
    line: usize,
    taps: &Taps,
) -> Vec<u8> {
    let rows = source.chunks_exact(line);
    let mut narrow = Vec::with_capacity(rows.len() * taps.len() * COLOURS);
    for row in rows {
        let (pixels, _) = row.as_chunks::<STRIDE>();
        for (first, weights) in taps.iter() {
            let mut sums = [HALF; COLOURS];
            let span = &pixels[first..first + weights.len()];
            for (pixel, &weight) in span.iter().zip(weights) {
                for colour in 0..COLOURS {
                    sums[colour] += i32::from(pixel[colour]) * weight;
                }
            }
            narrow.extend(sums.map(level));
        }
    }
    narrow
}

/// Gives `out` its length, and every value that of the padding.
fn prepare(card: &ImageCard, levels: &[[f32; 256]], out: &mut Vec<f32>) {
    let [height, width] = card.size;
    out.clear();
    let padding = levels
        .iter()
        .map(|channel| channel[usize::from(card.pad_value)]);
    match card.layout {
        Layout::Chw => {
            for value in padding {
                out.resize(out.len() + height * width, value);
            }
        }
        Layout::Hwc => {
            let pixel: Vec<f32> = padding.collect();
            out.extend(pixel.iter().cycle().take(height * width * pixel.len()));
        }
    }
}

// === impl Strides ===

impl Strides {
    fn new(card: &ImageCard, geometry: &Geometry) -> Self {
        let [height, width] = card.size;
        let (column, row, channel) = match card.layout {
            Layout::Chw => (1, width, height * width),
            Layout::Hwc => (card.channels.count(), width * card.channels.count(), 1),
        };
        let (x, y) = if geometry.transposed {
            (row, column)
        } else {
            (column, row)
        };
        Self {
            first: geometry.top * row + geometry.left * column,
            x,
            y,
            channel,
        }
    }
}
