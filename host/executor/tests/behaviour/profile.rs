//! The profile file: round trip, refusals by field, the machine it belongs to, the core's table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{ExitId, KindId, VariantId};
use switchyard_core::time::Micros;
use switchyard_executor::profile::{
    AccuracyCell, AccuracySource, AppCell, EnergySource, LatencyCell, Machine, Made, ModelCell,
    Names, Percentile, ProfileError, ProfileFile, SlicingCell,
};

use crate::toy::{self, ToySource};

fn machine() -> Machine {
    Machine {
        cpu: "Toy CPU".to_owned(),
        cores: 2,
        arch: "x86_64".to_owned(),
        os: "linux".to_owned(),
    }
}

fn cell(to_stage: u32, exit: Option<&str>, batch: u32) -> LatencyCell {
    let p50_us = u64::from(to_stage * batch) * 100;
    LatencyCell {
        kind: "cpu-1t".to_owned(),
        app: "toy".to_owned(),
        variant: "v0".to_owned(),
        from_stage: 0,
        to_stage,
        exit: exit.map(str::to_owned),
        batch,
        samples: 20,
        mean_us: Some(p50_us + 5),
        p50_us,
        p95_us: p50_us + 10,
        p99_us: p50_us + 20,
        energy_uj: None,
    }
}

fn accuracy(exit: &str, accuracy: f64) -> AccuracyCell {
    AccuracyCell {
        app: "toy".to_owned(),
        variant: "v0".to_owned(),
        exit: exit.to_owned(),
        source: AccuracySource::Measured,
        samples: 40,
        accuracy,
        workload_accuracy: Some(0.8),
        recall: vec![accuracy, accuracy],
        confusion: vec![vec![15, 5], vec![5, 15]],
    }
}

/// Covers the whole runs of `toy/v0` to its two exits.
fn whole() -> ProfileFile {
    ProfileFile {
        schema: 2,
        made: Made {
            date: "2025-11-20T22:43:00Z".to_owned(),
            command: "switchyard profile".to_owned(),
            versions: BTreeMap::from([("switchyard".to_owned(), "0.1.0".to_owned())]),
            notes: Vec::new(),
        },
        machine: machine(),
        apps: Vec::new(),
        models: vec![ModelCell {
            kind: "cpu-1t".to_owned(),
            app: "toy".to_owned(),
            variant: "v0".to_owned(),
            memory_bytes: 40,
            activation_bytes: Some(16),
            load_us: 700,
            parameters: Some(10),
            stages: Some(3),
        }],
        energy: Vec::new(),
        accuracies: vec![accuracy("after1", 0.75), accuracy("after3", 0.9)],
        slicing: vec![SlicingCell {
            kind: "cpu-1t".to_owned(),
            app: "toy".to_owned(),
            variant: "v0".to_owned(),
            batch: 2,
            cuts: 2,
            whole_us: 300,
            sliced_us: 330,
            ratio: 1.1,
            cut_us: 15.0,
        }],
        latencies: vec![
            cell(1, Some("after1"), 1),
            cell(1, Some("after1"), 8),
            cell(3, Some("after3"), 1),
            cell(3, Some("after3"), 8),
            cell(1, None, 1),
        ],
    }
}

fn names(catalog: &Catalog) -> Names<'_> {
    Names {
        kinds: &catalog.kinds,
        apps: &catalog.apps,
        variants: &catalog.variants,
    }
}

fn refusal(profile: &ProfileFile) -> String {
    let catalog = toy::catalog(&ToySource::new(&[40]));
    profile
        .to_core(names(&catalog), Percentile::P95)
        .unwrap_err()
        .to_string()
}

/// Writes a text as a profile and returns why it is refused, without the folder.
fn load_refusal(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.json");
    std::fs::write(&path, text).unwrap();
    let error = ProfileFile::load(&path).unwrap_err().to_string();
    error.replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn what_is_saved_is_loaded_and_nothing_else_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profiles").join("p.json");
    let mut profile = whole();
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
    let error = whole().save(&path).unwrap_err().to_string();
    assert!(error.starts_with(&path.display().to_string()), "{error}");
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        1,
        "no partial file"
    );
}

#[test]
fn the_core_gets_ids_and_one_percentile() {
    let catalog = toy::catalog(&ToySource::new(&[40]));
    for (percentile, extra) in [
        (Percentile::P50, 0),
        (Percentile::P95, 10),
        (Percentile::P99, 20),
    ] {
        let core = whole().to_core(names(&catalog), percentile).unwrap();
        assert_eq!(core.percentile(), percentile.share());
        let at = |to_stage, exit: Option<u32>, batch| {
            core.latency(
                KindId(0),
                VariantId(0),
                0,
                to_stage,
                exit.map(ExitId),
                batch,
            )
        };
        assert_eq!(at(3, Some(1), 8), Some(Micros(2_400 + extra)));
        assert_eq!(at(1, Some(0), 1), Some(Micros(100 + extra)));
        assert_eq!(at(1, None, 1), Some(Micros(100 + extra)));
        assert_eq!(at(1, Some(0), 9), None);
        assert_eq!(core.load_time(KindId(0), VariantId(0)), Micros(700));
    }
}

#[test]
fn cells_of_what_is_not_served_are_left_out() {
    let catalog = toy::catalog(&ToySource::new(&[40]));
    let mut profile = whole();
    let known = profile.latencies.len();
    for change in [
        (|cell| cell.kind = "cpu-64t".to_owned()) as fn(&mut LatencyCell),
        |cell| cell.variant = "gone".to_owned(),
        |cell| cell.exit = Some("gone".to_owned()),
    ] {
        let mut cell = cell(3, Some("after3"), 2);
        change(&mut cell);
        profile.latencies.push(cell);
    }
    let core = profile.to_core(names(&catalog), Percentile::P95).unwrap();
    assert_eq!(core.rows().count(), known);
}

#[test]
fn a_missing_cell_is_named() {
    let mut profile = whole();
    profile
        .latencies
        .retain(|cell| cell.exit.as_deref() != Some("after3") || cell.batch != 8);
    assert_eq!(
        refusal(&profile),
        "profile: not measured: kind cpu-1t, variant toy/v0, stages 0 to 3, exit after3, batch 8"
    );
    profile.models.clear();
    assert_eq!(
        refusal(&profile),
        "profile: not measured: kind cpu-1t, variant toy/v0, load time"
    );
}

#[test]
fn a_variant_that_has_changed_is_refused() {
    let mut profile = whole();
    profile.models[0].memory_bytes = 41;
    assert_eq!(
        refusal(&profile),
        "profile: `models[cpu-1t, toy/v0].memory_bytes` differs: measured on `41`, here it is `40`"
    );
}

#[test]
fn another_machines_profile_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.json");
    let profile = whole();
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
            panic!("{field} does not matter");
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
fn what_is_no_profile_is_refused_by_file_field_and_reason() {
    let good = whole().to_json();
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
fn the_published_schema_is_what_is_written() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/schema-2.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut profile = whole();
    profile.latencies.truncate(2);
    profile.latencies[0].energy_uj = Some(1);
    profile.latencies[1].exit = None;
    profile.latencies[1].mean_us = None;
    profile.models.push(ModelCell {
        variant: "v1".to_owned(),
        activation_bytes: None,
        parameters: None,
        stages: None,
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
    // What is written from it is of the newest schema.
    read.save(&path).unwrap();
    assert_eq!(ProfileFile::load(&path).unwrap(), read);
    assert_eq!(read.schema, 2);
}

#[test]
fn a_profile_that_brings_its_apps_makes_a_catalog() {
    let mut profile = whole();
    profile.models[0].kind = "gpu".to_owned();
    profile
        .latencies
        .iter_mut()
        .for_each(|cell| cell.kind = "gpu".to_owned());
    let missing = profile.to_catalog(Percentile::P95).unwrap_err().to_string();
    assert_eq!(missing, "profile: not measured: app toy of variant v0");
    profile.apps.push(AppCell {
        name: "toy".to_owned(),
        slo_us: 5_000,
    });
    assert!(profile.has_apps());
    let catalog = profile.to_catalog(Percentile::P95).unwrap();
    catalog.validate().unwrap();
    let variant = &catalog.variants[0];
    assert_eq!((variant.stages, variant.max_batch), (3, 8));
    let exits: Vec<_> = variant
        .exits
        .iter()
        .map(|exit| (exit.after_stage, exit.accuracy))
        .collect();
    assert_eq!(exits, [(1, 0.75), (3, 0.9)]);
    assert_eq!(catalog.kinds, ["gpu"]);
    assert_eq!(catalog.apps[0].slo, Micros(5_000));
    let latency = catalog.latency(
        switchyard_core::ids::WorkerId(0),
        VariantId(0),
        ExitId(1),
        8,
    );
    assert_eq!(latency, Some(Micros(2_410)));
    profile.accuracies.pop();
    let missing = profile.to_catalog(Percentile::P95).unwrap_err().to_string();
    assert_eq!(
        missing,
        "profile: not measured: variant toy/v0, accuracy of exit after3"
    );
}

#[test]
fn measured_matrices_stand_in_for_those_of_cards() {
    let mut profile = whole();
    profile.accuracies[0].confusion = vec![vec![8, 1, 1], vec![0, 10, 0], vec![5, 0, 5]];
    profile.accuracies[1].confusion = Vec::new();
    let catalog = toy::catalog(&ToySource::new(&[40]));
    let mut variants = catalog.variants.clone();
    profile
        .add_confusions(&catalog.apps, &mut variants)
        .unwrap();
    let exits = &variants[0].exits;
    assert_eq!(exits[0].recall, [0.8, 1.0, 0.5]);
    let row = exits[0].confusion.as_ref().unwrap().row(2);
    assert_eq!(row, Some(&[0.5, 0.0, 0.5][..]));
    assert_eq!(exits[1], catalog.variants[0].exits[1], "none was measured");
    // What a card says is not replaced.
    profile.accuracies[0].confusion = vec![vec![1, 0, 0]; 3];
    let before = variants.clone();
    profile
        .add_confusions(&catalog.apps, &mut variants)
        .unwrap();
    assert_eq!(variants, before);
    for (confusion, message) in [
        (
            vec![vec![8, 1, 1], vec![0, 0, 0], vec![5, 0, 5]],
            "class c1: no input of it was counted",
        ),
        (vec![vec![1, 1]; 2], "class c2: 2 rows for 3 classes"),
    ] {
        profile.accuracies[0].confusion = confusion;
        let mut variants = catalog.variants.clone();
        let refused = profile.add_confusions(&catalog.apps, &mut variants);
        assert_eq!(
            refused.unwrap_err().to_string(),
            format!("profile: confusion of app toy, variant v0, exit after1, {message}")
        );
    }
}

#[test]
fn declared_power_is_energy_where_nothing_was_measured() {
    let mut profile = whole();
    let kind = profile.latencies[0].kind.clone();
    profile.latencies[0].mean_us = Some(100);
    profile.declare_power(&kind, 15.0);
    assert_eq!(profile.latencies[0].energy_uj, Some(1_500));
    // The operator may say so again; what counters said stays.
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
