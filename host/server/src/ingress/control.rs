//! The body of a load or unload, as Triton's model repository extension has it.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::backend::Control;
use super::error::ProtocolError;

/// Nothing, or parameters.
#[derive(Default, Deserialize)]
pub(super) struct ControlRequest {
    #[serde(default)]
    parameters: Map<String, Value>,
}

// === impl ControlRequest ===

impl ControlRequest {
    /// Refuses what would be asked in vain. Unloading what an app depends on is no question
    /// here: apps depend on nothing.
    pub(super) fn check(body: &[u8], verb: Control) -> Result<(), ProtocolError> {
        if body.is_empty() {
            return Ok(());
        }
        let request: Self = serde_json::from_slice(body)
            .map_err(|error| ProtocolError::malformed("body", error.to_string()))?;
        for (name, value) in &request.parameters {
            let refuse = |reason: &str| {
                Err(ProtocolError::malformed(
                    format!("parameters.{name}"),
                    reason,
                ))
            };
            match (verb, name.as_str()) {
                (Control::Unload, "unload_dependents") if value.is_boolean() => {}
                (Control::Unload, "unload_dependents") => return refuse("must be true or false"),
                (Control::Load, "config") => {
                    return refuse("not supported: an app is configured by its card in the zoo");
                }
                (Control::Load, name) if name.starts_with("file:") => {
                    return refuse("not supported: weights come from the zoo");
                }
                _ => return refuse("unknown"),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_would_be_asked_in_vain_is_refused() {
        let check = |verb, body: &str| {
            let checked = ControlRequest::check(body.as_bytes(), verb);
            checked.map_err(|error| error.to_string())
        };
        use Control::{Load, Unload};
        for body in ["", "{}", r#"{"parameters": {}}"#] {
            assert_eq!(check(Load, body), Ok(()));
            assert_eq!(check(Unload, body), Ok(()));
        }
        let dependents = r#"{"parameters": {"unload_dependents": false}}"#;
        assert_eq!(check(Unload, dependents), Ok(()));
        for (verb, body, said) in [
            (Load, dependents, "parameters.unload_dependents: unknown"),
            (
                Load,
                r#"{"parameters": {"config": "{}"}}"#,
                "parameters.config: not supported: an app is configured by its card in the zoo",
            ),
            (
                Load,
                r#"{"parameters": {"file:1/model.bin": "AA=="}}"#,
                "parameters.file:1/model.bin: not supported: weights come from the zoo",
            ),
            (
                Unload,
                r#"{"parameters": {"force": true}}"#,
                "parameters.force: unknown",
            ),
        ] {
            assert_eq!(check(verb, body), Err(said.to_owned()));
        }
        assert!(check(Load, "[1").unwrap_err().starts_with("body: "));
    }
}
