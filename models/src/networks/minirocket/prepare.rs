//! The parameters that MiniRocket takes from training data before its classifier is trained.

use std::collections::BTreeMap;

use candle_core::{Device, Tensor, Var};
use rand::seq::index;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::convolutions::{DilationPlan, KERNELS};
use super::spec::{BIASES, CHANNELS, MEANS, MiniRocketSpec, SCALES};
use super::transform::Transform;
use crate::error::ModelError;

/// Seed of the channels of each combination.
const SEED: u64 = 84;

/// Features with a smaller deviation over the samples are not scaled up to unit variance.
const DEVIATION_MIN: f32 = 0.01;

/// Draws the channels of each combination, takes the biases from quantiles of the convolutions of
/// `samples`, and measures means and deviations of the features.
///
/// # Errors
/// There are no samples, or `vars` are not those of a network of this `spec`.
pub fn prepare(
    spec: &MiniRocketSpec,
    vars: &BTreeMap<String, Var>,
    samples: &[&[f32]],
) -> Result<(), ModelError> {
    if samples.is_empty() {
        let reason = "MiniRocket takes its biases from samples: needs at least 1, got 0";
        return Err(ModelError::Training(reason.to_owned()));
    }
    let plan = spec.plan();
    let transform = Transform::new(spec.length, spec.axes, plan.clone());
    let gains = draw_channels(plan.dilations().len() * KERNELS, spec.axes + 1);
    let biases = biases(&transform, &plan, &gains, samples);
    let set = || -> candle_core::Result<()> {
        let tensor = |name: &str, values: Vec<f32>| -> candle_core::Result<()> {
            let Some(var) = vars.get(name) else {
                candle_core::bail!("no parameter `{name}`");
            };
            var.set(&Tensor::from_vec(values, var.shape(), &Device::Cpu)?)
        };
        tensor(CHANNELS, gains)?;
        tensor(BIASES, biases)?;
        let shape = (samples.len(), spec.length * spec.axes);
        let x = Tensor::from_vec(samples.concat(), shape, &Device::Cpu)?;
        let of = |name: &str| vars[name].as_tensor().clone();
        let features = transform.run(&x, &of(CHANNELS), &of(BIASES))?;
        let means = features.mean(0)?;
        let variances = features.broadcast_sub(&means)?.sqr()?.mean(0)?;
        let scale = |variance: f32| 1.0 / variance.sqrt().max(DEVIATION_MIN);
        tensor(MEANS, means.to_vec1()?)?;
        let variances: Vec<f32> = variances.to_vec1()?;
        tensor(SCALES, variances.into_iter().map(scale).collect())
    };
    set().map_err(ModelError::compute("preparing MiniRocket"))
}

/// For each combination, 1 for each of its channels: mostly few, sometimes all, as in the paper's
/// multivariate form.
fn draw_channels(combinations: usize, channels: usize) -> Vec<f32> {
    let mut rng = Pcg64::seed_from_u64(SEED);
    let top = (channels as f64 + 1.0).log2();
    let mut gains = vec![0.0; combinations * channels];
    for row in gains.chunks_exact_mut(channels) {
        let count = rng.random_range(0.0..top).exp2() as usize;
        for channel in index::sample(&mut rng, channels, count.clamp(1, channels)) {
            row[channel] = 1.0;
        }
    }
    gains
}

/// Each combination takes its biases from the convolution of one sample, at quantiles that fill the
/// range evenly for any number of biases.
fn biases(
    transform: &Transform,
    plan: &DilationPlan,
    gains: &[f32],
    samples: &[&[f32]],
) -> Vec<f32> {
    let golden = (5f64.sqrt() + 1.0) / 2.0;
    let quantile = |feature: usize| ((feature as f64 + 1.0) * golden).fract();
    // Every sample's convolutions are computed once, for all combinations that take it.
    let mut rows: BTreeMap<usize, Vec<f32>> = BTreeMap::new();
    for (index, sample) in samples.iter().enumerate() {
        let mut combination = 0;
        let mut feature = 0;
        transform.each_convolution(sample, gains, |dilation, convolution| {
            if combination % samples.len() == index {
                let mut sorted = convolution.to_vec();
                sorted.sort_by(f32::total_cmp);
                let row = (feature..feature + dilation.features)
                    .map(|feature| at_quantile(&sorted, quantile(feature)));
                rows.insert(combination, row.collect());
            }
            combination += 1;
            feature += dilation.features;
        });
    }
    let biases: Vec<f32> = rows.into_values().flatten().collect();
    debug_assert_eq!(biases.len(), plan.features());
    biases
}

/// Linear interpolation between order statistics.
fn at_quantile(sorted: &[f32], quantile: f64) -> f32 {
    let position = quantile * (sorted.len() as f64 - 1.0);
    let below = position as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let share = position.fract() as f32;
    sorted[below] * (1.0 - share) + sorted[above] * share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_order_statistics() {
        let sorted = [1.0, 2.0, 4.0];
        assert_eq!(at_quantile(&sorted, 0.0), 1.0);
        assert_eq!(at_quantile(&sorted, 0.25), 1.5);
        assert_eq!(at_quantile(&sorted, 0.75), 3.0);
        assert_eq!(at_quantile(&sorted, 1.0), 4.0);
    }

    #[test]
    fn every_combination_has_some_channel() {
        let gains = draw_channels(500, 4);
        let counts: Vec<usize> = gains
            .chunks_exact(4)
            .map(|row| row.iter().filter(|gain| **gain != 0.0).count())
            .collect();
        assert!(counts.iter().all(|count| (1..=4).contains(count)));
        assert!(counts.contains(&1) && counts.contains(&4));
    }
}
