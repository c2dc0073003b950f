//! The labels of classes.

use std::sync::Arc;

use candle_core::Result;

use super::definition::Definition;
use super::value::{Value, text_bytes};

/// `classlabels_*`, in the order of the scores.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Labels {
    Ints(Vec<i64>),
    Texts(Vec<Arc<str>>),
}

// === impl Labels ===

impl Labels {
    /// Reads `classlabels_strings`, or the attribute of integers.
    pub(super) fn read(definition: Definition<'_>, ints: &str) -> Result<Self> {
        let texts = definition.texts("classlabels_strings")?;
        match definition.ints(ints) {
            [] if texts.is_empty() => {
                candle_core::bail!("`classlabels_strings` and `{ints}` are missing")
            }
            ints if texts.is_empty() => Ok(Self::Ints(ints.to_vec())),
            _ => Ok(Self::Texts(texts)),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Ints(ints) => ints.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Ints(ints) => size_of_val(ints.as_slice()),
            Self::Texts(texts) => text_bytes(texts),
        }
    }

    /// The labels of rows from their classes, `[rows]`. A number stands for a class that has no
    /// label.
    pub(super) fn of(&self, classes: &[usize]) -> Result<Value> {
        let rows = vec![classes.len()];
        match self {
            Self::Ints(ints) => {
                let label = |&class: &usize| ints.get(class).copied().unwrap_or(class as i64);
                Value::new(rows, classes.iter().map(label).collect::<Vec<_>>())
            }
            Self::Texts(texts) => {
                let label = |&class: &usize| match texts.get(class) {
                    Some(text) => Arc::clone(text),
                    None => class.to_string().into(),
                };
                Value::new(rows, classes.iter().map(label).collect::<Vec<_>>())
            }
        }
    }

    /// Labels of exactly two classes, otherwise 0 and 1: onnxruntime's rule for a single score.
    pub(super) fn of_two(self) -> Self {
        match self.len() {
            2 => self,
            _ => match self {
                Self::Ints(_) => Self::Ints(vec![0, 1]),
                Self::Texts(_) => Self::Texts(vec!["0".into(), "1".into()]),
            },
        }
    }
}
