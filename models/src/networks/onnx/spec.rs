//! The part of a graph in a card, completed from the graph.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::header::{ElementType, GraphHeader, GraphTensor};
use crate::error::ModelError;
use crate::networks::datatype::Datatype;
use crate::networks::spec::{BadHyperParameter, Spec};
use crate::networks::staged::StagedModel;
use crate::weights::params::Params;

/// An ONNX graph of one input, in a card. Fields left out are read from the file; after reading a
/// card, none is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnnxSpec {
    /// Name of the graph's input; may be left out if the graph has one input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Name of the output that answers; may be left out if the graph has one output.
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
    /// Type of the input's values; from the file.
    #[serde(skip)]
    pub(crate) element: ElementType,
    /// Bytes of the graph's weights; from the file.
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
        let input = choose(card, "input", self.input.as_deref(), &header.inputs)?;
        if let Some(other) = header.inputs.iter().find(|one| one.name != input.name) {
            let reason = format!(
                "the graph has inputs `{}` and `{}`, only a graph of one input can be served",
                input.name, other.name
            );
            return Err(ModelError::field(card, "architecture.input", reason));
        }
        let output = choose(card, "output", self.output.as_deref(), &header.outputs)?;
        self.element = input.element;
        if !matches!(input.element, ElementType::FLOAT | ElementType::INT64) {
            let reason = format!(
                "takes {}, only FLOAT and INT64 can be served",
                input.element
            );
            return Err(wrong(card, "input", input, &reason));
        }
        if output.element != ElementType::FLOAT {
            let reason = format!("gives {}, only FLOAT can be served", output.element);
            return Err(wrong(card, "output", output, &reason));
        }
        self.scores = Some(scores(card, header, output, self.scores)?);
        self.shape = Some(row_shape(card, input, self.shape.as_deref())?);
        self.classes = Some(classes(card, output, self.classes)?);
        self.input = Some(input.name.clone());
        self.output = Some(output.name.clone());
        self.bytes = header.weight_bytes;
        Ok(())
    }

    /// Refuses batch sizes that the graph does not take.
    pub(crate) fn check_batch(
        &self,
        card: &Path,
        header: &GraphHeader,
        max_batch: usize,
    ) -> Result<(), ModelError> {
        let named = |tensor: &&GraphTensor| Some(&tensor.name) == self.input.as_ref();
        let input = header.inputs.iter().find(named);
        let Some(dimensions) = input.and_then(|input| input.shape.as_deref()) else {
            return Ok(());
        };
        match dimensions.first() {
            Some(Some(fixed)) if (*fixed, max_batch) != (1, 1) => {
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

    /// Type of the input's values on the wire.
    pub(crate) fn datatype(&self) -> Datatype {
        match self.element {
            ElementType::INT64 => Datatype::Int64,
            _ => Datatype::Fp32,
        }
    }
}

impl Spec for OnnxSpec {
    fn input_shape(&self) -> Vec<usize> {
        self.shape.clone().unwrap_or_default()
    }

    fn classes(&self) -> usize {
        self.classes.unwrap_or_default()
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
