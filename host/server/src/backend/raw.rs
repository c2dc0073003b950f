//! Tensors of the wire as tensors of a network, and back.

use std::sync::Arc;

use smallvec::SmallVec;
use switchyard_models::card;
use switchyard_models::{RawData, RawTensor};

use crate::ingress::{Datatype, Tensor, TensorData, WireElements};

/// The datatype of the wire with a card's name.
pub(super) fn on_wire(datatype: card::Datatype) -> Datatype {
    // Both have the protocol's names.
    Datatype::from_name(datatype.name()).unwrap_or(Datatype::Bytes)
}

/// A request's tensor. Elements in its body stay there.
///
/// # Errors
/// A string is not UTF-8.
pub(super) fn from_wire(tensor: Tensor, datatype: card::Datatype) -> Result<RawTensor, String> {
    /// Little-endian numbers.
    macro_rules! bytes_of {
        ($values:expr) => {{
            let bytes = $values.iter().flat_map(|value| value.to_le_bytes());
            RawData::Numbers(bytes.collect::<Vec<u8>>().into())
        }};
    }
    let data = match tensor.data {
        TensorData::Wire(wire) => RawData::Numbers(wire.bytes),
        TensorData::Bool(values) => {
            let bytes = values.into_iter().map(u8::from);
            RawData::Numbers(bytes.collect::<Vec<u8>>().into())
        }
        TensorData::U8(values) => RawData::Numbers(values.into()),
        TensorData::U16(values) | TensorData::F16(values) | TensorData::Bf16(values) => {
            bytes_of!(values)
        }
        TensorData::U32(values) => bytes_of!(values),
        TensorData::U64(values) => bytes_of!(values),
        TensorData::I8(values) => bytes_of!(values),
        TensorData::I16(values) => bytes_of!(values),
        TensorData::I32(values) => bytes_of!(values),
        TensorData::I64(values) => bytes_of!(values),
        TensorData::F32(values) => bytes_of!(values),
        TensorData::F64(values) => bytes_of!(values),
        TensorData::Bytes(texts) => {
            let texts = texts.into_iter().map(|text| {
                let text = String::from_utf8(text).map_err(|error| error.to_string())?;
                Ok(Arc::from(text))
            });
            RawData::Texts(texts.collect::<Result<_, String>>()?)
        }
    };
    Ok(RawTensor {
        datatype,
        shape: tensor.shape.into_vec(),
        data,
    })
}

/// An answer's tensor. Its numbers are shared, not copied.
pub(super) fn to_wire(tensor: RawTensor) -> Tensor {
    let datatype = on_wire(tensor.datatype);
    let data = match tensor.data {
        RawData::Numbers(bytes) if datatype == Datatype::Bool => {
            TensorData::Bool(bytes.iter().map(|&byte| byte != 0).collect())
        }
        RawData::Numbers(bytes) => TensorData::Wire(WireElements { datatype, bytes }),
        RawData::Texts(texts) => {
            let texts = texts.iter().map(|text| text.as_bytes().to_vec());
            TensorData::Bytes(texts.collect())
        }
    };
    Tensor {
        shape: SmallVec::from_vec(tensor.shape),
        data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_cross_as_their_bytes_and_strings_as_text() {
        let there = |data: TensorData, datatype| {
            let shape = SmallVec::from_vec(vec![1, data.len()]);
            from_wire(Tensor { shape, data }, datatype).unwrap()
        };
        let doubles = there(TensorData::F64(vec![0.5, -2.0]), card::Datatype::Fp64);
        let back = to_wire(doubles);
        assert_eq!(back.shape.as_slice(), [1, 2]);
        let TensorData::Wire(wire) = &back.data else {
            panic!("copied");
        };
        assert_eq!(wire.decode().unwrap(), TensorData::F64(vec![0.5, -2.0]));

        let flags = TensorData::Bool(vec![true, false]);
        let back = to_wire(there(flags.clone(), card::Datatype::Bool));
        assert_eq!(back.data, flags);

        let texts = TensorData::Bytes(vec!["Zürich".into(), "".into()]);
        let back = to_wire(there(texts.clone(), card::Datatype::Bytes));
        assert_eq!(back.data, texts);
        let wrong = Tensor {
            shape: SmallVec::from_vec(vec![1, 1]),
            data: TensorData::Bytes(vec![vec![0xff]]),
        };
        assert!(from_wire(wrong, card::Datatype::Bytes).is_err());
    }

    #[test]
    fn every_datatype_of_a_card_is_one_of_the_wire() {
        for datatype in Datatype::ALL {
            let quoted = format!("\"{}\"", datatype.name());
            let card: card::Datatype = serde_json::from_str(&quoted).unwrap();
            assert_eq!(on_wire(card), datatype);
            assert_eq!(card.size(), datatype.size());
        }
    }
}
