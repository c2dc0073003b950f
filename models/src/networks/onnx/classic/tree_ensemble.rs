//! `TreeEnsemble` of `ai.onnx.ml`, version 5.

use candle_core::Result;

use super::definition::Definition;
use super::ensemble::{Aggregate, AnyEnsemble, Ensemble, Real, Weight};
use super::operator::Operator;
use super::transform::PostTransform;
use super::tree_attributes::feature;
use super::tree_regressor::TreeRegressor;
use super::trees::{Branch, Mode, Trees};
use super::value::Value;

/// `BRANCH_MEMBER` of `nodes_modes`: whether the feature is in a set.
const MEMBER: u8 = 6;

/// `[rows, features]` to `[rows, targets]`.
pub(super) fn ensemble(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let aggregate = match definition.int("aggregate_function", 1) {
        0 => Aggregate::Average,
        1 => Aggregate::Sum,
        2 => Aggregate::Min,
        3 => Aggregate::Max,
        other => candle_core::bail!("aggregate_function {other} is unknown"),
    };
    let transform = match definition.int("post_transform", 0) {
        0 => PostTransform::None,
        // The specification has these two the other way round; onnxruntime computes this.
        1 => PostTransform::Logistic,
        2 => PostTransform::Softmax,
        3 => PostTransform::SoftmaxZero,
        4 => PostTransform::Probit,
        other => candle_core::bail!("post_transform {other} is unknown"),
    };
    let is_double = matches!(definition.tensor("nodes_splits")?, Some(Value::F64(_)));
    let ensemble = if is_double {
        AnyEnsemble::F64(build(definition, aggregate)?)
    } else {
        AnyEnsemble::F32(build(definition, aggregate)?)
    };
    Ok(Box::new(TreeRegressor {
        ensemble,
        transform,
        keeps_doubles: true,
    }))
}

fn build<H: Real>(definition: Definition<'_>, aggregate: Aggregate) -> Result<Ensemble<H>> {
    let modes = modes(definition)?;
    let splits = numbers(definition, "nodes_splits")?;
    let features = definition.ints("nodes_featureids");
    let yes = definition.ints("nodes_truenodeids");
    let no = definition.ints("nodes_falsenodeids");
    let yes_is_leaf = definition.ints("nodes_trueleafs");
    let no_is_leaf = definition.ints("nodes_falseleafs");
    let missing = definition.ints("nodes_missing_value_tracks_true");
    let nodes = modes.len();
    let columns = [features, yes, no, yes_is_leaf, no_is_leaf];
    if splits.len() != nodes || columns.iter().any(|column| column.len() != nodes) {
        candle_core::bail!("attributes `nodes_*` have different lengths");
    }
    let (weights, targets) = weights::<H>(definition)?;
    // Leaves come after the nodes, then the rest of the sets.
    let child = |id: i64, is_leaf: i64| {
        let limit = if is_leaf == 0 { nodes } else { weights.len() };
        match usize::try_from(id) {
            Ok(id) if id < limit => Ok(if is_leaf == 0 { id } else { nodes + id }),
            _ => candle_core::bail!("tree node or leaf {id} of {limit}"),
        }
    };
    let mut sets = numbers(definition, "membership_values")?.into_iter();
    let mut branches = Vec::with_capacity(nodes + weights.len());
    let mut sets_of = Vec::new();
    for at in 0..nodes {
        let is_member = modes[at] == MEMBER;
        let mode = match Mode::numbered(modes[at].into()) {
            Some(mode) => mode,
            None if is_member => Mode::Eq,
            None => candle_core::bail!("nodes_modes {} is unknown", modes[at]),
        };
        let mut threshold = splits[at];
        if is_member {
            let mut set = sets.by_ref().take_while(|one| !one.is_nan());
            // NaN equals nothing.
            threshold = set.next().unwrap_or(f64::NAN);
            sets_of.push((at, set.collect::<Vec<f64>>()));
        }
        branches.push(Branch::Split {
            feature: feature(features[at])?,
            mode,
            threshold: H::of(threshold),
            missing: missing.get(at) == Some(&1),
            yes: child(yes[at], yes_is_leaf[at])?,
            no: child(no[at], no_is_leaf[at])?,
        });
    }
    branches.extend((0..weights.len()).map(|at| Branch::Leaf {
        first: at as u32,
        count: 1,
    }));
    for (at, set) in sets_of {
        chain(&mut branches, at, &set);
    }
    let roots: Result<Vec<usize>> = definition
        .ints("tree_roots")
        .iter()
        .map(|&root| child(root, 0))
        .collect();
    Ok(Ensemble {
        trees: Trees::new(&branches, &roots?)?,
        weights,
        targets,
        aggregate,
        base: Vec::new(),
    })
}

/// Puts a node for each further member of a set between a node and its false branch.
fn chain<H: Real>(branches: &mut Vec<Branch<H>>, at: usize, set: &[f64]) {
    for &member in set.iter().rev() {
        let added = branches.len();
        let mut copy = branches[at];
        if let Branch::Split { threshold, .. } = &mut copy {
            *threshold = H::of(member);
        }
        branches.push(copy);
        if let Branch::Split { no, .. } = &mut branches[at] {
            *no = added;
        }
    }
}

/// `leaf_weights` with `leaf_targetids`, and the number of targets.
fn weights<H: Real>(definition: Definition<'_>) -> Result<(Vec<Weight<H>>, usize)> {
    let weights = numbers(definition, "leaf_weights")?;
    let ids = definition.ints("leaf_targetids");
    let targets = definition.int("n_targets", 0);
    if ids.len() != weights.len() || u32::try_from(ids.len()).is_err() {
        candle_core::bail!(
            "{} leaf_weights, {} leaf_targetids",
            weights.len(),
            ids.len()
        );
    }
    if targets < 1 || ids.iter().any(|id| !(0..targets).contains(id)) {
        candle_core::bail!("leaf_targetids that are not among {targets} targets");
    }
    let weights = ids.iter().zip(weights).map(|(&id, weight)| Weight {
        target: id as u32,
        value: H::of(weight),
    });
    Ok((weights.collect(), targets as usize))
}

/// A tensor of floats; none if it is left out.
fn numbers(definition: Definition<'_>, name: &str) -> Result<Vec<f64>> {
    Ok(match definition.tensor(name)? {
        None => Vec::new(),
        Some(Value::F64(tensor)) => tensor.into_parts().1,
        Some(Value::F32(tensor)) => tensor.data().iter().map(|&one| one.into()).collect(),
        Some(other) => candle_core::bail!("`{name}` is {}", other.name()),
    })
}

/// `nodes_modes`, a tensor of UINT8.
fn modes(definition: Definition<'_>) -> Result<Vec<u8>> {
    let Some(tensor) = &definition.required("nodes_modes")?.t else {
        candle_core::bail!("`nodes_modes` is no tensor");
    };
    if !tensor.raw_data.is_empty() {
        return Ok(tensor.raw_data.to_vec());
    }
    let modes = tensor.int32_data.iter();
    // Modes beyond u8 are unknown modes.
    Ok(modes
        .map(|&mode| u8::try_from(mode).unwrap_or(u8::MAX))
        .collect())
}
