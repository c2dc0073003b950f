//! What can be said of a picture without a network: a few numbers that turning the figure leaves
//! alone.
//!
//! The figure is brighter than what is behind it, so a smoothed brightness tells roughly where it
//! is. Its outline is summed up as moments around its centre, its filling as how strong and how
//! aligned its edges are. Costs about 0.1 ms per picture on one core.

use super::{COLOURS, SAMPLES, SIZE};

/// Numbers in a summary.
pub(crate) const SUMMARY: usize = 18;

/// Moments around the centre, from the second order to the sixth: a triangle has the third, a
/// square the fourth, a star the fifth.
const HARMONICS: usize = 5;

/// Brightness between background and figure, and how wide the doubt around it is.
const THRESHOLD: f32 = -0.05;
const DOUBT: f32 = 0.4;

/// Lines and columns on each side over which brightness is smoothed.
const SMOOTHING: usize = 2;

/// Share of the figure's radius inside which a ring is empty.
const HOLE: f32 = 0.4;

/// Distances over which edges are measured, in pixels.
const REACHES: [usize; 2] = [1, 2];

/// A picture's brightness, line by line.
type Grey = [f32; SIZE * SIZE];

/// Area, outline, filling and edges of the figure in a picture `[3, 32, 32]`; what is missing of
/// a shorter one counts as 0.
pub(crate) fn summary(picture: &[f32]) -> Vec<f32> {
    let grey = brightness(picture);
    let mask = smoothed(&grey).map(|level| (0.5 + (level - THRESHOLD) / DOUBT).clamp(0.0, 1.0));
    let area = mask.iter().sum::<f32>().max(1.0);
    let mut numbers = Vec::with_capacity(SUMMARY);
    numbers.push(area / (SIZE * SIZE) as f32);
    outline(&mask, area, &mut numbers);
    // Without the figure's own edge, which would hide its filling.
    let inner = mask.map(|share| if share > 0.99 { 1.0 } else { 0.0 });
    filling(&grey, &inner, &mut numbers);
    for reach in REACHES {
        edges(&grey, &inner, reach, &mut numbers);
    }
    numbers
}

fn brightness(picture: &[f32]) -> Grey {
    let mut grey = [0.0; SIZE * SIZE];
    for channel in picture[..picture.len().min(SAMPLES)].chunks(SIZE * SIZE) {
        for (grey, value) in grey.iter_mut().zip(channel) {
            *grey += value / COLOURS as f32;
        }
    }
    grey
}

/// Mean over the neighbourhood of each position.
fn smoothed(grey: &Grey) -> Grey {
    let mut mean = [0.0; SIZE * SIZE];
    for y in 0..SIZE {
        for x in 0..SIZE {
            let lines = y.saturating_sub(SMOOTHING)..(y + SMOOTHING + 1).min(SIZE);
            let columns = x.saturating_sub(SMOOTHING)..(x + SMOOTHING + 1).min(SIZE);
            let count = lines.len() * columns.len();
            let sum: f32 = lines
                .map(|line| {
                    let row = &grey[line * SIZE..][..SIZE];
                    row[columns.clone()].iter().sum::<f32>()
                })
                .sum();
            mean[y * SIZE + x] = sum / count as f32;
        }
    }
    mean
}

/// Moments around the centre, in units of the radius of a disc of the same area.
fn outline(mask: &Grey, area: f32, numbers: &mut Vec<f32>) {
    let at = |index: usize| ((index % SIZE) as f32, (index / SIZE) as f32);
    let (mut centre_x, mut centre_y) = (0.0, 0.0);
    for (index, share) in mask.iter().enumerate() {
        let (x, y) = at(index);
        centre_x += share * x / area;
        centre_y += share * y / area;
    }
    let radius = (area / std::f32::consts::PI).sqrt();
    let (mut spread, mut tails, mut hole, mut hole_area) = (0.0, 0.0, 0.0, 0.0);
    let mut harmonics = [[0f32; 2]; HARMONICS];
    for (index, &share) in mask.iter().enumerate() {
        let (x, y) = at(index);
        let (x, y) = ((x - centre_x) / radius, (y - centre_y) / radius);
        let square = x * x + y * y;
        if square < HOLE * HOLE {
            hole += share;
            hole_area += 1.0;
        }
        spread += share * square / area;
        tails += share * square * square / area;
        // Powers of the direction as a complex number, from the second on.
        let length = square.sqrt().max(1e-6);
        let (cos, sin) = (x / length, y / length);
        let (mut re, mut im) = (cos, sin);
        for sum in &mut harmonics {
            (re, im) = (re * cos - im * sin, re * sin + im * cos);
            sum[0] += share * square * re / area;
            sum[1] += share * square * im / area;
        }
    }
    // A disc has 1/2 and 1/3.
    numbers.extend([
        2.0 * spread - 1.0,
        3.0 * tails - 1.0,
        hole / f32::max(hole_area, 1.0),
    ]);
    numbers.extend(harmonics.map(|[cos, sin]| 4.0 * cos.hypot(sin)));
}

/// Deviation, skewness and flatness of the brightness inside.
fn filling(grey: &Grey, inner: &Grey, numbers: &mut Vec<f32>) {
    let count = inner.iter().sum::<f32>().max(1.0);
    let moment = |mean: f32, power: i32| {
        let terms = grey.iter().zip(inner);
        let sum: f32 = terms.map(|(level, w)| w * (level - mean).powi(power)).sum();
        sum / count
    };
    let mean = moment(0.0, 1);
    let deviation = moment(mean, 2).sqrt().max(1e-3);
    numbers.push(4.0 * deviation);
    numbers.push(moment(mean, 3) / deviation.powi(3));
    numbers.push(moment(mean, 4) / deviation.powi(4) - 2.0);
}

/// Strength of the edges inside, and how much they have one direction, or two at right angles.
fn edges(grey: &Grey, inner: &Grey, reach: usize, numbers: &mut Vec<f32>) {
    let (mut strength, mut count) = (1e-6f32, 0.0);
    let mut aligned = [[0f32; 2]; 2];
    for y in reach..SIZE - reach {
        for x in reach..SIZE - reach {
            let here = y * SIZE + x;
            if inner[here] == 0.0 {
                continue;
            }
            let across = grey[here + reach] - grey[here - reach];
            let down = grey[here + reach * SIZE] - grey[here - reach * SIZE];
            // The square and the fourth power of the edge as a complex number.
            let (re, im) = (across * across - down * down, 2.0 * across * down);
            let square = across * across + down * down;
            strength += square;
            count += 1.0;
            aligned[0][0] += re;
            aligned[0][1] += im;
            aligned[1][0] += (re * re - im * im) / square.max(1e-6);
            aligned[1][1] += 2.0 * re * im / square.max(1e-6);
        }
    }
    numbers.push(2.0 * (strength / f32::max(count, 1.0)).sqrt());
    numbers.extend(aligned.map(|[re, im]| 2.0 * re.hypot(im) / strength));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::stratified;
    use crate::images::{CLASSES, Images};

    /// The nearest class mean is right far more often than chance, which pixels are not.
    #[test]
    fn summaries_tell_classes_apart() {
        let mut means = vec![[0f32; SUMMARY]; CLASSES];
        for picture in stratified(&Images, 2, 100) {
            let summary = summary(&picture.values);
            assert_eq!(summary.len(), SUMMARY);
            for (mean, value) in means[picture.label].iter_mut().zip(summary) {
                *mean += value / 100.0;
            }
        }
        let test = stratified(&Images, 3, 20);
        let right = test.iter().filter(|picture| {
            let summary = summary(&picture.values);
            let distance = |class: usize| -> f32 {
                let pairs = means[class].iter().zip(&summary);
                pairs.map(|(a, b)| (a - b) * (a - b)).sum()
            };
            let nearest = (0..CLASSES).min_by(|&a, &b| distance(a).total_cmp(&distance(b)));
            nearest == Some(picture.label)
        });
        let share = right.count() as f64 / test.len() as f64;
        assert!(
            share > 5.0 / CLASSES as f64,
            "nearest mean is right {share}"
        );
    }

    #[test]
    fn any_length_gives_finite_numbers() {
        for length in [0, 1, 1000, SAMPLES, SAMPLES + 1] {
            let summary = summary(&vec![-1.0; length]);
            assert_eq!(summary.len(), SUMMARY);
            assert!(summary.iter().all(|value| value.is_finite()));
        }
    }
}
