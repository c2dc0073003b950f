//! `profile`: measures the shipped models, compares them with their cards, continues an interrupted
//! run, and imports other measurements.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use switchyard_models::Zoo;
use switchyard_profile::{AccuracySource, Machine, ProfileFile};

use super::binary::{command, root, switchyard};

#[test]
fn shipped_models_are_measured_and_as_good_as_their_cards_say() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/here.json");
    let arguments = [
        "profile",
        "--out",
        out.to_str().unwrap(),
        "--seconds",
        "1",
        "--accuracy",
        "20",
        "--json",
    ];
    let ran = switchyard(&arguments);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    let file = ProfileFile::load_for(&out, &Machine::detect()).unwrap();
    assert!(
        file.made
            .command
            .starts_with("switchyard profile --seconds 1 "),
        "{:?}",
        file.made
    );

    assert!(file.made.versions.contains_key("candle"), "{:?}", file.made);
    // The binary's allocator counts the memory of a batch.
    for model in &file.models {
        assert!(
            model.activation_bytes.is_some_and(|bytes| bytes > 0),
            "{model:?}"
        );
        assert!(model.parameters.is_some_and(|count| count > 0), "{model:?}");
    }
    // Exactly the variants with stages are measured sliced, at every batch size.
    for model in &file.models {
        let cells = file
            .slicing
            .iter()
            .filter(|cell| cell.variant == model.variant);
        let has_stages = model.stages.unwrap() > 1;
        assert_eq!(cells.count() > 0, has_stages, "{model:?}");
    }
    assert!(!file.slicing.is_empty());
    let exits = shipped_exits();
    assert_eq!(file.accuracies.len(), exits);
    for cell in &file.accuracies {
        let classes = cell.recall.len();
        assert_eq!(cell.source, AccuracySource::Measured);
        assert_eq!(cell.samples, 20 * classes as u64, "20 of each class");
        assert_eq!(cell.confusion.len(), classes);
        // The shallow exits of the image family are hardly better than a guess.
        let mix = cell.workload_accuracy.unwrap();
        assert!((0.0..=1.0).contains(&mix), "{cell:?}");
    }
    let left: Vec<_> = fs::read_dir(out.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing but the profile: {left:?}");

    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = printed["rows"].as_array().unwrap();
    // On one kind of worker.
    assert_eq!(rows.len(), exits, "{rows:?}");
    for row in rows {
        let batches: Vec<u64> = row["latencies"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|l| l["batch"].as_u64())
            .collect();
        for batch in [1, 8, 32] {
            assert!(batches.contains(&batch), "{row}");
        }
        assert!(row["memory_mib"].as_f64().unwrap() > 0.0, "{row}");
    }
    let accuracies = printed["accuracies"].as_array().unwrap();
    assert_eq!(accuracies.len(), exits);
}

/// Exits of all variants that ship.
fn shipped_exits() -> usize {
    let zoo = Zoo::open(&root().join("models/zoo")).unwrap();
    let variants = zoo.apps.iter().flat_map(|app| &app.variants);
    variants.map(|variant| variant.card.exits.len()).sum()
}

#[test]
fn a_card_that_promises_too_much_is_found_out() {
    let folder = tempfile::tempdir().unwrap();
    let zoo = folder.path().join("zoo");
    copy(&root().join("models/zoo"), &zoo);
    let card = zoo.join("heart/cnn-small/model.toml");
    let text = fs::read_to_string(&card).unwrap();
    let text = promise_everything(&text);
    fs::write(&card, text).unwrap();
    let out = folder.path().join("here.json");
    let arguments = [
        "profile",
        "--out",
        out.to_str().unwrap(),
        "--zoo",
        zoo.to_str().unwrap(),
        "--seconds",
        "1",
        "--accuracy",
        "50",
    ];
    let ran = switchyard(&arguments);
    assert_eq!(ran.code, Some(1), "{}\n{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr
            .contains("heart/cnn-small, exit final: accuracy 0."),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("the card says 1.0000"),
        "{}",
        ran.stderr
    );
    let row = ran
        .stdout
        .lines()
        .find(|row| row.contains("heart/cnn-small"));
    assert!(row.is_some_and(|row| row.contains("  1.000  ")), "{row:?}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_goes_on_with_the_same_command() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("here.json");
    let unfinished = folder.path().join("here.json.unfinished");
    let arguments = |seconds: &'static str| {
        let out = out.to_str().unwrap().to_owned();
        ["profile", "--seconds", seconds, "--accuracy", "0", "--out"]
            .map(str::to_owned)
            .into_iter()
            .chain([out])
            .collect::<Vec<_>>()
    };
    let mut child = command().args(arguments("5")).spawn().unwrap();
    let give_up = Instant::now() + Duration::from_secs(60);
    while !unfinished.exists() {
        assert!(Instant::now() < give_up, "nothing is kept");
        std::thread::sleep(Duration::from_millis(10));
    }
    let kill = format!("kill -TERM {}", child.id());
    assert!(
        Command::new("sh")
            .args(["-c", &kill])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(unfinished.exists() && !out.exists());

    // Another command is another measurement.
    let words = arguments("4");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let kept = fs::read(&unfinished).unwrap();
    let other = switchyard(&words);
    assert_eq!(other.code, Some(0), "{}", other.stderr);
    assert!(other.stderr.contains("are discarded"), "{}", other.stderr);

    fs::write(&unfinished, kept).unwrap();
    let words = arguments("5");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let same = switchyard(&words);
    assert_eq!(same.code, Some(0), "{}", same.stderr);
    assert!(
        same.stderr.contains("continuing an interrupted run"),
        "{}",
        same.stderr
    );
    let file = ProfileFile::load(&out).unwrap();
    assert!(
        file.accuracies
            .iter()
            .all(|cell| cell.source == AccuracySource::Card)
    );
    assert!(!unfinished.exists());
}

/// Small public layouts, which the importer's own tests read too.
fn layout(name: &str) -> String {
    let file = root().join("host/profile/tests/layouts").join(name);
    file.to_str().unwrap().to_owned()
}

#[test]
fn an_imported_profile_can_be_simulated_but_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for from in ["artifact", "summary.json", "plain.csv"] {
        let out = path("imported.json");
        let imported = switchyard(&["profile", "import", &layout(from), "--out", &out, "--json"]);
        assert_eq!(imported.code, Some(0), "{from}: {}", imported.stderr);
        let printed: Value = serde_json::from_str(&imported.stdout).unwrap();
        assert_eq!(
            printed["variants"].as_array().unwrap().len(),
            2,
            "{printed}"
        );
        let simulated = switchyard(&[
            "simulate",
            "--policy",
            "edf",
            "--workload",
            "poisson:20",
            "--seconds",
            "5",
            "--workers",
            "6",
            "--profile",
            &out,
            "--json",
            "-",
        ]);
        assert_eq!(simulated.code, Some(0), "{from}: {}", simulated.stderr);
        let simulated: Value = serde_json::from_str(&simulated.stdout).unwrap();
        let total = &simulated["runs"][0]["reports"][0]["total"];
        assert!(total["in_time"].as_u64().unwrap() > 0, "{from}: {total}");
        let file = ProfileFile::load(Path::new(&out)).unwrap();
        let refused = file.matches_machine(&Machine::detect()).unwrap_err();
        assert_eq!(refused.field, "machine.cpu");
    }
    let csv = path("bad.csv");
    fs::write(&csv, "variant,batch,p95_ms,accuracy\na,1,2,0.5\na,2,x,\n").unwrap();
    let out = path("never.json");
    let refused = switchyard(&["profile", "import", &csv, "--out", &out]);
    assert_eq!(refused.code, Some(2));
    let said = format!("error: {csv}:3: column `p95_ms`: `x` is no such number\n");
    assert_eq!(refused.stderr, said);
    assert!(!Path::new(&out).exists());
}

/// A configuration may name the apps that a profile brings; its pool's apps, SLOs and number of
/// workers hold then.
#[test]
fn a_configuration_chooses_among_the_apps_of_a_profile() {
    let folder = tempfile::tempdir().unwrap();
    let test_bed = folder.path().join("test-bed.toml");
    let text = r#"
        app = [{ name = "resnet50", slo_ms = 20.0 }]
        worker = [{ name = "first" }, { name = "second" }]
        [[pool]]
        name = "main"
        apps = ["resnet50"]
        workers = ["first", "second"]
        policy = "stability"
    "#;
    fs::write(&test_bed, text).unwrap();
    let profile = root().join("tests/paper/edgeserving/profile.json");
    let simulated = switchyard(&[
        "simulate",
        "--policy",
        "edf",
        "--workload",
        "poisson:20",
        "--seconds",
        "5",
        "--config",
        test_bed.to_str().unwrap(),
        "--profile",
        profile.to_str().unwrap(),
        "--json",
        "-",
    ]);
    assert_eq!(simulated.code, Some(0), "{}", simulated.stderr);
    let simulated: Value = serde_json::from_str(&simulated.stdout).unwrap();
    let catalog = &simulated["catalog"];
    assert_eq!(catalog["apps"].as_array().unwrap().len(), 1, "{catalog}");
    assert_eq!(catalog["apps"][0]["slo_ms"], 20.0);
    assert_eq!(catalog["workers"].as_array().unwrap().len(), 2, "{catalog}");
    let report = &simulated["runs"][0]["reports"][0];
    assert_eq!(report["apps"][0]["name"], "resnet50");
    // 74.4 % is table I's; one app's accuracy is the apps' mean.
    let mean = &simulated["runs"][0]["estimates"]["accuracy_app_mean"]["mean"];
    assert!((mean.as_f64().unwrap() - 0.744).abs() < 1e-9, "{mean}");
}

/// A card whose confusion matrix has only right answers.
fn promise_everything(card: &str) -> String {
    let mut card: toml::Table = toml::from_str(card).unwrap();
    for exit in card["exits"].as_array_mut().unwrap() {
        let exit = exit.as_table_mut().unwrap();
        let rows = exit["confusion"].as_array_mut().unwrap();
        let classes = rows.len();
        for (i, row) in rows.iter_mut().enumerate() {
            let row = row.as_array_mut().unwrap();
            let all: i64 = row.iter().filter_map(toml::Value::as_integer).sum();
            for (j, count) in row.iter_mut().enumerate() {
                *count = toml::Value::Integer(if i == j { all } else { 0 });
            }
        }
        exit["accuracy"] = toml::Value::Float(1.0);
        exit["recall"] = toml::Value::Array(vec![toml::Value::Float(1.0); classes]);
    }
    toml::to_string(&card).unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}
