//! Request bodies of Triton's extension `model_repository`.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::ProtocolError;

/// A change of an app's state that a client asks of the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Make the app ready.
    Load,
    /// Free its memory.
    Unload,
}

/// Body of `POST /v2/repository/index`; may be empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct IndexQuery {
    /// List only variants that are ready.
    #[serde(default)]
    pub ready: bool,
}

/// Body of a load or unload; may be empty.
#[derive(Default, Deserialize)]
struct ControlBody {
    #[serde(default)]
    parameters: Map<String, Value>,
}

// === impl IndexQuery ===

impl IndexQuery {
    /// Reads the body.
    ///
    /// # Errors
    /// Malformed JSON.
    pub fn parse(body: &[u8]) -> Result<Self, ProtocolError> {
        parse(body)
    }
}

// === impl Control ===

impl Control {
    /// Checks the body of a load or unload.
    ///
    /// # Errors
    /// Malformed JSON, or a parameter that has no effect here. `unload_dependents` is accepted:
    /// no app depends on another one.
    pub fn check_body(self, body: &[u8]) -> Result<(), ProtocolError> {
        let ControlBody { parameters } = parse(body)?;
        let mut parameters = parameters.iter();
        parameters.try_for_each(|(name, value)| self.check_parameter(name, value))
    }

    /// Checks one parameter of a load or unload; only booleans have a value here.
    pub(crate) fn check_parameter(self, name: &str, value: &Value) -> Result<(), ProtocolError> {
        let reason = match (self, name) {
            (Self::Unload, "unload_dependents") if value.is_boolean() => return Ok(()),
            (Self::Unload, "unload_dependents") => "must be true or false",
            (Self::Load, "config") => {
                "not supported: the app's card in the zoo is its configuration"
            }
            (Self::Load, name) if name.starts_with("file:") => {
                "not supported: weights come from the zoo"
            }
            (Self::Unload, _) => "unknown; known parameters: unload_dependents",
            (Self::Load, _) => "unknown; a load has no parameters",
        };
        let field = format!("parameters.{name}");
        Err(ProtocolError::malformed(field, reason))
    }
}

fn parse<'a, T: Default + Deserialize<'a>>(body: &'a [u8]) -> Result<T, ProtocolError> {
    // serde also reads an array as a struct; the protocol does not.
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => return Ok(T::default()),
        Some(b'{') => {}
        Some(_) => return Err(ProtocolError::malformed("body", "expected a JSON object")),
    }
    serde_json::from_slice(body)
        .map_err(|error| ProtocolError::malformed("body", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::Control::{Load, Unload};
    use super::*;

    fn check(verb: Control, body: &str) -> Result<(), String> {
        let checked = verb.check_body(body.as_bytes());
        checked.map_err(|error| error.to_string())
    }

    #[test]
    fn parameters_without_effect_are_refused() {
        for body in ["", "{}", r#"{"parameters": {}}"#] {
            assert_eq!(check(Load, body), Ok(()));
            assert_eq!(check(Unload, body), Ok(()));
        }
        let dependents = r#"{"parameters": {"unload_dependents": false}}"#;
        assert_eq!(check(Unload, dependents), Ok(()));
        for (verb, body, message) in [
            (
                Load,
                dependents,
                "parameters.unload_dependents: unknown; a load has no parameters",
            ),
            (
                Load,
                r#"{"parameters": {"config": "{}"}}"#,
                "parameters.config: not supported: the app's card in the zoo is its configuration",
            ),
            (
                Load,
                r#"{"parameters": {"file:1/model.bin": "AA=="}}"#,
                "parameters.file:1/model.bin: not supported: weights come from the zoo",
            ),
            (
                Unload,
                r#"{"parameters": {"force": true}}"#,
                "parameters.force: unknown; known parameters: unload_dependents",
            ),
        ] {
            assert_eq!(check(verb, body), Err(message.to_owned()));
        }
        assert!(check(Load, "{1").unwrap_err().starts_with("body: "));
    }

    #[test]
    fn an_array_is_no_body() {
        let refused = Err("body: expected a JSON object".to_owned());
        for body in ["[]", " [{}]", "3"] {
            assert_eq!(check(Load, body), refused, "{body}");
            assert_eq!(check(Unload, body), refused, "{body}");
            assert!(IndexQuery::parse(body.as_bytes()).is_err(), "{body}");
        }
    }

    #[test]
    fn an_empty_query_lists_everything() {
        assert_eq!(IndexQuery::parse(b""), Ok(IndexQuery { ready: false }));
        let ready = IndexQuery::parse(br#"{"ready":true}"#);
        assert_eq!(ready, Ok(IndexQuery { ready: true }));
        assert!(IndexQuery::parse(b"{").is_err());
    }
}
