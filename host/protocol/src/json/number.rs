//! Decimal numbers from text to f32 and i64, with the results of serde.

use super::cursor::JsonCursor;

/// Powers of ten that an f64 holds exactly, and by which serde multiplies or divides.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Powers of ten up to eight digits.
const WHOLE_POWERS: [u64; 9] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
];

/// A mantissa below this has room for one more digit in a u64.
const ONE_MORE_MAX: u64 = u64::MAX / 10;
/// A mantissa below this has room for eight more digits in a u64.
const EIGHT_MORE_MAX: u64 = u64::MAX / 100_000_000;

/// A number as its text has it: `mantissa * 10^exponent`.
pub(super) struct DecimalNumber {
    pub(super) negative: bool,
    pub(super) mantissa: u64,
    pub(super) exponent: i32,
    /// Without a point and without an exponent.
    pub(super) whole: bool,
}

// === impl JsonCursor ===

impl JsonCursor<'_> {
    /// Reads a number without white space before it.
    #[inline]
    pub(super) fn number(&mut self) -> Option<DecimalNumber> {
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
        Some(DecimalNumber {
            negative,
            mantissa,
            exponent,
            whole,
        })
    }

    /// Appends the digits that follow to `value`; `None` if a u64 does not hold the result.
    #[inline]
    fn digits(&mut self, mut value: u64) -> Option<u64> {
        let mut rest = self.json.get(self.at..)?;
        while value < EIGHT_MORE_MAX
            && let Some(eight) = rest.first_chunk()
        {
            let (count, digits) = leading_digits(*eight);
            value = value * WHOLE_POWERS[count] + digits;
            rest = &rest[count..];
            if count < 8 {
                self.at = self.json.len() - rest.len();
                return Some(value);
            }
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

/// The number of digits at the begin of eight bytes, and their value, the first one highest. Joins
/// neighbours to pairs, pairs to fours and fours to eight, all at once.
#[inline]
fn leading_digits(bytes: [u8; 8]) -> (usize, u64) {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let text = u64::from_le_bytes(bytes);
    // The first byte below '0' borrows, the first above '9' carries; either sets its high bit.
    let below = text.wrapping_sub(0x3030_3030_3030_3030);
    let above = text.wrapping_add(0x4646_4646_4646_4646);
    let count = ((below | above) & HIGH).trailing_zeros() / 8;
    if count == 0 {
        return (0, 0);
    }
    // The digits move to the last places; zeros come before them.
    let ones = (below << (64 - 8 * count)) & 0x0f0f_0f0f_0f0f_0f0f;
    let twos = (ones.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    let value = fours.wrapping_mul(10_000 << 32 | 1) >> 32;
    (count as usize, value)
}

// === impl DecimalNumber ===

impl DecimalNumber {
    /// Through an f64, with the one multiplication or division that serde does too.
    #[inline]
    pub(super) fn as_f32(&self) -> Option<f32> {
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

    #[inline]
    pub(super) fn as_i64(&self) -> Option<i64> {
        // serde reads "-0" as a float.
        if !self.whole || self.negative && self.mantissa == 0 {
            return None;
        }
        let value = i64::try_from(self.mantissa).ok()?;
        Some(if self.negative { -value } else { value })
    }

    /// A dimension of a shape.
    pub(super) fn as_usize(&self) -> Option<usize> {
        let whole = self.whole && !self.negative;
        usize::try_from(self.mantissa).ok().filter(|_| whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_counted_and_read_up_to_the_first_other_byte() {
        for (text, count, value) in [
            (b"12345678", 8, 12_345_678),
            (b"1234567,", 7, 1_234_567),
            (b"00120 34", 5, 120),
            (b"9.999999", 1, 9),
            (b".1234567", 0, 0),
            (b"99/99999", 2, 99),
            (b"99:99999", 2, 99),
            (b"9\xff999999", 1, 9),
            (b"9\x7f999999", 1, 9),
            (b"123\0\0\0\0\0", 3, 123),
        ] {
            assert_eq!(leading_digits(*text), (count, value), "{text:?}");
        }
    }
}
