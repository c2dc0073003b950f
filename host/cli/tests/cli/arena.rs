//! `arena`: the scoreboard repeats, shows refusals and faults, and names unusable input.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::Value;

use super::binary::{command, guest, policy, root, switchyard};

/// A test bed on a profile from a file, the same on every machine.
fn test_bed(folder: &Path, more: &str) -> PathBuf {
    let paper = root().join("tests/paper/edgeserving");
    let text = format!(
        "title = \"One GPU\"\nconfig = \"{paper}/test-bed.toml\"\nprofile = \"{paper}/profile.json\"\n\
         load = 0.8\nseconds = 0.1\n{more}",
        paper = paper.display()
    );
    let file = folder.join("tiny.toml");
    fs::write(&file, text).unwrap();
    file
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Writes the scoreboard of a tiny arena into `folder/NAME`.
fn tiny(folder: &Path, name: &str) -> PathBuf {
    let (policies, out) = (policy("fcfs"), folder.join(name));
    let words = [
        "arena".to_owned(),
        text(&guest("traps")),
        "--policies".to_owned(),
        text(policies.parent().unwrap()),
        "--test-bed".to_owned(),
        text(&test_bed(folder, "")),
        "--out".to_owned(),
        text(&out),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let chosen = "--policy edf --policy fcfs --policy ppo-router --workload steady --workload flood \
                  --workload heart=poisson:5 --seeds 3";
    let chosen: Vec<&str> = chosen.split_whitespace().collect();
    let ran = switchyard(&[words, chosen].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("| place | policy |"), "{}", ran.stdout);
    out
}

/// Paths of all values with their types, without those of `measured`.
fn shape(path: &str, value: &Value, found: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Null => return,
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(items) => {
            for item in items {
                shape(&format!("{path}[]"), item, found);
            }
            return;
        }
        // Kinds of faults are names.
        Value::Object(_) if path.ends_with(".faults") => "number by kind",
        Value::Object(fields) => {
            for (name, field) in fields {
                shape(&format!("{path}.{name}"), field, found);
            }
            return;
        }
    };
    found.insert(format!("{path}: {kind}"));
}

#[test]
fn the_scoreboard_repeats_and_shows_refusals_and_faults() {
    let folder = tempfile::tempdir().unwrap();
    let [once, again] = ["once", "again"].map(|name| tiny(folder.path(), name));
    let board = |out: &Path| {
        let text = fs::read_to_string(out.join("scoreboard.md")).unwrap();
        let (repeats, costs) = text.split_once("## Cost per window").unwrap();
        assert!(costs.contains("| fcfs | tiny |"), "{costs}");
        repeats.to_owned()
    };
    assert_eq!(board(&once), board(&again));
    assert_snapshot!("scoreboard", board(&once));

    let results = |out: &Path| {
        let text = fs::read_to_string(out.join("results.json")).unwrap();
        let mut results: Value = serde_json::from_str(&text).unwrap();
        let measured = results.as_object_mut().unwrap().remove("measured").unwrap();
        assert!(measured["seconds"].as_f64().unwrap() > 0.0, "{measured}");
        results
    };
    let data = results(&once);
    assert_eq!(data.to_string(), results(&again).to_string());
    let mut found = BTreeSet::new();
    shape("", &data, &mut found);
    assert_snapshot!("schema", found.into_iter().collect::<Vec<_>>().join("\n"));

    let page = fs::read_to_string(once.join("index.html")).unwrap();
    for word in [
        "fcfs",
        "traps",
        "ppo-router",
        "prefers-color-scheme: dark",
        "<svg",
    ] {
        assert!(page.contains(word), "{word}");
    }
    for reference in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn a_test_bed_without_a_configuration_has_the_shipped_one() {
    let folder = tempfile::tempdir().unwrap();
    let bed = fs::read_to_string(test_bed(folder.path(), "")).unwrap();
    let lines = bed.lines().filter(|line| !line.starts_with("config"));
    let bed = lines.collect::<Vec<_>>().join("\n");
    fs::write(folder.path().join("tiny.toml"), bed).unwrap();
    fs::write(
        folder.path().join("switchyard.toml"),
        "[server]\nhttp = 1\n",
    )
    .unwrap();
    let words = "arena --test-bed tiny.toml --policy edf --workload steady --seeds 1 --out out";
    let ran = command()
        .current_dir(folder.path())
        .args(words.split(' '))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{stderr}");
}

#[test]
fn unusable_input_of_an_arena_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let out = text(&folder.join("out"));
    let complaint = |words: &[&str]| {
        let ran = switchyard(&[&["arena", "--out", &out][..], words].concat());
        assert_eq!(ran.code, Some(2), "{words:?}\n{}", ran.stderr);
        ran.stderr
    };
    let bed = text(&test_bed(folder, ""));
    let policies = text(policy("fcfs").parent().unwrap());
    let on = ["--test-bed", &bed, "--policies", &policies];
    let with = |words: &[&str]| complaint(&[&on, words].concat());

    let said = with(&["--policy", "fcfz"]);
    assert!(said.contains("policy `fcfz`: there is no "), "{said}");
    assert!(said.contains("did you mean `fcfs`?"), "{said}");
    let broken = folder.join("broken.wasm");
    fs::write(&broken, "no component").unwrap();
    let said = with(&[&text(&broken)]);
    assert!(said.contains("broken.wasm: compile: "), "{said}");
    let said = with(&["no-such.wasm"]);
    assert!(said.contains("no-such.wasm: read: "), "{said}");
    let said = with(&["fcfs"]);
    assert!(said.contains("policy: `fcfs` is given twice; "), "{said}");
    let said = with(&["--workload", "steddy"]);
    assert!(
        said.contains("--workload: `steddy`: ") && said.contains("steady, bursty"),
        "{said}"
    );

    let said = complaint(&["--test-bed", "overlod"]);
    assert!(said.contains("did you mean `overload`?"), "{said}");
    let said = complaint(&["--test-bed", "yard"]);
    assert!(
        said.contains("`yard` is unknown; must be one of reference, unlike, overload, or a file"),
        "{said}"
    );
    let said = complaint(&["--test-bed", "no-such.toml"]);
    assert!(
        said.contains("--test-bed: no-such.toml: No such file"),
        "{said}"
    );
    let wrong = text(&test_bed(folder, "loud = 1"));
    let said = complaint(&["--test-bed", &wrong]);
    assert!(
        said.contains("tiny.toml: line 6: unknown field `loud`") && said.contains("fields: title"),
        "{said}"
    );
    let wrong = text(&test_bed(folder, "service = \"slow\""));
    let said = complaint(&["--test-bed", &wrong]);
    assert!(
        said.contains("test bed tiny: service: `slow`, must be profiled"),
        "{said}"
    );
}
