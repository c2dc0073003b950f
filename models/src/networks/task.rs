//! The kinds of answers.

use serde::{Deserialize, Serialize};

/// Kind of answer of an application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// One of its classes.
    #[default]
    Classify,
    /// A vector, to be compared with others.
    Embed,
    /// A number, or several.
    Regress,
    /// How well the parts of a request fit each other, such as a query and a text.
    Score,
    /// Tensors of any meaning, such as boxes or masks.
    Tensors,
}

impl Task {
    /// Whether an answer is a class. Without classes, a scheduler sees a single one, whose recall is
    /// the quality.
    pub fn is_classify(&self) -> bool {
        *self == Self::Classify
    }

    /// The name on cards.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classify => "classify",
            Self::Embed => "embed",
            Self::Regress => "regress",
            Self::Score => "score",
            Self::Tensors => "tensors",
        }
    }
}
