//! The JSON part of a request as serde sees it, before it is checked against the app.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

use super::data::{DataSeed, DecodedData};
use super::entries::TensorEntries;
use super::parameters::{InputParameters, OutputParameters, RequestParameters};
use crate::datatype::Datatype;
use crate::tensor::{Shape, element_count};

/// Most dimensions of a tensor; real ones have at most five.
const DIMENSIONS_MAX: usize = 32;

/// Longest name or id, in bytes: the answer and messages repeat it.
pub(crate) const NAME_BYTES_MAX: usize = 1_024;

/// Below 2^53 an f64 holds every whole number exactly.
const EXACT_MAX: f64 = 9.0e15;

/// A request.
#[derive(Deserialize)]
pub(crate) struct JsonRequest<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<JsonText<'a>>,
    #[serde(default)]
    pub(crate) parameters: Option<RequestParameters>,
    #[serde(borrow)]
    pub(crate) inputs: TensorEntries<JsonInput<'a>>,
    #[serde(borrow, default)]
    pub(crate) outputs: Option<TensorEntries<JsonOutput<'a>>>,
}

/// One entry of `outputs`.
#[derive(Deserialize)]
pub(crate) struct JsonOutput<'a> {
    #[serde(borrow)]
    pub(crate) name: JsonText<'a>,
    #[serde(default)]
    pub(crate) parameters: Option<OutputParameters>,
}

/// One entry of `inputs`.
pub(crate) struct JsonInput<'a> {
    pub(crate) name: JsonText<'a>,
    pub(crate) shape: Shape,
    pub(crate) datatype: JsonText<'a>,
    pub(crate) parameters: InputParameters,
    pub(crate) data: JsonData<'a>,
}

/// The `data` of an input.
#[derive(Default)]
pub(crate) enum JsonData<'a> {
    /// The input has none; a blob may follow.
    #[default]
    Absent,
    /// Decoded at once: its shape and datatype came before it.
    Decoded(DecodedData),
    /// Text: its shape or datatype came after it, or the datatype has no JSON form.
    Raw(&'a RawValue),
}

/// A string of at most 1,024 bytes, which borrows from the body unless it has escapes.
#[derive(Debug)]
pub(crate) struct JsonText<'a>(pub(crate) Cow<'a, str>);

/// A shape, without an allocation up to four dimensions.
struct JsonShape(Shape);

struct JsonDimension(usize);

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

// === impl JsonText ===

impl<'de: 'a, 'a> Deserialize<'de> for JsonText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = JsonText<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<JsonText<'de>, E> {
                check_length(text)?;
                Ok(JsonText(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<JsonText<'de>, E> {
                check_length(text)?;
                Ok(JsonText(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

fn check_length<E: Error>(text: &str) -> Result<(), E> {
    if text.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    Err(E::custom(format_args!(
        "has {} bytes, the limit is {NAME_BYTES_MAX}",
        text.len()
    )))
}

// === impl JsonShape ===

impl<'de> Deserialize<'de> for JsonShape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ShapeVisitor;
        impl<'de> Visitor<'de> for ShapeVisitor {
            type Value = JsonShape;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an array of dimensions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<JsonShape, A::Error> {
                let mut shape = Shape::new();
                while let Some(JsonDimension(dimension)) = list.next_element()? {
                    if shape.len() == DIMENSIONS_MAX {
                        return Err(A::Error::custom(format_args!(
                            "more than {DIMENSIONS_MAX} dimensions"
                        )));
                    }
                    shape.push(dimension);
                }
                Ok(JsonShape(shape))
            }
        }
        deserializer.deserialize_seq(ShapeVisitor)
    }
}

// === impl JsonDimension ===

impl<'de> Deserialize<'de> for JsonDimension {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DimensionVisitor;
        impl Visitor<'_> for DimensionVisitor {
            type Value = JsonDimension;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a dimension of 0 or more")
            }

            fn visit_u64<E: Error>(self, dimension: u64) -> Result<JsonDimension, E> {
                let too_large = |_| E::invalid_value(Unexpected::Unsigned(dimension), &self);
                usize::try_from(dimension)
                    .map(JsonDimension)
                    .map_err(too_large)
            }

            fn visit_i64<E: Error>(self, dimension: i64) -> Result<JsonDimension, E> {
                Err(E::invalid_value(Unexpected::Signed(dimension), &self))
            }

            /// Some JSON libraries write every number with a point.
            fn visit_f64<E: Error>(self, dimension: f64) -> Result<JsonDimension, E> {
                if dimension.fract() == 0.0 && (0.0..EXACT_MAX).contains(&dimension) {
                    return Ok(JsonDimension(dimension as usize));
                }
                Err(E::invalid_value(Unexpected::Float(dimension), &self))
            }
        }
        deserializer.deserialize_u64(DimensionVisitor)
    }
}

// === impl JsonInput ===

impl<'de: 'a, 'a> Deserialize<'de> for JsonInput<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InputVisitor;
        impl<'de> Visitor<'de> for InputVisitor {
            type Value = JsonInput<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object with name, shape, datatype and data")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonInput<'de>, A::Error> {
                let mut name = None;
                let mut shape: Option<JsonShape> = None;
                let mut datatype: Option<JsonText<'de>> = None;
                let mut parameters: Option<Option<InputParameters>> = None;
                let mut data = JsonData::Absent;
                while let Some(field) = map.next_key()? {
                    match field {
                        InputField::Name => set_once(&mut name, "name", &mut map)?,
                        InputField::Shape => set_once(&mut shape, "shape", &mut map)?,
                        InputField::Datatype => set_once(&mut datatype, "datatype", &mut map)?,
                        InputField::Parameters => {
                            set_once(&mut parameters, "parameters", &mut map)?;
                        }
                        InputField::Data => {
                            if !matches!(data, JsonData::Absent) {
                                return Err(A::Error::duplicate_field("data"));
                            }
                            let shape = shape.as_ref().map(|shape| &shape.0[..]);
                            data = match direct_seed(shape, datatype.as_ref()) {
                                Some(seed) => JsonData::Decoded(map.next_value_seed(seed)?),
                                None => JsonData::Raw(map.next_value()?),
                            }
                        }
                        InputField::Unknown => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(JsonInput {
                    name: name.ok_or_else(|| A::Error::missing_field("name"))?,
                    shape: shape.ok_or_else(|| A::Error::missing_field("shape"))?.0,
                    datatype: datatype.ok_or_else(|| A::Error::missing_field("datatype"))?,
                    parameters: parameters.flatten().unwrap_or_default(),
                    data,
                })
            }
        }
        deserializer.deserialize_map(InputVisitor)
    }
}

/// Reads a field that may not come twice: `data` was decoded with the fields before it.
fn set_once<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    field: &mut Option<T>,
    name: &'static str,
    map: &mut A,
) -> Result<(), A::Error> {
    if field.is_some() {
        return Err(A::Error::duplicate_field(name));
    }
    *field = Some(map.next_value()?);
    Ok(())
}

/// How to decode `data` at once; `None` if the fields before it do not say how.
fn direct_seed(shape: Option<&[usize]>, datatype: Option<&JsonText<'_>>) -> Option<DataSeed> {
    let datatype = Datatype::from_name(&datatype?.0).filter(|datatype| datatype.has_json_form())?;
    let expected = element_count(shape?)?;
    Some(DataSeed { datatype, expected })
}
