//! The image application's data: small images of one figure each, in 24 classes.
//!
//! A class is an outline and the pattern that fills it: six outlines (`shapes`), four patterns
//! (`textures`). Patterns are local, outlines are not, and the background has a pattern and small
//! figures of its own, so an exit with a small receptive field knows little.
//!
//! An image is `[3, 32, 32]`, red, green and blue, each from -1 to 1.

mod shapes;
mod textures;

use std::f32::consts::TAU;

use rand::Rng;
use rand_distr::{Distribution, Normal};
use rand_pcg::Pcg64;
pub use switchyard_models::features::figure::{COLOURS, SAMPLES, SIZE};

pub use self::shapes::Outline;
pub use self::textures::Pattern;
use self::textures::Texture;
use crate::data::Data;

/// Number of classes.
pub const CLASSES: usize = Outline::ALL.len() * Pattern::ALL.len();

/// Half the size of the figure, in pixels.
const SCALES: [f32; 2] = [8.5, 12.5];
/// Half the size of a small figure of the background.
const CLUTTER_SCALES: [f32; 2] = [1.5, 3.5];
/// Small figures in the background, at most.
const CLUTTER_MAX: usize = 3;
/// Period of the figure's pattern, in pixels.
const PERIODS: [f32; 2] = [4.5, 6.5];
/// Period of the background's pattern.
const BACKGROUND_PERIODS: [f32; 2] = [4.0, 9.0];
/// Brightness of the figure, and the amplitude of its pattern.
const LEVELS: [f32; 2] = [0.2, 0.6];
const CONTRASTS: [f32; 2] = [0.3, 0.5];
/// Brightness of the background, and the amplitude of its pattern.
const BACKGROUND_LEVELS: [f32; 2] = [-0.8, -0.3];
const BACKGROUND_CONTRASTS: [f32; 2] = [0.05, 0.2];
/// Largest distance of a colour from grey.
const TINT: f32 = 0.25;
/// Standard deviation of the noise on every value.
const NOISES: [f32; 2] = [0.02, 0.08];

/// The application's data.
#[derive(Clone, Copy, Debug)]
pub struct Images;

/// A shape drawn over the image.
struct Figure {
    outline: Outline,
    centre: [f32; 2],
    scale: f32,
    /// Sine and cosine of its rotation.
    rotation: [f32; 2],
    surface: Surface,
}

/// A pattern in two colours.
struct Surface {
    texture: Texture,
    /// Their mean.
    colour: [f32; COLOURS],
    /// Distance of each from the mean.
    contrast: f32,
}

/// Name of class `label`, for example `star-striped`.
pub fn class_name(label: usize) -> String {
    let (outline, pattern) = parts(label);
    format!("{}-{}", outline.name(), pattern.name())
}

/// Outline and pattern of a class; a label beyond the last class counts as the last.
fn parts(label: usize) -> (Outline, Pattern) {
    let label = label.min(CLASSES - 1);
    let patterns = Pattern::ALL.len();
    (
        Outline::ALL[label / patterns],
        Pattern::ALL[label % patterns],
    )
}

// === impl Images ===

impl Data for Images {
    fn classes(&self) -> usize {
        CLASSES
    }

    fn width(&self) -> usize {
        SAMPLES
    }

    /// `[3, 32, 32]`, from -1 to 1.
    fn draw(&self, label: usize, rng: &mut Pcg64) -> Vec<f32> {
        let (outline, pattern) = parts(label);
        let background = {
            let pattern = Pattern::ALL[rng.random_range(0..Pattern::ALL.len())];
            let ranges = [BACKGROUND_PERIODS, BACKGROUND_LEVELS, BACKGROUND_CONTRASTS];
            Surface::draw(pattern, ranges, rng)
        };
        let mut figures: Vec<Figure> = (0..rng.random_range(0..=CLUTTER_MAX))
            .map(|_| Figure::clutter(rng))
            .collect();
        figures.push(Figure::main(outline, pattern, rng));
        let mut pixels = render(&background, &figures);
        add_noise(&mut pixels, rng);
        pixels
    }
}

fn render(background: &Surface, figures: &[Figure]) -> Vec<f32> {
    let mut pixels = vec![0f32; SAMPLES];
    for line in 0..SIZE {
        for column in 0..SIZE {
            let (x, y) = (column as f32 + 0.5, line as f32 + 0.5);
            let mut seen = background.at(x, y);
            for figure in figures {
                let cover = figure.cover(x, y);
                if cover > 0.0 {
                    let above = figure.surface.at(x, y);
                    for (seen, above) in seen.iter_mut().zip(above) {
                        *seen += cover * (above - *seen);
                    }
                }
            }
            for (channel, value) in seen.into_iter().enumerate() {
                pixels[(channel * SIZE + line) * SIZE + column] = value;
            }
        }
    }
    pixels
}

fn add_noise(pixels: &mut [f32], rng: &mut Pcg64) {
    let deviation = rng.random_range(NOISES[0]..NOISES[1]);
    // A deviation drawn from a constant range is always valid.
    if let Ok(normal) = Normal::new(0.0f32, deviation) {
        for pixel in pixels {
            *pixel = (*pixel + normal.sample(rng)).clamp(-1.0, 1.0);
        }
    }
}

// === impl Figure ===

impl Figure {
    /// The figure of the label: large, and inside the image.
    fn main(outline: Outline, pattern: Pattern, rng: &mut Pcg64) -> Self {
        let scale = rng.random_range(SCALES[0]..SCALES[1]);
        let middle = SIZE as f32 / 2.0;
        let free = middle - scale;
        Self {
            outline,
            centre: [0, 1].map(|_| middle + rng.random_range(-free..free)),
            scale,
            rotation: rotation(rng),
            surface: Surface::draw(pattern, [PERIODS, LEVELS, CONTRASTS], rng),
        }
    }

    /// A small figure at any position.
    fn clutter(rng: &mut Pcg64) -> Self {
        let outline = Outline::ALL[rng.random_range(0..Outline::ALL.len())];
        Self {
            outline,
            centre: [0, 1].map(|_| rng.random_range(0.0..SIZE as f32)),
            scale: rng.random_range(CLUTTER_SCALES[0]..CLUTTER_SCALES[1]),
            rotation: rotation(rng),
            surface: Surface::draw(Pattern::Plain, [PERIODS, LEVELS, CONTRASTS], rng),
        }
    }

    /// Share of the pixel around a position that the figure covers.
    fn cover(&self, x: f32, y: f32) -> f32 {
        let (x, y) = (x - self.centre[0], y - self.centre[1]);
        let [sin, cos] = self.rotation;
        let (u, v) = (x * cos + y * sin, y * cos - x * sin);
        let distance = self.outline.distance(u / self.scale, v / self.scale) * self.scale;
        // The edge is one pixel wide.
        (0.5 - distance).clamp(0.0, 1.0)
    }
}

// === impl Surface ===

impl Surface {
    /// `pattern` with a period, a brightness and a contrast from these ranges.
    fn draw(
        pattern: Pattern,
        [periods, levels, contrasts]: [[f32; 2]; 3],
        rng: &mut Pcg64,
    ) -> Self {
        let texture = Texture::draw(pattern, periods, rng);
        let level = rng.random_range(levels[0]..levels[1]);
        Self {
            texture,
            colour: [0; COLOURS].map(|_| level + rng.random_range(-TINT..TINT)),
            contrast: rng.random_range(contrasts[0]..contrasts[1]),
        }
    }

    /// Colour at a position in pixels.
    fn at(&self, x: f32, y: f32) -> [f32; COLOURS] {
        let level = self.contrast * self.texture.at(x, y);
        self.colour.map(|part| part + level)
    }
}

fn rotation(rng: &mut Pcg64) -> [f32; 2] {
    let (sin, cos) = rng.random_range(0.0..TAU).sin_cos();
    [sin, cos]
}

#[cfg(test)]
mod tests {
    use switchyard_models::features::Features;

    use super::*;
    use crate::data::stratified;

    #[test]
    fn images_are_in_range_and_not_blank() {
        for image in stratified(&Images, 1, 10) {
            assert_eq!(image.values.len(), SAMPLES);
            assert!(image.values.iter().all(|v| (-1.0..=1.0).contains(v)));
            let mean = image.values.iter().sum::<f32>() / SAMPLES as f32;
            let spread = image.values.iter().map(|v| (v - mean).abs()).sum::<f32>();
            assert!(
                spread / SAMPLES as f32 > 0.02,
                "{}",
                class_name(image.label)
            );
        }
    }

    #[test]
    fn classes_have_names_of_their_own() {
        let names: std::collections::BTreeSet<String> = (0..CLASSES).map(class_name).collect();
        assert_eq!(names.len(), CLASSES);
        assert!(names.contains("star-striped"));
    }

    /// No class has a typical colour or position: the nearest class mean is hardly better than
    /// chance.
    #[test]
    fn classes_are_not_told_apart_by_their_means() {
        let mut means = vec![vec![0f32; SAMPLES]; CLASSES];
        for image in stratified(&Images, 2, 100) {
            for (mean, value) in means[image.label].iter_mut().zip(&image.values) {
                *mean += value / 100.0;
            }
        }
        let test = stratified(&Images, 3, 20);
        let squares =
            |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum() };
        let right = test.iter().filter(|image| {
            let distance = |class: usize| squares(&means[class], &image.values);
            let nearest = (0..CLASSES).min_by(|&a, &b| distance(a).total_cmp(&distance(b)));
            nearest == Some(image.label)
        });
        let share = right.count() as f64 / test.len() as f64;
        assert!(
            share < 3.0 / CLASSES as f64,
            "nearest mean is right {share}"
        );
    }

    /// The nearest class mean is right far more often than chance; for pixels it is not.
    #[test]
    fn summaries_tell_classes_apart() {
        let features = Features::Figure;
        let mut means = vec![vec![0f32; features.width(SAMPLES)]; CLASSES];
        for image in stratified(&Images, 2, 100) {
            let summary = features.of(&image.values);
            for (mean, value) in means[image.label].iter_mut().zip(summary.iter()) {
                *mean += value / 100.0;
            }
        }
        let test = stratified(&Images, 3, 20);
        let right = test.iter().filter(|image| {
            let summary = features.of(&image.values);
            let distance = |class: usize| -> f32 {
                let pairs = means[class].iter().zip(summary.iter());
                pairs.map(|(a, b)| (a - b) * (a - b)).sum()
            };
            let nearest = (0..CLASSES).min_by(|&a, &b| distance(a).total_cmp(&distance(b)));
            nearest == Some(image.label)
        });
        let share = right.count() as f64 / test.len() as f64;
        assert!(
            share > 5.0 / CLASSES as f64,
            "nearest mean is right {share}"
        );
    }
}
