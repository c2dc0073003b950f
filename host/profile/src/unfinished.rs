//! The file that keeps a measurement until it is complete, so that an interrupted one can continue.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::ProfileFileError;
use crate::json;
use crate::machine::Machine;
use crate::measurement::Measurement;

/// A measurement continues another one only if they are equal in all of this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasurementId {
    /// The command with its options.
    pub command: String,
    /// The machine.
    pub machine: Machine,
    /// Versions that latencies depend on.
    pub versions: BTreeMap<String, String>,
    /// Worker kinds and variants, each with the facts that its cells depend on.
    pub subjects: Vec<String>,
}

/// The file of a measurement that is not complete.
#[derive(Clone, Debug)]
pub struct UnfinishedMeasurement {
    path: PathBuf,
    id: MeasurementId,
}

/// The content of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptMeasurement {
    id: MeasurementId,
    measurement: Measurement,
}

// === impl MeasurementId ===

impl MeasurementId {
    /// The first field that differs, in words.
    fn difference(&self, other: &Self) -> Option<String> {
        if self.machine != other.machine {
            return Some(format!("on {:?}", other.machine.cpu));
        }
        if self.versions != other.versions {
            return Some(format!("with {:?}", other.versions));
        }
        if self.command != other.command {
            return Some(format!("by `{}`", other.command));
        }
        (self.subjects != other.subjects).then(|| "of other variants".to_owned())
    }
}

// === impl UnfinishedMeasurement ===

impl UnfinishedMeasurement {
    /// The file for the profile `out`: `OUT.unfinished`.
    pub fn new(out: &Path, id: MeasurementId) -> Self {
        let mut name = out.file_name().unwrap_or_default().to_owned();
        name.push(".unfinished");
        Self {
            path: out.with_file_name(name),
            id,
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The samples so far of the same measurement; `None` if there is no file.
    ///
    /// # Errors
    /// The file is of another measurement, or cannot be read; the reason in words.
    pub fn read(&self) -> Result<Option<Measurement>, String> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{}: {error}", self.path.display())),
        };
        let kept: KeptMeasurement =
            json::parse(&self.path, &text).map_err(|error| error.to_string())?;
        match self.id.difference(&kept.id) {
            None => Ok(Some(kept.measurement)),
            Some(how) => Err(format!("{}: measured {how}", self.path.display())),
        }
    }

    /// Writes the samples so far.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, measurement: &Measurement) -> Result<(), ProfileFileError> {
        let failed = |source| ProfileFileError::io(&self.path, source);
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let kept = KeptMeasurement {
            id: self.id.clone(),
            measurement: measurement.clone(),
        };
        let text = serde_json::to_string(&kept).map_err(|error| failed(error.into()))?;
        json::replace(&self.path, &text)
    }

    /// Removes the file: the profile is complete.
    pub fn remove(&self) {
        // A file that stays is harmless: the next measurement finds it complete, or not its own.
        let _ = std::fs::remove_file(&self.path);
    }
}
