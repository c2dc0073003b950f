//! JSON `data`, nested or flat, straight into a typed vector.
//!
//! One pass over the text, no intermediate value. Numbers out of the datatype's
//! range are refused, not wrapped. The parser's own path tracking names the
//! element in an error.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

use super::tensor::{Datatype, TensorData};

/// Elements reserved before any has been seen: a shape is only a claim.
pub(super) const RESERVED_MAX: usize = 1 << 16;

/// Decodes `data` of a known datatype and element count.
#[derive(Clone, Copy)]
pub(super) struct DataSeed {
    /// A datatype with a JSON form.
    pub(super) datatype: Datatype,
    /// Elements to keep; more are counted, to be told, and not stored.
    pub(super) expected: usize,
}

/// What `data` held.
#[derive(Debug)]
pub(super) struct Decoded {
    /// At most as many elements as were expected.
    pub(super) data: TensorData,
    /// Elements that were there.
    pub(super) found: usize,
}

impl<'de> DeserializeSeed<'de> for DataSeed {
    type Value = Decoded;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Decoded, D::Error> {
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

fn elements<'de, T: Element, D: Deserializer<'de>>(
    expected: usize,
    wrap: impl FnOnce(Vec<T>) -> TensorData,
    deserializer: D,
) -> Result<Decoded, D::Error> {
    let mut values = Vec::with_capacity(expected.min(RESERVED_MAX));
    let mut found = 0;
    let list = List(Collector {
        values: &mut values,
        expected,
        found: &mut found,
    });
    deserializer.deserialize_seq(list)?;
    Ok(Decoded {
        data: wrap(values),
        found,
    })
}

/// FP64 takes the text of each number to `f64::from_str`: `serde_json` without
/// its `float_roundtrip` feature may be off by one in the last place, which an
/// FP32 rounds away and an FP64 shows.
fn doubles<'de, D: Deserializer<'de>>(
    expected: usize,
    deserializer: D,
) -> Result<Decoded, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    if !raw.starts_with('[') {
        return Err(D::Error::custom("expected an array of FP64 numbers"));
    }
    let mut values = Vec::with_capacity(expected.min(RESERVED_MAX));
    let mut found = 0;
    // The text is known to be JSON, so what stands between these is a scalar,
    // or a piece of something that is not and fails to parse.
    let scalars = raw.split(['[', ']', ',', ' ', '\t', '\r', '\n']);
    for text in scalars.filter(|text| !text.is_empty()) {
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => {
                if found < expected {
                    values.push(value);
                }
                found += 1;
            }
            _ => {
                return Err(D::Error::custom(format_args!(
                    "element {found}: expected an FP64 number, got {text}"
                )));
            }
        }
    }
    Ok(Decoded {
        data: TensorData::F64(values),
        found,
    })
}

/// A JSON scalar as one tensor element; none where the datatype cannot hold it.
trait Element: Sized {
    const NAME: &'static str;
    fn from_bool(_value: bool) -> Option<Self> {
        None
    }
    fn from_u64(_value: u64) -> Option<Self> {
        None
    }
    fn from_i64(_value: i64) -> Option<Self> {
        None
    }
    fn from_f64(_value: f64) -> Option<Self> {
        None
    }
    fn from_str(_value: &str) -> Option<Self> {
        None
    }
}

macro_rules! integer_elements {
    ($($integer:ty: $name:literal),* $(,)?) => {$(
        impl Element for $integer {
            const NAME: &'static str = $name;
            fn from_u64(value: u64) -> Option<Self> {
                Self::try_from(value).ok()
            }
            fn from_i64(value: i64) -> Option<Self> {
                Self::try_from(value).ok()
            }
        }
    )*};
}

integer_elements! {
    u8: "a UINT8 number", u16: "a UINT16 number",
    u32: "a UINT32 number", u64: "a UINT64 number",
    i8: "an INT8 number", i16: "an INT16 number",
    i32: "an INT32 number", i64: "an INT64 number",
}

impl Element for f32 {
    const NAME: &'static str = "an FP32 number";
    fn from_u64(value: u64) -> Option<Self> {
        Some(value as Self)
    }
    fn from_i64(value: i64) -> Option<Self> {
        Some(value as Self)
    }
    fn from_f64(value: f64) -> Option<Self> {
        Some(value as Self).filter(|narrowed| narrowed.is_finite())
    }
}

impl Element for bool {
    const NAME: &'static str = "true or false";
    fn from_bool(value: bool) -> Option<Self> {
        Some(value)
    }
}

impl Element for Vec<u8> {
    const NAME: &'static str = "a string";
    fn from_str(value: &str) -> Option<Self> {
        Some(value.as_bytes().to_vec())
    }
}

struct Collector<'v, T> {
    values: &'v mut Vec<T>,
    expected: usize,
    found: &'v mut usize,
}

impl<T: Element> Collector<'_, T> {
    fn push<E: Error>(self, element: Option<T>, unexpected: Unexpected<'_>) -> Result<(), E> {
        let element =
            element.ok_or_else(|| E::invalid_value(unexpected, &ElementName::<T>(PhantomData)))?;
        *self.found += 1;
        if self.values.len() < self.expected {
            self.values.push(element);
        }
        Ok(())
    }

    fn push_all<'de, A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        loop {
            let item = Item(Collector {
                values: self.values,
                expected: self.expected,
                found: self.found,
            });
            if list.next_element_seed(item)?.is_none() {
                return Ok(());
            }
        }
    }
}

/// Says in an error what an element must be.
struct ElementName<T>(PhantomData<T>);

impl<T: Element> serde::de::Expected for ElementName<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(T::NAME)
    }
}

/// The outermost array.
struct List<'v, T>(Collector<'v, T>);

impl<'de, T: Element> Visitor<'de> for List<'_, T> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "an array with {} each", T::NAME)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        self.0.push_all(list)
    }
}

/// One thing in an array: an element, or an array again.
struct Item<'v, T>(Collector<'v, T>);

impl<'de, T: Element> DeserializeSeed<'de> for Item<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Element> Visitor<'de> for Item<'_, T> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} or an array of such", T::NAME)
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
        self.0.push(T::from_str(value), Unexpected::Str(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        self.0.push_all(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(datatype: Datatype, text: &str) -> Result<Decoded, String> {
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
            " [ [[1],[2.5]] , [-3,4] ] ",
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
    fn too_many_elements_are_counted_not_kept() {
        for datatype in [Datatype::U8, Datatype::F64] {
            let decoded = decode(datatype, "[1,2,3,4,5,6]").unwrap();
            assert_eq!((decoded.data.len(), decoded.found), (4, 6));
        }
    }

    #[test]
    fn a_value_out_of_range_is_refused() {
        for (datatype, text, says) in [
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
                "null, expected an FP32 number or an array of such",
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
                "expected an array with an FP32 number each",
            ),
            (
                Datatype::F16,
                "[1]",
                "FP16 has no JSON form; send it as binary",
            ),
        ] {
            let error = decode(datatype, text).unwrap_err();
            assert!(error.contains(says), "{datatype:?} {text}: {error}");
        }
    }
}
