//! The network of MiniRocket.

use candle_core::{Result, Tensor};

use super::convolutions::{KERNELS, REACH};
use super::spec::{BIASES, CHANNELS, MEANS, MiniRocketSpec, SCALES};
use super::transform::Transform;
use crate::error::ModelError;
use crate::networks::spec::{BadHyperParameter, Spec, check_depth, check_range, check_size};
use crate::networks::staged::{StagedModel, check_only_exit, no_stage};
use crate::networks::stages::stage_ends;
use crate::ops::layers::Linear;
use crate::weights::params::{Init, Params};

/// Most features of one kernel, so that all features together stay below the limit of a tensor's
/// side.
const FEATURES_PER_KERNEL_MAX: usize = (1 << 16) / KERNELS;

/// The classifier on top of the features. Its only exit is after the last stage.
pub struct MiniRocket {
    spec: MiniRocketSpec,
    /// One transform per stage.
    stages: Vec<MiniRocketStage>,
    means: Tensor,
    scales: Tensor,
    head: Linear,
    exits: [usize; 1],
}

/// The features of some neighbouring dilations.
struct MiniRocketStage {
    transform: Transform,
    channels: Tensor,
    biases: Tensor,
}

// === impl MiniRocketSpec ===

impl Spec for MiniRocketSpec {
    fn input_shape(&self) -> Vec<usize> {
        vec![self.length, self.axes]
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn exits(&self) -> Vec<usize> {
        vec![self.stages]
    }

    fn check(&self) -> std::result::Result<(), BadHyperParameter> {
        check_size("length", self.length)?;
        check_size("axes", self.axes)?;
        check_depth("stages", self.stages)?;
        let bad = |field: &str, reason: String| BadHyperParameter {
            field: field.to_owned(),
            reason,
        };
        if self.length < REACH {
            let reason = format!("{} is shorter than a kernel of {REACH}", self.length);
            return Err(bad("length", reason));
        }
        check_range(
            "features_per_kernel",
            self.features_per_kernel,
            FEATURES_PER_KERNEL_MAX,
        )?;
        let dilations = self.plan().dilations().len();
        if self.stages > dilations {
            let reason = format!("{} for {dilations} dilations", self.stages);
            return Err(bad("stages", reason));
        }
        Ok(())
    }

    fn build(&self, params: &mut Params) -> std::result::Result<Box<dyn StagedModel>, ModelError> {
        Ok(Box::new(MiniRocket::new(params, self)?))
    }
}

// === impl MiniRocket ===

impl MiniRocket {
    pub(crate) fn new(
        params: &mut Params,
        spec: &MiniRocketSpec,
    ) -> std::result::Result<Self, ModelError> {
        let plan = spec.plan();
        let features = plan.features();
        let combinations = plan.dilations().len() * KERNELS;
        let shape = [combinations, spec.axes + 1];
        let channels = params.exact(CHANNELS, &shape, Init::Zero)?;
        let biases = params.exact(BIASES, &[features], Init::Zero)?;
        let costs: Vec<f64> = plan.dilations().iter().map(|d| d.cost()).collect();
        let ends = stage_ends(&costs, &[costs.len()], spec.stages);
        let mut stages = Vec::with_capacity(ends.len());
        let mut start = 0;
        for end in ends {
            let part = plan.part(start..end);
            let before = plan.part(0..start).features();
            let cut = || -> Result<MiniRocketStage> {
                Ok(MiniRocketStage {
                    channels: channels.narrow(0, start * KERNELS, (end - start) * KERNELS)?,
                    biases: biases.narrow(0, before, part.features())?,
                    transform: Transform::new(spec.length, spec.axes, part.clone()),
                })
            };
            stages.push(cut().map_err(ModelError::compute("cutting MiniRocket into stages"))?);
            start = end;
        }
        Ok(Self {
            spec: spec.clone(),
            exits: [stages.len()],
            stages,
            means: params.exact(MEANS, &[features], Init::Zero)?,
            scales: params.exact(SCALES, &[features], Init::Zero)?,
            head: Linear::new(params, "head", features, spec.classes)?,
        })
    }
}

impl StagedModel for MiniRocket {
    fn stages(&self) -> usize {
        self.stages.len()
    }

    fn exits(&self) -> &[usize] {
        &self.exits
    }

    fn classes(&self) -> usize {
        self.spec.classes
    }

    /// `[batch, samples + features of the stages before]` to the same plus this stage's features;
    /// the last stage drops the samples.
    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        let Some(own) = self.stages.get(stage) else {
            return no_stage(stage, self.stages.len());
        };
        let samples = self.spec.length * self.spec.axes;
        let before: usize = self.stages[..stage]
            .iter()
            .map(|stage| stage.transform.features())
            .sum();
        let (_, width) = x.dims2()?;
        if width != samples + before {
            candle_core::bail!(
                "stage {stage} takes {} values per input, not {width}",
                samples + before
            );
        }
        let window = x.narrow(1, 0, samples)?;
        let features = own.transform.run(&window, &own.channels, &own.biases)?;
        let kept = if stage + 1 == self.stages.len() {
            x.narrow(1, samples, before)?
        } else {
            x.clone()
        };
        Tensor::cat(&[&kept, &features], 1)
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        check_only_exit(exit)?;
        // Only the classifier is trained: means and scales are data.
        let standardised = x
            .broadcast_sub(&self.means.detach())?
            .broadcast_mul(&self.scales.detach())?;
        self.head.forward(&standardised)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::Device;
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;
    use crate::networks::architecture::Architecture;
    use crate::networks::minirocket::prepare;

    fn spec() -> MiniRocketSpec {
        MiniRocketSpec {
            length: 60,
            axes: 2,
            classes: 2,
            features_per_kernel: 6,
            stages: 2,
        }
    }

    /// Noise, with a faster wave in class 1.
    fn samples(count: usize) -> Vec<Vec<f32>> {
        let mut rng = Pcg64::seed_from_u64(5);
        let mut draw = |label: usize| {
            let phase: f32 = rng.random_range(0.0..6.0);
            let step = if label == 1 { 0.6 } else { 0.4 };
            let value = |i: usize| (step * (i / 2) as f32 + phase).sin();
            let values = (0..120).map(|i| value(i) + rng.random_range(-0.5..0.5));
            values.collect()
        };
        (0..count).map(|i| draw(i % 2)).collect()
    }

    fn refs(samples: &[Vec<f32>]) -> Vec<&[f32]> {
        samples.iter().map(Vec::as_slice).collect()
    }

    fn tensor(samples: &[Vec<f32>]) -> Tensor {
        let values: Vec<f32> = samples.concat();
        Tensor::from_vec(values, (samples.len(), 120), &Device::Cpu).unwrap()
    }

    fn prepared() -> MiniRocket {
        let mut params = Params::fresh(Pcg64::seed_from_u64(1));
        let model = MiniRocket::new(&mut params, &spec()).unwrap();
        prepare(&spec(), &params.into_vars(), &refs(&samples(20))).unwrap();
        model
    }

    /// The state behind the last stage: the features.
    fn features(model: &MiniRocket, x: &Tensor) -> Vec<Vec<f32>> {
        let x = model.run_stage(0, x).unwrap();
        model.run_stage(1, &x).unwrap().to_vec2().unwrap()
    }

    #[test]
    fn biases_at_quantiles_spread_the_features() {
        let model = prepared();
        let features = features(&model, &tensor(&samples(20)));
        assert_eq!(features[0].len(), 84 * 6);
        let constant = (0..84 * 6).filter(|&i| features.iter().all(|f| f[i] == features[0][i]));
        assert!(constant.count() < 5);
        let mean: f32 = features.iter().flatten().sum::<f32>() / (20.0 * 84.0 * 6.0);
        assert!((0.4..0.6).contains(&mean), "{mean}");
    }

    #[test]
    fn features_do_not_depend_on_stages_or_batch() {
        let model = prepared();
        let samples = samples(5);
        let together = features(&model, &tensor(&samples));
        for (sample, row) in samples.iter().zip(&together) {
            assert_eq!(
                features(&model, &tensor(std::slice::from_ref(sample)))[0],
                *row
            );
        }
        let mut params = Params::fresh(Pcg64::seed_from_u64(1));
        let whole = MiniRocketSpec {
            stages: 1,
            ..spec()
        };
        let model = MiniRocket::new(&mut params, &whole).unwrap();
        prepare(&whole, &params.into_vars(), &refs(&self::samples(20))).unwrap();
        let unsliced = model.run_stage(0, &tensor(&samples)).unwrap();
        assert_eq!(unsliced.to_vec2::<f32>().unwrap(), together);
    }

    #[test]
    fn only_the_head_has_gradients() {
        let mut params = Params::fresh(Pcg64::seed_from_u64(1));
        let model = MiniRocket::new(&mut params, &spec()).unwrap();
        let vars = params.into_vars();
        prepare(&spec(), &vars, &refs(&samples(20))).unwrap();
        let x = tensor(&samples(4));
        let x = model
            .run_stage(1, &model.run_stage(0, &x).unwrap())
            .unwrap();
        let loss = model
            .logits(0, &x)
            .unwrap()
            .sqr()
            .unwrap()
            .sum_all()
            .unwrap();
        let gradients = loss.backward().unwrap();
        let trained: Vec<&str> = vars
            .iter()
            .filter(|(_, var)| gradients.get(var).is_some())
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(trained, ["head.bias", "head.weight"]);
    }

    #[test]
    fn bad_hyper_parameters_are_named() {
        let field = |change: fn(&mut MiniRocketSpec)| {
            let mut spec = spec();
            change(&mut spec);
            Architecture::MiniRocket(spec).check().unwrap_err().field
        };
        assert_eq!(field(|s| s.length = 8), "length");
        assert_eq!(field(|s| s.axes = 0), "axes");
        assert_eq!(field(|s| s.features_per_kernel = 0), "features_per_kernel");
        assert_eq!(
            field(|s| s.features_per_kernel = 781),
            "features_per_kernel"
        );
        assert_eq!(field(|s| s.stages = 40), "stages");
    }

    #[test]
    fn nothing_to_prepare_from_is_an_error() {
        let mut params = Params::fresh(Pcg64::seed_from_u64(1));
        MiniRocket::new(&mut params, &spec()).unwrap();
        assert!(prepare(&spec(), &params.into_vars(), &[]).is_err());
    }
}
