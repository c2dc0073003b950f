//! Parameters of loads and unloads.

use std::collections::BTreeMap;

use serde_json::Value;

use super::messages::inference::ModelRepositoryParameter;
use super::messages::inference::model_repository_parameter::ParameterChoice;
use crate::error::ProtocolError;
use crate::repository::Control;

/// Checks the parameters of a load or unload, by the rules of HTTP.
///
/// # Errors
/// A parameter has no effect here.
pub fn check_control(
    verb: Control,
    parameters: &BTreeMap<String, ModelRepositoryParameter>,
) -> Result<(), ProtocolError> {
    for (name, parameter) in parameters {
        let value = match &parameter.parameter_choice {
            Some(ParameterChoice::BoolParam(value)) => Value::Bool(*value),
            _ => Value::Null,
        };
        verb.check_parameter(name, &value)?;
    }
    Ok(())
}
