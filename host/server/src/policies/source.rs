//! A component with settings from the pool's configuration.

use std::path::Path;

use serde_json::{Map, Value};
use switchyard_policy::PolicyVersion;
use switchyard_policy::files::read_regular;
use switchyard_policy::limits::COMPONENT_BYTES_MAX;
use switchyard_policy::loader::{LoadError, LoadPhase};
use switchyard_policy::settings::{self, SettingsError};

/// Reads a component and its settings. `over` overrides the settings file next to the component, field
/// by field.
///
/// # Errors
/// One of the files cannot be read, or JSON cannot hold a setting.
pub fn version(file: &Path, over: toml::Table) -> Result<PolicyVersion, LoadError> {
    let fail = |phase, cause| LoadError {
        file: file.to_owned(),
        phase,
        cause,
    };
    let bytes =
        read_regular(file, COMPONENT_BYTES_MAX).map_err(|e| fail(LoadPhase::Read, e.into()))?;
    let settings = settings(file, over).map_err(|e| fail(LoadPhase::Settings, e.into()))?;
    Ok(PolicyVersion::new(file, bytes, settings))
}

fn settings(file: &Path, over: toml::Table) -> Result<String, SettingsError> {
    let own_file = settings::file_of(file);
    let fail = |reason: String| SettingsError {
        file: own_file.clone(),
        line: None,
        reason,
        may_pass: false,
    };
    let text = settings::read(&own_file)?;
    let mut merged: Map<String, Value> =
        serde_json::from_str(&text).map_err(|e| fail(e.to_string()))?;
    let over = serde_json::to_value(over).map_err(|e| fail(e.to_string()))?;
    if let Value::Object(over) = over {
        merged.extend(over);
    }
    Ok(Value::Object(merged).to_string())
}
