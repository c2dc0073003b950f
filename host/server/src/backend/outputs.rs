//! Answers of rows as the output tensors that an app's card names.

use smallvec::smallvec;
use switchyard_models::card::{Datatype, Task, TensorCard};
use switchyard_models::{RawData, RawTensor};
use thiserror::Error;

use super::raw;
use crate::driver::RowAnswer;
use crate::ingress::{OutputIndex, OutputTensor, Shape, Tensor, TensorData};

/// Class probabilities, FP32.
const PROBABILITIES: &str = "probabilities";
/// The most probable class, INT64.
const LABEL: &str = "label";

/// The vector of an app that embeds, FP32.
const EMBEDDING: &str = "embedding";

/// An app whose card names outputs that the server does not make.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("app {app}: outputs: {reason}")]
pub struct OutputsError {
    /// The app.
    pub app: String,
    /// The output, and the outputs that the server makes.
    pub reason: String,
}

/// The source of each output of an app, in the order of its card.
pub(super) struct Layout {
    outputs: Vec<OutputSource>,
}

/// The source of one output.
struct OutputSource {
    name: String,
    kind: Kind,
    /// Of an answer made of numbers.
    row_shape: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The numbers of an answer as they are: class probabilities, an embedding or a score.
    Answer,
    Label,
    /// A tensor of a graph.
    Tensor,
}

// === impl Layout ===

impl Layout {
    pub(super) fn try_new(
        app: &str,
        task: Task,
        cards: &[TensorCard],
    ) -> Result<Self, OutputsError> {
        let outputs = cards.iter().map(|card| {
            let kind = match (task, card.name.as_str(), card.datatype) {
                (Task::Classify, PROBABILITIES, Datatype::Fp32) => Kind::Answer,
                (Task::Classify, LABEL, Datatype::Int64) => Kind::Label,
                (Task::Classify, name, datatype) => {
                    let reason = format!(
                        "`{name}` {}: with task \"classify\" the server makes `probabilities` FP32 \
                         and `label` INT64; task \"tensors\" gives a graph's own outputs",
                        datatype.name()
                    );
                    let app = app.to_owned();
                    return Err(OutputsError { app, reason });
                }
                (Task::Embed, EMBEDDING, Datatype::Fp32) => Kind::Answer,
                // The number of an encoder; an ONNX graph's tensor is taken where there is one.
                (Task::Score | Task::Regress, _, Datatype::Fp32)
                    if cards.len() == 1 && card.fixed_shape() == Some(vec![1]) =>
                {
                    Kind::Answer
                }
                _ => Kind::Tensor,
            };
            Ok(OutputSource {
                name: card.name.clone(),
                kind,
                row_shape: card.fixed_shape().unwrap_or_default(),
            })
        });
        Ok(Self {
            outputs: outputs.collect::<Result<_, _>>()?,
        })
    }

    /// One tensor per output, one row of it per answer.
    ///
    /// # Errors
    /// The variant did not make an output, or made it in another shape than the card's, or in different
    /// shapes for the rows of one request.
    pub(super) fn tensors(&self, rows: &[RowAnswer]) -> Result<Vec<OutputTensor>, String> {
        let is_graph = rows.iter().any(|row| !row.tensors.is_empty());
        let mut outputs = Vec::with_capacity(self.outputs.len());
        for (index, source) in self.outputs.iter().enumerate() {
            let mut shape: Shape = smallvec![rows.len()];
            shape.extend_from_slice(&source.row_shape);
            let tensor = match source.kind {
                Kind::Label => {
                    let labels = rows.iter().map(|row| label(&source.name, row));
                    Tensor {
                        shape,
                        data: TensorData::I64(labels.collect::<Result<_, _>>()?),
                    }
                }
                Kind::Answer if !is_graph => {
                    rows.iter().try_for_each(|row| source.check(row))?;
                    Tensor {
                        shape,
                        data: TensorData::F32(answers(rows)),
                    }
                }
                Kind::Answer | Kind::Tensor => self.joined(source, rows)?,
            };
            outputs.push(OutputTensor {
                output: OutputIndex(index),
                tensor,
            });
        }
        Ok(outputs)
    }

    /// A graph's output, of the same name, or the only one. Of rows that a variant answered with numbers,
    /// these numbers.
    fn joined(&self, source: &OutputSource, rows: &[RowAnswer]) -> Result<Tensor, String> {
        let name = &source.name;
        let parts = rows.iter().map(|row| {
            if source.kind == Kind::Answer && row.tensors.is_empty() {
                return source.row_of(row);
            }
            let only = match (self.outputs.len(), row.tensors.as_slice()) {
                (1, [only]) => Some(only),
                _ => None,
            };
            let named = row.tensors.iter().find(|(of, _)| **of == **name);
            let found = named.or(only).map(|(_, tensor)| tensor.clone());
            found.ok_or_else(|| format!("the variant made no output `{name}`"))
        });
        let parts: Vec<RawTensor> = parts.collect::<Result<_, String>>()?;
        let joined = RawTensor::join_rows(parts).ok_or_else(|| {
            format!(
                "output `{name}` has different shapes for the rows of this request: send each row \
                 as a request of its own"
            )
        })?;
        Ok(raw::to_wire(joined))
    }
}

// === impl OutputSource ===

impl OutputSource {
    /// The numbers of an answer as a tensor of one row.
    fn row_of(&self, row: &RowAnswer) -> Result<RawTensor, String> {
        self.check(row)?;
        let mut shape = vec![1];
        shape.extend_from_slice(&self.row_shape);
        let bytes = row
            .probabilities
            .iter()
            .flat_map(|number| number.to_le_bytes());
        Ok(RawTensor {
            datatype: Datatype::Fp32,
            shape,
            data: RawData::Numbers(bytes.collect::<Vec<u8>>().into()),
        })
    }

    /// Refuses an answer of another width than the card's.
    fn check(&self, row: &RowAnswer) -> Result<(), String> {
        let (found, shape) = (row.probabilities.len(), &self.row_shape);
        match found == shape.iter().product::<usize>() {
            true => Ok(()),
            false => Err(format!(
                "output `{}`: the variant made {found} numbers, the app's card has {shape:?} for each row",
                self.name
            )),
        }
    }
}

fn answers(rows: &[RowAnswer]) -> Vec<f32> {
    if let [row] = rows {
        return row.probabilities.clone();
    }
    let each = rows.iter().flat_map(|row| &row.probabilities);
    each.copied().collect()
}

/// The label that a far variant makes, or the most probable class; the first of equals.
fn label(output: &str, row: &RowAnswer) -> Result<i64, String> {
    let made = row.tensors.iter().find(|(name, _)| **name == *output);
    let number = made.and_then(|(_, tensor)| tensor.numbers());
    if let Some(number) = number.and_then(|bytes| bytes[..].try_into().ok()) {
        return Ok(i64::from_le_bytes(number));
    }
    if row.probabilities.is_empty() {
        return Err(format!("the variant made no output `{output}`"));
    }
    let mut best = 0;
    for (class, probability) in row.probabilities.iter().enumerate() {
        if *probability > row.probabilities[best] {
            best = class;
        }
    }
    Ok(best as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchyard_core::time::Micros;

    fn card(name: &str, datatype: Datatype, shape: &[usize]) -> TensorCard {
        TensorCard::fixed(name, datatype, shape)
    }

    fn row(probabilities: &[f32]) -> RowAnswer {
        RowAnswer {
            probabilities: probabilities.to_vec(),
            tensors: Vec::new(),
            ran: None,
            policy: "p@1".into(),
            window: 1,
            batch_size: 0,
            queue: Micros(0),
            compute: Micros(0),
            in_time: true,
        }
    }

    #[test]
    fn outputs_follow_the_card() {
        let cards = [
            card(LABEL, Datatype::Int64, &[1]),
            card(PROBABILITIES, Datatype::Fp32, &[3]),
        ];
        let layout = Layout::try_new("heart", Task::Classify, &cards).unwrap();
        let tensors = layout
            .tensors(&[row(&[0.2, 0.7, 0.1]), row(&[0.5, 0.5, 0.0])])
            .unwrap();
        assert_eq!(tensors[0].tensor.shape.as_slice(), [2, 1]);
        assert_eq!(tensors[0].tensor.data, TensorData::I64(vec![1, 0]));
        assert_eq!(tensors[1].output, OutputIndex(1));
        assert_eq!(tensors[1].tensor.shape.as_slice(), [2, 3]);
    }

    #[test]
    fn an_answer_of_another_width_than_the_card_is_refused() {
        let cards = [
            card(LABEL, Datatype::Int64, &[1]),
            card(PROBABILITIES, Datatype::Fp32, &[5]),
        ];
        let layout = Layout::try_new("heart", Task::Classify, &cards).unwrap();
        let (narrow, wide) = (row(&[0.25; 4]), row(&[0.125; 6]));
        let refused = |rows: &[RowAnswer]| layout.tensors(rows).map(drop).unwrap_err();
        assert_eq!(
            refused(std::slice::from_ref(&narrow)),
            "output `probabilities`: the variant made 4 numbers, the app's card has [5] for each row"
        );
        // Together they have the length of two rows.
        assert!(refused(&[wide, narrow]).contains("made 6 numbers"));
        assert_eq!(refused(&[row(&[])]), "the variant made no output `label`");
    }

    #[test]
    fn a_label_of_a_far_variant_is_sent_as_it_is() {
        let cards = [card(LABEL, Datatype::Int64, &[1])];
        let layout = Layout::try_new("heart", Task::Classify, &cards).unwrap();
        let made = RawTensor {
            datatype: Datatype::Int64,
            shape: vec![1, 1],
            data: RawData::Numbers(3_i64.to_le_bytes().to_vec().into()),
        };
        let labelled = RowAnswer {
            tensors: vec![(LABEL.into(), made)],
            ..row(&[])
        };
        let tensors = layout.tensors(&[labelled, row(&[0.2, 0.8])]).unwrap();
        assert_eq!(tensors[0].tensor.shape.as_slice(), [2, 1]);
        assert_eq!(tensors[0].tensor.data, TensorData::I64(vec![3, 1]));
    }

    #[test]
    fn an_embedding_is_sent_as_it_is() {
        let cards = [card(EMBEDDING, Datatype::Fp32, &[2])];
        let layout = Layout::try_new("minilm", Task::Embed, &cards).unwrap();
        let tensors = layout
            .tensors(&[row(&[0.6, -0.8]), row(&[1.0, 0.0])])
            .unwrap();
        assert_eq!(tensors[0].tensor.shape.as_slice(), [2, 2]);
        let sent = TensorData::F32(vec![0.6, -0.8, 1.0, 0.0]);
        assert_eq!(tensors[0].tensor.data, sent);
    }

    #[test]
    fn a_score_is_sent_under_the_name_on_the_card() {
        let cards = [card("relevance", Datatype::Fp32, &[1])];
        let layout = Layout::try_new("rerank", Task::Score, &cards).unwrap();
        let tensors = layout.tensors(&[row(&[7.25]), row(&[-3.5])]).unwrap();
        assert_eq!(tensors[0].tensor.shape.as_slice(), [2, 1]);
        assert_eq!(tensors[0].tensor.data, TensorData::F32(vec![7.25, -3.5]));
    }

    /// A far worker answers with tensors where a worker of this machine has numbers.
    #[test]
    fn rows_of_workers_that_answer_in_two_ways_are_joined() {
        let cards = [card("relevance", Datatype::Fp32, &[1])];
        let layout = Layout::try_new("rerank", Task::Score, &cards).unwrap();
        let made = RawTensor {
            datatype: Datatype::Fp32,
            shape: vec![1, 1],
            data: RawData::Numbers(7.25_f32.to_le_bytes().to_vec().into()),
        };
        let far = RowAnswer {
            tensors: vec![("relevance".into(), made)],
            ..row(&[])
        };
        let tensors = layout.tensors(&[row(&[-3.5]), far.clone()]).unwrap();
        assert_eq!(tensors[0].tensor.shape.as_slice(), [2, 1]);
        let TensorData::Wire(wire) = &tensors[0].tensor.data else {
            panic!("copied");
        };
        assert_eq!(wire.decode().unwrap(), TensorData::F32(vec![-3.5, 7.25]));
        let refused = layout.tensors(&[far, row(&[])]).unwrap_err();
        assert!(refused.contains("made 0 numbers"), "{refused}");
    }

    #[test]
    fn the_outputs_of_a_graph_are_joined_by_name() {
        let made = |name: &str, shape: &[usize]| {
            let count = shape.iter().product();
            let tensor = RawTensor {
                datatype: Datatype::Uint8,
                shape: shape.to_vec(),
                data: RawData::Numbers(vec![7; count].into()),
            };
            (name.into(), tensor)
        };
        let answered = |boxes: usize| RowAnswer {
            tensors: vec![made("scores", &[1, 2]), made("boxes", &[1, boxes, 4])],
            ..row(&[])
        };
        let cards = [card("boxes", Datatype::Uint8, &[3, 4])];
        let layout = Layout::try_new("street", Task::Tensors, &cards).unwrap();
        let tensors = layout.tensors(&[answered(3), answered(3)]).unwrap();
        assert_eq!(tensors[0].tensor.shape.as_slice(), [2, 3, 4]);
        let uneven = layout.tensors(&[answered(3), answered(2)]).unwrap_err();
        assert!(
            uneven.contains("send each row as a request of its own"),
            "{uneven}"
        );
        let none = layout.tensors(&[row(&[])]).unwrap_err();
        assert_eq!(none, "the variant made no output `boxes`");
    }

    #[test]
    fn an_output_that_the_server_does_not_make_is_refused() {
        for (task, name) in [(Task::Classify, "mask"), (Task::Classify, EMBEDDING)] {
            let refused = Layout::try_new("heart", task, &[card(name, Datatype::Fp32, &[3])]);
            assert!(refused.is_err_and(|error| error.to_string().contains(name)));
        }
    }
}
