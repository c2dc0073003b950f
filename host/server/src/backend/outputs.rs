//! Answers of rows as the output tensors that an app's card names.

use smallvec::smallvec;
use switchyard_models::card::{Datatype, Task, TensorCard};
use thiserror::Error;

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
    outputs: Vec<(Kind, Vec<usize>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The numbers of an answer as they are: class probabilities or an embedding.
    Answer,
    Label,
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
                (Task::Classify, PROBABILITIES, Datatype::Fp32)
                | (Task::Embed, EMBEDDING, Datatype::Fp32) => Kind::Answer,
                (Task::Classify, LABEL, Datatype::Int64) => Kind::Label,
                (_, name, datatype) => {
                    let made = match task {
                        Task::Classify => "`probabilities` FP32 and `label` INT64",
                        Task::Embed => "`embedding` FP32",
                    };
                    let reason = format!("`{name}` {datatype:?}: the server makes {made}");
                    let app = app.to_owned();
                    return Err(OutputsError { app, reason });
                }
            };
            Ok((kind, card.shape.clone()))
        });
        Ok(Self {
            outputs: outputs.collect::<Result<_, _>>()?,
        })
    }

    /// One tensor per output, one row of it per answer.
    pub(super) fn tensors(&self, rows: &[RowAnswer]) -> Vec<OutputTensor> {
        let outputs = self.outputs.iter().enumerate();
        outputs
            .map(|(index, (kind, row_shape))| {
                let mut shape: Shape = smallvec![rows.len()];
                shape.extend_from_slice(row_shape);
                let data = match kind {
                    Kind::Answer => TensorData::F32(answers(rows)),
                    Kind::Label => TensorData::I64(rows.iter().map(label).collect()),
                };
                OutputTensor {
                    output: OutputIndex(index),
                    tensor: Tensor { shape, data },
                }
            })
            .collect()
    }
}

fn answers(rows: &[RowAnswer]) -> Vec<f32> {
    let each = rows.iter().flat_map(|row| &row.probabilities);
    each.copied().collect()
}

/// The most probable class; the first of equals.
fn label(row: &RowAnswer) -> i64 {
    let mut best = 0;
    for (class, probability) in row.probabilities.iter().enumerate() {
        if *probability > row.probabilities[best] {
            best = class;
        }
    }
    best as i64
}

#[cfg(test)]
mod tests {
    use switchyard_core::time::Micros;

    use super::*;

    fn card(name: &str, datatype: Datatype, shape: &[usize]) -> TensorCard {
        TensorCard {
            name: name.to_owned(),
            datatype,
            shape: shape.to_vec(),
        }
    }

    fn row(probabilities: &[f32]) -> RowAnswer {
        RowAnswer {
            probabilities: probabilities.to_vec(),
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
        let tensors = layout.tensors(&[row(&[0.2, 0.7, 0.1]), row(&[0.5, 0.5, 0.0])]);
        assert_eq!(tensors[0].tensor.shape.as_slice(), [2, 1]);
        assert_eq!(tensors[0].tensor.data, TensorData::I64(vec![1, 0]));
        assert_eq!(tensors[1].output, OutputIndex(1));
        assert_eq!(tensors[1].tensor.shape.as_slice(), [2, 3]);
    }

    #[test]
    fn an_embedding_is_sent_as_it_is() {
        let cards = [card(EMBEDDING, Datatype::Fp32, &[2])];
        let layout = Layout::try_new("minilm", Task::Embed, &cards).unwrap();
        let tensors = layout.tensors(&[row(&[0.6, -0.8]), row(&[1.0, 0.0])]);
        assert_eq!(tensors[0].tensor.shape.as_slice(), [2, 2]);
        let sent = TensorData::F32(vec![0.6, -0.8, 1.0, 0.0]);
        assert_eq!(tensors[0].tensor.data, sent);
    }

    #[test]
    fn an_output_that_the_server_does_not_make_is_refused() {
        for (task, name) in [
            (Task::Classify, "mask"),
            (Task::Classify, EMBEDDING),
            (Task::Embed, PROBABILITIES),
        ] {
            let refused = Layout::try_new("heart", task, &[card(name, Datatype::Fp32, &[3])]);
            assert!(refused.is_err_and(|error| error.to_string().contains(name)));
        }
    }
}
