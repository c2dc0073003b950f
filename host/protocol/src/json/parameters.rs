//! The parameters of requests, inputs and outputs on which the server acts.
//!
//! A value may be a number or a text, because clients send both. Unknown parameters are ignored,
//! as the protocol asks; known parameters that the server does not support are refused.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, Unexpected, Visitor};

use crate::excerpt::excerpt;

/// `parameters` of a request.
#[derive(Debug, Default, PartialEq, Deserialize)]
pub(crate) struct RequestParameters {
    /// Microseconds from arrival to the deadline; 0 becomes `None`, the app's default.
    #[serde(default, deserialize_with = "timeout_us")]
    pub(crate) timeout: Option<u64>,
    /// 0 is the default, 1 the highest, larger is lower.
    #[serde(default, deserialize_with = "priority")]
    pub(crate) priority: u32,
    /// The least accuracy that the client accepts, from 0 to 1.
    #[serde(default, deserialize_with = "accuracy")]
    pub(crate) min_accuracy: Option<f32>,
    /// Whether outputs without a `binary_data` of their own are binary.
    #[serde(default)]
    pub(crate) binary_data_output: bool,
}

/// `parameters` of an input.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct InputParameters {
    /// Bytes of its blob after the JSON.
    #[serde(default)]
    pub(crate) binary_data_size: Option<usize>,
    #[serde(default)]
    pub(crate) shared_memory_region: Option<IgnoredAny>,
}

/// `parameters` of a requested output.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct OutputParameters {
    /// Whether the client wants it as a blob.
    #[serde(default)]
    pub(crate) binary_data: Option<bool>,
    /// How many classes the client wants, best first, in place of the values.
    #[serde(default, deserialize_with = "count")]
    pub(crate) classification: Option<usize>,
    #[serde(default)]
    pub(crate) shared_memory_region: Option<IgnoredAny>,
}

fn timeout_us<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let expected = "a whole number of microseconds";
    let value = deserializer.deserialize_any(ScalarVisitor { expected })?;
    let us = value.whole().ok_or_else(|| value.refused(expected))?;
    Ok(Some(us).filter(|&us| us > 0))
}

fn priority<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let expected = "a whole number from 0 to 4294967295";
    let value = deserializer.deserialize_any(ScalarVisitor { expected })?;
    let priority = value.whole().and_then(|whole| u32::try_from(whole).ok());
    priority.ok_or_else(|| value.refused(expected))
}

fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let expected = "a whole number of classes";
    let value = deserializer.deserialize_any(ScalarVisitor { expected })?;
    let count = value.whole().and_then(|whole| usize::try_from(whole).ok());
    count.map(Some).ok_or_else(|| value.refused(expected))
}

fn accuracy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f32>, D::Error> {
    let expected = "a number from 0 to 1";
    let value = deserializer.deserialize_any(ScalarVisitor { expected })?;
    let accuracy = value.real().filter(|real| (0.0..=1.0).contains(real));
    let accuracy = accuracy.ok_or_else(|| value.refused(expected))?;
    Ok(Some(accuracy as f32))
}

/// A number, or a text that may hold one.
enum Scalar {
    Whole(u64),
    Real(f64),
    Text(String),
}

impl Scalar {
    fn whole(&self) -> Option<u64> {
        match self {
            Self::Whole(whole) => Some(*whole),
            // Below 2^53 an f64 holds every whole number exactly.
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
        match self {
            Self::Whole(whole) => E::invalid_value(Unexpected::Unsigned(*whole), &expected),
            Self::Real(real) => E::invalid_value(Unexpected::Float(*real), &expected),
            Self::Text(text) => E::invalid_value(Unexpected::Str(&excerpt(text)), &expected),
        }
    }
}

struct ScalarVisitor {
    expected: &'static str,
}

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.expected)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Scalar, E> {
        Ok(Scalar::Whole(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar::Real(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Scalar, E> {
        Ok(Scalar::Real(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(value.to_owned()))
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
    fn a_timeout_of_zero_is_none_and_unknown_parameters_are_ignored() {
        let parameters = parse(r#"{"timeout":0,"headers":{"x":[1]},"sequence_id":7}"#);
        assert_eq!(parameters, Ok(RequestParameters::default()));
    }

    #[test]
    fn impossible_values_are_refused() {
        for (text, message) in [
            (
                r#"{"timeout":-1}"#,
                "floating point `-1.0`, expected a whole number of microseconds",
            ),
            (
                r#"{"timeout":"soon"}"#,
                "string \"soon\", expected a whole number of microseconds",
            ),
            (
                r#"{"timeout":true}"#,
                "boolean `true`, expected a whole number of microseconds",
            ),
            (
                r#"{"timeout":1e300}"#,
                "expected a whole number of microseconds",
            ),
            (r#"{"priority":4294967296}"#, "expected a whole number"),
            (r#"{"min_accuracy":1.5}"#, "expected a number from 0 to 1"),
            (r#"{"min_accuracy":"NaN"}"#, "expected a number from 0 to 1"),
            (r#"{"binary_data_output":"yes"}"#, "expected a boolean"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
