//! Whether a variant fits its application.

use std::ops::Range;
use std::path::Path;

use super::card::{AppCard, Datatype, EMBEDDING, OPEN, Task, TensorCard, VariantCard};
use crate::error::ModelError;
use crate::networks::architecture::Architecture;
use crate::networks::graph::Port;
use crate::networks::onnx::OnnxSpec;

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
    if let Architecture::Onnx(spec) = &variant.architecture {
        check_outputs(file, app, spec)?;
        if spec.only_input().is_none() || !spec.task.is_classify() {
            return check_inputs(file, app, variant, spec);
        }
    }
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
        [one] if one.shape.len() == 1 || one.fixed_shape().is_some_and(|it| it == takes) => {
            return Ok(());
        }
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
    let (task, wanted) = (variant.architecture.task(), app.task);
    if task != wanted {
        let reason = format!(
            "answers as task \"{}\", the application's is \"{}\"",
            task.name(),
            wanted.name()
        );
        return Err(ModelError::field(file, "architecture", reason));
    }
    if let Some(width) = variant.architecture.embedding() {
        let is_it = |output: &TensorCard| output.fixed_shape() == Some(vec![width]);
        if !app.outputs.iter().all(is_it) {
            let reason = format!("{width}, the application's output is another shape");
            return Err(ModelError::field(file, "architecture.outputs", reason));
        }
        if let Some(other) = app.outputs.iter().find(|output| output.name != EMBEDDING) {
            let reason = format!(
                "makes `{EMBEDDING}`, the application's output is `{}`",
                other.name
            );
            return Err(ModelError::field(file, "architecture.outputs", reason));
        }
    }
    let is_read = |input: &&TensorCard| variant.reads(input);
    let is_graph = matches!(variant.architecture, Architecture::Onnx(_));
    if matches!(task, Task::Score | Task::Regress) && !is_graph {
        check_number(file, app)?;
    }
    if let Architecture::Onnx(spec) = &variant.architecture {
        return match (spec.only_input(), app.inputs.iter().find(is_read)) {
            (Some(port), Some(input)) => check_datatype(file, "input", port, input),
            _ => Ok(()),
        };
    }
    let (taken, takes) = match variant.architecture.takes_text() {
        true => (Datatype::Bytes, "takes text, one per request: BYTES [1]"),
        false => (Datatype::Fp32, "takes values of fixed dimensions: FP32"),
    };
    let strange = |input: &TensorCard| !input.is_flat() || input.datatype != taken;
    let mut read = app.inputs.iter().filter(is_read);
    let Some(input) = read.find(|input| strange(input)) else {
        return Ok(());
    };
    let (name, datatype, shape) = (&input.name, input.datatype.name(), &input.shape);
    let reason = format!("{takes}; the application's input `{name}` is {datatype} {shape:?}");
    Err(ModelError::field(file, "architecture", reason))
}

/// Checks that an application's only output is one number, of any name.
fn check_number(file: &Path, app: &AppCard) -> Result<(), ModelError> {
    let is_number = |output: &TensorCard| {
        output.datatype == Datatype::Fp32 && output.fixed_shape() == Some(vec![1])
    };
    match app.outputs.as_slice() {
        [output] if is_number(output) => Ok(()),
        _ => {
            let reason = "answers with one number: the application's only output must be FP32 [1]";
            Err(ModelError::field(file, "architecture.outputs", reason))
        }
    }
}

/// Checks that the application's inputs are those of a graph, by name; an only one by its place.
fn check_inputs(
    file: &Path,
    app: &AppCard,
    variant: &VariantCard,
    spec: &OnnxSpec,
) -> Result<(), ModelError> {
    let given = app.inputs.iter().filter(|input| variant.reads(input));
    let given: Vec<&TensorCard> = given.collect();
    if let ([port], [input]) = (spec.inputs.as_slice(), given.as_slice()) {
        return check_port(file, "input", port, input);
    }
    for input in &given {
        let Some(port) = spec.inputs.iter().find(|port| *port.name == *input.name) else {
            let names: Vec<&str> = spec.inputs.iter().map(|port| &*port.name).collect();
            let reason = format!(
                "the graph has no input `{}` of the application, it has: {}",
                input.name,
                names.join(", ")
            );
            return Err(ModelError::field(file, "inputs", reason));
        };
        check_port(file, "input", port, input)?;
    }
    let missing = |port: &&Port| given.iter().all(|input| *input.name != *port.name);
    match spec.inputs.iter().find(missing) {
        Some(port) => {
            let reason = format!("the graph takes `{}`, which no request has", port.name);
            Err(ModelError::field(file, "inputs", reason))
        }
        None => Ok(()),
    }
}

/// Checks that a graph makes the application's outputs, by name; an only one by its place. A
/// classifier makes the server's.
fn check_outputs(file: &Path, app: &AppCard, spec: &OnnxSpec) -> Result<(), ModelError> {
    if spec.task.is_classify() {
        return Ok(());
    }
    if let ([port], [output]) = (spec.outputs.as_slice(), app.outputs.as_slice()) {
        return check_port(file, "output", port, output);
    }
    for output in &app.outputs {
        let Some(port) = spec.outputs.iter().find(|port| *port.name == *output.name) else {
            let names: Vec<&str> = spec.outputs.iter().map(|port| &*port.name).collect();
            let reason = format!(
                "the graph has no output `{}` of the application, it has: {}",
                output.name,
                names.join(", ")
            );
            return Err(ModelError::field(file, "architecture", reason));
        };
        check_port(file, "output", port, output)?;
    }
    Ok(())
}

/// Checks the type and the dimensions of a graph's tensor. Dimensions that it leaves open fit all.
fn check_port(file: &Path, kind: &str, port: &Port, card: &TensorCard) -> Result<(), ModelError> {
    check_datatype(file, kind, port, card)?;
    let Some(shape) = &port.shape else {
        return Ok(());
    };
    let row = shape.get(1..).unwrap_or_default();
    let fits = row.len() == card.shape.len()
        && row.iter().zip(&card.shape).all(|(of, &size)| {
            of.is_none_or(|of| usize::try_from(size).is_ok_and(|size| size == of))
        });
    // The first axis of an output need not be that of the rows.
    if fits || kind == "output" && card.shape.iter().all(|&size| size == OPEN) {
        return Ok(());
    }
    let sizes = shape
        .iter()
        .map(|of| of.map_or_else(|| "?".to_owned(), |of| of.to_string()));
    let reason = format!(
        "the graph's {kind} `{}` is [{}], the application's is {:?} after the rows",
        port.name,
        sizes.collect::<Vec<_>>().join(", "),
        card.shape
    );
    Err(ModelError::field(
        file,
        format!("architecture.{kind}"),
        reason,
    ))
}

fn check_datatype(
    file: &Path,
    kind: &str,
    port: &Port,
    card: &TensorCard,
) -> Result<(), ModelError> {
    if port.datatype == card.datatype {
        return Ok(());
    }
    let verb = if kind == "input" { "takes" } else { "gives" };
    let reason = format!(
        "the graph {verb} {}, the application's {kind} `{}` is {}",
        port.datatype.name(),
        card.name,
        card.datatype.name()
    );
    Err(ModelError::field(
        file,
        format!("architecture.{kind}"),
        reason,
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const APP: &str = r#"
name = "x"
summary = "x"
classes = ["a", "b"]
slo_ms = 10.0
penalty = "step"
inputs = [{ name = "x", datatype = "FP32", shape = [4] }]
outputs = [{ name = "probabilities", datatype = "FP32", shape = [2] }]
"#;

    const VARIANT: &str = r#"
name = "mlp"
summary = "x"
weights = "x"
parameters = 23
max_batch = 1
stages = 1
exits = [{ name = "final", after_stage = 1, accuracy = 0.9 }]

[architecture]
kind = "mlp"
samples = 4
classes = 2
layers = [3]

[provenance]
command = "x"
data = "x"
"#;

    #[test]
    fn an_input_of_another_type_than_the_network_reads_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("card.toml");
        std::fs::write(&file, APP).unwrap();
        let mut app = AppCard::read(&file).unwrap();
        std::fs::write(&file, VARIANT).unwrap();
        let variant = VariantCard::read(&file).unwrap();
        let file = Path::new("model.toml");
        check_fit(file, &app, &variant).unwrap();
        for datatype in [Datatype::Uint8, Datatype::Int64] {
            app.inputs[0].datatype = datatype;
            let error = check_fit(file, &app, &variant).unwrap_err().to_string();
            let expected = format!(
                "model.toml: field `architecture`: takes values of fixed dimensions: FP32; the \
                 application's input `x` is {} [4]",
                datatype.name()
            );
            assert_eq!(error, expected);
        }
    }
}
