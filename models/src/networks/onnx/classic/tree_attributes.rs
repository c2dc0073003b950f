//! Attributes of `TreeEnsembleClassifier` and `TreeEnsembleRegressor`, versions 1 and 3.

use std::collections::HashMap;

use candle_core::Result;

use super::definition::Definition;
use super::ensemble::{Aggregate, AnyEnsemble, Ensemble, Real, Weight};
use super::trees::{Branch, Mode, Trees};
use super::value::Value;

/// Numbers of an attribute, and whether the file has them as doubles.
#[derive(Default)]
struct Numbers {
    numbers: Vec<f64>,
    is_double: bool,
}

/// The ensemble of a node; its weights are the attributes whose names begin with `prefix`.
pub(super) fn ensemble(
    definition: Definition<'_>,
    prefix: &str,
    targets: usize,
) -> Result<AnyEnsemble> {
    let of = |suffix: &str| format!("{prefix}_{suffix}");
    let values = numbers(definition, "nodes_values")?;
    let weights = numbers(definition, &of("weights"))?;
    let base = numbers(definition, "base_values")?;
    let ids = definition.ints(&of("ids"));
    if targets == 0 {
        candle_core::bail!("no targets or classes");
    }
    if let Some(id) = ids.iter().find(|&&id| !(0..targets as i64).contains(&id)) {
        candle_core::bail!("`{}` has {id} of {targets}", of("ids"));
    }
    let leaves = Leaves {
        trees: definition.ints(&of("treeids")),
        nodes: definition.ints(&of("nodeids")),
        ids,
        weights: &weights.numbers,
    };
    leaves.check()?;
    let aggregate = Aggregate::parse(definition.text("aggregate_function", "SUM")?)?;
    if values.is_double || weights.is_double || base.is_double {
        let base = base.numbers;
        build::<f64>(
            definition,
            &values.numbers,
            &leaves,
            targets,
            aggregate,
            base,
        )
        .map(AnyEnsemble::F64)
    } else {
        let base = base.numbers.into_iter().map(f32::of).collect();
        build::<f32>(
            definition,
            &values.numbers,
            &leaves,
            targets,
            aggregate,
            base,
        )
        .map(AnyEnsemble::F32)
    }
}

/// An attribute of floats, or the tensor that may stand in for it.
fn numbers(definition: Definition<'_>, name: &str) -> Result<Numbers> {
    let floats = definition.floats(name);
    let tensor = definition.tensor(&format!("{name}_as_tensor"))?;
    Ok(match tensor {
        Some(_) if !floats.is_empty() => {
            candle_core::bail!("both `{name}` and `{name}_as_tensor`")
        }
        Some(Value::F64(tensor)) => Numbers {
            is_double: !tensor.data().is_empty(),
            numbers: tensor.into_parts().1,
        },
        Some(Value::F32(tensor)) => Numbers {
            numbers: tensor.data().iter().map(|&one| one.into()).collect(),
            is_double: false,
        },
        Some(other) => candle_core::bail!("`{name}_as_tensor` is {}", other.name()),
        None => Numbers {
            numbers: floats.iter().map(|&one| one.into()).collect(),
            is_double: false,
        },
    })
}

/// The columns of the leaves' weights.
struct Leaves<'a> {
    trees: &'a [i64],
    nodes: &'a [i64],
    ids: &'a [i64],
    weights: &'a [f64],
}

impl Leaves<'_> {
    fn check(&self) -> Result<()> {
        let lengths = [self.trees.len(), self.nodes.len(), self.ids.len()];
        same_length(&lengths, self.weights.len())
    }
}

fn same_length(lengths: &[usize], length: usize) -> Result<()> {
    if lengths.iter().any(|&one| one != length) {
        candle_core::bail!("attributes of {lengths:?} and {length} elements, which must be equal");
    }
    Ok(())
}

fn build<H: Real>(
    definition: Definition<'_>,
    values: &[f64],
    leaves: &Leaves<'_>,
    targets: usize,
    aggregate: Aggregate,
    base: Vec<H>,
) -> Result<Ensemble<H>> {
    let trees = definition.ints("nodes_treeids");
    let nodes = definition.ints("nodes_nodeids");
    let modes = definition.texts("nodes_modes")?;
    let features = definition.ints("nodes_featureids");
    let yes = definition.ints("nodes_truenodeids");
    let no = definition.ints("nodes_falsenodeids");
    let missing = definition.ints("nodes_missing_value_tracks_true");
    let lengths = [
        nodes.len(),
        modes.len(),
        features.len(),
        yes.len(),
        no.len(),
    ];
    same_length(&lengths, trees.len())?;
    if values.len() != trees.len() {
        candle_core::bail!("{} `nodes_values` of {} nodes", values.len(), trees.len());
    }
    let mut places = HashMap::with_capacity(trees.len());
    let mut roots = Vec::new();
    let mut known = HashMap::new();
    for (at, (&tree, &node)) in trees.iter().zip(nodes).enumerate() {
        if places.insert((tree, node), at).is_some() {
            candle_core::bail!("node {node} of tree {tree} is there twice");
        }
        known.entry(tree).or_insert_with(|| roots.push(at));
    }
    let (weights, spans) = weights(leaves, &places, &modes)?;
    let child = |tree: i64, node: i64| match places.get(&(tree, node)) {
        Some(&at) => Ok(at),
        None => candle_core::bail!("node {node} of tree {tree} is missing"),
    };
    let mut branches = Vec::with_capacity(trees.len());
    for at in 0..trees.len() {
        branches.push(match mode(&modes[at])? {
            None => {
                let (first, count) = spans[at];
                if count == 0 {
                    candle_core::bail!("leaf {} of tree {} has no weight", nodes[at], trees[at]);
                }
                Branch::Leaf { first, count }
            }
            Some(mode) => Branch::Split {
                feature: feature(features[at])?,
                mode,
                threshold: H::of(values[at]),
                missing: missing.get(at) == Some(&1),
                yes: child(trees[at], yes[at])?,
                no: child(trees[at], no[at])?,
            },
        });
    }
    Ok(Ensemble {
        trees: Trees::new(&branches, &roots)?,
        weights,
        targets,
        aggregate,
        base,
    })
}

pub(super) fn feature(id: i64) -> Result<u32> {
    u32::try_from(id).map_err(|_| candle_core::Error::msg(format!("feature {id} of a tree node")))
}

/// The mode of a node; `None` for a leaf.
fn mode(name: &str) -> Result<Option<Mode>> {
    Ok(Some(match name {
        "BRANCH_LEQ" => Mode::Leq,
        "BRANCH_LT" => Mode::Lt,
        "BRANCH_GTE" => Mode::Gte,
        "BRANCH_GT" => Mode::Gt,
        "BRANCH_EQ" => Mode::Eq,
        "BRANCH_NEQ" => Mode::Neq,
        "LEAF" => return Ok(None),
        other => candle_core::bail!("nodes_modes `{other}` is unknown"),
    }))
}

type Spans = Vec<(u32, u32)>;

/// The weights, sorted by leaf, and for each node the first and number of its weights. Weights of
/// nodes that are no leaves are left out: some converters write them.
fn weights<H: Real>(
    leaves: &Leaves<'_>,
    places: &HashMap<(i64, i64), usize>,
    modes: &[std::sync::Arc<str>],
) -> Result<(Vec<Weight<H>>, Spans)> {
    let mut sorted = Vec::with_capacity(leaves.ids.len());
    for (at, leaf) in leaves.trees.iter().zip(leaves.nodes).enumerate() {
        let (tree, node) = leaf;
        match places.get(&(*tree, *node)) {
            Some(&place) if &*modes[place] == "LEAF" => sorted.push((place, at)),
            Some(_) => {}
            None => candle_core::bail!("leaf {node} of tree {tree} is missing"),
        }
    }
    sorted.sort_unstable();
    let mut spans = vec![(0, 0); modes.len()];
    let mut weights = Vec::with_capacity(sorted.len());
    for (place, at) in sorted {
        let span: &mut (u32, u32) = &mut spans[place];
        if span.1 == 0 {
            span.0 = weights.len() as u32;
        }
        span.1 += 1;
        weights.push(Weight {
            target: leaves.ids[at] as u32,
            value: H::of(leaves.weights[at]),
        });
    }
    Ok((weights, spans))
}
