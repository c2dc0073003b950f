//! `prepare`: tables of RAMSIS, from a profile of ours and from the RAMSIS artifact's summary.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::binary::{Ran, root, switchyard};

/// `prepare ramsis` of this profile into this folder.
fn ramsis(profile: &Path, out: &Path, more: &[&str]) -> Ran {
    let mut arguments = vec!["prepare", "ramsis", "--profile", profile.to_str().unwrap()];
    arguments.extend(["--out", out.to_str().unwrap(), "--grid", "fld:20"]);
    arguments.extend(more);
    switchyard(&arguments)
}

/// A summary as the artifact's, with a variant that its selection omits and a batch without
/// measurements.
fn summary(folder: &Path) -> std::path::PathBuf {
    let ms = |ms: &[(&str, f64)]| {
        let batches = ms
            .iter()
            .map(|(batch, ms)| ((*batch).to_owned(), json!({ "p95": ms })));
        Value::Object(batches.collect())
    };
    let model = |name: &str, accuracy: f64, latency: Value| json!({ "name": name, "accuracy": accuracy, "latency_ms_by_batch": latency });
    let summary = json!({
        "pareto": ["small", "large"],
        "models": [
            model("small", 58.0, ms(&[("1", 22.0), ("2", 39.0), ("3", 57.0), ("4", 69.0)])),
            model("large", 84.0, ms(&[("1", 54.0), ("2", 81.0), ("3", 141.0)])),
            model("left-out", 90.0, ms(&[("1", 10.0), ("2", 11.0), ("3", 12.0), ("4", 13.0)])),
        ],
    });
    let file = folder.join("summary.json");
    fs::write(&file, summary.to_string()).unwrap();
    file
}

fn parsed(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn tables_of_the_artifacts_summary_promise_accuracies() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("tables");
    let profile = summary(folder.path());
    let more = [
        "--slo-ms",
        "150",
        "--workers",
        "4",
        "--loads",
        "20:60:20",
        "--json",
    ];
    let made = parsed(&ramsis(&profile, &out, &more));
    assert_eq!(made["variants"], json!(["small", "large"]));
    let tables = made["tables"].as_array().unwrap();
    let loads: Vec<_> = tables.iter().map(|table| table["load"].clone()).collect();
    assert_eq!(loads, [20.0, 40.0, 60.0]);
    for table in tables {
        assert_eq!(
            (&table["workers"], &table["states"]),
            (&json!(4), &json!(4 * 21 + 2))
        );
        let accuracy = table["expected_accuracy"].as_f64().unwrap();
        assert!((0.58..=0.84).contains(&accuracy), "{accuracy}");
        assert!(table["expected_violation_rate"].as_f64().unwrap() < 0.05);
        assert!(table["seconds"].as_f64().unwrap() >= 0.0);
        assert!(out.join(table["file"].as_str().unwrap()).is_file());
    }
    let index = fs::read_to_string(out.join("index.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    assert_eq!(index["objective"], "query");

    // An existing table is kept, also its preparation time.
    assert_eq!(parsed(&ramsis(&profile, &out, &more)), made);

    let named = [&more[..], &["--variants", "left-out,large"]].concat();
    let made = parsed(&ramsis(&profile, &out, &named));
    assert_eq!(
        made["variants"],
        json!(["left-out"]),
        "the other is dominated"
    );
}

#[test]
fn a_profile_of_ours_needs_an_app_where_it_has_several() {
    let folder = tempfile::tempdir().unwrap();
    let profile = root().join("tests/paper/sneakpeek/profile.json");
    let more = ["--slo-ms", "20", "--workers", "2", "--loads", "auto:50:400"];
    let ran = ramsis(&profile, folder.path(), &more);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr
            .contains("fall, heart, voice: choose one with `--app`"),
        "{}",
        ran.stderr
    );
    let ran = ramsis(
        &profile,
        folder.path(),
        &[&more[..], &["--app", "heart"]].concat(),
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("written to "), "{}", ran.stdout);
    let unknown = [&more[..], &["--app", "heart", "--variants", "resnet,lstm"]].concat();
    let ran = ramsis(&profile, folder.path(), &unknown);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("`--variants`: lstm is not one of cnn"),
        "{}",
        ran.stderr
    );
}

#[test]
fn loads_beyond_the_capacity_get_a_note_and_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let profile = summary(folder.path());
    let more = ["--slo-ms", "10", "--workers", "4", "--loads", "20,9000"];
    let ran = ramsis(&profile, folder.path(), &more);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("note: no variant answers within 10 ms"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("note: 9000/s is beyond the "),
        "{}",
        ran.stdout
    );
}

#[test]
fn unusable_options_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let profile = summary(folder.path());
    let of = |more: &[&str]| {
        let ran = ramsis(
            &profile,
            folder.path(),
            &[&["--slo-ms", "150"], more].concat(),
        );
        assert_eq!(ran.code, Some(2), "{}", ran.stdout);
        ran.stderr
    };
    let said = of(&["--workers", "4", "--loads", "5:2:1"]);
    assert!(
        said.contains("'--loads <LOADS>'") && said.contains("FROM:TO:STEP"),
        "{said}"
    );
    let said = of(&["--workers", "4", "--loads", "5", "--arrivals", "weibull"]);
    assert!(said.contains("poisson or gamma:SHAPE"), "{said}");
    let said = of(&["--workers", "4", "--loads", "5", "--arrivals", "gamma:0.1"]);
    assert!(
        said.contains("`arrivals`: shape 0.1 times 4 workers"),
        "{said}"
    );
    let both = ["--balancing", "shortest-queue", "--batching", "variable"];
    let said = of(&[&["--workers", "4", "--loads", "5"], &both[..]].concat());
    assert!(said.contains("`batching`: must be maximal"), "{said}");

    let holes = folder.path().join("holes.csv");
    fs::write(&holes, "variant,batch,p95_us,accuracy\nsmall,2,1000,0.5\n").unwrap();
    let more = ["--slo-ms", "150", "--workers", "4", "--loads", "5"];
    let ran = ramsis(&holes, folder.path(), &more);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    let said = "`latencies`: variant `small`: batch 1 was not measured";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

/// Only for users that permissions bind: root writes everywhere.
#[cfg(unix)]
#[test]
fn a_set_that_cannot_be_written_is_refused_before_the_work() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("tables");
    let profile = summary(folder.path());
    let more = ["--slo-ms", "150", "--workers", "4", "--loads", "20"];
    let made = ramsis(&profile, &out, &more);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let mode = |bits| fs::set_permissions(&out, fs::Permissions::from_mode(bits)).unwrap();
    mode(0o555);
    if tempfile::tempfile_in(&out).is_err() {
        let table = ["prepare", "ramsis-table", "--load", "40", "--profile"];
        let files = [profile.to_str().unwrap(), "--sets", out.to_str().unwrap()];
        let ran = switchyard(&[&table[..], &files].concat());
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        let start = format!("error: --sets: {}: cannot be written: ", out.display());
        assert!(ran.stderr.starts_with(&start), "{}", ran.stderr);
    }
    mode(0o755);
}
