//! JSON numbers.

/// A number as serde's visitors take it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Natural(u64),
    Negative(i64),
    Float(f64),
}

/// Largest power of ten that a float holds exactly.
const EXACT_TENS: u32 = 22;

/// More digits of an exponent change nothing: the number is 0 or too large.
const EXPONENT_MAX: i32 = 9_999;

/// Reads the number that begins at `at`, and moves `at` past it. None: it is no JSON number, or is too
/// large.
#[inline(never)]
pub(super) fn read(json: &[u8], at: &mut usize) -> Option<Number> {
    let is_negative = take(json, at, b'-');
    let mut digits = Digits::default();
    let is_zero = take(json, at, b'0');
    if !is_zero && digits.read(json, at, false) == 0 {
        return None;
    }
    let mut is_float = digits.exponent > 0;
    if take(json, at, b'.') {
        is_float = true;
        if digits.read(json, at, true) == 0 {
            return None;
        }
    }
    if take(json, at, b'e') || take(json, at, b'E') {
        is_float = true;
        digits.exponent += exponent(json, at)?;
    }
    if !is_float {
        let natural = Number::Natural(digits.number);
        let negative = 0_i64.checked_sub_unsigned(digits.number);
        match is_negative {
            false => return Some(natural),
            true if digits.number > 0 => {
                if let Some(negative) = negative {
                    return Some(Number::Negative(negative));
                }
            }
            true => {}
        }
    }
    let float = digits.float();
    let float = if is_negative { -float } else { float };
    float.is_finite().then_some(Number::Float(float))
}

/// The first digits of a number, times a power of ten.
#[derive(Default)]
struct Digits {
    number: u64,
    exponent: i32,
}

// === impl Digits ===

impl Digits {
    /// The number of digits that were read.
    fn read(&mut self, json: &[u8], at: &mut usize, after_point: bool) -> usize {
        let start = *at;
        while let Some(digit @ b'0'..=b'9') = json.get(*at) {
            *at += 1;
            let longer = self.number.checked_mul(10);
            match longer.and_then(|longer| longer.checked_add(u64::from(digit - b'0'))) {
                Some(longer) if self.exponent <= 0 => {
                    self.number = longer;
                    self.exponent -= i32::from(after_point);
                }
                // Digits that no float holds.
                _ => self.exponent += i32::from(!after_point),
            }
        }
        *at - start
    }

    /// Exact to the last bit for numbers as people write them: up to 15 digits and powers of ten up
    /// to 22.
    fn float(&self) -> f64 {
        let mut float = self.number as f64;
        let mut left = self.exponent.unsigned_abs();
        while left > 0 && float != 0.0 && float.is_finite() {
            let step = left.min(EXACT_TENS);
            let tens = (0..step).fold(1.0, |tens, _| tens * 10.0);
            float = if self.exponent > 0 {
                float * tens
            } else {
                float / tens
            };
            left -= step;
        }
        float
    }
}

fn take(json: &[u8], at: &mut usize, byte: u8) -> bool {
    let is_next = json.get(*at) == Some(&byte);
    *at += usize::from(is_next);
    is_next
}

fn exponent(json: &[u8], at: &mut usize) -> Option<i32> {
    let is_negative = take(json, at, b'-');
    if !is_negative {
        take(json, at, b'+');
    }
    let start = *at;
    let mut exponent = 0;
    while let Some(digit @ b'0'..=b'9') = json.get(*at) {
        *at += 1;
        exponent = (exponent * 10 + i32::from(digit - b'0')).min(EXPONENT_MAX);
    }
    let exponent = if is_negative { -exponent } else { exponent };
    (*at > start).then_some(exponent)
}
