//! The cards of an ONNX graph.

use std::path::{Path, PathBuf};

use super::super::card::{OPEN, Task, TensorCard};
use super::statement::{Description, Statement, classified};
use crate::error::ModelError;
use crate::networks::architecture::Architecture;
use crate::networks::graph::Port;
use crate::networks::onnx::{GraphHeader, OnnxSpec, read_outline};

/// Name of the copy of the file.
const WEIGHTS: &str = "model.onnx";

/// A common size of an open dimension: of an image, or of a text in tokens.
const SIDE: usize = 224;
const TOKENS: usize = 64;

pub(super) fn describe(source: &Path, statement: &Statement) -> Result<Description, ModelError> {
    let header = read_outline(source)?;
    let derived = match statement.classes.is_empty() {
        true => Task::Tensors,
        false => Task::Classify,
    };
    let task = statement.task.unwrap_or(derived);
    check_typical(source, &header, statement)?;
    let image = statement.preprocessing.input(source, &header.inputs)?;
    let mut spec = OnnxSpec {
        task,
        output: statement.output.clone(),
        scores: statement.scores,
        ..OnnxSpec::default()
    };
    if task.is_classify() {
        if statement.classes.is_empty() {
            let reason = "task \"classify\" needs the names of the classes: --classes FILE";
            return Err(ModelError::weights(source, reason));
        }
        spec.classes = Some(statement.classes.len());
        if let [input] = header.inputs.as_slice() {
            let typical = statement
                .typical
                .iter()
                .find(|(name, _)| *name == input.name);
            let of_image = || image.as_ref().and_then(TensorCard::fixed_shape);
            spec.shape = typical.map(|(_, shape)| shape.clone()).or_else(of_image);
        }
    }
    let mut stated = statement.clone();
    let completed = spec.complete(source, &header);
    completed.map_err(|error| with_option(error, source))?;
    let shapeless = |port: &&Port| port.shape.is_none();
    if let Some(port) = spec.inputs.iter().chain(&spec.outputs).find(shapeless) {
        let reason = format!(
            "has no dimensions for `{}`: add them, for example with onnx.shape_inference",
            port.name
        );
        return Err(ModelError::weights(source, reason));
    }
    if spec.inputs.iter().any(|port| first(port) == Some(1)) {
        stated.max_batch = 1;
    }
    let (inputs, outputs) = match (task, spec.only_input(), &spec.shape) {
        (Task::Classify, Some(port), Some(shape)) => {
            let input = TensorCard::fixed(&*port.name, port.datatype, shape);
            (vec![input], classified(statement.classes.len()))
        }
        (Task::Classify, ..) => (
            inputs(&spec, statement),
            classified(statement.classes.len()),
        ),
        _ => {
            let outputs = spec.outputs.iter().map(card);
            (inputs(&spec, statement), outputs.collect())
        }
    };
    let inputs = match image {
        Some(image) => vec![image],
        None => inputs,
    };
    let classes = match task {
        Task::Classify => statement.names(source, spec.classes.unwrap_or_default())?,
        _ => Vec::new(),
    };
    let architecture = Architecture::Onnx(spec);
    Ok(Description {
        app: statement.app_card(task, inputs, outputs, classes),
        variant: stated.variant_card(source, WEIGHTS, header.parameters, architecture),
        files: vec![(source.to_path_buf(), PathBuf::from(WEIGHTS))],
        notes: Vec::new(),
    })
}

fn first(port: &Port) -> Option<usize> {
    port.shape.as_ref().and_then(|shape| *shape.first()?)
}

/// Refuses a common shape of an input that the graph does not have.
fn check_typical(
    source: &Path,
    header: &GraphHeader,
    statement: &Statement,
) -> Result<(), ModelError> {
    let names = || header.inputs.iter().map(|input| input.name.as_str());
    match statement
        .typical
        .iter()
        .find(|(name, _)| names().all(|known| known != name))
    {
        Some((name, _)) => {
            let known = names().collect::<Vec<_>>().join(", ");
            let reason = format!("has no input `{name}` of --shape, it has: {known}");
            Err(ModelError::weights(source, reason))
        }
        None => Ok(()),
    }
}

/// The refusal of a card's field, with the option that sets the field.
fn with_option(error: ModelError, source: &Path) -> ModelError {
    let ModelError::CardField { field, reason, .. } = &error else {
        return error;
    };
    let option = match field.as_str() {
        "architecture.shape" => "--shape NAME=SIZES",
        "architecture.output" => "--output",
        "architecture.classes" => "--classes",
        "architecture.scores" => "--scores",
        "max_batch" => "--max-batch",
        _ => return error,
    };
    ModelError::weights(source, format!("{option}: {reason}"))
}

/// The inputs, with a common shape for those with open dimensions.
fn inputs(spec: &OnnxSpec, statement: &Statement) -> Vec<TensorCard> {
    let inputs = spec.inputs.iter().map(|port| {
        let mut card = card(port);
        let stated = statement
            .typical
            .iter()
            .find(|(name, _)| **name == *port.name);
        card.typical = match stated {
            Some((_, shape)) => Some(shape.clone()),
            None if card.fixed_shape().is_some() => None,
            None => Some(common(&card.shape)),
        };
        card
    });
    inputs.collect()
}

/// A guess at a common shape, which only the profile depends on.
fn common(shape: &[i64]) -> Vec<usize> {
    let open = if shape.len() >= 3 { SIDE } else { TOKENS };
    let sizes = shape
        .iter()
        .map(|&size| usize::try_from(size).unwrap_or(open));
    sizes.collect()
}

/// The tensor of one row.
fn card(port: &Port) -> TensorCard {
    let row = port.shape.as_ref().and_then(|shape| shape.get(1..));
    let size = |of: &Option<usize>| of.map_or(OPEN, |of| i64::try_from(of).unwrap_or(i64::MAX));
    TensorCard {
        name: port.name.to_string(),
        datatype: port.datatype,
        shape: row.unwrap_or_default().iter().map(size).collect(),
        typical: None,
        largest: None,
        image: None,
    }
}
