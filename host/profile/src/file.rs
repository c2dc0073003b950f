//! Reading and writing profile files.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use serde::Deserialize;

use crate::error::{ProfileError, ProfileFileError, ProfileMismatch};
use crate::json::{self, line, lines, parse};
use crate::machine::Machine;
use crate::schema::{AppCell, ProfileFile, Provenance, SCHEMA, SCHEMA_OLDEST};

/// Read first, so that a newer file is refused for its schema instead of a field.
#[derive(Deserialize)]
struct SchemaOnly {
    schema: u64,
}

// === impl Provenance ===

impl Provenance {
    /// Now, by this command. `versions` are those that latencies depend on.
    pub fn now(command: impl Into<String>, versions: BTreeMap<String, String>) -> Self {
        Self {
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            command: command.into(),
            versions,
            notes: Vec::new(),
        }
    }
}

// === impl ProfileFile ===

impl ProfileFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// The file cannot be read, is not a profile of a schema that is read, or has a field out of its
    /// range.
    pub fn load(path: &Path) -> Result<Self, ProfileFileError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ProfileFileError::io(path, source))?;
        Self::from_json(path, &text)
    }

    /// Checks the text of a file; `path` stands in messages.
    ///
    /// # Errors
    /// As of [`load`](Self::load).
    pub fn from_json(path: &Path, text: &str) -> Result<Self, ProfileFileError> {
        let found = parse::<SchemaOnly>(path, text)?.schema;
        if !(SCHEMA_OLDEST..=SCHEMA).contains(&found) {
            return Err(ProfileFileError::Schema {
                file: path.to_path_buf(),
                found,
                oldest: SCHEMA_OLDEST,
                newest: SCHEMA,
            });
        }
        let mut profile: Self = parse(path, text)?;
        profile.schema = SCHEMA;
        profile
            .check()
            .map_err(|(field, reason)| ProfileFileError::field(path, field, reason))?;
        Ok(profile)
    }

    /// Reads a profile and refuses it unless it was measured on `machine`.
    ///
    /// # Errors
    /// The file cannot be read, is not a profile, or was measured on another machine.
    pub fn load_for(path: &Path, machine: &Machine) -> Result<Self, ProfileError> {
        let profile = Self::load(path)?;
        profile.matches_machine(machine)?;
        Ok(profile)
    }

    /// Whether it was measured on this machine.
    ///
    /// # Errors
    /// The first field that differs.
    pub fn matches_machine(&self, ours: &Machine) -> Result<(), ProfileMismatch> {
        let theirs = &self.machine;
        let fields = [
            ("cpu", theirs.cpu.clone(), ours.cpu.clone()),
            ("cores", theirs.cores.to_string(), ours.cores.to_string()),
            ("arch", theirs.arch.clone(), ours.arch.clone()),
            ("os", theirs.os.clone(), ours.os.clone()),
        ];
        for (field, theirs, ours) in fields {
            if theirs != ours {
                return Err(ProfileMismatch {
                    field: format!("machine.{field}"),
                    theirs,
                    ours,
                });
            }
        }
        Ok(())
    }

    /// Writes the file whole or not at all: readers see the old file or the new one. Makes its
    /// folder.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), ProfileFileError> {
        json::save(path, &self.to_json())
    }

    /// The text of the file: one line per entry, so that profiles can be read and compared.
    pub fn to_json(&self) -> String {
        let made = line(&self.made);
        let machine = line(&self.machine);
        let apps = match lines(&self.apps) {
            none if none.is_empty() => none,
            apps => format!("  \"apps\": [{apps}],\n"),
        };
        let energy = match lines(&self.energy) {
            none if none.is_empty() => none,
            energy => format!("  \"energy\": [{energy}],\n"),
        };
        let lengths = match lines(&self.lengths) {
            none if none.is_empty() => none,
            lengths => format!("  \"lengths\": [{lengths}],\n"),
        };
        let lists = [
            ("models", lines(&self.models)),
            ("accuracies", lines(&self.accuracies)),
            ("slicing", lines(&self.slicing)),
            ("latencies", lines(&self.latencies)),
        ]
        .map(|(name, lines)| format!("  \"{name}\": [{lines}]"))
        .join(",\n");
        format!(
            "{{\n  \"schema\": {},\n  \"made\": {made},\n  \"machine\": {machine},\n{apps}{energy}{lengths}{lists}\n}}\n",
            self.schema
        )
    }

    /// An app that the profile brings.
    pub fn app(&self, name: &str) -> Option<&AppCell> {
        self.apps.iter().find(|app| app.name == name)
    }

    /// Removes the cells of other apps.
    pub fn keep_apps(&mut self, keeps: impl Fn(&str) -> bool) {
        self.apps.retain(|app| keeps(&app.name));
        self.models.retain(|cell| keeps(&cell.app));
        self.accuracies.retain(|cell| keeps(&cell.app));
        self.slicing.retain(|cell| keeps(&cell.app));
        self.lengths.retain(|cell| keeps(&cell.app));
        self.latencies.retain(|cell| keeps(&cell.app));
    }
}
