//! Profiles, and public layouts of them.

use std::path::Path;

use switchyard_profile::import::{ImportOptions, import};
use switchyard_profile::{Percentile, ProfileFile};
use tempfile::TempDir;

use super::mutate::Form;
use super::target::{Target, seeds};

pub(crate) fn read(folder: &Path, text: &[u8]) -> Result<(), String> {
    let file = folder.join("profile.json");
    std::fs::write(&file, text).unwrap();
    let profile = ProfileFile::load(&file).map_err(|error| error.to_string())?;
    is_the_same_again(folder, &profile);
    if profile.has_apps() {
        // Apps that contradict each other are refused, with a reason.
        profile
            .to_catalog(Percentile::P95)
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn is_the_same_again(folder: &Path, profile: &ProfileFile) {
    assert_eq!(&written_and_read(folder, profile), profile);
}

fn written_and_read(folder: &Path, profile: &ProfileFile) -> ProfileFile {
    let file = folder.join("again.json");
    std::fs::write(&file, profile.to_json()).unwrap();
    ProfileFile::load(&file).unwrap()
}

#[test]
fn profiles() {
    let folder = TempDir::new().unwrap();
    let target = Target {
        name: "profile",
        seeds: seeds(&[
            "host/cli/tests/cli/fixtures/profile.json",
            "tests/paper/mael/profile.json",
            "tests/paper/ppo-router/profile.json",
        ]),
        form: Form::Text,
        executions: 1_200,
        accepted_min: 0.06,
        memory_max: (4 << 20, 256),
    };
    target.run(|text| read(folder.path(), text));
}

pub(crate) fn read_import(folder: &Path, name: &str, text: &[u8]) -> Result<(), String> {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    let options = ImportOptions {
        app: "image".to_owned(),
        kind: "cpu-4t".to_owned(),
        slo_us: 150_000,
        accuracy: None,
        variants: Vec::new(),
        command: "switchyard profile import".to_owned(),
        versions: [("rustc".to_owned(), "1.95.0".to_owned())].into(),
    };
    let (profile, _) = import(&file, &options).map_err(|error| error.to_string())?;
    // Shares of a table are read exactly, those of JSON up to their last bit.
    is_the_same_again(folder, &written_and_read(folder, &profile));
    Ok(())
}

#[test]
fn tables_of_latencies() {
    let folder = TempDir::new().unwrap();
    let target = Target {
        name: "profile import CSV",
        seeds: seeds(&["host/profile/tests/layouts/plain.csv"]),
        form: Form::Text,
        executions: 1_500,
        accepted_min: 0.04,
        memory_max: (4 << 20, 256),
    };
    target.run(|text| read_import(folder.path(), "plain.csv", text));
}

#[test]
fn summaries_of_latencies() {
    let folder = TempDir::new().unwrap();
    let target = Target {
        name: "profile import JSON",
        seeds: seeds(&["host/profile/tests/layouts/summary.json"]),
        form: Form::Text,
        executions: 1_500,
        accepted_min: 0.06,
        memory_max: (4 << 20, 256),
    };
    target.run(|text| read_import(folder.path(), "summary.json", text));
}
