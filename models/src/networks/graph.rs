//! Networks of named tensors of any type and number.
//!
//! A tensor is its bytes here, as a request brought them: rows are cut off and joined without
//! knowing the element type, and only the engine that computes looks at numbers.

use std::sync::Arc;

use bytes::Bytes;
use candle_core::{Result, Tensor};

use super::datatype::Datatype;

/// A tensor of any type. Clones share its elements.
#[derive(Clone, Debug, PartialEq)]
pub struct RawTensor {
    /// Element type.
    pub datatype: Datatype,
    /// Dimensions, those of the rows first.
    pub shape: Vec<usize>,
    /// Elements, row-major; as many as the shape has.
    pub data: RawData,
}

/// The elements of a [`RawTensor`].
#[derive(Clone, Debug, PartialEq)]
pub enum RawData {
    /// Little-endian numbers, at any alignment.
    Numbers(Bytes),
    /// Strings, for [`Datatype::Bytes`].
    Texts(Vec<Arc<str>>),
}

/// A tensor and its name.
pub type NamedTensor = (Arc<str>, RawTensor);

/// An input or output of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: Arc<str>,
    /// Element type.
    pub datatype: Datatype,
    /// Dimensions, the batch axis first, `None` for one that is left open; no shape if the file has
    /// none.
    pub shape: Option<Vec<Option<usize>>>,
}

/// The answer of a graph to a batch.
#[derive(Clone, Debug)]
pub enum GraphAnswer {
    /// Class probabilities `[rows, classes]`, f32.
    Scores(Tensor),
    /// Every output of the graph.
    Tensors(Vec<NamedTensor>),
}

/// A network that takes named tensors; it has one stage and one exit.
pub trait Graph: Send + Sync {
    /// Runs a batch. All inputs have the same number of rows. An input has the name that the
    /// application gives it; the only one may have any name.
    ///
    /// # Errors
    /// An input is missing or does not fit, or the computation failed.
    fn run(&self, inputs: &[NamedTensor]) -> Result<GraphAnswer>;
}

// === impl RawTensor ===

impl RawTensor {
    /// Rows: its first dimension.
    pub fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(0)
    }

    /// Bytes of numbers, or texts.
    fn len(&self) -> usize {
        match &self.data {
            RawData::Numbers(bytes) => bytes.len(),
            RawData::Texts(texts) => texts.len(),
        }
    }

    /// One tensor of one row for each row. Numbers are shared, not copied.
    pub fn split_rows(&self) -> Vec<Self> {
        let rows = self.rows();
        let mut shape = self.shape.clone();
        if let Some(first) = shape.first_mut() {
            *first = 1;
        }
        let one = |row: usize| Self {
            datatype: self.datatype,
            shape: shape.clone(),
            data: match &self.data {
                RawData::Numbers(bytes) => {
                    let length = bytes.len() / rows.max(1);
                    RawData::Numbers(bytes.slice(row * length..(row + 1) * length))
                }
                RawData::Texts(texts) => {
                    let length = texts.len() / rows.max(1);
                    RawData::Texts(texts[row * length..(row + 1) * length].to_vec())
                }
            },
        };
        (0..rows).map(one).collect()
    }

    /// The rows of several tensors, one after another. A single tensor is moved. `None` unless all
    /// have the same type, the same dimensions after the first, and as many bytes or texts in each row.
    pub fn join_rows(mut parts: Vec<Self>) -> Option<Self> {
        if parts.len() == 1 {
            return parts.pop();
        }
        let first = parts.first()?;
        let row = first.shape.get(1..)?;
        let alike = |part: &Self| {
            part.datatype == first.datatype
                && part.shape.get(1..) == Some(row)
                && part.len() * first.rows() == first.len() * part.rows()
        };
        if !parts.iter().all(alike) {
            return None;
        }
        let mut shape = first.shape.clone();
        shape[0] = parts.iter().map(Self::rows).sum();
        let data = match &first.data {
            RawData::Numbers(_) => {
                let numbers = parts.iter().filter_map(Self::numbers);
                let mut joined = Vec::with_capacity(numbers.clone().map(Bytes::len).sum());
                numbers.for_each(|bytes| joined.extend_from_slice(bytes));
                RawData::Numbers(joined.into())
            }
            RawData::Texts(_) => {
                let texts = parts.iter().filter_map(Self::texts).flatten();
                RawData::Texts(texts.cloned().collect())
            }
        };
        Some(Self {
            datatype: first.datatype,
            shape,
            data,
        })
    }

    /// Its numbers; `None` for strings.
    pub fn numbers(&self) -> Option<&Bytes> {
        match &self.data {
            RawData::Numbers(bytes) => Some(bytes),
            RawData::Texts(_) => None,
        }
    }

    /// Its strings; `None` for numbers.
    pub fn texts(&self) -> Option<&[Arc<str>]> {
        match &self.data {
            RawData::Texts(texts) => Some(texts),
            RawData::Numbers(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn numbers(shape: &[usize], values: &[i16]) -> RawTensor {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        RawTensor {
            datatype: Datatype::Int16,
            shape: shape.to_vec(),
            data: RawData::Numbers(bytes.into()),
        }
    }

    fn texts(shape: &[usize], values: &[&str]) -> RawTensor {
        RawTensor {
            datatype: Datatype::Bytes,
            shape: shape.to_vec(),
            data: RawData::Texts(values.iter().map(|&text| text.into()).collect()),
        }
    }

    #[test]
    fn rows_that_are_cut_off_join_to_the_same_tensor() {
        for whole in [
            numbers(&[3, 2], &[1, 2, 3, 4, 5, 6]),
            texts(&[2, 2], &["a", "b", "c", "d"]),
        ] {
            let rows = whole.split_rows();
            assert_eq!(rows.len(), whole.rows());
            assert!(rows.iter().all(|row| row.shape == [1, 2]));
            assert_eq!(RawTensor::join_rows(rows), Some(whole));
        }
        let rows = numbers(&[2, 1], &[7, 8]).split_rows();
        assert_eq!(rows[1], numbers(&[1, 1], &[8]));
    }

    #[test]
    fn rows_of_different_lengths_do_not_join() {
        let (right, long) = (numbers(&[1, 1], &[1]), numbers(&[1, 1], &[1, 2]));
        let empty = numbers(&[1, 1], &[]);
        assert_eq!(RawTensor::join_rows(vec![right, long, empty]), None);
    }

    #[test]
    fn rows_of_different_shapes_do_not_join() {
        let (short, long) = (numbers(&[1, 1], &[1]), numbers(&[1, 2], &[1, 2]));
        assert_eq!(RawTensor::join_rows(vec![short.clone(), long]), None);
        let mut other = short.clone();
        other.datatype = Datatype::Uint16;
        assert_eq!(RawTensor::join_rows(vec![short, other]), None);
        assert_eq!(RawTensor::join_rows(Vec::new()), None);
    }
}
