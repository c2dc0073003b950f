//! The elements of an output as JSON.

use serde::ser::{Error, Serialize, SerializeSeq, Serializer};

use crate::tensor::TensorData;

/// Flat, row-major. A float that is not finite becomes `null`.
pub(crate) struct JsonElements<'a> {
    /// Name of the output, for errors.
    pub(crate) name: &'a str,
    pub(crate) data: &'a TensorData,
}

impl Serialize for JsonElements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.data {
            TensorData::Bool(values) => values.serialize(serializer),
            TensorData::U8(values) => values.serialize(serializer),
            TensorData::U16(values) => values.serialize(serializer),
            TensorData::U32(values) => values.serialize(serializer),
            TensorData::U64(values) => values.serialize(serializer),
            TensorData::I8(values) => values.serialize(serializer),
            TensorData::I16(values) => values.serialize(serializer),
            TensorData::I32(values) => values.serialize(serializer),
            TensorData::I64(values) => values.serialize(serializer),
            TensorData::F32(values) => values.serialize(serializer),
            TensorData::F64(values) => values.serialize(serializer),
            TensorData::F16(_) | TensorData::Bf16(_) => Err(S::Error::custom(format_args!(
                "{:?} is {}, which has no JSON form; set its parameters.binary_data to true",
                self.name,
                self.data.datatype().name()
            ))),
            TensorData::Wire(wire) => {
                let data = &wire.decode().map_err(S::Error::custom)?;
                let name = self.name;
                JsonElements { name, data }.serialize(serializer)
            }
            TensorData::Bytes(elements) => {
                let mut list = serializer.serialize_seq(Some(elements.len()))?;
                for element in elements {
                    let text = str::from_utf8(element).map_err(|_| {
                        S::Error::custom(format_args!(
                            "{:?} is not UTF-8; set its parameters.binary_data to true",
                            self.name
                        ))
                    })?;
                    list.serialize_element(text)?;
                }
                list.end()
            }
        }
    }
}
