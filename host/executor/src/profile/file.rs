//! The profile file, schema 1: JSON, latencies in microseconds.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::ProfileFileError;
use super::machine::Machine;

/// The one schema that is read and written.
pub const SCHEMA: u64 = 1;

/// A measured profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileFile {
    /// Version of this layout, [`SCHEMA`].
    pub schema: u64,
    /// How it came to be.
    pub made: Made,
    /// Where it was measured.
    pub machine: Machine,
    /// One entry per worker kind and variant.
    pub models: Vec<ModelCell>,
    /// One entry per worker kind, variant, run and batch.
    pub latencies: Vec<LatencyCell>,
}

/// How a profile came to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Made {
    /// RFC 3339, UTC.
    pub date: String,
    /// The command that measured it.
    pub command: String,
}

/// What holding a variant takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCell {
    /// Worker kind, such as `cpu-1t`.
    pub kind: String,
    /// The app.
    pub app: String,
    /// The variant.
    pub variant: String,
    /// Bytes its weights take on the device.
    pub memory_bytes: u64,
    /// Time to make it resident, the longest measured.
    pub load_us: u64,
}

/// How long one run of one batch takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyCell {
    /// Worker kind, such as `cpu-1t`.
    pub kind: String,
    /// The app.
    pub app: String,
    /// The variant.
    pub variant: String,
    /// First stage run.
    pub from_stage: u32,
    /// One past the last stage run.
    pub to_stage: u32,
    /// The exit whose head ran afterwards; without one the activations were parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
    /// Requests in the batch.
    pub batch: u32,
    /// Repetitions the percentiles rest on.
    pub samples: u32,
    /// Median.
    pub p50_us: u64,
    /// 95th percentile.
    pub p95_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// Energy of the batch in microjoules, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_uj: Option<u64>,
}

/// Read first, so that a newer file is refused for its version, not for a field.
#[derive(Deserialize)]
struct SchemaOnly {
    schema: u64,
}

// === impl ProfileFile ===

impl ProfileFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// It cannot be read, is no profile of this schema, or has a field that makes no sense.
    pub fn load(path: &Path) -> Result<Self, ProfileFileError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ProfileFileError::io(path, source))?;
        let found = parse::<SchemaOnly>(path, &text)?.schema;
        if found != SCHEMA {
            return Err(ProfileFileError::Schema {
                file: path.to_path_buf(),
                found,
                supported: SCHEMA,
            });
        }
        let profile: Self = parse(path, &text)?;
        profile
            .check()
            .map_err(|(field, reason)| ProfileFileError::field(path, field, reason))?;
        Ok(profile)
    }

    /// Writes the file whole or not at all: a reader never sees half of it.
    ///
    /// # Errors
    /// The folder cannot be made or the file not written.
    pub fn save(&self, path: &Path) -> Result<(), ProfileFileError> {
        let failed = |source| ProfileFileError::io(path, source);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let partial = partial_path(path);
        let text = self.to_json();
        let written = write_synced(&partial, &text).and_then(|()| std::fs::rename(&partial, path));
        written.map_err(|source| {
            // Best effort: the error that matters is the one being returned.
            let _ = std::fs::remove_file(&partial);
            failed(source)
        })
    }

    /// As written: one line per entry, so that profiles can be read and compared.
    pub fn to_json(&self) -> String {
        let made = line(&self.made);
        let machine = line(&self.machine);
        let models = lines(&self.models);
        let latencies = lines(&self.latencies);
        format!(
            "{{\n  \"schema\": {},\n  \"made\": {made},\n  \"machine\": {machine},\n  \
             \"models\": [{models}],\n  \"latencies\": [{latencies}]\n}}\n",
            self.schema
        )
    }

    fn check(&self) -> Result<(), (String, String)> {
        let mut models = HashSet::new();
        for (i, cell) in self.models.iter().enumerate() {
            if !models.insert((&cell.kind, &cell.app, &cell.variant)) {
                return Err((format!("models[{i}]"), "measured twice".to_owned()));
            }
        }
        let mut cells = HashSet::new();
        for (i, cell) in self.latencies.iter().enumerate() {
            cell.check().map_err(|(field, reason)| {
                (format!("latencies[{i}].{field}"), reason.to_owned())
            })?;
            if !cells.insert(cell.key()) {
                return Err((format!("latencies[{i}]"), "measured twice".to_owned()));
            }
        }
        Ok(())
    }
}

// === impl LatencyCell ===

impl LatencyCell {
    /// Whether it is of this kind and variant.
    pub fn is_run(&self, kind: &str, app: &str, variant: &str) -> bool {
        self.kind == kind && self.app == app && self.variant == variant
    }

    fn key(&self) -> (&str, &str, &str, u32, u32, Option<&str>, u32) {
        (
            &self.kind,
            &self.app,
            &self.variant,
            self.from_stage,
            self.to_stage,
            self.exit.as_deref(),
            self.batch,
        )
    }

    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        if self.batch == 0 {
            return Err(("batch", "must be at least 1"));
        }
        if self.from_stage >= self.to_stage {
            return Err(("to_stage", "must follow from_stage"));
        }
        if self.p95_us < self.p50_us {
            return Err(("p95_us", "must not be below p50_us"));
        }
        if self.p99_us < self.p95_us {
            return Err(("p99_us", "must not be below p95_us"));
        }
        Ok(())
    }
}

// === JSON ===

/// Path of what is wrong when no field is.
const WHOLE_FILE: &str = ".";

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ProfileFileError> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = match error.path().to_string() {
            unknown if unknown == "?" => WHOLE_FILE.to_owned(),
            field => field,
        };
        ProfileFileError::field(path, field, error.into_inner().to_string())
    })?;
    json.end()
        .map_err(|error| ProfileFileError::field(path, WHOLE_FILE, error.to_string()))?;
    Ok(value)
}

fn line<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("plain structs of strings and integers always serialise")
}

fn lines<T: Serialize>(values: &[T]) -> String {
    if values.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = values
        .iter()
        .map(|value| format!("    {}", line(value)))
        .collect();
    format!("\n{}\n  ", lines.join(",\n"))
}

// === writing ===

/// Beside the file, since a rename is atomic within one file system only. Two processes that
/// measure at once must not write into each other's.
fn partial_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    path.with_file_name(name)
}

fn write_synced(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
