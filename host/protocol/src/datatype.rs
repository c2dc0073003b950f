//! The element types of tensors.

/// Longest element of `BYTES`, a text, in bytes: ten times the text that the encoders with the
/// longest context read. The tokenizer runs on a worker thread, and tokens after an encoder's last
/// one are wasted.
pub(crate) const TEXT_BYTES_MAX: usize = 64 << 10;

/// The element types of the protocol, and BF16, which Triton added.
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

    /// The datatype with this protocol name; `None` for an unknown name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|datatype| datatype.name() == name)
    }

    /// Bytes per element on the wire; `None` for `BYTES`, whose elements vary in length.
    #[inline]
    pub const fn size(self) -> Option<usize> {
        match self {
            Self::Bool | Self::U8 | Self::I8 => Some(1),
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::Bytes => None,
        }
    }

    /// Whether JSON can carry it: FP16 and BF16 travel in binary only.
    pub const fn has_json_form(self) -> bool {
        !matches!(self, Self::F16 | Self::Bf16)
    }
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
}
