//! Features of an image of the image application without a network, independent of the figure's
//! rotation; and the layout of an image.
//!
//! The figure is brighter than its background, so a smoothed brightness roughly locates it. Its
//! outline is summarised by moments around its centre, its filling by strength and alignment of its
//! edges. Costs about 0.1 ms per image on one core.

/// Lines and columns of an image.
pub const SIZE: usize = 32;

/// Red, green and blue.
pub const COLOURS: usize = 3;

/// Values in one image.
pub const SAMPLES: usize = COLOURS * SIZE * SIZE;

/// Number of features.
pub(super) const FEATURES: usize = 18;

/// Moments around the centre, from the second order to the sixth: a triangle has the third, a
/// square the fourth, a star the fifth.
const HARMONICS: usize = 5;

/// Brightness between background and figure, and the width of the uncertain range around it.
const THRESHOLD: f32 = -0.05;
const DOUBT: f32 = 0.4;

/// Lines and columns on each side over which brightness is smoothed.
const SMOOTHING: usize = 2;

/// Share of the figure's radius inside which a ring is empty.
const HOLE: f32 = 0.4;

/// Distances over which edges are measured, in pixels.
const REACHES: [usize; 2] = [1, 2];

/// An image's brightness, line by line.
type Grey = [f32; SIZE * SIZE];

/// Area, outline, filling and edges of the figure in an image `[3, 32, 32]`; missing values of a
/// shorter image count as 0.
pub(super) fn summary(image: &[f32]) -> Vec<f32> {
    let grey = brightness(image);
    let mask = smoothed(&grey).map(|level| (0.5 + (level - THRESHOLD) / DOUBT).clamp(0.0, 1.0));
    let area = mask.iter().sum::<f32>().max(1.0);
    let mut features = Vec::with_capacity(FEATURES);
    features.push(area / (SIZE * SIZE) as f32);
    outline(&mask, area, &mut features);
    // Without the figure's own edge, which would hide its filling.
    let inner = mask.map(|share| if share > 0.99 { 1.0 } else { 0.0 });
    filling(&grey, &inner, &mut features);
    for reach in REACHES {
        edges(&grey, &inner, reach, &mut features);
    }
    features
}

fn brightness(image: &[f32]) -> Grey {
    let mut grey = [0.0; SIZE * SIZE];
    for channel in image[..image.len().min(SAMPLES)].chunks(SIZE * SIZE) {
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
fn outline(mask: &Grey, area: f32, features: &mut Vec<f32>) {
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
    features.extend([
        2.0 * spread - 1.0,
        3.0 * tails - 1.0,
        hole / f32::max(hole_area, 1.0),
    ]);
    features.extend(harmonics.map(|[cos, sin]| 4.0 * cos.hypot(sin)));
}

/// Deviation, skewness and flatness of the brightness inside.
fn filling(grey: &Grey, inner: &Grey, features: &mut Vec<f32>) {
    let count = inner.iter().sum::<f32>().max(1.0);
    let moment = |mean: f32, power: i32| {
        let terms = grey.iter().zip(inner);
        let sum: f32 = terms.map(|(level, w)| w * (level - mean).powi(power)).sum();
        sum / count
    };
    let mean = moment(0.0, 1);
    let deviation = moment(mean, 2).sqrt().max(1e-3);
    features.push(4.0 * deviation);
    features.push(moment(mean, 3) / deviation.powi(3));
    features.push(moment(mean, 4) / deviation.powi(4) - 2.0);
}

/// Strength of the edges inside, and their alignment with one direction, or with two at right
/// angles.
fn edges(grey: &Grey, inner: &Grey, reach: usize, features: &mut Vec<f32>) {
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
    features.push(2.0 * (strength / f32::max(count, 1.0)).sqrt());
    features.extend(aligned.map(|[re, im]| 2.0 * re.hypot(im) / strength));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_length_gives_finite_features() {
        for length in [0, 1, 1000, SAMPLES, SAMPLES + 1] {
            let summary = summary(&vec![-1.0; length]);
            assert_eq!(summary.len(), FEATURES);
            assert!(summary.iter().all(|value| value.is_finite()));
        }
    }
}
