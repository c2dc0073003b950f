//! The part of a graph in a card, completed from the graph.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::engine::OwnEngine;
use super::header::{GraphHeader, GraphTensor};
use crate::error::ModelError;
use crate::networks::datatype::Datatype;
use crate::networks::graph::Port;
use crate::networks::spec::{BadHyperParameter, Spec};
use crate::networks::staged::StagedModel;
use crate::networks::task::Task;
use crate::weights::params::Params;

/// An ONNX graph in a card. Fields left out are read from the file; after reading a card, none that
/// the graph has is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnnxSpec {
    /// Kind of its answers.
    #[serde(default, skip_serializing_if = "Task::is_classify")]
    pub task: Task,
    /// Name of the graph's only input; may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Name of the output that has the scores of the classes; may be left out if the graph has one
    /// output of floats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Shape of one request's input, without the batch axis; may be left out if the graph fixes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<usize>>,
    /// Classes told apart; may be left out if the graph fixes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<usize>,
    /// Meaning of the output's values; may be left out unless the graph ends in an operator whose
    /// values could be either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<OnnxScores>,
    /// Inputs; from the file.
    #[serde(skip)]
    pub(crate) inputs: Vec<Port>,
    /// Outputs; from the file.
    #[serde(skip)]
    pub(crate) outputs: Vec<Port>,
    /// The engine that suits it, unless there is onnxruntime; from the file.
    #[serde(skip)]
    pub(crate) engine: OwnEngine,
    /// Memory that it takes: as the card says, at least that of the file's weights.
    #[serde(skip)]
    pub(crate) bytes: u64,
}

/// Meaning of the values of a graph's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnnxScores {
    /// Unnormalised scores: a softmax makes them probabilities.
    Logits,
    /// Probabilities, which are the answer.
    Probabilities,
}

// === impl OnnxSpec ===

impl OnnxSpec {
    /// Fills in fields that the card leaves out from the graph, and compares the others.
    pub(crate) fn complete(&mut self, card: &Path, header: &GraphHeader) -> Result<(), ModelError> {
        self.inputs = ports(card, "input", &header.inputs)?;
        self.outputs = ports(card, "output", &header.outputs)?;
        self.bytes = header.weight_bytes;
        self.engine = header.engine;
        let is_single = |input: &&GraphTensor| input.shape.as_deref() == Some(&[]);
        if let Some(single) = header.inputs.iter().find(is_single) {
            let reason = "has no batch axis: it is a single value";
            return Err(wrong(card, "input", single, reason));
        }
        if header.inputs.is_empty() {
            choose(card, "input", self.input.as_deref(), &header.inputs)?;
        }
        if !self.task.is_classify() {
            return self.without_classes(card);
        }
        match header.inputs.as_slice() {
            [_] => {
                let input = choose(card, "input", self.input.as_deref(), &header.inputs)?;
                self.shape = Some(row_shape(card, input, self.shape.as_deref())?);
                self.input = Some(input.name.clone());
            }
            _ => self.without_single_input(card)?,
        }
        let output = scored_output(card, self.output.as_deref(), &header.outputs)?;
        self.scores = Some(scores(card, header, output, self.scores)?);
        self.classes = Some(classes(card, output, self.classes)?);
        self.output = Some(output.name.clone());
        Ok(())
    }

    /// Whether answers have an output.
    pub(super) fn wants(&self, output: &str) -> bool {
        self.output.as_deref().is_none_or(|wanted| wanted == output)
    }

    /// Whether it, complete, still fits its file.
    pub(crate) fn completes_again(
        &self,
        card: &Path,
        header: &GraphHeader,
    ) -> Result<(), ModelError> {
        self.clone().complete(card, header)
    }

    /// Refuses fields about the scores of classes.
    fn without_classes(&self, card: &Path) -> Result<(), ModelError> {
        let reason = format!("not used with task \"{}\": leave it out", self.task.name());
        let stated = [
            ("output", self.output.is_some()),
            ("classes", self.classes.is_some()),
            ("scores", self.scores.is_some()),
        ];
        refuse_stated(card, &stated, &reason)?;
        refuse_stated(card, &self.of_only_input(), &reason)
    }

    /// Refuses fields about the only input.
    fn without_single_input(&self, card: &Path) -> Result<(), ModelError> {
        let reason = format!(
            "not used with the graph's {} inputs, which have the names and shapes of the \
             application's: leave it out",
            self.inputs.len()
        );
        refuse_stated(card, &self.of_only_input(), &reason)
    }

    fn of_only_input(&self) -> [(&'static str, bool); 2] {
        [
            ("input", self.input.is_some()),
            ("shape", self.shape.is_some()),
        ]
    }

    /// Refuses batch sizes that the graph does not take.
    pub(crate) fn check_batch(&self, card: &Path, max_batch: usize) -> Result<(), ModelError> {
        let first = |port: &Port| port.shape.as_ref().and_then(|shape| *shape.first()?);
        let fixed = self.inputs.iter().find_map(first);
        match fixed {
            Some(fixed) if (fixed, max_batch) != (1, 1) => {
                let reason = format!(
                    "{max_batch}, but the first dimension of the graph's input is fixed to \
                     {fixed}: export it with a batch axis that is left open, or, where it is 1, \
                     serve batches of 1"
                );
                Err(ModelError::field(card, "max_batch", reason))
            }
            _ => Ok(()),
        }
    }

    /// Its only input, if it has one.
    pub(crate) fn only_input(&self) -> Option<&Port> {
        match self.inputs.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }
}

impl Spec for OnnxSpec {
    fn input_shape(&self) -> Vec<usize> {
        self.shape.clone().unwrap_or_else(|| vec![1])
    }

    fn classes(&self) -> usize {
        match self.task {
            Task::Classify => self.classes.unwrap_or_default(),
            _ => 1,
        }
    }

    fn task(&self) -> Task {
        self.task
    }

    fn exits(&self) -> Vec<usize> {
        vec![1]
    }

    fn check(&self) -> Result<(), BadHyperParameter> {
        Ok(())
    }

    /// Its weights are not tensors that could be handed out: [`open`](super::open) makes the
    /// network.
    fn build(&self, _: &mut Params) -> Result<Box<dyn StagedModel>, ModelError> {
        Err(ModelError::Training(
            "an ONNX graph can be served and not trained".to_owned(),
        ))
    }
}

// === the card and the graph ===

/// The tensor that the card names, or the only one.
fn choose<'a>(
    card: &Path,
    field: &str,
    named: Option<&str>,
    known: &'a [GraphTensor],
) -> Result<&'a GraphTensor, ModelError> {
    let names = || {
        let names: Vec<_> = known.iter().map(|one| one.name.as_str()).collect();
        names.join(", ")
    };
    let refuse = |reason: String| {
        let field = format!("architecture.{field}");
        Err(ModelError::field(card, field, reason))
    };
    match (named, known) {
        (Some(name), _) => match known.iter().find(|one| one.name == name) {
            Some(found) => Ok(found),
            None => refuse(format!(
                "the graph has no {field} `{name}`, it has: {}",
                names()
            )),
        },
        (None, [only]) => Ok(only),
        (None, []) => refuse(format!("the graph has no {field}")),
        (None, _) => refuse(format!("missing: choose one of the graph's: {}", names())),
    }
}

/// Refuses the first field that the card states.
fn refuse_stated(card: &Path, fields: &[(&str, bool)], reason: &str) -> Result<(), ModelError> {
    match fields.iter().find(|(_, stated)| *stated) {
        Some((field, _)) => Err(ModelError::field(
            card,
            format!("architecture.{field}"),
            reason,
        )),
        None => Ok(()),
    }
}

/// The inputs or outputs, whose types must be those of the wire.
fn ports(card: &Path, field: &str, tensors: &[GraphTensor]) -> Result<Vec<Port>, ModelError> {
    let port = |tensor: &GraphTensor| {
        let datatype = tensor.element.datatype().ok_or_else(|| {
            let reason = format!("is {}, which cannot be served", tensor.element);
            wrong(card, field, tensor, &reason)
        })?;
        Ok(Port {
            name: tensor.name.as_str().into(),
            datatype,
            shape: tensor.shape.clone(),
        })
    };
    tensors.iter().map(port).collect()
}

/// The output that the card names, or the only one that could have scores.
fn scored_output<'a>(
    card: &Path,
    named: Option<&str>,
    known: &'a [GraphTensor],
) -> Result<&'a GraphTensor, ModelError> {
    let is_float = |one: &&GraphTensor| {
        let datatype = one.element.datatype();
        matches!(
            datatype,
            Some(Datatype::Fp16 | Datatype::Fp32 | Datatype::Fp64)
        )
    };
    let mut floats = known.iter().filter(is_float);
    let output = match (named, floats.next(), floats.next()) {
        (None, Some(only), None) => only,
        _ => choose(card, "output", named, known)?,
    };
    if !is_float(&output) {
        let reason = format!(
            "gives {}, only floats are scores of classes",
            output.element
        );
        return Err(wrong(card, "output", output, &reason));
    }
    Ok(output)
}

fn wrong(card: &Path, field: &str, tensor: &GraphTensor, reason: &str) -> ModelError {
    let reason = format!("the graph's {field} `{}` {reason}", tensor.name);
    ModelError::field(card, format!("architecture.{field}"), reason)
}

/// The shape of one request. The card must set dimensions that the graph leaves open.
fn row_shape(
    card: &Path,
    input: &GraphTensor,
    stated: Option<&[usize]>,
) -> Result<Vec<usize>, ModelError> {
    let field = "architecture.shape";
    let Some(dimensions) = &input.shape else {
        let missing = || {
            let reason = format!("missing: the graph has no shape for `{}`", input.name);
            ModelError::field(card, field, reason)
        };
        return stated.map(<[usize]>::to_vec).ok_or_else(missing);
    };
    let Some((_, row)) = dimensions.split_first() else {
        let reason = "has no batch axis: it is a single value";
        return Err(wrong(card, "input", input, reason));
    };
    let fixed: Option<Vec<usize>> = row.iter().copied().collect();
    match (stated, fixed) {
        (None, Some(fixed)) => Ok(fixed),
        (None, None) => {
            let reason = format!("missing: the graph's input is {input}");
            Err(ModelError::field(card, field, reason))
        }
        (Some(stated), _) => {
            let fits = stated.len() == row.len()
                && stated
                    .iter()
                    .zip(row)
                    .all(|(stated, of)| of.is_none_or(|of| of == *stated));
            if fits {
                return Ok(stated.to_vec());
            }
            let reason =
                format!("{stated:?} and a batch axis before it, the graph's input is {input}");
            Err(ModelError::field(card, field, reason))
        }
    }
}

/// The meaning of an output's values, by the operator that makes them.
fn scores(
    card: &Path,
    header: &GraphHeader,
    output: &GraphTensor,
    stated: Option<OnnxScores>,
) -> Result<OnnxScores, ModelError> {
    let mut made = header.outputs.iter().zip(&header.makers);
    let maker = made.find(|(one, _)| one.name == output.name);
    let maker = maker.and_then(|(_, maker)| maker.as_deref());
    let known = match maker.unwrap_or_default() {
        "Softmax" => Some(OnnxScores::Probabilities),
        "Sigmoid"
        | "TreeEnsembleClassifier"
        | "LinearClassifier"
        | "SVMClassifier"
        | "Normalizer" => None,
        _ => return Ok(stated.unwrap_or(OnnxScores::Logits)),
    };
    let (output, maker) = (&output.name, maker.unwrap_or_default());
    match (stated, known) {
        (Some(OnnxScores::Logits), Some(OnnxScores::Probabilities)) => Err(ModelError::field(
            card,
            "architecture.scores",
            format!(
                "\"logits\", but {maker} makes the graph's output `{output}`: it has \
                 \"probabilities\", and a second softmax would change them"
            ),
        )),
        (Some(scores), _) | (None, Some(scores)) => Ok(scores),
        (None, None) => Err(ModelError::field(
            card,
            "architecture.scores",
            format!(
                "missing: {maker} makes the graph's output `{output}`: say whether its values are \
                 \"probabilities\", or \"logits\", to which the server applies a softmax"
            ),
        )),
    }
}

/// Values of an answer: all dimensions of the output except the batch axis.
fn classes(card: &Path, output: &GraphTensor, stated: Option<usize>) -> Result<usize, ModelError> {
    let field = "architecture.classes";
    let dimensions = output.shape.as_deref().unwrap_or_default();
    let known: Option<usize> = match dimensions {
        [_, row @ ..] if !row.is_empty() => row
            .iter()
            .copied()
            .try_fold(1, |all: usize, size| Some(all.saturating_mul(size?))),
        _ => None,
    };
    match (stated, known) {
        (Some(stated), Some(known)) if stated != known => {
            let reason = format!("{stated}, the graph's output is {output}");
            Err(ModelError::field(card, field, reason))
        }
        (Some(classes), _) | (None, Some(classes)) => Ok(classes),
        (None, None) => {
            let reason = format!("missing: the graph's output is {output}");
            Err(ModelError::field(card, field, reason))
        }
    }
}
