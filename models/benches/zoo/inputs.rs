//! Inputs with the ranges and the smoothness of the applications' data.

use std::f32::consts::TAU;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use switchyard_models::card::TensorCard;

use super::times::Result;

/// The value at a position of an input.
type Signal = fn(&Shape, usize) -> f32;

/// The frequency, phase and position that tell one row from another, each from 0 to 1.
struct Shape([f32; 3]);

/// `rows` rows of the tensors `inputs`, one after another in each row.
pub(crate) fn rows(inputs: &[&TensorCard], rows: usize) -> Result<Vec<f32>> {
    let mut rng = Pcg64::seed_from_u64(13);
    let mut values = Vec::new();
    for _ in 0..rows {
        let shape = Shape([0; 3].map(|_| rng.random()));
        for input in inputs {
            let (signal, noise): (Signal, f32) = match input.name.as_str() {
                "beat" => (beat, 0.02),
                "acceleration" => (acceleration, 0.05),
                "clip" => (clip, 0.02),
                "image" => (image, 0.05),
                "audio" => (audio, 0.01),
                name => return Err(format!("no signal for input `{name}`").into()),
            };
            for at in 0..input.width() {
                values.push(signal(&shape, at) + rng.random_range(-noise..noise));
            }
        }
    }
    Ok(values)
}

/// Millivolts of a heartbeat at 125 Hz: its P, R and T waves.
fn beat(shape: &Shape, at: usize) -> f32 {
    let waves = [(-22.0, 6.0, 0.15), (0.0, 2.5, 1.2), (32.0, 10.0, 0.3)];
    let middle = 80.0 + 20.0 * shape.0[0];
    let height = |(offset, width, height): (f32, f32, f32)| {
        height * (-((at as f32 - middle - offset) / width).powi(2)).exp()
    };
    waves.into_iter().map(height).sum()
}

/// Three axes in g at 50 Hz: gravity, steps and one shock.
fn acceleration(shape: &Shape, at: usize) -> f32 {
    let (moment, axis) = ((at / 3) as f32, at % 3);
    let gravity = [0.1, 0.2, 0.95][axis];
    let steps = 0.2 * (TAU * (moment / 25.0 + shape.0[1]) + axis as f32).sin();
    let since = moment - 60.0 - 40.0 * shape.0[2];
    gravity + steps + 2.5 * (-(since / 3.0).powi(2)).exp()
}

/// 16 frames of 24 x 24 from 0 to 1: a figure that falls.
fn clip(shape: &Shape, at: usize) -> f32 {
    let (frame, line, column) = (at / (24 * 24), at / 24 % 24, at % 24);
    let fallen = (frame as f32 / 15.0 - 0.4).clamp(0.0, 0.3) / 0.3;
    let [wide, high] = [3.0 + 6.0 * fallen, 9.0 - 6.0 * fallen];
    let [x, y] = [
        column as f32 - 8.0 - 8.0 * shape.0[0],
        line as f32 - 13.0 - 6.0 * fallen,
    ];
    let inside = 1.0 - (x / wide).powi(2) - (y / high).powi(2);
    0.15 + 0.7 / (1.0 + (-8.0 * inside).exp())
}

/// Colours of 32 x 32 from -1 to 1: a striped disc.
fn image(shape: &Shape, at: usize) -> f32 {
    let (colour, line, column) = (at / (32 * 32), at / 32 % 32, at % 32);
    let [x, y] = [column as f32 - 16.0, line as f32 - 16.0];
    let stripes = (TAU * (x * shape.0[0] + y * shape.0[1]) / 6.0).sin();
    let disc = 1.0 / (1.0 + (x.hypot(y) - 8.0 - 4.0 * shape.0[2]).exp());
    (0.3 * colour as f32 - 0.4) * (1.0 - disc) + 0.6 * stripes * disc
}

/// 16 kHz from -1 to 1: a gliding tone with overtones, in the middle of the clip.
fn audio(shape: &Shape, at: usize) -> f32 {
    let second = at as f32 / 16_000.0;
    let turns = (120.0 + 100.0 * shape.0[0]) * second + 40.0 * second * second;
    let tone = |overtone: f32| (TAU * overtone * turns).sin() / overtone;
    let loudness = (-((second - 0.3 - 0.4 * shape.0[2]) / 0.15).powi(2)).exp();
    0.15 * loudness * (1..=12).map(|overtone| tone(overtone as f32)).sum::<f32>()
}
