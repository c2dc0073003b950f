//! A 1-D residual network with an exit after every stage.
//!
//! Plain residual blocks without normalisation: the second convolution of a block starts small, so
//! a block starts as the identity (Zhang et al., "Fixup Initialization", 2019) and inference has
//! nothing to fold.

use std::ops::Range;

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};
use switchyard_kernels::Activation;

use super::conv_chain::{ConvSpec, check_conv};
use super::slices::{in_shares, lift_input};
use super::spec::{BadHyperParameter, Spec, check_depth, check_size};
use super::staged::{StagedModel, no_exit, no_stages};
use crate::error::ModelError;
use crate::ops::flow::Flow;
use crate::ops::layers::{Conv1d, Conv1dShape, Linear};
use crate::weights::mode::ComputeMode;
use crate::weights::params::Params;

/// Standard deviation of a block's second convolution, relative to He's.
const RESIDUAL_GAIN: f64 = 0.1;

/// Standard deviation of a projection that no ReLU follows, relative to He's.
const LINEAR_GAIN: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// Hyper-parameters of [`ResNet1d`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResNet1dSpec {
    /// Samples of one input.
    pub samples: usize,
    /// Classes told apart.
    pub classes: usize,
    /// First convolution; part of stage 0.
    pub stem: ConvSpec,
    /// Stages in order; each ends with an exit.
    pub stages: Vec<ResNet1dStage>,
}

/// Consecutive residual blocks of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResNet1dStage {
    /// Channels of every block.
    pub channels: usize,
    /// Residual blocks.
    pub blocks: usize,
    /// Window length of both convolutions of a block, in positions.
    pub kernel: usize,
    /// Positions between windows of the first block's first convolution.
    pub stride: usize,
}

/// The network.
pub struct ResNet1d {
    spec: ResNet1dSpec,
    mode: ComputeMode,
    stem: Conv1d,
    stages: Vec<Vec<ResNet1dBlock>>,
    heads: Vec<Linear>,
    exits: Vec<usize>,
}

/// `relu(skip(x) + conv2(relu(conv1(x))))`.
struct ResNet1dBlock {
    conv1: Conv1d,
    conv2: Conv1d,
    /// Present if the block changes the width or the length.
    skip: Option<Conv1d>,
}

// === impl ResNet1dSpec ===

impl Spec for ResNet1dSpec {
    fn input_shape(&self) -> Vec<usize> {
        vec![self.samples]
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn exits(&self) -> Vec<usize> {
        (1..=self.stages.len()).collect()
    }

    fn check(&self) -> std::result::Result<(), BadHyperParameter> {
        check_conv("stem", &self.stem)?;
        check_depth("stages", self.stages.len())?;
        for (i, stage) in self.stages.iter().enumerate() {
            let at = format!("stages[{i}]");
            check_size(&format!("{at}.channels"), stage.channels)?;
            check_depth(&format!("{at}.blocks"), stage.blocks)?;
            check_size(&format!("{at}.kernel"), stage.kernel)?;
            check_size(&format!("{at}.stride"), stage.stride)?;
        }
        Ok(())
    }

    fn build(&self, params: &mut Params) -> std::result::Result<Box<dyn StagedModel>, ModelError> {
        Ok(Box::new(ResNet1d::new(params, self)?))
    }
}

// === impl ResNet1d ===

impl ResNet1d {
    pub(crate) fn new(
        params: &mut Params,
        spec: &ResNet1dSpec,
    ) -> std::result::Result<Self, ModelError> {
        let stem = Conv1d::new(params, "stem", spec.stem.shape(1), 1.0)?;
        let mut channels = spec.stem.channels;
        let mut stages = Vec::with_capacity(spec.stages.len());
        let mut heads = Vec::with_capacity(spec.stages.len());
        for (i, stage) in spec.stages.iter().enumerate() {
            let mut blocks = Vec::with_capacity(stage.blocks);
            for j in 0..stage.blocks {
                let stride = if j == 0 { stage.stride } else { 1 };
                let name = format!("stage{i}.block{j}");
                blocks.push(ResNet1dBlock::new(params, &name, channels, *stage, stride)?);
                channels = stage.channels;
            }
            stages.push(blocks);
            heads.push(Linear::new(
                params,
                &format!("exit{i}"),
                channels,
                spec.classes,
            )?);
        }
        Ok(Self {
            spec: spec.clone(),
            mode: params.mode(),
            stem,
            exits: (1..=stages.len()).collect(),
            stages,
            heads,
        })
    }
}

impl StagedModel for ResNet1d {
    fn stages(&self) -> usize {
        self.stages.len()
    }

    fn exits(&self) -> &[usize] {
        &self.exits
    }

    fn classes(&self) -> usize {
        self.spec.classes
    }

    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        self.run_stages(stage..stage + 1, x)
    }

    fn run_stages(&self, stages: Range<usize>, x: &Tensor) -> Result<Tensor> {
        let Some(blocks) = self.stages.get(stages.clone()) else {
            return no_stages(&stages, self.stages.len());
        };
        let positions = self.spec.samples.div_ceil(self.spec.stem.stride);
        let channels = self.spec.stages[stages.clone()]
            .iter()
            .map(|stage| stage.channels);
        let width = positions * channels.max().unwrap_or_default();
        in_shares(x, width, self.mode, |x| {
            let mut x = if stages.start == 0 {
                let lifted = Flow::sequence(self.mode, &lift_input(x, self.spec.samples)?)?;
                self.stem.forward(&lifted, Activation::Relu)?
            } else {
                Flow::sequence(self.mode, x)?
            };
            for block in blocks.iter().flatten() {
                x = block.forward(&x)?;
            }
            x.into_sequence()
        })
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        let Some(head) = self.heads.get(exit) else {
            return no_exit(exit, self.heads.len());
        };
        head.forward_pooled(x)
    }
}

// === impl ResNet1dBlock ===

impl ResNet1dBlock {
    fn new(
        params: &mut Params,
        name: &str,
        input: usize,
        stage: ResNet1dStage,
        stride: usize,
    ) -> std::result::Result<Self, ModelError> {
        let shape = |input, kernel, stride| Conv1dShape {
            input,
            output: stage.channels,
            kernel,
            stride,
        };
        let first = shape(input, stage.kernel.next_multiple_of(stride), stride);
        let second = shape(stage.channels, stage.kernel, 1);
        let skip = if stride != 1 || input != stage.channels {
            let name = format!("{name}.skip");
            Some(Conv1d::new(
                params,
                &name,
                shape(input, stride, stride),
                LINEAR_GAIN,
            )?)
        } else {
            None
        };
        Ok(Self {
            conv1: Conv1d::new(params, &format!("{name}.conv1"), first, 1.0)?,
            conv2: Conv1d::new(params, &format!("{name}.conv2"), second, RESIDUAL_GAIN)?,
            skip,
        })
    }

    fn forward(&self, x: &Flow) -> Result<Flow> {
        let inner = self.conv1.forward(x, Activation::Relu)?;
        match &self.skip {
            Some(skip) => {
                let onto = skip.forward(x, Activation::None)?;
                self.conv2.forward_onto(&inner, &onto)
            }
            None => self.conv2.forward_onto(&inner, x),
        }
    }
}
