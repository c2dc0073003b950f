//! JSON `data`, nested or flat, straight into a typed vector.
//!
//! One pass over the text without an intermediate value. Numbers out of the datatype's range are
//! refused, not wrapped. The path that serde tracks names the element in an error.
//!
//! Handwritten visitors because the element type is known only at run time, nesting is optional
//! and must not show in the result, and elements past the shape are counted but not stored. No
//! JSON crate replaces them: another parser would drive the same visitors.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

use super::element::Element;
use super::nesting::Nesting;
use crate::datatype::Datatype;
use crate::excerpt::excerpt;
use crate::tensor::TensorData;

/// Most elements reserved before the first one is read: a client may claim any shape.
pub(super) const RESERVED_MAX: usize = 1 << 16;

/// Decodes `data` of a known datatype and element count.
#[derive(Clone, Copy)]
pub(crate) struct DataSeed {
    /// A datatype with a JSON form.
    pub(crate) datatype: Datatype,
    /// Most elements to store; further ones are only counted.
    pub(crate) expected: usize,
}

/// The elements of `data`.
#[derive(Debug)]
pub(crate) struct DecodedData {
    /// At most the expected number of elements.
    pub(crate) data: TensorData,
    /// Elements in the text.
    pub(crate) found: usize,
}

impl<'de> DeserializeSeed<'de> for DataSeed {
    type Value = DecodedData;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<DecodedData, D::Error> {
        let expected = self.expected;
        match self.datatype {
            Datatype::Bool => elements(expected, TensorData::Bool, deserializer),
            Datatype::U8 => elements(expected, TensorData::U8, deserializer),
            Datatype::U16 => elements(expected, TensorData::U16, deserializer),
            Datatype::U32 => elements(expected, TensorData::U32, deserializer),
            Datatype::U64 => elements(expected, TensorData::U64, deserializer),
            Datatype::I8 => elements(expected, TensorData::I8, deserializer),
            Datatype::I16 => elements(expected, TensorData::I16, deserializer),
            Datatype::I32 => elements(expected, TensorData::I32, deserializer),
            Datatype::I64 => elements(expected, TensorData::I64, deserializer),
            Datatype::F32 => elements(expected, TensorData::F32, deserializer),
            Datatype::F64 => doubles(expected, deserializer),
            Datatype::Bytes => elements(expected, TensorData::Bytes, deserializer),
            Datatype::F16 | Datatype::Bf16 => Err(D::Error::custom(format_args!(
                "{} has no JSON form; send it as binary",
                self.datatype.name()
            ))),
        }
    }
}

/// Decodes `data` that came before its shape or datatype.
///
/// # Errors
/// The fault, without a field name.
pub(crate) fn decode_raw(raw: &RawValue, seed: DataSeed) -> Result<DecodedData, String> {
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    seed.deserialize(&mut deserializer)
        .map_err(|error| error.to_string())
}

fn elements<'de, T: Element, D: Deserializer<'de>>(
    expected: usize,
    wrap: impl FnOnce(Vec<T>) -> TensorData,
    deserializer: D,
) -> Result<DecodedData, D::Error> {
    let mut values = Vec::with_capacity(expected.min(RESERVED_MAX));
    let (mut found, mut nesting) = (0, Nesting::default());
    let array = OuterArray(Collector {
        values: &mut values,
        expected,
        found: &mut found,
        nesting: &mut nesting,
    });
    deserializer.deserialize_seq(array)?;
    Ok(DecodedData {
        data: wrap(values),
        found,
    })
}

/// Decodes FP64 with `f64::from_str`, because `serde_json` without its feature `float_roundtrip`
/// may be off by one in the last place. FP32 rounds that difference away.
fn doubles<'de, D: Deserializer<'de>>(
    expected: usize,
    deserializer: D,
) -> Result<DecodedData, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    if !raw.starts_with('[') {
        return Err(D::Error::custom("expected an array of FP64 numbers"));
    }
    let mut values = Vec::with_capacity(expected.min(RESERVED_MAX));
    let (mut found, mut nesting) = (0, Nesting::default());
    // The text is valid JSON, so between these characters there are only scalars and pieces of
    // strings and objects, which fail to parse as a number.
    for piece in raw.split_inclusive(['[', ']', ',', ' ', '\t', '\r', '\n']) {
        let (text, end) = match piece.as_bytes().last() {
            Some(end @ (b'[' | b']' | b',' | b' ' | b'\t' | b'\r' | b'\n')) => {
                (&piece[..piece.len() - 1], *end)
            }
            _ => (piece, b' '),
        };
        match text.parse::<f64>() {
            _ if text.is_empty() => {}
            Ok(value) if value.is_finite() => {
                if found < expected {
                    values.push(value);
                }
                found += 1;
            }
            _ => {
                return Err(D::Error::custom(format_args!(
                    "element {found}: expected an FP64 number, got {}",
                    excerpt(text)
                )));
            }
        }
        let nested = match end {
            b'[' => nesting.open(found),
            b']' => nesting.close(found),
            _ => Ok(()),
        };
        nested.map_err(D::Error::custom)?;
    }
    Ok(DecodedData {
        data: TensorData::F64(values),
        found,
    })
}

/// Appends elements to a vector, up to the expected number.
struct Collector<'v, T> {
    values: &'v mut Vec<T>,
    expected: usize,
    found: &'v mut usize,
    nesting: &'v mut Nesting,
}

impl<T: Element> Collector<'_, T> {
    fn push<E: Error>(self, element: Option<T>, unexpected: Unexpected<'_>) -> Result<(), E> {
        let element =
            element.ok_or_else(|| E::invalid_value(unexpected, &ElementName::<T>(PhantomData)))?;
        self.store(element);
        Ok(())
    }

    fn store(self, element: T) {
        *self.found += 1;
        if self.values.len() < self.expected {
            self.values.push(element);
        }
    }

    fn push_all<'de, A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.nesting.open(*self.found).map_err(A::Error::custom)?;
        loop {
            let entry = ArrayEntry(Collector {
                values: self.values,
                expected: self.expected,
                found: self.found,
                nesting: self.nesting,
            });
            if list.next_element_seed(entry)?.is_none() {
                return self.nesting.close(*self.found).map_err(A::Error::custom);
            }
        }
    }
}

/// Names the element type in an error.
struct ElementName<T>(PhantomData<T>);

impl<T: Element> serde::de::Expected for ElementName<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(T::NAME)
    }
}

/// The outermost array.
struct OuterArray<'v, T>(Collector<'v, T>);

impl<'de, T: Element> Visitor<'de> for OuterArray<'_, T> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "an array of elements, each {}", T::NAME)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        self.0.push_all(list)
    }
}

/// An entry of an array: an element, or an inner array.
struct ArrayEntry<'v, T>(Collector<'v, T>);

impl<'de, T: Element> DeserializeSeed<'de> for ArrayEntry<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Element> Visitor<'de> for ArrayEntry<'_, T> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} or an array of them", T::NAME)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.0.push(T::from_bool(value), Unexpected::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.0.push(T::from_u64(value), Unexpected::Unsigned(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.0.push(T::from_i64(value), Unexpected::Signed(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.0.push(T::from_f64(value), Unexpected::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        // A text is cut only when it is refused.
        let element = T::from_str(value).ok_or_else(|| {
            let name = ElementName::<T>(PhantomData);
            E::invalid_value(Unexpected::Str(&excerpt(value)), &name)
        })?;
        self.0.store(element);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        self.0.push_all(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(datatype: Datatype, text: &str) -> Result<DecodedData, String> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        DataSeed {
            datatype,
            expected: 4,
        }
        .deserialize(&mut deserializer)
        .map_err(|error| error.to_string())
    }

    #[test]
    fn nested_and_flat_data_are_the_same() {
        for text in [
            "[1,2.5,-3,4]",
            "[[1,2.5],[-3,4]]",
            " [ [[1],[2.5]] , [[-3],[4]] ] ",
        ] {
            for (datatype, data) in [
                (Datatype::F32, TensorData::F32(vec![1.0, 2.5, -3.0, 4.0])),
                (Datatype::F64, TensorData::F64(vec![1.0, 2.5, -3.0, 4.0])),
            ] {
                let decoded = decode(datatype, text).unwrap();
                assert_eq!(decoded.data, data);
                assert_eq!(decoded.found, 4);
            }
        }
    }

    #[test]
    fn ragged_data_is_refused_although_the_count_is_right() {
        for (datatype, text) in [
            (Datatype::F32, "[[1,2,3],[4]]"),
            (Datatype::F64, "[[1,2,3],[4]]"),
            (Datatype::Bytes, r#"[["a","b","c"],["d"]]"#),
        ] {
            let error = decode(datatype, text).unwrap_err();
            let reason = "ragged: arrays of one level have 3 and 1 entries";
            assert!(error.contains(reason), "{datatype:?}: {error}");
        }
        let error = decode(Datatype::I32, "[[1,2],3,4]").unwrap_err();
        assert!(
            error.contains("elements and arrays stand on one level"),
            "{error}"
        );
    }

    #[test]
    fn surplus_elements_are_counted_and_not_stored() {
        for datatype in [Datatype::U8, Datatype::F64] {
            let decoded = decode(datatype, "[1,2,3,4,5,6]").unwrap();
            assert_eq!((decoded.data.len(), decoded.found), (4, 6));
        }
    }

    #[test]
    fn a_value_out_of_range_is_refused() {
        for (datatype, text, message) in [
            (
                Datatype::U8,
                "[256]",
                "integer `256`, expected a UINT8 number",
            ),
            (
                Datatype::U64,
                "[-1]",
                "integer `-1`, expected a UINT64 number",
            ),
            (
                Datatype::I64,
                "[9223372036854775808]",
                "expected an INT64 number",
            ),
            (
                Datatype::I32,
                "[1.5]",
                "floating point `1.5`, expected an INT32 number",
            ),
            (Datatype::F32, "[1e39]", "expected an FP32 number"),
            (
                Datatype::F64,
                "[1,1e999]",
                "element 1: expected an FP64 number, got 1e999",
            ),
            (Datatype::Bool, "[1]", "integer `1`, expected true or false"),
            (Datatype::Bytes, "[1]", "integer `1`, expected a string"),
            (
                Datatype::F32,
                "[null]",
                "null, expected an FP32 number or an array of them",
            ),
            (
                Datatype::F64,
                "[\"a,b\"]",
                "element 0: expected an FP64 number",
            ),
            (Datatype::F64, "3", "expected an array"),
            (
                Datatype::F32,
                "3",
                "expected an array of elements, each an FP32 number",
            ),
            (
                Datatype::F16,
                "[1]",
                "FP16 has no JSON form; send it as binary",
            ),
        ] {
            let error = decode(datatype, text).unwrap_err();
            assert!(error.contains(message), "{datatype:?} {text}: {error}");
        }
    }
}
