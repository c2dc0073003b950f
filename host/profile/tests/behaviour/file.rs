//! The profile file: round trip, refusals by field, the machine it belongs to, its published schema.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use switchyard_profile::{
    AccuracyCell, AppCell, EnergyCell, EnergySource, LengthCell, Machine, ModelCell, ProfileError,
    ProfileFile,
};

use crate::toy::{machine, profile};

/// Writes a text as a profile and returns why it is refused, without the folder.
fn load_refusal(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.json");
    std::fs::write(&path, text).unwrap();
    let error = ProfileFile::load(&path).unwrap_err().to_string();
    error.replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn a_saved_profile_is_loaded_again_and_no_other_file_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profiles").join("p.json");
    let mut profile = profile();
    profile.latencies[0].energy_uj = Some(12);
    profile.save(&path).unwrap();
    profile.save(&path).unwrap();
    assert_eq!(ProfileFile::load(&path).unwrap(), profile);
    let files: Vec<PathBuf> = std::fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files, [path]);
}

#[test]
fn a_failed_save_leaves_the_old_file_and_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.json");
    // A folder cannot be replaced by a file.
    std::fs::create_dir(&path).unwrap();
    let error = profile().save(&path).unwrap_err().to_string();
    assert!(error.starts_with(&path.display().to_string()), "{error}");
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        1,
        "no partial file"
    );
}

#[test]
fn another_machines_profile_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.json");
    let profile = profile();
    profile.save(&path).unwrap();
    assert_eq!(ProfileFile::load_for(&path, &machine()).unwrap(), profile);
    for (change, field) in [
        ((|m| m.cpu.push('2')) as fn(&mut Machine), "machine.cpu"),
        (|m| m.cores = 4, "machine.cores"),
        (|m| m.arch.push('2'), "machine.arch"),
        (|m| m.os.push('2'), "machine.os"),
    ] {
        let mut other = machine();
        change(&mut other);
        let Err(ProfileError::Mismatch(mismatch)) = ProfileFile::load_for(&path, &other) else {
            panic!("{field} is not compared");
        };
        assert_eq!(mismatch.field, field);
    }
    let other = Machine {
        cores: 4,
        ..machine()
    };
    assert_eq!(
        profile.matches_machine(&other).unwrap_err().to_string(),
        "profile: `machine.cores` differs: measured on `2`, here it is `4`"
    );
}

#[test]
fn other_files_are_refused_by_file_field_and_reason() {
    let good = profile().to_json();
    let changed = |from: &str, to: &str| {
        assert!(good.contains(from));
        load_refusal(&good.replacen(from, to, 1))
    };
    let starts = [
        (load_refusal("{"), "p.json: field `.`: EOF while parsing"),
        (
            load_refusal("{}"),
            "p.json: field `.`: missing field `schema`",
        ),
        (
            load_refusal(&format!("{good}x")),
            "p.json: field `.`: trailing characters",
        ),
        (
            changed("\"schema\": 2", "\"schema\": 3"),
            "p.json: field `schema`: 3, this version reads 1 to 2",
        ),
        (
            changed("\"cores\":2", "\"cores\":\"two\""),
            "p.json: field `machine.cores`: invalid type: string \"two\"",
        ),
        (
            changed("\"p50_us\":100,", ""),
            "p.json: field `latencies[0]`: missing field `p50_us`",
        ),
        (
            changed("\"load_us\"", "\"load_ms\""),
            "p.json: field `models[0].load_ms`: unknown field `load_ms`, expected",
        ),
        (
            changed("\"p95_us\":110", "\"p95_us\":99"),
            "p.json: field `latencies[0].p95_us`: must not be below p50_us",
        ),
        (
            changed("\"batch\":1", "\"batch\":0"),
            "p.json: field `latencies[0].batch`: must be at least 1",
        ),
        (
            changed("\"batch\":8", "\"batch\":1"),
            "p.json: field `latencies[1]`: measured twice",
        ),
        (
            changed("\"to_stage\":1", "\"to_stage\":0"),
            "p.json: field `latencies[0].to_stage`: must follow from_stage",
        ),
        (
            changed("\"batch\":2", "\"batch\":0"),
            "p.json: field `slicing[0].batch`: must be at least 1",
        ),
        (
            changed("\"ratio\":1.1", "\"ratio\":0.9"),
            "p.json: field `slicing[0].ratio`: must be sliced_us / whole_us",
        ),
        (
            changed("\"accuracy\":0.75", "\"accuracy\":75.0"),
            "p.json: field `accuracies[0].accuracy`: must be 0 to 1",
        ),
        (
            changed("[[15,5],[5,15]]", "[[15,5],[5]]"),
            "p.json: field `accuracies[0].confusion`: must be 2 by 2",
        ),
        (
            changed(
                "\"exit\":\"after3\",\"source\"",
                "\"exit\":\"after1\",\"source\"",
            ),
            "p.json: field `accuracies[1]`: measured twice",
        ),
        (
            changed(
                "\"app\":\"toy\",\"variant\":\"v0\",\"from",
                "\"app\":\"tot\",\"variant\":\"v0\",\"from",
            ),
            "p.json: field `latencies[0].app`: `tot`, must be an app of `models`: toy",
        ),
    ];
    for (found, start) in starts {
        assert!(found.starts_with(start), "{found}");
    }
    let missing = ProfileFile::load(&PathBuf::from("/nowhere/p.json")).unwrap_err();
    assert!(
        missing.to_string().starts_with("/nowhere/p.json: "),
        "{missing}"
    );
}

#[test]
fn a_latency_of_nothing_or_of_more_than_an_hour_is_refused() {
    let good = profile().to_json();
    for (from, to, start) in [
        (
            "\"p50_us\":100",
            "\"p50_us\":0",
            "p.json: field `latencies[0].p50_us`: 0, must be 1 to 3600000000 (one hour); ",
        ),
        (
            "\"p99_us\":120",
            "\"p99_us\":18446744073709551615",
            "p.json: field `latencies[0].p99_us`: 18446744073709551615, must be 1 to ",
        ),
        (
            "\"load_us\":700",
            "\"load_us\":3600000001",
            "p.json: field `models[0].load_us`: 3600000001, must be 0 to 3600000000 ",
        ),
        (
            "\"whole_us\":",
            "\"whole_us\":36000000000",
            "p.json: field `slicing[0].whole_us`: 36000000000",
        ),
    ] {
        assert!(good.contains(from), "{from} in {good}");
        let said = load_refusal(&good.replacen(from, to, 1));
        assert!(said.starts_with(start), "{said}");
    }
    let said = load_refusal(&good.replacen("\"p50_us\":100", "\"p50_us\":0", 1));
    assert!(said.contains("`switchyard profile`"), "{said}");
}

#[test]
fn the_machine_is_the_same_twice() {
    let machine = Machine::detect();
    assert_eq!(machine, Machine::detect());
    assert!(machine.cores > 0 && !machine.cpu.is_empty(), "{machine:?}");
}

/// The fields of an object of the schema: all of them, and those that must be there.
fn fields(schema: &Value) -> (BTreeSet<String>, BTreeSet<String>) {
    assert_eq!(schema["additionalProperties"], Value::Bool(false));
    let all = schema["properties"].as_object().unwrap().keys().cloned();
    let required = schema["required"].as_array().unwrap().iter();
    let required = required.map(|name| name.as_str().unwrap().to_owned());
    (all.collect(), required.collect())
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn written_files_match_the_published_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/schema-2.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut profile = profile();
    profile.latencies.truncate(2);
    profile.latencies[0].energy_uj = Some(1);
    profile.latencies[1].exit = None;
    profile.latencies[1].mean_us = None;
    profile.models.push(ModelCell {
        variant: "v1".to_owned(),
        activation_bytes: None,
        parameters: None,
        stages: None,
        engine: None,
        ..profile.models[0].clone()
    });
    profile.accuracies[1] = AccuracyCell {
        workload_accuracy: None,
        recall: Vec::new(),
        confusion: Vec::new(),
        ..profile.accuracies[1].clone()
    };
    let least: Value = serde_json::from_str(&profile.to_json()).unwrap();
    profile.made.notes.push("made up".to_owned());
    profile.apps.push(AppCell {
        name: "toy".to_owned(),
        slo_us: 1,
    });
    profile.energy.push(EnergyCell {
        kind: "cpu-1t".to_owned(),
        source: EnergySource::Rapl,
        power_w: 15.0,
    });
    let typical = LengthCell {
        kind: "cpu-1t".to_owned(),
        app: "toy".to_owned(),
        variant: "v0".to_owned(),
        length: 64,
        is_typical: true,
        samples: 7,
        p50_us: 10,
    };
    let longer = LengthCell {
        length: 128,
        is_typical: false,
        ..typical.clone()
    };
    profile.lengths = vec![typical, longer];
    let written: Value = serde_json::from_str(&profile.to_json()).unwrap();
    assert_eq!(schema["properties"]["schema"]["const"], written["schema"]);
    for (schema, most, least) in [
        (&schema, &written, &least),
        (&schema["$defs"]["made"], &written["made"], &least["made"]),
        (
            &schema["$defs"]["machine"],
            &written["machine"],
            &written["machine"],
        ),
        (
            &schema["$defs"]["app"],
            &written["apps"][0],
            &written["apps"][0],
        ),
        (
            &schema["$defs"]["energy"],
            &written["energy"][0],
            &written["energy"][0],
        ),
        (
            &schema["$defs"]["model"],
            &written["models"][0],
            &written["models"][1],
        ),
        (
            &schema["$defs"]["accuracy"],
            &written["accuracies"][0],
            &written["accuracies"][1],
        ),
        (
            &schema["$defs"]["length"],
            &written["lengths"][0],
            &written["lengths"][1],
        ),
        (
            &schema["$defs"]["slicing"],
            &written["slicing"][0],
            &written["slicing"][0],
        ),
        (
            &schema["$defs"]["latency"],
            &written["latencies"][0],
            &written["latencies"][1],
        ),
    ] {
        assert_eq!(fields(schema), (keys(most), keys(least)));
    }
}

#[test]
fn a_file_of_the_first_schema_is_still_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.json");
    let first = r#"{
  "schema": 1,
  "made": {"date":"2025-11-20T22:43:00Z","command":"switchyard profile"},
  "machine": {"cpu":"Toy CPU","cores":2,"arch":"x86_64","os":"linux"},
  "models": [
    {"kind":"cpu-1t","app":"toy","variant":"v0","memory_bytes":40,"load_us":700}
  ],
  "latencies": [
    {"kind":"cpu-1t","app":"toy","variant":"v0","from_stage":0,"to_stage":1,"exit":"after1","batch":1,"samples":20,"p50_us":100,"p95_us":110,"p99_us":120}
  ]
}
"#;
    std::fs::write(&path, first).unwrap();
    let read = ProfileFile::load(&path).unwrap();
    assert_eq!((read.latencies.len(), read.latencies[0].mean_us), (1, None));
    assert!(read.accuracies.is_empty() && read.slicing.is_empty());
    // It is written in the newest schema.
    read.save(&path).unwrap();
    assert_eq!(ProfileFile::load(&path).unwrap(), read);
    assert_eq!(read.schema, 2);
}

#[test]
fn declared_power_is_energy_unless_energy_was_measured() {
    let mut profile = profile();
    let kind = profile.latencies[0].kind.clone();
    profile.latencies[0].mean_us = Some(100);
    profile.declare_power(&kind, 15.0);
    assert_eq!(profile.latencies[0].energy_uj, Some(1_500));
    // The operator may declare it again; measured energy stays.
    profile.declare_power(&kind, 20.0);
    assert_eq!(profile.latencies[0].energy_uj, Some(2_000));
    assert_eq!(profile.energy.len(), 1);
    profile.energy[0].source = EnergySource::Rapl;
    profile.declare_power(&kind, 1.0);
    assert_eq!(profile.energy[0].power_w, 20.0);
    assert_eq!(profile.latencies[0].energy_uj, Some(2_000));
    assert!(
        profile
            .to_json()
            .contains(r#""source":"rapl","power_w":20.0"#)
    );
}
