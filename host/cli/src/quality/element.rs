//! Numbers and texts of a file as the elements of an input.

use std::sync::Arc;

use half::{bf16, f16};
use switchyard_executor::{InputTensor, InputType, Values};
use switchyard_models::card::{Datatype, TensorCard};
use switchyard_models::{RawData, RawTensor};

/// One value of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Element<'a> {
    Integer(i128),
    Float(f64),
    Bool(bool),
    Text(&'a str),
}

/// Collects the elements of one row of one input.
pub(super) struct RowElements {
    datatype: Datatype,
    /// Whether NaN and infinity are values.
    non_finite: bool,
    numbers: Vec<u8>,
    texts: Vec<Arc<str>>,
}

/// The type of the values of an input on its way to a model.
fn input_type(card: &TensorCard) -> InputType {
    match card.datatype {
        datatype if !card.is_flat() => InputType::Raw(datatype),
        Datatype::Fp32 => InputType::F32,
        Datatype::Int64 => InputType::I64,
        Datatype::Uint8 => InputType::Bytes,
        Datatype::Bytes => InputType::Text,
        other => InputType::Raw(other),
    }
}

// === impl Element ===

impl<'a> Element<'a> {
    /// A cell of a text file, which has no types; an empty one is a missing number.
    pub(super) fn of_cell(cell: &'a str, datatype: Datatype) -> Self {
        let text = cell.trim();
        match (datatype, text) {
            (Datatype::Bytes, _) => Self::Text(cell),
            (_, "") => Self::Float(f64::NAN),
            (_, "true" | "True" | "TRUE") => Self::Bool(true),
            (_, "false" | "False" | "FALSE") => Self::Bool(false),
            _ => {
                let integer = text.parse().map(Self::Integer);
                let number = integer.or_else(|_| text.parse().map(Self::Float));
                number.unwrap_or(Self::Text(cell))
            }
        }
    }

    /// The value in an error.
    fn shown(self) -> String {
        match self {
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => value.to_string(),
            Self::Bool(value) => value.to_string(),
            Self::Text(text) => format!("{text:?}"),
        }
    }
}

// === impl RowElements ===

impl RowElements {
    pub(super) fn new(datatype: Datatype, non_finite: bool) -> Self {
        Self {
            datatype,
            non_finite,
            numbers: Vec::new(),
            texts: Vec::new(),
        }
    }

    /// Elements so far.
    pub(super) fn len(&self) -> usize {
        match self.datatype.size() {
            Some(size) => self.numbers.len() / size,
            None => self.texts.len(),
        }
    }

    /// Appends an element.
    ///
    /// # Errors
    /// The value, and the range of the datatype.
    pub(super) fn push(&mut self, element: Element<'_>) -> Result<(), String> {
        match (self.datatype, element) {
            (Datatype::Bytes, Element::Text(text)) => {
                self.texts.push(text.into());
                Ok(())
            }
            (Datatype::Bytes, other) => Err(format!("{}, must be a text", other.shown())),
            (Datatype::Fp16 | Datatype::Bf16 | Datatype::Fp32 | Datatype::Fp64, _) => {
                self.push_float(element)
            }
            _ => self.push_integer(element),
        }
    }

    fn push_float(&mut self, element: Element<'_>) -> Result<(), String> {
        let value = match element {
            Element::Integer(value) => value as f64,
            Element::Float(value) => value,
            Element::Bool(value) => f64::from(u8::from(value)),
            Element::Text(_) => return Err(format!("{}, must be a number", element.shown())),
        };
        if !value.is_finite() && !self.non_finite {
            return Err(format!(
                "{value}, must be a finite number: fill missing values in, or let the app take them \
                 with `non_finite = true` in its app.toml"
            ));
        }
        let (name, back) = (self.datatype.name(), &mut self.numbers);
        let kept = match self.datatype {
            Datatype::Fp16 => {
                let number = f16::from_f64(value);
                back.extend(number.to_le_bytes());
                number.to_f64()
            }
            Datatype::Bf16 => {
                let number = bf16::from_f64(value);
                back.extend(number.to_le_bytes());
                number.to_f64()
            }
            Datatype::Fp32 => {
                let number = value as f32;
                back.extend(number.to_le_bytes());
                f64::from(number)
            }
            _ => {
                back.extend(value.to_le_bytes());
                value
            }
        };
        match value.is_finite() && !kept.is_finite() {
            true => Err(format!("{value}, is too large for {name}")),
            false => Ok(()),
        }
    }

    fn push_integer(&mut self, element: Element<'_>) -> Result<(), String> {
        let name = self.datatype.name();
        let whole = match element {
            Element::Integer(value) => Some(value),
            Element::Bool(value) => Some(i128::from(value)),
            // An f64 below this bound is an i128 without loss.
            Element::Float(value) if value.fract() == 0.0 && value.abs() < 2e19 => {
                Some(value as i128)
            }
            _ => None,
        };
        let Some(value) = whole else {
            let shown = element.shown();
            return Err(format!("{shown}, must be a whole number ({name})"));
        };
        let outside = |lowest: i128, highest: i128| {
            format!("{value}, must be from {lowest} to {highest} ({name})")
        };
        macro_rules! push {
            ($integer:ty) => {{
                let number = <$integer>::try_from(value)
                    .map_err(|_| outside(<$integer>::MIN.into(), <$integer>::MAX.into()))?;
                self.numbers.extend(number.to_le_bytes());
            }};
        }
        match self.datatype {
            Datatype::Bool if !(0..=1).contains(&value) => return Err(outside(0, 1)),
            Datatype::Bool | Datatype::Uint8 => push!(u8),
            Datatype::Uint16 => push!(u16),
            Datatype::Uint32 => push!(u32),
            Datatype::Uint64 => push!(u64),
            Datatype::Int8 => push!(i8),
            Datatype::Int16 => push!(i16),
            Datatype::Int32 => push!(i32),
            _ => push!(i64),
        }
        Ok(())
    }

    /// The tensor of the row. Without a `shape` the elements have the input's; its fixed dimensions
    /// must be met.
    ///
    /// # Errors
    /// The number of elements, or the shape, and the input's.
    pub(super) fn tensor(
        self,
        card: &TensorCard,
        shape: Option<&[usize]>,
    ) -> Result<InputTensor, String> {
        let found = self.len();
        let shape = shape_of(card, shape, found)?;
        let data = match self.datatype {
            Datatype::Bytes => RawData::Texts(self.texts),
            _ => RawData::Numbers(self.numbers.into()),
        };
        Ok(match (input_type(card), data) {
            (InputType::F32, RawData::Numbers(bytes)) => InputTensor::F32(whole(bytes)?),
            (InputType::I64, RawData::Numbers(bytes)) => InputTensor::I64(whole(bytes)?),
            (InputType::Bytes, RawData::Numbers(bytes)) => InputTensor::Bytes(whole(bytes)?),
            (InputType::Text, RawData::Texts(texts)) => match texts.first() {
                Some(text) => InputTensor::Text(text.to_string().into()),
                None => return Err("has no text".to_owned()),
            },
            (_, data) => InputTensor::Raw(RawTensor {
                datatype: card.datatype,
                shape: [&[1], shape.as_slice()].concat(),
                data,
            }),
        })
    }
}

fn whole<T: switchyard_executor::Number>(bytes: bytes::Bytes) -> Result<Values<T>, String> {
    Values::wire(bytes).ok_or_else(|| "an incomplete number".to_owned())
}

/// The shape of a row with this number of elements.
fn shape_of(
    card: &TensorCard,
    shape: Option<&[usize]>,
    found: usize,
) -> Result<Vec<usize>, String> {
    let fixed = card.fixed_shape();
    // Flat elements fit all shapes of their number; other shapes must be the input's.
    let stated = shape.filter(|shape| shape.len() > 1 || fixed.is_none());
    if let (Some(fixed), None) = (&fixed, stated) {
        let wanted: usize = fixed.iter().product();
        return match found == wanted {
            true => Ok(fixed.clone()),
            false => Err(format!(
                "{found} values, must be {wanted}, the input is {fixed:?}"
            )),
        };
    }
    let Some(stated) = stated else {
        return Err(format!(
            "its shape is open, {:?}: a .jsonl or .npz file says the shape of each row",
            card.shape
        ));
    };
    let largest = card.largest_shape();
    let fits = stated.len() == card.shape.len()
        && stated
            .iter()
            .zip(&card.shape)
            .zip(&largest)
            .all(|((&of, &size), &most)| match usize::try_from(size) {
                Ok(size) => of == size,
                Err(_) => (1..=most).contains(&of),
            });
    match fits {
        true => Ok(stated.to_vec()),
        false => Err(format!(
            "shape {stated:?}, must be {:?} with at most {largest:?}",
            card.shape
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(datatype: Datatype, element: Element<'_>) -> Result<Vec<u8>, String> {
        let mut elements = RowElements::new(datatype, false);
        elements.push(element)?;
        Ok(elements.numbers)
    }

    #[test]
    fn numbers_become_the_datatype_or_are_refused_with_its_range() {
        assert_eq!(
            one(Datatype::Fp32, Element::Integer(2)).unwrap(),
            2_f32.to_le_bytes()
        );
        assert_eq!(
            one(Datatype::Int64, Element::Float(-3.0)).unwrap(),
            (-3_i64).to_le_bytes()
        );
        assert_eq!(one(Datatype::Bool, Element::Bool(true)).unwrap(), [1]);
        let refused = |datatype, element| one(datatype, element).unwrap_err();
        assert_eq!(
            refused(Datatype::Uint8, Element::Integer(256)),
            "256, must be from 0 to 255 (UINT8)"
        );
        assert_eq!(
            refused(Datatype::Int64, Element::Float(1.5)),
            "1.5, must be a whole number (INT64)"
        );
        assert_eq!(
            refused(Datatype::Bool, Element::Integer(2)),
            "2, must be from 0 to 1 (BOOL)"
        );
        assert_eq!(
            refused(Datatype::Fp32, Element::Float(1e39)),
            format!("{}, is too large for FP32", 1e39_f64)
        );
        assert!(refused(Datatype::Fp32, Element::Float(f64::NAN)).contains("non_finite"));
        assert_eq!(
            refused(Datatype::Fp32, Element::Text("x")),
            "\"x\", must be a number"
        );
        assert_eq!(
            refused(Datatype::Bytes, Element::Integer(1)),
            "1, must be a text"
        );
    }

    #[test]
    fn cells_are_read_as_the_input_takes_them() {
        let cell = |text| Element::of_cell(text, Datatype::Fp32);
        assert_eq!(cell(" 7 "), Element::Integer(7));
        assert_eq!(cell("7.5"), Element::Float(7.5));
        assert_eq!(cell("True"), Element::Bool(true));
        assert_eq!(cell("red"), Element::Text("red"));
        assert!(matches!(cell(""), Element::Float(value) if value.is_nan()));
        assert_eq!(Element::of_cell("7", Datatype::Bytes), Element::Text("7"));
    }

    #[test]
    fn shapes_must_be_those_of_the_input() {
        let fixed = TensorCard::fixed("x", Datatype::Fp32, &[2, 3]);
        assert_eq!(shape_of(&fixed, None, 6).unwrap(), [2, 3]);
        assert_eq!(shape_of(&fixed, Some(&[6]), 6).unwrap(), [2, 3]);
        assert!(
            shape_of(&fixed, Some(&[3, 2]), 6)
                .unwrap_err()
                .contains("must be [2, 3]")
        );
        assert_eq!(
            shape_of(&fixed, None, 5).unwrap_err(),
            "5 values, must be 6, the input is [2, 3]"
        );
        let mut open = fixed;
        open.shape = vec![-1];
        open.largest = Some(vec![4]);
        assert_eq!(shape_of(&open, Some(&[4]), 4).unwrap(), [4]);
        assert!(
            shape_of(&open, Some(&[5]), 5)
                .unwrap_err()
                .contains("at most [4]")
        );
        assert!(
            shape_of(&open, None, 3)
                .unwrap_err()
                .contains(".jsonl or .npz")
        );
    }
}
