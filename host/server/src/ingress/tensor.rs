//! Typed tensors: what crosses between the wire and the backend.

use bytes::Bytes;
use smallvec::SmallVec;

use super::binary;

/// Dimensions of a tensor, the batch dimension first. Four fit without allocation.
pub type Shape = SmallVec<[usize; 4]>;

/// The element types of the protocol, plus BF16, which Triton added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the protocol's own")]
pub enum Datatype {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F16,
    Bf16,
    F32,
    F64,
    Bytes,
}

impl Datatype {
    /// Every datatype, for tests and tables.
    pub const ALL: [Self; 14] = [
        Self::Bool,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
        Self::Bytes,
    ];

    /// The protocol's name, such as `FP32`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "BOOL",
            Self::U8 => "UINT8",
            Self::U16 => "UINT16",
            Self::U32 => "UINT32",
            Self::U64 => "UINT64",
            Self::I8 => "INT8",
            Self::I16 => "INT16",
            Self::I32 => "INT32",
            Self::I64 => "INT64",
            Self::F16 => "FP16",
            Self::Bf16 => "BF16",
            Self::F32 => "FP32",
            Self::F64 => "FP64",
            Self::Bytes => "BYTES",
        }
    }

    /// The name in a Triton model configuration, such as `TYPE_FP32`.
    pub const fn config_name(self) -> &'static str {
        match self {
            Self::Bool => "TYPE_BOOL",
            Self::U8 => "TYPE_UINT8",
            Self::U16 => "TYPE_UINT16",
            Self::U32 => "TYPE_UINT32",
            Self::U64 => "TYPE_UINT64",
            Self::I8 => "TYPE_INT8",
            Self::I16 => "TYPE_INT16",
            Self::I32 => "TYPE_INT32",
            Self::I64 => "TYPE_INT64",
            Self::F16 => "TYPE_FP16",
            Self::Bf16 => "TYPE_BF16",
            Self::F32 => "TYPE_FP32",
            Self::F64 => "TYPE_FP64",
            Self::Bytes => "TYPE_STRING",
        }
    }

    /// The datatype of that protocol name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|datatype| datatype.name() == name)
    }

    /// Bytes per element on the wire; none for `BYTES`, whose elements vary.
    pub const fn size(self) -> Option<usize> {
        match self {
            Self::Bool | Self::U8 | Self::I8 => Some(1),
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::Bytes => None,
        }
    }

    /// Whether JSON can carry it: the half floats travel in binary only.
    pub const fn has_json_form(self) -> bool {
        !matches!(self, Self::F16 | Self::Bf16)
    }
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
    /// IEEE half precision, as its bits.
    F16(Vec<u16>),
    /// bfloat16, as its bits.
    Bf16(Vec<u16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bytes(Vec<Vec<u8>>),
    /// Of any type that has a size: large binary inputs, which nobody has to copy before their batch.
    Wire(WireElements),
}

/// Elements as they came: little-endian, in the body that brought them.
#[derive(Clone, Debug, PartialEq)]
pub struct WireElements {
    /// What they are; it has a size, and every pattern of bits is one of its values.
    pub datatype: Datatype,
    /// A whole number of them, at any address.
    pub bytes: Bytes,
}

/// Runs one expression on the vector inside, whatever its element type.
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

impl TensorData {
    /// The element type.
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
    pub fn len(&self) -> usize {
        let size = self.datatype.size().unwrap_or(1);
        self.bytes.len() / size
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A copy of them as a vector of their type.
    ///
    /// # Errors
    /// The bytes are no whole number of elements.
    pub fn decode(&self) -> Result<TensorData, String> {
        binary::decode(self.datatype, &self.bytes, self.len())
    }
}

/// Elements and their shape; `shape` multiplies to `data.len()`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Dimensions, the batch dimension (rows) first.
    pub shape: Shape,
    /// Elements, row-major.
    pub data: TensorData,
}

/// Elements a shape holds, or none when that overflows.
pub(super) fn element_count(shape: &[usize]) -> Option<usize> {
    shape
        .iter()
        .try_fold(1_usize, |count, &dim| count.checked_mul(dim))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_datatype() {
        for datatype in Datatype::ALL {
            assert_eq!(Datatype::from_name(datatype.name()), Some(datatype));
        }
        assert_eq!(Datatype::from_name("FP31"), None);
    }

    #[test]
    fn a_shape_that_overflows_has_no_count() {
        assert_eq!(element_count(&[2, 3, 4]), Some(24));
        assert_eq!(element_count(&[usize::MAX, 2]), None);
    }
}
