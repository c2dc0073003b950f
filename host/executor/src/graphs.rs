//! Batches of networks that take named tensors.
//!
//! The shapes of such requests may differ. Those of equal shapes are joined and run together; the
//! answers go back to the order of the requests.

use std::sync::Arc;

use switchyard_models::{Graph, GraphAnswer, NamedTensor, RawData, RawTensor};

use crate::error::ExecuteError;
use crate::job::{BatchOutput, InputTensor, JobRow};
use crate::source::{InputSpec, LoadedModel};
use crate::values::{Number, Values};

/// The name of the computation in errors.
const PART: &str = "the graph";

/// Requests whose tensors have equal shapes.
struct Group {
    /// Positions in the batch.
    rows: Vec<usize>,
    /// By input, by row.
    tensors: Vec<Vec<RawTensor>>,
}

/// Runs a batch, and takes the inputs out of its rows.
pub(crate) fn run(
    graph: &dyn Graph,
    model: &LoadedModel,
    rows: &mut [JobRow],
) -> Result<BatchOutput, ExecuteError> {
    let names = model.reads.iter().filter_map(|&at| model.inputs.get(at));
    let names: Vec<Arc<str>> = names.map(|spec| spec.name.as_str().into()).collect();
    let count = rows.len();
    let mut parts = Vec::new();
    for group in grouped(model, rows)? {
        let joined = group.tensors.into_iter().map(RawTensor::join_rows);
        let inputs: Option<Vec<NamedTensor>> = names
            .iter()
            .zip(joined)
            .map(|(name, tensor)| Some((Arc::clone(name), tensor?)))
            .collect();
        let inputs = inputs.ok_or_else(|| ExecuteError::job(&model.name, "rows do not join"))?;
        let answer = graph.run(&inputs);
        let answer = answer.map_err(|error| ExecuteError::compute(&model.name, PART, &error))?;
        parts.push((group.rows, answer));
    }
    scattered(model, count, parts)
}

/// The rows by the shapes of their tensors, in the order of their first rows.
fn grouped(model: &LoadedModel, rows: &mut [JobRow]) -> Result<Vec<Group>, ExecuteError> {
    let mut groups: Vec<Group> = Vec::new();
    for (at, row) in rows.iter_mut().enumerate() {
        let tensors = tensors(model, row)?;
        let fits = |group: &&mut Group| {
            let first = group.tensors.iter().filter_map(|of_input| of_input.first());
            first
                .zip(&tensors)
                .all(|(first, other)| first.shape == other.shape)
        };
        match groups.iter_mut().find(fits) {
            Some(group) => {
                group.rows.push(at);
                for (of_input, tensor) in group.tensors.iter_mut().zip(tensors) {
                    of_input.push(tensor);
                }
            }
            None => groups.push(Group {
                rows: vec![at],
                tensors: tensors.into_iter().map(|tensor| vec![tensor]).collect(),
            }),
        }
    }
    Ok(groups)
}

/// The tensors of a row that the model reads.
fn tensors(model: &LoadedModel, row: &mut JobRow) -> Result<Vec<RawTensor>, ExecuteError> {
    let inputs = row.input.take().unwrap_or_default();
    let read = model.reads.iter().map(|&at| {
        let refuse = |name: &str, reason: &str| ExecuteError::input(row.request, name, reason);
        let Some(spec) = model.inputs.get(at) else {
            return Err(refuse(&model.name, "no such input"));
        };
        let input = inputs.get(at).cloned();
        let input = input.ok_or_else(|| refuse(&spec.name, "missing"))?;
        Ok(raw(input, spec))
    });
    read.collect()
}

/// The tensor of one row.
fn raw(input: InputTensor, spec: &InputSpec) -> RawTensor {
    let data = match input {
        InputTensor::Raw(tensor) => return tensor,
        InputTensor::F32(values) => wire(&values),
        InputTensor::I64(values) => wire(&values),
        InputTensor::Bytes(values) => wire(&values),
        InputTensor::Text(text) => RawData::Texts(vec![text.text]),
    };
    RawTensor {
        datatype: spec.datatype,
        shape: [&[1], spec.row_shape.as_slice()].concat(),
        data,
    }
}

fn wire<T: Number>(values: &Values<T>) -> RawData {
    RawData::Numbers(values.to_wire())
}

/// Puts the answers into the order of the batch.
fn scattered(
    model: &LoadedModel,
    rows: usize,
    parts: Vec<(Vec<usize>, GraphAnswer)>,
) -> Result<BatchOutput, ExecuteError> {
    let (mut scores, mut tensors) = (vec![Vec::new(); rows], vec![Vec::new(); rows]);
    let mut classes = None;
    for (positions, answer) in parts {
        match answer {
            GraphAnswer::Scores(part) => {
                let part = part.to_vec2::<f32>();
                let part = part.map_err(|e| ExecuteError::compute(&model.name, PART, &e))?;
                classes = part.first().map(Vec::len).or(classes);
                for (at, row) in positions.into_iter().zip(part) {
                    scores[at] = row;
                }
            }
            GraphAnswer::Tensors(outputs) => {
                for (at, row) in positions
                    .iter()
                    .zip(split(model, positions.len(), outputs)?)
                {
                    tensors[*at] = row;
                }
            }
        }
    }
    Ok(match classes {
        Some(classes) => BatchOutput::Answered {
            classes,
            probabilities: finite(model, scores.concat())?,
        },
        None => BatchOutput::Tensors(tensors),
    })
}

/// The outputs of each of `rows` rows.
fn split(
    model: &LoadedModel,
    rows: usize,
    outputs: Vec<NamedTensor>,
) -> Result<Vec<Vec<NamedTensor>>, ExecuteError> {
    if rows == 1 {
        return Ok(vec![outputs]);
    }
    let mut split = vec![Vec::with_capacity(outputs.len()); rows];
    for (name, output) in outputs {
        if output.rows() != rows {
            let reason = format!(
                "its output `{name}` is {:?} for {rows} requests: it has no axis of the rows, so \
                 that the card needs `max_batch = 1`",
                output.shape
            );
            return Err(ExecuteError::job(&model.name, reason));
        }
        for (of_row, part) in split.iter_mut().zip(output.split_rows()) {
            of_row.push((Arc::clone(&name), part));
        }
    }
    Ok(split)
}

/// Refuses probabilities that are none: the largest of them would be an arbitrary class.
pub(crate) fn finite(model: &LoadedModel, answers: Vec<f32>) -> Result<Vec<f32>, ExecuteError> {
    match answers.iter().find(|value| !value.is_finite()) {
        Some(odd) => Err(ExecuteError::Compute {
            variant: model.name.clone(),
            part: "the answer".to_owned(),
            reason: format!("has {odd}: an input is too large for the model, or no number"),
        }),
        None => Ok(answers),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use switchyard_core::ids::RequestId;
    use switchyard_models::card::Datatype;

    use super::*;
    use crate::job::InputType;
    use crate::toy::ToyModel;

    /// Gives its inputs back.
    struct Echo;

    impl Graph for Echo {
        fn run(&self, inputs: &[NamedTensor]) -> candle_core::Result<GraphAnswer> {
            Ok(GraphAnswer::Tensors(inputs.to_vec()))
        }
    }

    fn numbers(shape: &[usize], values: &[u8]) -> RawTensor {
        RawTensor {
            datatype: Datatype::Uint8,
            shape: shape.to_vec(),
            data: RawData::Numbers(values.to_vec().into()),
        }
    }

    fn model() -> LoadedModel {
        let spec = InputSpec {
            name: "x".to_owned(),
            datatype: Datatype::Uint8,
            input_type: InputType::Raw(Datatype::Uint8),
            row_shape: vec![1],
            open: Vec::new(),
        };
        LoadedModel {
            name: "app/variant".to_owned(),
            model: Arc::new(ToyModel),
            inputs: [spec].into(),
            reads: vec![0],
            bytes: 0,
        }
    }

    fn row(request: u64, values: &[u8]) -> JobRow {
        let tensor = numbers(&[1, values.len()], values);
        JobRow {
            request: RequestId(request),
            input: Some([InputTensor::Raw(tensor)].into()),
        }
    }

    #[test]
    fn rows_of_different_shapes_get_their_own_answers() {
        let mut rows = [row(1, &[1]), row(2, &[2, 3]), row(3, &[4]), row(4, &[5, 6])];
        let BatchOutput::Tensors(answers) = run(&Echo, &model(), &mut rows).unwrap() else {
            panic!("no tensors");
        };
        let of_row = |at: usize| answers[at][0].1.clone();
        assert_eq!(of_row(0), numbers(&[1, 1], &[1]));
        assert_eq!(of_row(1), numbers(&[1, 2], &[2, 3]));
        assert_eq!(of_row(2), numbers(&[1, 1], &[4]));
        assert_eq!(of_row(3), numbers(&[1, 2], &[5, 6]));
    }

    #[test]
    fn an_output_without_rows_is_refused_and_never_dealt_out() {
        let output = (Arc::from("boxes"), numbers(&[3], &[1, 2, 3]));
        let refused = split(&model(), 2, vec![output.clone()]).unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("`boxes` is [3] for 2 requests")
        );
        assert_eq!(
            split(&model(), 1, vec![output.clone()]).unwrap(),
            [[output]]
        );
    }

    #[test]
    fn a_missing_input_is_named() {
        let mut rows = [JobRow {
            request: RequestId(3),
            input: None,
        }];
        let refused = run(&Echo, &model(), &mut rows).unwrap_err();
        assert_eq!(refused.to_string(), "request 3: input `x`: missing");
    }
}
