//! Whether a variant fits its application.

use std::ops::Range;
use std::path::Path;

use super::card::{AppCard, Datatype, Task, TensorCard, VariantCard};
use crate::error::ModelError;
use crate::networks::architecture::Architecture;

/// Checks a variant's classes, inputs and outputs, given its card `file`.
pub(super) fn check_fit(
    file: &Path,
    app: &AppCard,
    variant: &VariantCard,
) -> Result<(), ModelError> {
    let classes = variant.architecture.classes();
    if classes != app.classes.len() {
        let reason = format!("{classes}, the application has {}", app.classes.len());
        return Err(ModelError::field(file, "architecture.classes", reason));
    }
    let Some(ranges) = app.input_ranges(variant.inputs.as_deref()) else {
        let known: Vec<&str> = app.inputs.iter().map(|input| input.name.as_str()).collect();
        let reason = format!(
            "must be a selection of the application's inputs, in its order: {}",
            known.join(", ")
        );
        return Err(ModelError::field(file, "inputs", reason));
    };
    check_task(file, app, variant)?;
    let (samples, given) = (
        variant.architecture.samples(),
        ranges.iter().map(Range::len).sum::<usize>(),
    );
    if samples != given {
        let reason = format!("{samples}, the inputs it reads have {given}");
        return Err(ModelError::field(file, "architecture.samples", reason));
    }
    check_shape(file, app, variant)
}

/// Checks that the axes of a variant are those of its application, or that one of the two has none
/// to mistake: `[32, 32, 3]` and `[3, 32, 32]` have as many values, and other answers.
fn check_shape(file: &Path, app: &AppCard, variant: &VariantCard) -> Result<(), ModelError> {
    let takes = variant.architecture.input_shape();
    if takes.len() <= 1 {
        return Ok(());
    }
    let inputs = app.inputs.iter().filter(|input| variant.reads(input));
    let given: Vec<&TensorCard> = inputs.collect();
    let reason = match given.as_slice() {
        [one] if one.shape.len() == 1 || one.shape == takes => return Ok(()),
        [one] => format!(
            "{takes:?}, the application's input `{}` is {:?}: give both the same axes in the same \
             order, or the application [{}]",
            one.name,
            one.shape,
            one.width()
        ),
        _ => format!(
            "{takes:?}, the variant reads {} inputs, which follow one another without axes",
            given.len()
        ),
    };
    Err(ModelError::field(file, "architecture.shape", reason))
}

/// Checks that a variant answers as its application says, from the kind of inputs it has.
fn check_task(file: &Path, app: &AppCard, variant: &VariantCard) -> Result<(), ModelError> {
    let embedding = variant.architecture.embedding();
    if embedding.is_some() != (app.task == Task::Embed) {
        let reason = format!("does not fit the application's task {:?}", app.task);
        return Err(ModelError::field(file, "architecture", reason));
    }
    if let Some(width) = embedding
        && app.outputs.iter().any(|output| output.shape != [width])
    {
        let reason = format!("{width}, the application's output is another shape");
        return Err(ModelError::field(file, "architecture.outputs", reason));
    }
    let is_read = |input: &&TensorCard| variant.reads(input);
    if let Architecture::Onnx(spec) = &variant.architecture {
        let other = |input: &&TensorCard| is_read(input) && input.datatype != spec.datatype();
        if let Some(input) = app.inputs.iter().find(other) {
            let reason = format!(
                "the graph takes {:?}, the application's input `{}` is {:?}",
                spec.datatype(),
                input.name,
                input.datatype
            );
            return Err(ModelError::field(file, "architecture.input", reason));
        }
    }
    let takes_text = variant.architecture.takes_text();
    let strange = |input: &TensorCard| (input.datatype == Datatype::Bytes) != takes_text;
    match app
        .inputs
        .iter()
        .filter(is_read)
        .find(|input| strange(input))
    {
        Some(input) if takes_text => {
            let reason = format!("takes text, input `{}` is not BYTES", input.name);
            Err(ModelError::field(file, "architecture", reason))
        }
        Some(input) => {
            let reason = format!("takes values, input `{}` is BYTES", input.name);
            Err(ModelError::field(file, "architecture", reason))
        }
        None => Ok(()),
    }
}
