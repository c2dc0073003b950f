//! The contract between hyper-parameters and the network that they define.

use super::staged::StagedModel;
use super::task::Task;
use crate::error::ModelError;
use crate::weights::params::Params;

/// Largest value of any single hyper-parameter, so that a hostile card cannot make a shape
/// overflow.
pub(crate) const HYPER_PARAMETER_MAX: usize = 1 << 16;

/// Most layers or blocks in one list or stage.
pub(crate) const DEPTH_MAX: usize = 256;

/// The hyper-parameters of one architecture, and how its network is built from them.
pub(crate) trait Spec {
    /// Shape of one request's values as stage 0 reads them; `[1]` for a text.
    fn input_shape(&self) -> Vec<usize>;

    /// Classes told apart.
    fn classes(&self) -> usize;

    /// Whether requests are texts.
    fn takes_text(&self) -> bool {
        false
    }

    /// Values of an answer that is an embedding.
    fn embedding(&self) -> Option<usize> {
        None
    }

    /// Kind of its answers.
    fn task(&self) -> Task {
        match self.embedding() {
            Some(_) => Task::Embed,
            None => Task::Classify,
        }
    }

    /// For each exit, how many stages run before it.
    fn exits(&self) -> Vec<usize>;

    /// Checks every hyper-parameter; after this, building cannot overflow or divide by zero.
    fn check(&self) -> Result<(), BadHyperParameter>;

    /// Builds the network; [`check`](Self::check) must have passed.
    fn build(&self, params: &mut Params) -> Result<Box<dyn StagedModel>, ModelError>;
}

/// A refused hyper-parameter: dotted path below `architecture`, and the reason.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadHyperParameter {
    pub(crate) field: String,
    pub(crate) reason: String,
}

/// Checks a hyper-parameter that is a size.
pub(crate) fn check_size(field: &str, value: usize) -> Result<(), BadHyperParameter> {
    check_range(field, value, HYPER_PARAMETER_MAX)
}

/// Checks a number of layers or blocks.
pub(crate) fn check_depth(field: &str, value: usize) -> Result<(), BadHyperParameter> {
    check_range(field, value, DEPTH_MAX)
}

/// Checks that a hyper-parameter lies in `1..=max`.
pub(crate) fn check_range(field: &str, value: usize, max: usize) -> Result<(), BadHyperParameter> {
    if (1..=max).contains(&value) {
        return Ok(());
    }
    Err(BadHyperParameter {
        field: field.to_owned(),
        reason: format!("{value} is not in 1..={max}"),
    })
}

/// Checks the numbers of groups or stages after which there is a head, of `all` in total.
pub(crate) fn check_exits(exits: &[usize], all: usize) -> Result<(), BadHyperParameter> {
    let rises = exits.is_sorted_by(|a, b| a < b);
    if rises && exits.first().is_some_and(|&first| first > 0) && exits.last() == Some(&all) {
        return Ok(());
    }
    Err(BadHyperParameter {
        field: "exits".to_owned(),
        reason: format!("{exits:?} must rise from at least 1 to {all}"),
    })
}

/// Checks the channels, blocks and stride of one of the `groups` of a network.
pub(crate) fn check_group(
    index: usize,
    [channels, blocks, stride]: [usize; 3],
) -> Result<(), BadHyperParameter> {
    check_size(&format!("groups[{index}].channels"), channels)?;
    check_depth(&format!("groups[{index}].blocks"), blocks)?;
    check_size(&format!("groups[{index}].stride"), stride)
}
