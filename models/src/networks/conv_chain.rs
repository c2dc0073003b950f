//! A chain of 1-D convolutions.

use serde::{Deserialize, Serialize};

use super::spec::{BadHyperParameter, check_depth, check_size};
use crate::error::ModelError;
use crate::ops::layers::{Conv1d, Conv1dShape};
use crate::weights::params::Params;

/// One 1-D convolution followed by a ReLU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvSpec {
    /// Output channels.
    pub channels: usize,
    /// Window length in positions; a multiple of `stride`.
    pub kernel: usize,
    /// Positions between windows.
    pub stride: usize,
}

// === impl ConvSpec ===

impl ConvSpec {
    /// The shape of the convolution behind `input` channels.
    pub(crate) fn shape(&self, input: usize) -> Conv1dShape {
        Conv1dShape {
            input,
            output: self.channels,
            kernel: self.kernel,
            stride: self.stride,
        }
    }
}

/// The convolutions `PREFIX0`, `PREFIX1` and so on, the first one behind `input` channels.
pub(crate) fn conv_chain(
    params: &mut Params,
    prefix: &str,
    input: usize,
    specs: &[ConvSpec],
) -> Result<Vec<Conv1d>, ModelError> {
    let mut channels = input;
    let mut layers = Vec::with_capacity(specs.len());
    for (i, spec) in specs.iter().enumerate() {
        let name = format!("{prefix}{i}");
        layers.push(Conv1d::new(params, &name, spec.shape(channels), 1.0)?);
        channels = spec.channels;
    }
    Ok(layers)
}

/// Channels behind the last of `specs`, or `input` without any.
pub(crate) fn channels_behind(specs: &[ConvSpec], input: usize) -> usize {
    specs.last().map_or(input, |spec| spec.channels)
}

/// Checks a chain; `at` is its path in the card.
pub(crate) fn check_chain(at: &str, specs: &[ConvSpec]) -> Result<(), BadHyperParameter> {
    check_depth(at, specs.len())?;
    for (i, spec) in specs.iter().enumerate() {
        check_conv(&format!("{at}[{i}]"), spec)?;
    }
    Ok(())
}

/// Checks a 1-D convolution.
pub(crate) fn check_conv(at: &str, conv: &ConvSpec) -> Result<(), BadHyperParameter> {
    check_size(&format!("{at}.channels"), conv.channels)?;
    check_size(&format!("{at}.stride"), conv.stride)?;
    check_size(&format!("{at}.kernel"), conv.kernel)?;
    if !conv.kernel.is_multiple_of(conv.stride) {
        return Err(BadHyperParameter {
            field: format!("{at}.kernel"),
            reason: format!("{} is no multiple of stride {}", conv.kernel, conv.stride),
        });
    }
    Ok(())
}
