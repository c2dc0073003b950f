//! The optimisation loop: AdamW with warm-up and cosine decay, data-parallel over shards.

use std::collections::BTreeMap;

use candle_core::backprop::GradStore;
use candle_core::{Device, Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};
use rayon::prelude::*;

use super::progress::Progress;
use crate::data::Sample;

/// Share of the steps over which the learning rate rises from 0.
const WARM_UP_SHARE: f64 = 0.05;
/// Learning rate at the end, relative to its peak.
const FINAL_SHARE: f64 = 0.01;
/// Decoupled weight decay.
const WEIGHT_DECAY: f64 = 1e-3;
/// Largest Euclidean norm of a step's gradient.
const GRADIENT_NORM_MAX: f64 = 2.0;

/// Length and learning rate of a training.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    pub(super) steps: u64,
    pub(super) batch: usize,
    pub(super) peak_rate: f64,
}

/// Mean losses at both ends of a run, in nats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    pub(super) first: f64,
    pub(super) last: f64,
}

/// Minimises `loss` (mean over a batch of inputs `[n, samples]` and labels `[n]`) over `vars`.
///
/// `draw` makes a number of samples from an index on.
pub(super) fn fit(
    vars: &BTreeMap<String, Var>,
    schedule: Schedule,
    draw: &dyn Fn(u64, usize) -> Vec<Sample>,
    progress: &dyn Progress,
    loss: &(dyn Fn(&Tensor, &Tensor) -> Result<Tensor> + Sync),
) -> Result<Losses> {
    let vars: Vec<Var> = vars.values().cloned().collect();
    let mut optimiser = AdamW::new(
        vars.clone(),
        ParamsAdamW {
            weight_decay: WEIGHT_DECAY,
            ..ParamsAdamW::default()
        },
    )?;
    let mut history = Vec::with_capacity(schedule.steps as usize);
    for step in 0..schedule.steps {
        optimiser.set_learning_rate(rate_at(step, schedule));
        let from = step * schedule.batch as u64;
        let samples = draw(from, schedule.batch);
        let (value, gradients) = gradient(&samples, &vars, loss)?;
        optimiser.step(&gradients)?;
        history.push(value);
        progress.step(&format!("loss {value:.3}"));
    }
    let tenth = history.len().div_ceil(10);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    Ok(Losses {
        first: mean(&history[..tenth]),
        last: mean(&history[history.len() - tenth..]),
    })
}

/// Linear warm-up, then half a cosine down to [`FINAL_SHARE`].
fn rate_at(step: u64, schedule: Schedule) -> f64 {
    let done = (step + 1) as f64 / schedule.steps as f64;
    if done < WARM_UP_SHARE {
        return schedule.peak_rate * done / WARM_UP_SHARE;
    }
    let along = (done - WARM_UP_SHARE) / (1.0 - WARM_UP_SHARE);
    let cosine = 0.5 * (1.0 + (std::f64::consts::PI * along).cos());
    schedule.peak_rate * (FINAL_SHARE + (1.0 - FINAL_SHARE) * cosine)
}

/// Samples differentiated together, on one thread. Few enough that the windows of a convolution
/// stay in the second-level cache and that candle does not split an elementwise operation over its
/// pool of spinning threads. Fixed, so that the sum of gradients, and with it the weights, does not
/// depend on the machine.
const SHARD: usize = 4;

/// Loss and clipped gradient of a batch.
fn gradient(
    samples: &[Sample],
    vars: &[Var],
    loss: &(dyn Fn(&Tensor, &Tensor) -> Result<Tensor> + Sync),
) -> Result<(f64, GradStore)> {
    let shards: Vec<(f64, GradStore)> = samples
        .par_chunks(SHARD)
        .map(|shard| {
            let (inputs, labels) = tensors(shard)?;
            let share = shard.len() as f64 / samples.len() as f64;
            let value = (loss(&inputs, &labels)? * share)?;
            let gradients = value.backward()?;
            Ok((f64::from(value.to_scalar::<f32>()?), gradients))
        })
        .collect::<Result<_>>()?;
    let mut shards = shards.into_iter();
    let Some((mut value, mut total)) = shards.next() else {
        candle_core::bail!("an empty batch has no gradient");
    };
    for (part, gradients) in shards {
        value += part;
        for var in vars {
            let sum = match (total.get(var), gradients.get(var)) {
                (Some(a), Some(b)) => (a + b)?,
                (_, Some(b)) => b.clone(),
                _ => continue,
            };
            total.insert(var, sum);
        }
    }
    clip(&mut total, vars)?;
    Ok((value, total))
}

fn clip(gradients: &mut GradStore, vars: &[Var]) -> Result<()> {
    let mut squares = 0.0;
    for var in vars {
        if let Some(gradient) = gradients.get(var) {
            squares += f64::from(gradient.sqr()?.sum_all()?.to_scalar::<f32>()?);
        }
    }
    let norm = squares.sqrt();
    if norm <= GRADIENT_NORM_MAX {
        return Ok(());
    }
    for var in vars {
        if let Some(gradient) = gradients.get(var) {
            let clipped = (gradient * (GRADIENT_NORM_MAX / norm))?;
            gradients.insert(var, clipped);
        }
    }
    Ok(())
}

/// Inputs `[n, samples]` f32 and labels `[n]` u32, on the CPU.
pub(super) fn tensors(samples: &[Sample]) -> Result<(Tensor, Tensor)> {
    let values: Vec<f32> = samples
        .iter()
        .flat_map(|sample| sample.values.iter().copied())
        .collect();
    let labels: Vec<u32> = samples.iter().map(|sample| sample.label as u32).collect();
    let width = values.len() / samples.len().max(1);
    Ok((
        Tensor::from_vec(values, (samples.len(), width), &Device::Cpu)?,
        Tensor::from_vec(labels, samples.len(), &Device::Cpu)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_rises_then_falls() {
        let schedule = Schedule {
            steps: 1000,
            batch: 1,
            peak_rate: 1.0,
        };
        assert!(rate_at(0, schedule) < 0.05);
        assert!(rate_at(50, schedule) > 0.99);
        assert!((rate_at(525, schedule) - 0.5).abs() < 0.02);
        assert!((rate_at(999, schedule) - FINAL_SHARE).abs() < 1e-6);
    }
}
