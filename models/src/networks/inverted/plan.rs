//! The units of a network of inverted residual blocks, with their tensors and costs.

use serde::{Deserialize, Serialize};
use switchyard_kernels::{Activation, Padding, Window2d};

use crate::networks::stages::{StageRange, stage_ends, stage_ranges};

/// Channels of an image.
pub(crate) const COLOURS: usize = 3;

/// Naming of a weights file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TensorNaming {
    /// `conv_stem`, `blocks.0.0.conv_dw`, `classifier`.
    Timm,
    /// `features.0.0`, `features.1.0.block.0.0`, `classifier.1`.
    Torchvision,
}

/// Zeros around the images of convolutions with a stride.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImagePadding {
    /// As many on every side.
    #[default]
    Centred,
    /// TensorFlow's "SAME": the odd one to the right and below, as timm's `tf_` weights need.
    Same,
}

/// The network, unit by unit.
pub(crate) struct InvertedPlan {
    pub(crate) units: Vec<UnitPlan>,
    pub(crate) head: HeadPlan,
    pub(crate) gates: Gates,
    /// Added to a variance by the normalisation that the weights were trained with.
    pub(crate) epsilon: f64,
}

/// A part of the network that cannot be cut.
pub(crate) struct UnitPlan {
    pub(crate) layers: UnitLayers,
    pub(crate) activation: Activation,
    /// Most activations per image at any point of it.
    pub(crate) width: usize,
    /// Multiply-adds per image.
    pub(crate) cost: f64,
}

/// The layers of a unit.
pub(crate) enum UnitLayers {
    /// `act(conv(x))`.
    Conv(ConvPlan),
    /// `project(act(conv(x)))` with a full convolution, or `act(conv(x))` alone.
    Fused {
        conv: ConvPlan,
        project: Option<ConvPlan>,
        residual: bool,
    },
    /// `project(excite(act(depthwise(act(expand(x))))))`.
    Inverted {
        /// Absent if the block is as wide inside as its input.
        expand: Option<ConvPlan>,
        depthwise: ConvPlan,
        excite: Option<ExcitePlan>,
        project: ConvPlan,
        residual: bool,
    },
}

/// A convolution without bias, and its batch normalisation.
pub(crate) struct ConvPlan {
    pub(crate) conv: String,
    pub(crate) norm: String,
    /// Of the input and the output; of a depthwise convolution the same.
    pub(crate) channels: [usize; 2],
    pub(crate) window: Window2d,
}

/// Squeeze-and-excitation: two convolutions of one position.
pub(crate) struct ExcitePlan {
    pub(crate) squeeze: String,
    pub(crate) widen: String,
    /// Of the image, and between the two.
    pub(crate) channels: [usize; 2],
}

/// The functions of all excitations.
#[derive(Clone, Copy)]
pub(crate) struct Gates {
    /// Between the two convolutions.
    pub(crate) squeezed: Activation,
    pub(crate) gate: Gate,
}

/// The function that makes gates.
#[derive(Clone, Copy)]
pub(crate) enum Gate {
    Sigmoid,
    HardSigmoid,
}

/// From the mean of the last image to classes.
pub(crate) struct HeadPlan {
    pub(crate) features: usize,
    pub(crate) hidden: Option<HiddenPlan>,
    pub(crate) classifier: String,
    pub(crate) classes: usize,
}

/// A layer between the mean and the classes.
pub(crate) struct HiddenPlan {
    pub(crate) name: String,
    pub(crate) output: usize,
    pub(crate) form: HiddenForm,
    pub(crate) activation: Activation,
}

/// Shape of a layer's weights in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HiddenForm {
    /// `[output, input, 1, 1]`.
    Convolution,
    /// `[output, input]`.
    Linear,
}

// === impl InvertedPlan ===

impl InvertedPlan {
    /// The stages, at least `slices` of them if there are as many units.
    pub(crate) fn stages(&self, slices: usize) -> Vec<StageRange> {
        let costs: Vec<f64> = self.units.iter().map(|unit| unit.cost).collect();
        let widths: Vec<usize> = self.units.iter().map(|unit| unit.width).collect();
        stage_ranges(&stage_ends(&costs, &[costs.len()], slices), &widths)
    }
}

impl InvertedPlan {
    /// Names and shapes of all tensors of its weights file.
    pub(crate) fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let mut tensors = Vec::new();
        for unit in &self.units {
            match &unit.layers {
                UnitLayers::Conv(conv) => conv.tensors(false, &mut tensors),
                UnitLayers::Fused { conv, project, .. } => {
                    conv.tensors(false, &mut tensors);
                    if let Some(project) = project {
                        project.tensors(false, &mut tensors);
                    }
                }
                UnitLayers::Inverted {
                    expand,
                    depthwise,
                    excite,
                    project,
                    ..
                } => {
                    if let Some(expand) = expand {
                        expand.tensors(false, &mut tensors);
                    }
                    depthwise.tensors(true, &mut tensors);
                    if let Some(excite) = excite {
                        let [channels, squeezed] = excite.channels;
                        let point = |name: &str, from, to| dense(name, &[to, from, 1, 1]);
                        tensors.extend(point(&excite.squeeze, channels, squeezed));
                        tensors.extend(point(&excite.widen, squeezed, channels));
                    }
                    project.tensors(false, &mut tensors);
                }
            }
        }
        let mut features = self.head.features;
        if let Some(hidden) = &self.head.hidden {
            let shape = match hidden.form {
                HiddenForm::Convolution => vec![hidden.output, features, 1, 1],
                HiddenForm::Linear => vec![hidden.output, features],
            };
            tensors.extend(dense(&hidden.name, &shape));
            features = hidden.output;
        }
        tensors.extend(dense(&self.head.classifier, &[self.head.classes, features]));
        tensors
    }
}

/// The weights and the bias of a layer.
fn dense(name: &str, shape: &[usize]) -> [(String, Vec<usize>); 2] {
    let weight = (format!("{name}.weight"), shape.to_vec());
    [weight, (format!("{name}.bias"), vec![shape[0]])]
}

// === impl ConvPlan ===

impl ConvPlan {
    fn tensors(&self, is_depthwise: bool, tensors: &mut Vec<(String, Vec<usize>)>) {
        let ([input, output], [height, width]) = (self.channels, self.window.kernel);
        let input = if is_depthwise { 1 } else { input };
        let shape = vec![output, input, height, width];
        tensors.push((format!("{}.weight", self.conv), shape));
        for part in ["weight", "bias", "running_mean", "running_var"] {
            tensors.push((format!("{}.{part}", self.norm), vec![output]));
        }
    }
}

// === impl ImagePadding ===

impl ImagePadding {
    pub(crate) fn is_centred(&self) -> bool {
        *self == Self::Centred
    }

    /// A square window over an image of `side` lines and columns, all of which it covers.
    pub(crate) fn window(self, kernel: usize, stride: usize, side: usize) -> Window2d {
        let centred = Window2d::centred(kernel, stride);
        if self == Self::Centred {
            return centred;
        }
        let windows = side.div_ceil(stride);
        let zeros = ((windows - 1) * stride + kernel).saturating_sub(side);
        let (before, after) = (zeros / 2, zeros - zeros / 2);
        Window2d {
            padding: Padding {
                top: before,
                left: before,
                bottom: after,
                right: after,
            },
            ..centred
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn either_padding_has_a_window_for_each_step() {
        for (kernel, stride, side) in [(3, 2, 224), (3, 2, 7), (5, 2, 56), (5, 1, 14), (1, 1, 3)] {
            for padding in [ImagePadding::Centred, ImagePadding::Same] {
                let window = padding.window(kernel, stride, side);
                let windows = window.output(side, side).unwrap();
                assert_eq!(windows, [side.div_ceil(stride); 2], "{padding:?} {kernel}");
            }
        }
        // TensorFlow's example: 3 x 3 with stride 2 over an even side pads below only.
        let window = ImagePadding::Same.window(3, 2, 224).padding;
        assert_eq!((window.top, window.bottom), (0, 1));
        let window = ImagePadding::Same.window(5, 1, 14).padding;
        assert_eq!((window.left, window.right), (2, 2));
    }
}
