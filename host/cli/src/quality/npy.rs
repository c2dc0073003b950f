//! Arrays as `numpy.save` writes them.
//!
//! A small reader of its own: the crates for this format parse its header with a parser generator
//! and twelve crates behind it, or read no strings.

use std::ops::Range;

use half::f16;
use switchyard_executor::InputTensor;
use switchyard_models::card::TensorCard;

use super::element::{Element, RowElements};

const MAGIC: &[u8] = b"\x93NUMPY";

/// An array of any type.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NpyArray {
    kind: Kind,
    /// Bytes of an element.
    size: usize,
    pub(super) shape: Vec<usize>,
    /// Row-major.
    bytes: Vec<u8>,
}

/// The rows of an array as an input.
pub(super) struct RowArray {
    name: String,
    array: NpyArray,
    card: TensorCard,
    non_finite: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    Signed,
    Unsigned,
    Float,
    /// UTF-32.
    Unicode,
    /// UTF-8.
    Bytes,
}

// === impl NpyArray ===

impl NpyArray {
    /// Reads a file's bytes.
    ///
    /// # Errors
    /// The header is damaged, the type cannot be read, or bytes are missing.
    pub(super) fn parse(file: &[u8]) -> Result<Self, String> {
        let (header, start) = header(file).ok_or("is no array of numpy, or ends early")?;
        let text = |key: &str| field(header, key).ok_or(format!("has no `{key}` in its header"));
        let (kind, size) = datatype(text("descr")?)?;
        let shape = shape(text("shape")?)?;
        let elements = shape
            .iter()
            .try_fold(1usize, |all, &of| all.checked_mul(of));
        let length = elements.and_then(|all| all.checked_mul(size));
        let body = length.and_then(|length| file.get(start..start.checked_add(length)?));
        let body = body.ok_or(format!("ends before its {shape:?} elements"))?;
        let bytes = match text("fortran_order")? {
            "True" => row_major(body, &shape, size),
            _ => body.to_vec(),
        };
        Ok(Self {
            kind,
            size,
            shape,
            bytes,
        })
    }

    /// Rows: its first dimension.
    pub(super) fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(0)
    }

    /// The dimensions of a row.
    pub(super) fn row_shape(&self) -> &[usize] {
        self.shape.get(1..).unwrap_or_default()
    }

    /// Calls `take` with each element of a row.
    pub(super) fn each(
        &self,
        row: usize,
        mut take: impl FnMut(Element<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let width: usize = self.row_shape().iter().product();
        if self.size == 0 {
            // numpy's type of empty strings only.
            return (0..width).try_for_each(|_| take(Element::Text("")));
        }
        let Range { start, end } = row * width * self.size..(row + 1) * width * self.size;
        let bytes = self.bytes.get(start..end).ok_or("has no such row")?;
        for element in bytes.chunks_exact(self.size) {
            match self.kind {
                Kind::Unicode => take(Element::Text(&utf_32(element)?))?,
                Kind::Bytes => {
                    let text = std::str::from_utf8(element);
                    let text = text.map_err(|error| error.to_string())?;
                    take(Element::Text(text.trim_end_matches('\0')))?;
                }
                _ => take(self.number(element))?,
            }
        }
        Ok(())
    }

    /// A little-endian number.
    fn number(&self, element: &[u8]) -> Element<'static> {
        let mut word = [0; 8];
        word[..element.len()].copy_from_slice(element);
        let unsigned = u64::from_le_bytes(word);
        match (self.kind, self.size) {
            (Kind::Bool, _) => Element::Bool(unsigned != 0),
            (Kind::Signed, size) => {
                let unused = 64 - 8 * size as u32;
                Element::Integer(((unsigned << unused) as i64 >> unused).into())
            }
            (Kind::Float, 2) => Element::Float(f16::from_bits(unsigned as u16).to_f64()),
            (Kind::Float, 4) => Element::Float(f32::from_bits(unsigned as u32).into()),
            (Kind::Float, _) => Element::Float(f64::from_bits(unsigned)),
            _ => Element::Integer(unsigned.into()),
        }
    }
}

/// The text of the header, and the position of the elements.
fn header(file: &[u8]) -> Option<(&str, usize)> {
    let rest = file.strip_prefix(MAGIC)?;
    let (length, start): (usize, usize) = match *rest.first()? {
        1 => (
            usize::from(u16::from_le_bytes([*rest.get(2)?, *rest.get(3)?])),
            4,
        ),
        _ => {
            let length: [u8; 4] = rest.get(2..6)?.try_into().ok()?;
            (usize::try_from(u32::from_le_bytes(length)).ok()?, 6)
        }
    };
    let text = rest.get(start..start.checked_add(length)?)?;
    let text = std::str::from_utf8(text).ok()?;
    Some((text, MAGIC.len() + start + length))
}

/// The value of a key of the header, which is a Python dictionary of three entries.
fn field<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let after = header.split_once(&format!("'{key}'"))?.1;
    let value = after.trim_start().strip_prefix(':')?.trim_start();
    let end = match value.chars().next()? {
        '(' => value.find(')')? + 1,
        '\'' => value[1..].find('\'')? + 2,
        _ => value.find([',', '}'])?,
    };
    Some(value[..end].trim())
}

fn shape(text: &str) -> Result<Vec<usize>, String> {
    let inner = text.trim_matches(['(', ')']);
    let sizes = inner
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty());
    let size = |size: &str| {
        size.parse()
            .map_err(|_| format!("shape {text} cannot be read"))
    };
    sizes.map(size).collect()
}

/// Kind and bytes of an element, from a type such as `'<f4'`.
fn datatype(text: &str) -> Result<(Kind, usize), String> {
    let inner = text.trim_matches('\'');
    let refuse = || {
        format!(
            "type {text}, must be numbers, bools or texts of fixed length, little-endian: \
             array.astype(str) makes texts of objects, array.astype('<f4') numbers"
        )
    };
    let mut letters = inner.chars();
    let order = letters.next().ok_or_else(refuse)?;
    let kind = letters.next().ok_or_else(refuse)?;
    let size: usize = letters.as_str().parse().map_err(|_| refuse())?;
    if !['<', '|', '='].contains(&order) {
        return Err(refuse());
    }
    match (kind, size) {
        ('b', 1) => Ok((Kind::Bool, 1)),
        ('i', 1 | 2 | 4 | 8) => Ok((Kind::Signed, size)),
        ('u', 1 | 2 | 4 | 8) => Ok((Kind::Unsigned, size)),
        ('f', 2 | 4 | 8) => Ok((Kind::Float, size)),
        ('S', size) => Ok((Kind::Bytes, size)),
        ('U', size) => match size.checked_mul(4) {
            Some(bytes) => Ok((Kind::Unicode, bytes)),
            None => Err(refuse()),
        },
        _ => Err(refuse()),
    }
}

/// The elements of a column-major array in row-major order.
fn row_major(body: &[u8], shape: &[usize], size: usize) -> Vec<u8> {
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = size;
    for of in shape {
        strides.push(stride);
        stride *= of;
    }
    let mut index = vec![0usize; shape.len()];
    let mut out = Vec::with_capacity(body.len());
    while out.len() < body.len() {
        let from: usize = index
            .iter()
            .zip(&strides)
            .map(|(at, stride)| at * stride)
            .sum();
        out.extend_from_slice(&body[from..from + size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}

fn utf_32(element: &[u8]) -> Result<String, String> {
    let (words, _) = element.as_chunks();
    let codes = words.iter().map(|word| u32::from_le_bytes(*word));
    let letters = codes.take_while(|&code| code != 0).map(char::from_u32);
    letters
        .collect::<Option<String>>()
        .ok_or_else(|| "a text that is no Unicode".to_owned())
}

// === impl RowArray ===

impl RowArray {
    pub(super) fn new(name: &str, array: NpyArray, card: &TensorCard, non_finite: bool) -> Self {
        Self {
            name: name.to_owned(),
            array,
            card: card.clone(),
            non_finite,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The input of a row.
    pub(super) fn row(&self, row: usize) -> Result<InputTensor, String> {
        let mut elements = RowElements::new(self.card.datatype, self.non_finite);
        self.array.each(row, |element| elements.push(element))?;
        let shape = self.array.row_shape();
        elements.tensor(&self.card, (!shape.is_empty()).then_some(shape))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(descr: &str, fortran: &str, shape: &str, body: &[u8]) -> Vec<u8> {
        let header =
            format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        let length = u16::try_from(header.len()).unwrap().to_le_bytes();
        [MAGIC, &[1, 0], &length, header.as_bytes(), body].concat()
    }

    fn elements(file: &[u8], row: usize) -> Vec<String> {
        let mut found = Vec::new();
        let array = NpyArray::parse(file).unwrap();
        array
            .each(row, |element| {
                found.push(format!("{element:?}"));
                Ok(())
            })
            .unwrap();
        found
    }

    #[test]
    fn numbers_and_texts_are_read() {
        let bytes: Vec<u8> = [-1_i16, 2, 3, -4]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        let plain = file("'<i2'", "False", "(2, 2)", &bytes);
        assert_eq!(elements(&plain, 1), ["Integer(3)", "Integer(-4)"]);
        // The same elements, column by column.
        let fortran = file("'<i2'", "True", "(2, 2)", &bytes);
        assert_eq!(elements(&fortran, 0), ["Integer(-1)", "Integer(3)"]);
        let texts: Vec<u8> = ['a', 'b', 'c', '\0']
            .iter()
            .flat_map(|letter| u32::from(*letter).to_le_bytes())
            .collect();
        let texts = file("'<U2'", "False", "(2,)", &texts);
        assert_eq!(elements(&texts, 0), ["Text(\"ab\")"]);
        assert_eq!(elements(&texts, 1), ["Text(\"c\")"]);
        let half = file("'<f2'", "False", "(1,)", &f16::from_f64(0.5).to_le_bytes());
        assert_eq!(elements(&half, 0), ["Float(0.5)"]);
    }

    #[test]
    fn damaged_files_and_other_types_are_refused() {
        let refused = |file: &[u8]| NpyArray::parse(file).unwrap_err();
        assert!(refused(b"PK").contains("no array"));
        assert!(refused(&file("'|O'", "False", "(1,)", &[])).contains("astype(str)"));
        assert!(refused(&file("'>f4'", "False", "(1,)", &[0; 4])).contains("little-endian"));
        assert!(refused(&file("'<f4'", "False", "(2,)", &[0; 4])).contains("ends before"));
        let vast = format!("({}, 4)", usize::MAX);
        assert!(refused(&file("'<f4'", "False", &vast, &[0; 4])).contains("ends before"));
        assert!(refused(&file("'<f4'", "False", "(x,)", &[0; 4])).contains("shape"));
    }
}
