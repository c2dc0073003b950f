//! The names that a far server has for variants, exits and tensors.

use std::sync::Arc;

use switchyard_models::card::{Datatype, Task, TensorCard};

/// A variant on a far server.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteModel {
    /// `app/variant` here.
    pub name: String,
    /// The model there.
    pub model: String,
    /// The version there of each exit, by exit; empty: the server chooses.
    pub versions: Vec<String>,
    /// The inputs there.
    pub inputs: Vec<RemoteTensor>,
    /// The outputs there.
    pub outputs: RemoteOutputs,
}

/// A tensor of a far model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTensor {
    /// Its position among the app's inputs or outputs.
    pub at: usize,
    /// Its name here.
    pub local: Arc<str>,
    /// Its name there.
    pub name: String,
    /// Element type.
    pub datatype: Datatype,
    /// Shape without the batch dimension, -1 for an open dimension.
    pub shape: Vec<i64>,
}

/// The outputs that are asked of a far model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteOutputs {
    /// One tensor of numbers: class probabilities or an embedding, of a fixed width.
    Answer(RemoteTensor),
    /// All tensors of the app.
    Tensors(Vec<RemoteTensor>),
}

// === impl RemoteTensor ===

impl RemoteTensor {
    /// The tensor of a card, at its position, which has this name there.
    pub fn new(at: usize, card: &TensorCard, name: Option<&String>) -> Self {
        Self {
            at,
            local: Arc::from(card.name.as_str()),
            name: name.unwrap_or(&card.name).clone(),
            datatype: card.datatype,
            shape: card.shape.clone(),
        }
    }

    /// Whether a row of this shape fits, or may fit: -1 fits every size.
    pub(crate) fn fits(&self, row: &[i64]) -> bool {
        let fits = |(theirs, ours): (&i64, &i64)| theirs == ours || *theirs < 0 || *ours < 0;
        row.len() == self.shape.len() && row.iter().zip(&self.shape).all(fits)
    }
}

// === impl RemoteOutputs ===

impl RemoteOutputs {
    /// The outputs of an app that answers with `task`. The label of a class follows from the
    /// probabilities.
    pub fn new(task: Task, outputs: Vec<RemoteTensor>) -> Self {
        let answer = match task {
            Task::Classify => "probabilities",
            Task::Embed => "embedding",
            _ => return Self::Tensors(outputs),
        };
        // Numbers without a shape have the card's.
        let is_fixed = |output: &RemoteTensor| output.shape.iter().all(|size| *size >= 0);
        let found = outputs
            .iter()
            .find(|output| *output.local == *answer && is_fixed(output));
        match found {
            Some(found) => Self::Answer(found.clone()),
            None => Self::Tensors(outputs),
        }
    }

    pub(crate) fn all(&self) -> &[RemoteTensor] {
        match self {
            Self::Answer(tensor) => std::slice::from_ref(tensor),
            Self::Tensors(tensors) => tensors,
        }
    }
}
