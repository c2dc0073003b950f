//! An operation with its weights packed.

use candle_core::Result;
use switchyard_kernels::{
    Activation, FeatureMap, PackedConv, PackedDepthwise, WeightFormat, Window2d, gates, pooling,
};

use super::convolution::{Convolution, Form};
use super::function::apply_affine;
use super::operation::{Kind, Unweighted};
use crate::ops::tensors::kernel_error;

/// An operation on feature maps.
pub(super) enum Layer {
    Conv(PackedConv, Window2d, Activation),
    Depthwise(PackedDepthwise, Window2d, Activation),
    /// A convolution of one position, whose channels are those of as many positions.
    Spread(PackedConv, [usize; 2], Activation),
    Affine([Vec<f32>; 2]),
    Unweighted(Unweighted),
}

// === impl Layer ===

impl Layer {
    /// # Errors
    /// A weight has not the values of its shape.
    pub(super) fn new(kind: &Kind<'_>) -> Result<Self> {
        Ok(match kind {
            Kind::Conv(conv) => Self::conv(conv)?,
            Kind::Affine(affine) => Self::Affine(affine.parameters()?),
            Kind::Unweighted(kind) => Self::Unweighted(*kind),
        })
    }

    fn conv(conv: &Convolution<'_>) -> Result<Self> {
        let (window, activation) = (conv.window, conv.activation);
        let rows = conv.rows()?;
        let pack = |window| {
            let channels = [conv.input, conv.columns()];
            PackedConv::new(&rows, Some(window), channels, WeightFormat::F32).map_err(kernel_error)
        };
        Ok(match conv.form {
            Form::Dense => Self::Conv(pack(window)?, window, activation),
            Form::Depthwise => {
                let packed = PackedDepthwise::new(&rows, conv.output);
                Self::Depthwise(packed, window, activation)
            }
            Form::Spread => Self::Spread(pack(Window2d::centred(1, 1))?, window.kernel, activation),
        })
    }

    /// Whether it changes its first image; otherwise it makes another one.
    pub(super) fn changes(&self) -> bool {
        use Unweighted::{Each, Plus, Scale, Times};
        match self {
            Self::Affine(_) => true,
            Self::Unweighted(kind) => matches!(kind, Each(_) | Plus | Times | Scale),
            _ => false,
        }
    }

    /// Changes an image.
    ///
    /// # Errors
    /// Shapes do not fit.
    pub(super) fn change(&self, x: &mut FeatureMap, others: &[&FeatureMap]) -> Result<()> {
        let pairs = |x: &mut FeatureMap, function: fn(&mut f32, f32)| -> Result<()> {
            let values = x.values.iter_mut().zip(second(others)?.values.iter());
            values.for_each(|(x, other)| function(x, *other));
            Ok(())
        };
        match self {
            Self::Unweighted(Unweighted::Each(function)) => function.apply(&mut x.values),
            Self::Affine(parameters) => apply_affine(x, parameters),
            Self::Unweighted(Unweighted::Plus) => pairs(x, |x, other| *x += other)?,
            Self::Unweighted(Unweighted::Times) => pairs(x, |x, other| *x *= other)?,
            Self::Unweighted(Unweighted::Scale) => {
                gates::scale(x, second(others)?).map_err(kernel_error)?;
            }
            _ => candle_core::bail!("an operation changes no image"),
        }
        Ok(())
    }

    /// Makes an image.
    ///
    /// # Errors
    /// Shapes do not fit.
    pub(super) fn make(&self, x: &FeatureMap, others: &[&FeatureMap]) -> Result<FeatureMap> {
        let made = match self {
            Self::Conv(weights, window, activation) => {
                weights.forward(x, *window, others.first().copied(), *activation)
            }
            Self::Depthwise(weights, window, activation) => {
                weights.forward(x, *window, *activation)
            }
            Self::Spread(weights, times, activation) => {
                let wide = weights.forward(x, Window2d::centred(1, 1), None, *activation);
                wide.map(|wide| spread(&wide, *times))
            }
            Self::Unweighted(Unweighted::Mean) => Ok(pooling::mean(x)),
            Self::Unweighted(Unweighted::Max(window)) => {
                pooling::max(x, *window, f32::NEG_INFINITY)
            }
            Self::Unweighted(Unweighted::Join) => Ok(joined(x, others)),
            &Self::Unweighted(Unweighted::Part { from, len }) => Ok(part(x, from, len)),
            Self::Unweighted(Unweighted::Enlarge(times)) => Ok(enlarged(x, *times)),
            _ => candle_core::bail!("an operation makes no image"),
        };
        made.map_err(kernel_error)
    }
}

fn second<'a>(others: &[&'a FeatureMap]) -> Result<&'a FeatureMap> {
    match others {
        [second, ..] => Ok(second),
        [] => candle_core::bail!("an operation lacks its second image"),
    }
}

/// Of channels `[lines, columns, channels]` the positions of a larger image.
fn spread(wide: &FeatureMap, [lines, columns]: [usize; 2]) -> FeatureMap {
    let [images, height, width, channels] = wide.dims();
    let channels = channels / (lines * columns);
    let mut result = FeatureMap::new([images, height * lines, width * columns, channels]);
    let run = (columns * channels).max(1);
    let positions = wide.values.chunks_exact((lines * run).max(1)).enumerate();
    for (at, position) in positions {
        let (line, column) = (at / width, at % width);
        for (i, from) in position.chunks_exact(run).enumerate() {
            let to = ((line * lines + i) * width + column) * run;
            result.values[to..][..run].copy_from_slice(from);
        }
    }
    result
}

/// The channels of several images one after the other.
fn joined(first: &FeatureMap, others: &[&FeatureMap]) -> FeatureMap {
    let [images, height, width, channels] = first.dims();
    let more = others.iter().map(|other| other.dims()[3]);
    let all = channels + more.sum::<usize>();
    let mut result = FeatureMap::new([images, height, width, all]);
    let mut at = 0;
    for from in std::iter::once(&first).chain(others) {
        let channels = from.dims()[3].max(1);
        let to = result.values.chunks_exact_mut(all.max(1));
        for (to, from) in to.zip(from.values.chunks_exact(channels)) {
            to[at..][..channels].copy_from_slice(from);
        }
        at += channels;
    }
    result
}

/// As many channels from one on.
fn part(x: &FeatureMap, from: usize, len: usize) -> FeatureMap {
    let [images, height, width, channels] = x.dims();
    let mut result = FeatureMap::new([images, height, width, len]);
    let to = result.values.chunks_exact_mut(len.max(1));
    for (to, x) in to.zip(x.values.chunks_exact(channels.max(1))) {
        to.copy_from_slice(&x[from..][..len]);
    }
    result
}

/// Each position several times along both axes.
fn enlarged(x: &FeatureMap, [lines, columns]: [usize; 2]) -> FeatureMap {
    let [images, height, width, channels] = x.dims();
    let mut result = FeatureMap::new([images, height * lines, width * columns, channels]);
    let (from, to) = (width * channels, width * columns * channels);
    let groups = result.values.chunks_exact_mut((to * lines).max(1));
    for (group, line) in groups.zip(x.values.chunks_exact(from.max(1))) {
        let (first, rest) = group.split_at_mut(to);
        let runs = first.chunks_exact_mut((columns * channels).max(1));
        for (run, position) in runs.zip(line.chunks_exact(channels.max(1))) {
            for to in run.chunks_exact_mut(channels.max(1)) {
                to.copy_from_slice(position);
            }
        }
        for other in rest.chunks_exact_mut(to.max(1)) {
            other.copy_from_slice(first);
        }
    }
    result
}
