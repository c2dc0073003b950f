//! Request, input and output parameters: the ones the server acts on.
//!
//! Values may come as numbers or as text, because clients send both. What is
//! not known is ignored, as the protocol asks; what is known and cannot be done
//! is refused.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, Unexpected, Visitor};

/// `parameters` of a request.
#[derive(Debug, Default, PartialEq, Deserialize)]
pub(super) struct RequestParameters {
    /// Microseconds from arrival to the deadline; 0 means the app's own.
    #[serde(default, deserialize_with = "timeout_us")]
    pub(super) timeout: Option<u64>,
    /// 0 the default, 1 the highest.
    #[serde(default, deserialize_with = "priority")]
    pub(super) priority: u32,
    /// From 0 to 1.
    #[serde(default, deserialize_with = "accuracy")]
    pub(super) min_accuracy: Option<f32>,
    /// Whether outputs are binary unless they say otherwise.
    #[serde(default)]
    pub(super) binary_data_output: bool,
}

/// `parameters` of an input.
#[derive(Debug, Default, Deserialize)]
pub(super) struct InputParameters {
    /// Bytes of its blob behind the JSON.
    #[serde(default)]
    pub(super) binary_data_size: Option<usize>,
    #[serde(default)]
    pub(super) shared_memory_region: Option<IgnoredAny>,
}

/// `parameters` of a requested output.
#[derive(Debug, Default, Deserialize)]
pub(super) struct OutputParameters {
    /// Whether it is to come as a blob.
    #[serde(default)]
    pub(super) binary_data: Option<bool>,
    #[serde(default)]
    pub(super) classification: Option<IgnoredAny>,
    #[serde(default)]
    pub(super) shared_memory_region: Option<IgnoredAny>,
}

fn timeout_us<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let expected = "microseconds as a whole number";
    let value = deserializer.deserialize_any(Scalar { expected })?;
    let us = value.whole().ok_or_else(|| value.refused(expected))?;
    Ok(Some(us).filter(|&us| us > 0))
}

fn priority<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let expected = "a whole number, 1 the highest";
    let value = deserializer.deserialize_any(Scalar { expected })?;
    let priority = value.whole().and_then(|whole| u32::try_from(whole).ok());
    priority.ok_or_else(|| value.refused(expected))
}

fn accuracy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f32>, D::Error> {
    let expected = "a number from 0 to 1";
    let value = deserializer.deserialize_any(Scalar { expected })?;
    let accuracy = value.real().filter(|real| (0.0..=1.0).contains(real));
    let accuracy = accuracy.ok_or_else(|| value.refused(expected))?;
    Ok(Some(accuracy as f32))
}

/// A number, or text that may be one.
enum Value {
    Whole(u64),
    Real(f64),
    Text(String),
}

impl Value {
    fn whole(&self) -> Option<u64> {
        match self {
            Self::Whole(whole) => Some(*whole),
            // Below 2^53 every whole number has its own f64.
            Self::Real(real) => {
                (real.fract() == 0.0 && (0.0..9.0e15).contains(real)).then_some(*real as u64)
            }
            Self::Text(text) => text.trim().parse().ok(),
        }
    }

    fn real(&self) -> Option<f64> {
        match self {
            Self::Whole(whole) => Some(*whole as f64),
            Self::Real(real) => Some(*real),
            Self::Text(text) => text.trim().parse().ok(),
        }
    }

    fn refused<E: Error>(&self, expected: &'static str) -> E {
        let unexpected = match self {
            Self::Whole(whole) => Unexpected::Unsigned(*whole),
            Self::Real(real) => Unexpected::Float(*real),
            Self::Text(text) => Unexpected::Str(text),
        };
        E::invalid_value(unexpected, &expected)
    }
}

struct Scalar {
    expected: &'static str,
}

impl Visitor<'_> for Scalar {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.expected)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Whole(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Real(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Real(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RequestParameters, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_and_text_are_the_same() {
        let numbers = parse(r#"{"timeout":1500,"priority":1,"min_accuracy":0.5}"#);
        let text = parse(r#"{"timeout":"1500","priority":"1","min_accuracy":" 0.5"}"#);
        let reals = parse(r#"{"timeout":1.5e3,"priority":1.0,"min_accuracy":0.5}"#);
        assert_eq!(numbers, text);
        assert_eq!(numbers, reals);
        assert_eq!(numbers.unwrap().timeout, Some(1500));
    }

    #[test]
    fn a_timeout_of_zero_is_none_and_the_unknown_is_ignored() {
        let parameters = parse(r#"{"timeout":0,"headers":{"x":[1]},"sequence_id":7}"#);
        assert_eq!(parameters, Ok(RequestParameters::default()));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (text, says) in [
            (
                r#"{"timeout":-1}"#,
                "floating point `-1.0`, expected microseconds",
            ),
            (
                r#"{"timeout":"soon"}"#,
                "string \"soon\", expected microseconds",
            ),
            (
                r#"{"timeout":true}"#,
                "boolean `true`, expected microseconds",
            ),
            (r#"{"timeout":1e300}"#, "expected microseconds"),
            (r#"{"priority":4294967296}"#, "expected a whole number"),
            (r#"{"min_accuracy":1.5}"#, "expected a number from 0 to 1"),
            (r#"{"min_accuracy":"NaN"}"#, "expected a number from 0 to 1"),
            (r#"{"binary_data_output":"yes"}"#, "expected a boolean"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
