//! Parameters as JSON has them, so that both protocols read them by the same rules.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::messages::inference::InferParameter;
use super::messages::inference::infer_parameter::ParameterChoice;
use crate::error::ProtocolError;

/// Reads the parameters that the server knows; `field` is where they are.
///
/// # Errors
/// One has a wrong value.
pub(super) fn read<T: Default + DeserializeOwned>(
    parameters: BTreeMap<String, InferParameter>,
    field: impl Fn() -> String,
) -> Result<T, ProtocolError> {
    if parameters.is_empty() {
        return Ok(T::default());
    }
    let values = parameters
        .into_iter()
        .map(|(name, parameter)| (name, value(parameter)));
    let values = Value::Object(values.collect::<Map<_, _>>());
    serde_path_to_error::deserialize(values).map_err(|error| {
        let field = format!("{}.{}", field(), error.path());
        ProtocolError::malformed(field, error.into_inner().to_string())
    })
}

/// A number that is not finite becomes null, which no parameter takes.
fn value(parameter: InferParameter) -> Value {
    match parameter.parameter_choice {
        None => Value::Null,
        Some(ParameterChoice::BoolParam(value)) => value.into(),
        Some(ParameterChoice::Int64Param(value)) => value.into(),
        Some(ParameterChoice::StringParam(value)) => value.into(),
        Some(ParameterChoice::DoubleParam(value)) => value.into(),
        Some(ParameterChoice::Uint64Param(value)) => value.into(),
    }
}
