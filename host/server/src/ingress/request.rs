//! The JSON part of an inference request.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde_json::value::RawValue;

use super::common;
use super::error::ProtocolError;
use super::json_tensor::{DataSeed, Decoded};
use super::parameters::{InputParameters, OutputParameters, RequestParameters};
use super::tensor::{Datatype, Shape, element_count};

/// What a client asks, before it is checked against the app.
#[derive(Deserialize)]
pub(super) struct InferRequest<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(default)]
    pub(super) parameters: Option<RequestParameters>,
    #[serde(borrow)]
    pub(super) inputs: Vec<RequestInput<'a>>,
    #[serde(borrow, default)]
    pub(super) outputs: Option<Vec<RequestOutput<'a>>>,
}

/// One entry of `outputs`.
#[derive(Deserialize)]
pub(super) struct RequestOutput<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(default)]
    pub(super) parameters: Option<OutputParameters>,
}

/// One entry of `inputs`.
pub(super) struct RequestInput<'a> {
    pub(super) name: Text<'a>,
    pub(super) shape: Shape,
    pub(super) datatype: Text<'a>,
    pub(super) parameters: InputParameters,
    pub(super) data: InputData<'a>,
}

/// The `data` of an input.
pub(super) enum InputData<'a> {
    /// There was none; a blob may follow.
    Absent,
    /// Decoded as it was met, because shape and datatype stood before it.
    Decoded(Decoded),
    /// Met before its shape or datatype, or of a datatype that has no JSON form.
    Raw(&'a RawValue),
}

impl<'a> InferRequest<'a> {
    /// Parses the JSON part of a body.
    ///
    /// # Errors
    /// What is wrong, led by the field where it is.
    pub(super) fn parse(json: &'a [u8]) -> Result<Self, ProtocolError> {
        // A struct may also be an array to serde; to the protocol it may not.
        match json.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{') => {}
            Some(_) => {
                return Err(ProtocolError::malformed("body", "expected a JSON object"));
            }
            None => return Err(ProtocolError::malformed("body", "is empty")),
        }
        if let Some(request) = common::parse(json) {
            return Ok(request);
        }
        serde_json::from_slice(json).map_err(|_| locate(json))
    }
}

/// Parses again with the path tracked, which costs too much for good requests.
fn locate(json: &[u8]) -> ProtocolError {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let (field, error) =
        match serde_path_to_error::deserialize::<_, InferRequest<'_>>(&mut deserializer) {
            Err(error) => (error.path().to_string(), error.into_inner()),
            Ok(_) => match deserializer.end() {
                Err(error) => (".".to_owned(), error),
                Ok(()) => return ProtocolError::malformed("body", "invalid JSON"),
            },
        };
    // `?` stands for a key that could not be read: what holds it is at fault.
    let field = match field.trim_end_matches('?').trim_end_matches('.') {
        "" => "body".to_owned(),
        known => known.to_owned(),
    };
    let reason = if error.is_data() {
        error.to_string()
    } else {
        format!("invalid JSON: {error}")
    };
    ProtocolError::Malformed { field, reason }
}

/// Decodes `data` that was met too early for [`InputData::Decoded`].
pub(super) fn decode_raw(raw: &RawValue, seed: DataSeed) -> Result<Decoded, String> {
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    seed.deserialize(&mut deserializer)
        .map_err(|error| error.to_string())
}

/// A string that borrows from the body unless it has escapes.
#[derive(Debug)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// A shape, without an allocation up to four dimensions.
struct Dims(Shape);

impl<'de> Deserialize<'de> for Dims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DimsVisitor;
        impl<'de> Visitor<'de> for DimsVisitor {
            type Value = Dims;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an array of dimensions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Dims, A::Error> {
                let mut dims = Shape::new();
                while let Some(Dim(dim)) = list.next_element()? {
                    if dims.len() == DIMS_MAX {
                        return Err(A::Error::custom(format_args!(
                            "more than {DIMS_MAX} dimensions"
                        )));
                    }
                    dims.push(dim);
                }
                Ok(Dims(dims))
            }
        }
        deserializer.deserialize_seq(DimsVisitor)
    }
}

struct Dim(usize);

impl<'de> Deserialize<'de> for Dim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DimVisitor;
        impl Visitor<'_> for DimVisitor {
            type Value = Dim;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a dimension of 0 or more")
            }

            fn visit_u64<E: Error>(self, dim: u64) -> Result<Dim, E> {
                let too_large = |_| E::invalid_value(Unexpected::Unsigned(dim), &self);
                usize::try_from(dim).map(Dim).map_err(too_large)
            }

            fn visit_i64<E: Error>(self, dim: i64) -> Result<Dim, E> {
                Err(E::invalid_value(Unexpected::Signed(dim), &self))
            }
        }
        deserializer.deserialize_u64(DimVisitor)
    }
}

/// Dimensions a tensor may have; no real one comes near.
const DIMS_MAX: usize = 32;

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum InputField {
    Name,
    Shape,
    Datatype,
    Parameters,
    Data,
    #[serde(other)]
    Unknown,
}

impl<'de: 'a, 'a> Deserialize<'de> for RequestInput<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InputVisitor;
        impl<'de> Visitor<'de> for InputVisitor {
            type Value = RequestInput<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object with name, shape, datatype and data")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<RequestInput<'de>, A::Error> {
                let mut name = None;
                let mut shape: Option<Shape> = None;
                let mut datatype: Option<Text<'de>> = None;
                let mut parameters = None;
                let mut data = InputData::Absent;
                while let Some(field) = map.next_key()? {
                    match field {
                        InputField::Name => name = Some(map.next_value()?),
                        InputField::Shape => shape = Some(map.next_value::<Dims>()?.0),
                        InputField::Datatype => datatype = Some(map.next_value()?),
                        InputField::Parameters => parameters = map.next_value()?,
                        InputField::Data => {
                            data = match direct_seed(shape.as_deref(), datatype.as_ref()) {
                                Some(seed) => InputData::Decoded(map.next_value_seed(seed)?),
                                None => InputData::Raw(map.next_value()?),
                            }
                        }
                        InputField::Unknown => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(RequestInput {
                    name: name.ok_or_else(|| A::Error::missing_field("name"))?,
                    shape: shape.ok_or_else(|| A::Error::missing_field("shape"))?,
                    datatype: datatype.ok_or_else(|| A::Error::missing_field("datatype"))?,
                    parameters: parameters.unwrap_or_default(),
                    data,
                })
            }
        }
        deserializer.deserialize_map(InputVisitor)
    }
}

/// How to decode `data` at once, if what stood before it says how.
fn direct_seed(shape: Option<&[usize]>, datatype: Option<&Text<'_>>) -> Option<DataSeed> {
    let datatype = Datatype::from_name(&datatype?.0).filter(|datatype| datatype.has_json_form())?;
    let expected = element_count(shape?)?;
    Some(DataSeed { datatype, expected })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(json: &str) -> String {
        match InferRequest::parse(json.as_bytes()) {
            Ok(_) => panic!("{json} was taken"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn data_is_decoded_at_once_when_its_type_stands_before_it() {
        let json = br#"{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]}"#;
        let request = InferRequest::parse(json).unwrap();
        assert!(matches!(request.inputs[0].data, InputData::Decoded(_)));
        assert!(matches!(request.inputs[0].name.0, Cow::Borrowed("x")));
    }

    #[test]
    fn data_before_its_type_waits() {
        let json = br#"{"inputs":[{"data":[[1],[2]],"name":"x","datatype":"FP32","shape":[2]}]}"#;
        let request = InferRequest::parse(json).unwrap();
        let InputData::Raw(raw) = request.inputs[0].data else {
            panic!("decoded without its type");
        };
        let seed = DataSeed {
            datatype: Datatype::I8,
            expected: 2,
        };
        assert_eq!(decode_raw(raw, seed).unwrap().found, 2);
    }

    #[test]
    fn an_error_names_its_field() {
        for (json, says) in [
            ("", "body: is empty"),
            ("[]", "body: expected a JSON object"),
            ("{} x", "body: missing field `inputs`"),
            (
                r#"{"inputs":[]} x"#,
                "body: invalid JSON: trailing characters",
            ),
            ("{nope", "body: invalid JSON: key must be a string"),
            (
                r#"{"inputs":[{nope"#,
                "inputs[0]: invalid JSON: key must be a string",
            ),
            (r#"{"inputs":3}"#, "inputs: invalid type: integer `3`"),
            (
                r#"{"id":3,"inputs":[]}"#,
                "id: invalid type: integer `3`, expected a string",
            ),
            (
                r#"{"inputs":[{"shape":[1],"datatype":"FP32"}]}"#,
                "inputs[0]: missing field `name`",
            ),
            (
                r#"{"inputs":[{"name":"x","shape":[-1],"datatype":"FP32"}]}"#,
                "inputs[0].shape[0]: invalid value: integer `-1`",
            ),
            (
                r#"{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[[1,"a"]]}]}"#,
                "inputs[0].data[0][1]: invalid value: string \"a\", expected an FP32 number",
            ),
            (
                r#"{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2"#,
                "inputs[0].data: invalid JSON: EOF while parsing a list",
            ),
            (
                r#"{"inputs":[],"parameters":{"timeout":"soon"}}"#,
                "parameters.timeout: invalid value: string \"soon\"",
            ),
            (
                r#"{"inputs":[],"outputs":[{"name":"y","parameters":{"binary_data":1}}]}"#,
                "outputs[0].parameters.binary_data: invalid type: integer `1`",
            ),
        ] {
            let error = refusal(json);
            assert!(error.starts_with(says), "{json}: {error}");
        }
    }
}
