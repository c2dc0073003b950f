//! Typed tensors: the form of inputs and outputs between the wire and the backend.

use bytes::Bytes;
use smallvec::SmallVec;

use crate::datatype::Datatype;

/// Dimensions of a tensor, the batch dimension (rows) first. Four fit without an allocation.
pub type Shape = SmallVec<[usize; 4]>;

/// Elements and their shape; the product of `shape` is `data.len()`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Dimensions, the batch dimension (rows) first.
    pub shape: Shape,
    /// Elements, row-major.
    pub data: TensorData,
}

/// Elements in row-major order.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each variant is the datatype of its name")]
pub enum TensorData {
    Bool(Vec<bool>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    /// The bits of IEEE half-precision floats.
    F16(Vec<u16>),
    /// The bits of bfloat16 floats.
    Bf16(Vec<u16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bytes(Vec<Vec<u8>>),
    /// A large binary input of a datatype with a size: it stays in its body, so that it is copied
    /// only into its batch.
    Wire(WireElements),
}

/// Little-endian elements, still in the body that the client sent.
#[derive(Clone, Debug, PartialEq)]
pub struct WireElements {
    /// A datatype that has a size, and of which every bit pattern is a value.
    pub datatype: Datatype,
    /// A whole number of elements, at any alignment.
    pub bytes: Bytes,
}

/// Evaluates one expression with the vector inside, for any element type.
macro_rules! with_elements {
    ($data:expr, $values:ident => $body:expr) => {
        match $data {
            TensorData::Bool($values) => $body,
            TensorData::U8($values) => $body,
            TensorData::U16($values) | TensorData::F16($values) | TensorData::Bf16($values) => {
                $body
            }
            TensorData::U32($values) => $body,
            TensorData::U64($values) => $body,
            TensorData::I8($values) => $body,
            TensorData::I16($values) => $body,
            TensorData::I32($values) => $body,
            TensorData::I64($values) => $body,
            TensorData::F32($values) => $body,
            TensorData::F64($values) => $body,
            TensorData::Bytes($values) => $body,
            TensorData::Wire($values) => $body,
        }
    };
}

/// Elements of a tensor of this shape; `None` if the product overflows.
pub fn element_count(shape: &[usize]) -> Option<usize> {
    shape
        .iter()
        .try_fold(1_usize, |count, &dim| count.checked_mul(dim))
}

// === impl TensorData ===

impl TensorData {
    /// The element type.
    #[inline]
    pub const fn datatype(&self) -> Datatype {
        match self {
            Self::Bool(_) => Datatype::Bool,
            Self::U8(_) => Datatype::U8,
            Self::U16(_) => Datatype::U16,
            Self::U32(_) => Datatype::U32,
            Self::U64(_) => Datatype::U64,
            Self::I8(_) => Datatype::I8,
            Self::I16(_) => Datatype::I16,
            Self::I32(_) => Datatype::I32,
            Self::I64(_) => Datatype::I64,
            Self::F16(_) => Datatype::F16,
            Self::Bf16(_) => Datatype::Bf16,
            Self::F32(_) => Datatype::F32,
            Self::F64(_) => Datatype::F64,
            Self::Bytes(_) => Datatype::Bytes,
            Self::Wire(wire) => wire.datatype,
        }
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        with_elements!(self, values => values.len())
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

// === impl WireElements ===

impl WireElements {
    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        let size = self.datatype.size().unwrap_or(1);
        self.bytes.len() / size
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_that_overflows_has_no_count() {
        assert_eq!(element_count(&[2, 3, 4]), Some(24));
        assert_eq!(element_count(&[usize::MAX, 2]), None);
    }
}
