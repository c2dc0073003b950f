//! Networks as ONNX graphs, run by onnxruntime.
//!
//! A graph is opaque: it has no stages to stop between and no early exits, so that such a variant
//! is one stage with one exit. What its card must say is little, because the file says most of it:
//! [`OnnxSpec`] is completed from the graph's own inputs and outputs when a card is read, with or
//! without onnxruntime, and whatever the card does say must agree.
//!
//! - `header` reads inputs, outputs and the size of the weights from the file
//! - `library` finds onnxruntime, which is loaded at run time and only when asked for (feature
//!   `ort`); `session` runs a graph with it

mod header;
#[cfg(feature = "ort")]
mod library;
#[cfg(feature = "ort")]
mod session;

use std::path::Path;
use std::sync::Arc;

use candle_core::Device;
use serde::{Deserialize, Serialize};

use crate::architecture::{BadHyperParameter, Spec};
use crate::card::{Datatype, VARIANT_CARD, VariantCard};
use crate::error::ModelError;
use crate::mapped::FileBytes;
use crate::model::StagedModel;
use crate::params::Params;
use crate::zoo::LoadedVariant;

use header::{Element, Header, Tensor};

/// An ONNX graph of one input, in a card. What is left out is read from the file; once a card is
/// read, nothing is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnnxSpec {
    /// Name of the graph's input; may be left out where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Name of the output that answers; may be left out where the graph has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Shape of one request's input, without the batch axis; may be left out where the graph
    /// fixes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<usize>>,
    /// Classes told apart; may be left out where the graph fixes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<usize>,
    /// What the output holds.
    #[serde(default)]
    pub scores: Scores,
    /// Type of the input's numbers; from the file.
    #[serde(skip)]
    pub(crate) element: Element,
    /// Bytes of the graph's weights; from the file.
    #[serde(skip)]
    pub(crate) bytes: u64,
}

/// What the output of a graph holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scores {
    /// Unnormalised scores: a softmax makes them probabilities.
    #[default]
    Logits,
    /// Probabilities, which are answered as they are.
    Probabilities,
}

/// Has onnxruntime loaded from this file, before `ORT_DYLIB_PATH` is looked at. Without the
/// feature `ort`, nothing is.
pub fn use_library(file: &Path) {
    #[cfg(feature = "ort")]
    library::prefer(file);
    #[cfg(not(feature = "ort"))]
    let _ = file;
}

/// Whether ONNX variants can be served: loads onnxruntime unless that has been done.
///
/// # Errors
/// This was built without the feature `ort`, or the library is missing or cannot be used; in
/// words.
pub fn ready() -> Result<(), String> {
    #[cfg(feature = "ort")]
    return library::environment().map(|_| ());
    #[cfg(not(feature = "ort"))]
    Err(ABSENT.to_owned())
}

#[cfg(not(feature = "ort"))]
const ABSENT: &str = "this program was built without onnxruntime: build it with `--features ort`";

// === impl OnnxSpec ===

impl OnnxSpec {
    /// Fills in from the graph what the card leaves out and compares the rest.
    pub(crate) fn complete(&mut self, card: &Path, header: &Header) -> Result<(), ModelError> {
        let input = choose(card, "input", self.input.as_deref(), &header.inputs)?;
        if let Some(other) = header.inputs.iter().find(|one| one.name != input.name) {
            let reason = format!(
                "the graph has inputs `{}` and `{}`, one is all it is given",
                input.name, other.name
            );
            return Err(ModelError::field(card, "architecture.input", reason));
        }
        let output = choose(card, "output", self.output.as_deref(), &header.outputs)?;
        self.element = input.element;
        if !matches!(input.element, Element::FLOAT | Element::INT64) {
            let reason = format!(
                "takes {}, only FLOAT and INT64 can be served",
                input.element
            );
            return Err(wrong(card, "input", input, &reason));
        }
        if output.element != Element::FLOAT {
            let reason = format!("gives {}, only FLOAT can be served", output.element);
            return Err(wrong(card, "output", output, &reason));
        }
        self.shape = Some(row_shape(card, input, self.shape.as_deref())?);
        self.classes = Some(classes(card, output, self.classes)?);
        self.input = Some(input.name.clone());
        self.output = Some(output.name.clone());
        self.bytes = header.weight_bytes;
        Ok(())
    }

    /// Refuses batches that the graph cannot take.
    pub(crate) fn check_batch(
        &self,
        card: &Path,
        header: &Header,
        max_batch: usize,
    ) -> Result<(), ModelError> {
        let named = |tensor: &&Tensor| Some(&tensor.name) == self.input.as_ref();
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
            Element::INT64 => Datatype::Int64,
            _ => Datatype::Fp32,
        }
    }
}

impl Spec for OnnxSpec {
    fn samples(&self) -> usize {
        let shape = self.shape.iter().flatten();
        shape.fold(1, |samples: usize, &size| samples.saturating_mul(size))
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

    /// Its weights are no tensors that could be handed out: [`load`] makes the network.
    fn build(&self, _: &mut Params) -> Result<Box<dyn StagedModel>, ModelError> {
        Err(ModelError::Training(
            "an ONNX graph can be served and not trained".to_owned(),
        ))
    }
}

/// What the graph of a card says; its file lies beside the card.
pub(crate) fn read_header(card: &Path, weights: &str) -> Result<Header, ModelError> {
    let file = card.with_file_name(weights);
    let (bytes, before) = FileBytes::open(&file)?;
    let header = Header::parse(&file, &bytes)?;
    before.unchanged(&file)?;
    Ok(header)
}

/// Loads the graph of a card that has been read.
pub(crate) fn load(
    dir: &Path,
    card: VariantCard,
    spec: &OnnxSpec,
    device: &Device,
) -> Result<LoadedVariant, ModelError> {
    let card_file = dir.join(VARIANT_CARD);
    if !device.is_cpu() {
        let reason = "an ONNX graph runs on workers with device = \"cpu\" only";
        return Err(ModelError::field(&card_file, "architecture.kind", reason));
    }
    let model = network(&dir.join(&card.weights), &card_file, spec)?;
    Ok(LoadedVariant {
        bytes: spec.bytes,
        card,
        model,
    })
}

#[cfg(feature = "ort")]
fn network(file: &Path, card: &Path, spec: &OnnxSpec) -> Result<Arc<dyn StagedModel>, ModelError> {
    Ok(Arc::new(session::Graph::open(file, card, spec)?))
}

#[cfg(not(feature = "ort"))]
fn network(file: &Path, _: &Path, _: &OnnxSpec) -> Result<Arc<dyn StagedModel>, ModelError> {
    Err(ModelError::weights(file, ABSENT))
}

// === the card and the graph ===

/// The tensor that the card names, or the only one.
fn choose<'a>(
    card: &Path,
    field: &str,
    named: Option<&str>,
    known: &'a [Tensor],
) -> Result<&'a Tensor, ModelError> {
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
        (None, _) => refuse(format!("must say which of the graph's: {}", names())),
    }
}

fn wrong(card: &Path, field: &str, tensor: &Tensor, reason: &str) -> ModelError {
    let reason = format!("the graph's {field} `{}` {reason}", tensor.name);
    ModelError::field(card, format!("architecture.{field}"), reason)
}

/// The shape of one request. Dimensions that the graph leaves open are the card's to say.
fn row_shape(
    card: &Path,
    input: &Tensor,
    said: Option<&[usize]>,
) -> Result<Vec<usize>, ModelError> {
    let field = "architecture.shape";
    let Some(dimensions) = &input.shape else {
        let missing = || {
            let reason = format!(
                "missing: the graph says nothing of `{}`'s shape",
                input.name
            );
            ModelError::field(card, field, reason)
        };
        return said.map(<[usize]>::to_vec).ok_or_else(missing);
    };
    let Some((_, row)) = dimensions.split_first() else {
        let reason = "has no batch axis: it is a single number";
        return Err(wrong(card, "input", input, reason));
    };
    let fixed: Option<Vec<usize>> = row.iter().copied().collect();
    match (said, fixed) {
        (None, Some(fixed)) => Ok(fixed),
        (None, None) => {
            let reason = format!("missing: the graph's input is {input}");
            Err(ModelError::field(card, field, reason))
        }
        (Some(said), _) => {
            let fits = said.len() == row.len()
                && said
                    .iter()
                    .zip(row)
                    .all(|(said, of)| of.is_none_or(|of| of == *said));
            if fits {
                return Ok(said.to_vec());
            }
            let reason =
                format!("{said:?} and a batch axis before it, the graph's input is {input}");
            Err(ModelError::field(card, field, reason))
        }
    }
}

/// Numbers of an answer: all of the output but its batch axis.
fn classes(card: &Path, output: &Tensor, said: Option<usize>) -> Result<usize, ModelError> {
    let field = "architecture.classes";
    let dimensions = output.shape.as_deref().unwrap_or_default();
    let known: Option<usize> = match dimensions {
        [_, row @ ..] if !row.is_empty() => row
            .iter()
            .copied()
            .try_fold(1, |all: usize, size| Some(all.saturating_mul(size?))),
        _ => None,
    };
    match (said, known) {
        (Some(said), Some(known)) if said != known => {
            let reason = format!("{said}, the graph's output is {output}");
            Err(ModelError::field(card, field, reason))
        }
        (Some(classes), _) | (None, Some(classes)) => Ok(classes),
        (None, None) => {
            let reason = format!("missing: the graph's output is {output}");
            Err(ModelError::field(card, field, reason))
        }
    }
}
