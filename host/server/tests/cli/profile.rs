//! `profile`: measures the shipped models, and holds their cards to what they say.

use std::fs;
use std::path::Path;

use serde_json::Value;
use switchyard_executor::profile::{Machine, ProfileFile};

use super::binary::{root, switchyard};

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

    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = printed["rows"].as_array().unwrap();
    // Three variants, one of them with three exits, on one kind of worker.
    assert_eq!(rows.len(), 5, "{rows:?}");
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
    assert_eq!(accuracies.len(), 5);
    for accuracy in accuracies {
        assert_eq!(accuracy["samples"], 140, "7 classes, 20 each");
    }
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
    assert!(
        ran.stdout
            .contains("cpu-1t  heart/cnn-small  final     1.000"),
        "{}",
        ran.stdout
    );
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
