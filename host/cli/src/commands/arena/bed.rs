//! Test beds: a pool, the load of its workloads, and the length of a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use switchyard_core::catalog::Catalog;
use switchyard_core::time::Micros;
use switchyard_policy::history::ContentHash;
use switchyard_sim::Scenario;
use switchyard_simulate::bundle::Bundle;
use switchyard_simulate::nearest::nearest;
use switchyard_simulate::service::Service;
use switchyard_simulate::test_bed::TestBed;
use switchyard_simulate::{Prepared, SimulationRequest, words};

use super::capacity::capacity_per_s;
use crate::commands::failure::Failure;

/// A shipped test bed: its file, and files next to it.
struct ShippedBed {
    name: &'static str,
    text: &'static str,
    files: &'static [(&'static str, &'static str)],
}

/// In the order of the scoreboard.
const SHIPPED: [ShippedBed; 3] = [
    ShippedBed {
        name: "reference",
        text: "title = \"The shipped apps on two like workers, deadlines of 15 ms\"\n\
               load = 0.6\nseconds = 1.0\ndeadline = 0.1\n",
        files: &[],
    },
    ShippedBed {
        name: "unlike",
        text: "title = \"MAEL's board: nine apps on a CPU, a GPU and a DSP\"\n\
               config = \"test-bed.toml\"\nprofile = \"profile.json\"\n\
               load = 0.6\nseconds = 40.0\n",
        files: &[
            (
                "test-bed.toml",
                include_str!("../../../../../tests/paper/mael/test-bed.toml"),
            ),
            (
                "profile.json",
                include_str!("../../../../../tests/paper/mael/profile.json"),
            ),
        ],
    },
    ShippedBed {
        name: "overload",
        text: "title = \"As reference, at 1.5 times the capacity\"\n\
               load = 1.5\nseconds = 1.0\ndeadline = 0.1\n",
        files: &[],
    },
];

/// A test bed as its file states it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BedFile {
    /// In a few words.
    #[serde(default)]
    title: String,
    /// Configuration whose first pool is simulated; by default the shipped one.
    config: Option<PathBuf>,
    /// By default the reference profile.
    profile: Option<PathBuf>,
    /// Number of workers; kinds are assigned round-robin.
    workers: Option<u32>,
    /// Mean arrivals over the capacity.
    load: f64,
    /// Virtual seconds of a run.
    seconds: f64,
    /// Times each app's SLO.
    #[serde(default = "one")]
    deadline: f64,
    /// Law of service times.
    #[serde(default = "percentiles")]
    service: String,
}

/// A test bed that is ready to be simulated.
pub(super) struct Bed {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) load: f64,
    pub(super) seconds: f64,
    pub(super) deadline: f64,
    pub(super) capacity_per_s: f64,
    /// Content hash of the profile, hexadecimal.
    pub(super) profile_hash: String,
    /// The pool, with the SLOs of the test bed.
    pub(super) test_bed: TestBed,
    /// Without the workload of a cell.
    pub(super) base: Scenario,
}

/// Inputs that all test beds share.
pub(super) struct BedInputs<'a> {
    /// The part of each test bed's seconds that is simulated.
    pub(super) share: f64,
    pub(super) folder: Option<&'a Path>,
    pub(super) bundle: Option<&'a Bundle>,
}

fn one() -> f64 {
    1.0
}

fn percentiles() -> String {
    "percentiles".to_owned()
}

/// Names of the shipped test beds.
pub(super) fn shipped_names() -> [&'static str; SHIPPED.len()] {
    SHIPPED.each_ref().map(|bed| bed.name)
}

// === impl Bed ===

impl Bed {
    /// The shipped test bed of this name, or that of a file.
    ///
    /// # Errors
    /// Names the file and the field that cannot be used.
    pub(super) fn named(name: &str, inputs: &BedInputs<'_>) -> Result<Self, Failure> {
        if let Some(shipped) = SHIPPED.iter().find(|bed| bed.name == name) {
            let folder = tempfile::tempdir().map_err(Failure::check)?;
            for (file, text) in shipped.files {
                fs::write(folder.path().join(file), text).map_err(Failure::check)?;
            }
            let file = parsed(name, shipped.text)?;
            return Self::of_file(name, file, folder.path(), inputs);
        }
        if !name.ends_with(".toml") {
            let known = shipped_names();
            let hint = match nearest(name, known) {
                Some(similar) => format!("did you mean `{similar}`?"),
                None => format!(
                    "must be one of {}, or a file that ends in .toml",
                    known.join(", ")
                ),
            };
            return Err(Failure::input(format!(
                "--test-bed: `{name}` is unknown; {hint}"
            )));
        }
        let read = fs::read_to_string(name);
        let text = read.map_err(|error| Failure::input(format!("--test-bed: {name}: {error}")))?;
        let path = Path::new(name);
        let folder = path.parent().unwrap_or(Path::new(""));
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::of_file(&stem, parsed(name, &text)?, folder, inputs)
    }

    /// `folder` is that of the relative paths.
    fn of_file(
        name: &str,
        file: BedFile,
        folder: &Path,
        inputs: &BedInputs<'_>,
    ) -> Result<Self, Failure> {
        let wrong = |reason: String| Failure::input(format!("test bed {name}: {reason}"));
        let reference = || {
            let bundle = inputs.bundle.map(Bundle::reference_profile);
            bundle.ok_or_else(|| {
                wrong("profile: is missing, and this program has no reference profile".to_owned())
            })
        };
        let profile = match &file.profile {
            Some(profile) => folder.join(profile),
            None => reference()?,
        };
        let any = words::workload("poisson:1").map_err(|error| wrong(error.to_string()))?;
        let mut request = SimulationRequest::new(profile, any, String::new());
        request.config = file.config.as_ref().map(|config| folder.join(config));
        request.bundle = inputs.bundle.cloned();
        // Not those of a configuration: the same policies compete on every machine.
        let bundled = inputs.bundle.map(|bundle| bundle.policies.as_path());
        request.folder = inputs.folder.or(bundled).map(Path::to_owned);
        request.workers = file.workers;
        request.service = file
            .service
            .parse::<Service>()
            .map_err(|error| wrong(format!("service: `{}`, {error}", file.service)))?;
        let profile_hash = fs::read(&request.profile).map(|bytes| ContentHash::of(&[&bytes]));
        let prepared = Prepared::on_shipped(request).map_err(|error| wrong(error.to_string()))?;
        let Prepared {
            mut test_bed,
            points,
            ..
        } = prepared;
        let point = points.into_iter().next();
        let mut base = point
            .ok_or_else(|| wrong("has no scenario".to_owned()))?
            .scenario;
        let catalog = Arc::new(with_deadlines(&test_bed.catalog, file.deadline));
        test_bed.catalog = Arc::clone(&catalog);
        base.catalog = Arc::clone(&catalog);
        let seconds = file.seconds * inputs.share;
        base.duration = Micros((seconds * 1e6) as u64);
        Ok(Self {
            name: name.to_owned(),
            title: file.title,
            load: file.load,
            seconds,
            deadline: file.deadline,
            capacity_per_s: capacity_per_s(&catalog),
            profile_hash: profile_hash.map(ContentHash::to_hex).unwrap_or_default(),
            test_bed,
            base,
        })
    }
}

/// Parses and checks; `name` stands in messages.
fn parsed(name: &str, text: &str) -> Result<BedFile, Failure> {
    let file: BedFile = toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        let known = "title, config, profile, workers, load, seconds, deadline, service";
        Failure::input(format!(
            "{name}: line {line}: {}; fields: {known}",
            error.message()
        ))
    })?;
    let numbers = [
        ("load", file.load),
        ("seconds", file.seconds),
        ("deadline", file.deadline),
    ];
    for (field, value) in numbers {
        if !(value > 0.0 && value.is_finite()) {
            return Err(Failure::input(format!(
                "{name}: {field}: {value}, must be a positive number"
            )));
        }
    }
    Ok(file)
}

fn with_deadlines(catalog: &Catalog, factor: f64) -> Catalog {
    let mut catalog = catalog.clone();
    for app in &mut catalog.apps {
        app.slo = Micros(((app.slo.0 as f64 * factor).round() as u64).max(1));
    }
    catalog
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_names_file_line_and_fields() {
        let reason = |text: &str| match parsed("mine.toml", text) {
            Err(Failure::Input(reason)) => reason,
            other => panic!("{other:?}"),
        };
        let unknown = reason("load = 1.0\nlod = 2\nseconds = 1.0");
        assert!(
            unknown.starts_with("mine.toml: line 2: unknown field `lod`"),
            "{unknown}"
        );
        assert!(reason("load = 1.0").contains("missing field `seconds`"));
        let zero = reason("load = 0.0\nseconds = 1.0");
        assert_eq!(zero, "mine.toml: load: 0, must be a positive number");
    }
}
