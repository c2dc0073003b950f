//! The requests that clients really send, read in one pass.
//!
//! serde dispatches on every number; for a tensor of a few hundred of them that is most of what
//! a request costs. Here the envelope is walked by hand and numbers go straight into the tensor.
//! What is at all unusual (escapes in names, unknown fields, data before its type, a number of
//! twenty digits, anything that is wrong) is none of this module's business: it gives up, and
//! the caller reads the body again with serde, which takes everything and says what is wrong.
//!
//! What is taken here serde would take too, and read the same to the last bit; a property test
//! holds it to that.

use std::borrow::Cow;

use super::json_tensor::{Decoded, RESERVED_MAX};
use super::parameters::InputParameters;
use super::request::{InferRequest, InputData, RequestInput, Text};
use super::tensor::{Datatype, Shape, TensorData, element_count};

/// Arrays and objects in each other, at most. Real tensors have four or five.
const DEPTH_MAX: usize = 16;

/// Powers of ten that an f64 holds exactly, and that serde multiplies or divides by.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Reads the JSON part of a body; none where it is unusual.
pub(super) fn parse(json: &[u8]) -> Option<InferRequest<'_>> {
    let mut cursor = Cursor { json, at: 0 };
    let request = request(&mut cursor)?;
    cursor.skip_space();
    (cursor.at == json.len()).then_some(request)
}

/// Below these, so many digits more fit a u64.
const ONE_MORE_MAX: u64 = u64::MAX / 10;
const EIGHT_MORE_MAX: u64 = u64::MAX / 100_000_000;

/// Where reading has come to.
struct Cursor<'a> {
    json: &'a [u8],
    at: usize,
}

/// A number as it was written: `mantissa * 10^exponent`.
struct Number {
    negative: bool,
    mantissa: u64,
    exponent: i32,
    /// Neither point nor exponent.
    whole: bool,
}

fn request<'a>(cursor: &mut Cursor<'a>) -> Option<InferRequest<'a>> {
    let (mut id, mut parameters, mut inputs, mut outputs) = (None, None, None, None);
    cursor.members(|cursor, key| match key {
        "id" if id.is_none() => {
            id = Some(Text(Cow::Borrowed(cursor.string()?)));
            Some(())
        }
        "parameters" if parameters.is_none() => {
            parameters = Some(serde_json::from_slice(cursor.value()?).ok()?);
            Some(())
        }
        "inputs" if inputs.is_none() => {
            let mut list = Vec::with_capacity(1);
            cursor.elements(|cursor| {
                list.push(input(cursor)?);
                Some(())
            })?;
            inputs = Some(list);
            Some(())
        }
        "outputs" if outputs.is_none() => {
            outputs = Some(serde_json::from_slice(cursor.value()?).ok()?);
            Some(())
        }
        _ => None,
    })?;
    Some(InferRequest {
        id,
        parameters,
        inputs: inputs?,
        outputs,
    })
}

fn input<'a>(cursor: &mut Cursor<'a>) -> Option<RequestInput<'a>> {
    let (mut name, mut datatype, mut parameters) = (None, None, None);
    let mut shape: Option<Shape> = None;
    let mut data = InputData::Absent;
    cursor.members(|cursor, key| {
        match key {
            "name" if name.is_none() => name = Some(cursor.string()?),
            "datatype" if datatype.is_none() => datatype = Some(cursor.string()?),
            "shape" if shape.is_none() => shape = Some(cursor.shape()?),
            "parameters" if parameters.is_none() => {
                let value: InputParameters = serde_json::from_slice(cursor.value()?).ok()?;
                parameters = Some(value);
            }
            "data" if matches!(data, InputData::Absent) => {
                let count = element_count(shape.as_ref()?)?;
                let datatype = Datatype::from_name(datatype?)?;
                data = InputData::Decoded(cursor.data(datatype, count)?);
            }
            _ => return None,
        }
        Some(())
    })?;
    Some(RequestInput {
        name: Text(Cow::Borrowed(name?)),
        shape: shape?,
        datatype: Text(Cow::Borrowed(datatype?)),
        parameters: parameters.unwrap_or_default(),
        data,
    })
}

// === impl Cursor ===

impl<'a> Cursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.json.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// Takes `byte` if it is next, after white space.
    fn takes(&mut self, byte: u8) -> bool {
        self.skip_space();
        let next = self.peek() == Some(byte);
        self.at += usize::from(next);
        next
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.takes(byte).then_some(())
    }

    /// Walks an object of at least one member; `member` reads the value of its key.
    fn members(&mut self, mut member: impl FnMut(&mut Self, &str) -> Option<()>) -> Option<()> {
        self.expect(b'{')?;
        loop {
            let key = self.string()?;
            self.expect(b':')?;
            member(self, key)?;
            if !self.takes(b',') {
                return self.expect(b'}');
            }
        }
    }

    /// Walks an array of at least one element; `element` reads it.
    fn elements(&mut self, mut element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.expect(b'[')?;
        loop {
            element(self)?;
            if !self.takes(b',') {
                return self.expect(b']');
            }
        }
    }

    /// A string without escapes.
    fn string(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let from = self.at;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' | 0..0x20 => return None,
                _ => self.at += 1,
            }
        }
        let text = str::from_utf8(&self.json[from..self.at]).ok()?;
        self.at += 1;
        Some(text)
    }

    /// An array or object as text, for serde to read: only its end is found here.
    fn value(&mut self) -> Option<&'a [u8]> {
        self.skip_space();
        let from = self.at;
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.checked_sub(1)?,
                b'"' => {
                    self.string()?;
                    continue;
                }
                _ => {}
            }
            // Neither an array nor an object: its end is not for sure.
            if self.at == from && depth == 0 || depth > DEPTH_MAX {
                return None;
            }
            self.at += 1;
            if depth == 0 {
                return Some(&self.json[from..self.at]);
            }
        }
    }

    fn shape(&mut self) -> Option<Shape> {
        let mut shape = Shape::new();
        self.elements(|cursor| {
            cursor.skip_space();
            let number = cursor.number()?;
            let fits = number.whole && !number.negative && shape.len() < DEPTH_MAX;
            shape.push(usize::try_from(number.mantissa).ok().filter(|_| fits)?);
            Some(())
        })?;
        Some(shape)
    }

    fn data(&mut self, datatype: Datatype, expected: usize) -> Option<Decoded> {
        match datatype {
            Datatype::F32 => {
                let (values, found) = self.numbers(expected, |number| number.as_f32())?;
                let data = TensorData::F32(values);
                Some(Decoded { data, found })
            }
            Datatype::I64 => {
                let (values, found) = self.numbers(expected, |number| number.as_i64())?;
                let data = TensorData::I64(values);
                Some(Decoded { data, found })
            }
            _ => None,
        }
    }

    /// An array of numbers, nested or flat: as many as are expected, and how many there were.
    #[inline]
    fn numbers<T>(
        &mut self,
        expected: usize,
        read: impl Fn(&Number) -> Option<T>,
    ) -> Option<(Vec<T>, usize)> {
        let mut values = Vec::with_capacity(expected.min(RESERVED_MAX));
        let (mut depth, mut found) = (0, 0);
        loop {
            // Before an element.
            while self.takes(b'[') {
                depth += 1;
                if depth > DEPTH_MAX {
                    return None;
                }
            }
            if depth == 0 {
                return None;
            }
            let value = read(&self.number()?)?;
            if found < expected {
                values.push(value);
            }
            found += 1;
            // After it.
            while !self.takes(b',') {
                self.expect(b']')?;
                depth -= 1;
                if depth == 0 {
                    return Some((values, found));
                }
            }
        }
    }

    /// A number, no white space before it.
    #[inline]
    fn number(&mut self) -> Option<Number> {
        let negative = self.peek()? == b'-';
        self.at += usize::from(negative);
        let from = self.at;
        let mut mantissa = self.digits(0)?;
        let digits = self.at - from;
        if digits == 0 || digits > 1 && self.json[from] == b'0' {
            return None;
        }
        let (mut exponent, mut whole) = (0, true);
        if self.peek() == Some(b'.') {
            self.at += 1;
            let from = self.at;
            mantissa = self.digits(mantissa)?;
            let digits = self.at - from;
            if digits == 0 {
                return None;
            }
            exponent = -i32::try_from(digits).ok()?;
            whole = false;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            let sign = self.peek().filter(|sign| matches!(sign, b'+' | b'-'));
            self.at += usize::from(sign.is_some());
            let from = self.at;
            let power = self.digits(0)?;
            if self.at == from || power > 64 {
                return None;
            }
            let power = power as i32;
            exponent += if sign == Some(b'-') { -power } else { power };
            whole = false;
        }
        Some(Number {
            negative,
            mantissa,
            exponent,
            whole,
        })
    }

    /// Digits appended to `value`; none where a u64 does not hold them.
    #[inline]
    fn digits(&mut self, mut value: u64) -> Option<u64> {
        let mut rest = self.json.get(self.at..)?;
        // Most fractions have eight digits or more.
        if let Some((eight, after)) = rest.split_first_chunk()
            && let Some(digits) = eight_digits(*eight)
            && value < EIGHT_MORE_MAX
        {
            value = value * 100_000_000 + digits;
            rest = after;
        }
        while let [byte @ b'0'..=b'9', after @ ..] = rest {
            if value >= ONE_MORE_MAX {
                return None;
            }
            value = value * 10 + u64::from(byte - b'0');
            rest = after;
        }
        self.at = self.json.len() - rest.len();
        Some(value)
    }
}

/// The number that eight digits are, the first one highest; none where one is no digit. All of
/// them at once: neighbours are joined to pairs, pairs to fours, fours to eight.
#[inline]
fn eight_digits(bytes: [u8; 8]) -> Option<u64> {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let text = u64::from_le_bytes(bytes);
    // A byte below '0' borrows, one above '9' carries; either sets its high bit.
    let below = text.wrapping_sub(0x3030_3030_3030_3030);
    let above = text.wrapping_add(0x4646_4646_4646_4646);
    if (below | above) & HIGH != 0 {
        return None;
    }
    let ones = below & 0x0f0f_0f0f_0f0f_0f0f;
    let twos = (ones.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    Some(fours.wrapping_mul(10_000 << 32 | 1) >> 32)
}

// === impl Number ===

impl Number {
    /// As serde does: through an f64, whose one multiplication or division is what it does too.
    #[inline]
    fn as_f32(&self) -> Option<f32> {
        if self.whole && !self.negative {
            return Some(self.mantissa as f32);
        }
        if self.whole && self.mantissa != 0 {
            return Some(-i64::try_from(self.mantissa).ok()? as f32);
        }
        let power = *POWERS.get(self.exponent.unsigned_abs() as usize)?;
        let value = self.mantissa as f64;
        let value = if self.exponent < 0 {
            value / power
        } else {
            value * power
        };
        let value = if self.negative { -value } else { value } as f32;
        value.is_finite().then_some(value)
    }

    fn as_i64(&self) -> Option<i64> {
        // "-0" is a float to serde.
        if !self.whole || self.negative && self.mantissa == 0 {
            return None;
        }
        let value = i64::try_from(self.mantissa).ok()?;
        Some(if self.negative { -value } else { value })
    }
}

#[cfg(test)]
mod tests;
