//! Public layouts: how they are read, and the errors for files that are not one.

use std::path::{Path, PathBuf};

use switchyard_core::ids::{ExitId, VariantId, WorkerId};
use switchyard_core::time::Micros;
use switchyard_profile::import::{ImportLayout, ImportOptions, import};
use switchyard_profile::{Machine, Percentile, ProfileFile};

fn options() -> ImportOptions {
    ImportOptions {
        app: "image".to_owned(),
        kind: "cpu-4t".to_owned(),
        slo_us: 150_000,
        accuracy: None,
        variants: Vec::new(),
        command: "switchyard profile import".to_owned(),
        versions: [("rustc".to_owned(), "1.95.0".to_owned())].into(),
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/layouts")
        .join(name)
}

/// Batch, samples and p95 of one variant.
fn p95s(file: &ProfileFile, variant: &str) -> Vec<(u32, u32, u64)> {
    let cells = file.latencies.iter().filter(|cell| cell.variant == variant);
    cells
        .map(|cell| (cell.batch, cell.samples, cell.p95_us))
        .collect()
}

/// Writes a file and says why it is refused, without the folder.
fn refusal(name: &str, text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    let start = path
        .strip_prefix(folder.path())
        .unwrap()
        .components()
        .next()
        .unwrap();
    let error = import(&folder.path().join(start), &options())
        .unwrap_err()
        .to_string();
    error.replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn the_artifacts_folder_is_read_and_its_gaps_are_filled() {
    let (file, layout) = import(&fixture("artifact"), &options()).unwrap();
    assert_eq!(layout, ImportLayout::RamsisArtifact);
    // Twenty times 40 ms and once 300 ms, the first run; 70 ms at batch 2; the rest on a line.
    assert_eq!(
        p95s(&file, "small_net"),
        [
            (1, 21, 40_000),
            (2, 2, 70_000),
            (3, 0, 100_000),
            (4, 0, 130_000)
        ]
    );
    assert_eq!(
        file.latencies
            .iter()
            .find(|cell| cell.variant == "small_net")
            .unwrap()
            .p99_us,
        70_000,
        "the first run's 300 ms, lowered to the latency of batch 2"
    );
    assert_eq!(p95s(&file, "large_net").len(), 4);
    assert_eq!(file.accuracies[0].accuracy, 0.843);
    assert_eq!(file.machine, Machine::elsewhere());
    assert_eq!(file.made.versions["rustc"], "1.95.0");
    assert!(
        file.made.notes[0].contains("RAMSIS artifact"),
        "{:?}",
        file.made
    );

    // `simulate` saves it, reads it and makes a catalog of it.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.json");
    file.save(&path).unwrap();
    let read = ProfileFile::load(&path).unwrap();
    assert_eq!(read, file);
    let catalog = read.to_catalog(Percentile::P95).unwrap();
    catalog.validate().unwrap();
    let small = catalog
        .variants
        .iter()
        .position(|v| v.name == "small_net")
        .unwrap();
    let latency = catalog.latency(WorkerId(0), VariantId(small as u32), ExitId(0), 3);
    assert_eq!(latency, Some(Micros(100_000)));
    assert_eq!(catalog.apps[0].slo, Micros(150_000));
}

#[test]
fn the_summary_is_read_and_a_missing_percentile_is_the_one_below() {
    let (file, layout) = import(&fixture("summary.json"), &options()).unwrap();
    assert_eq!(layout, ImportLayout::RamsisSummary);
    assert_eq!(
        p95s(&file, "a"),
        [
            (1, 1, 30_000),
            (2, 1, 50_000),
            (3, 0, 70_000),
            (4, 0, 90_000)
        ]
    );
    // Batch 1 was slower than batch 2: lowered to it, from the largest batch down.
    assert_eq!(p95s(&file, "b")[0], (1, 1, 60_000));
    assert!(file.latencies.iter().all(|cell| cell.p99_us == cell.p95_us));
    assert_eq!(file.accuracies[1].accuracy, 0.5);

    let only = ImportOptions {
        variants: vec!["b".to_owned()],
        ..options()
    };
    let (file, _) = import(&fixture("summary.json"), &only).unwrap();
    assert_eq!(file.models.len(), 1);
    let none = ImportOptions {
        variants: vec!["c".to_owned()],
        ..options()
    };
    let error = import(&fixture("summary.json"), &none)
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("no variant `c`; there are a, b"), "{error}");
}

#[test]
fn a_table_is_read_with_the_units_of_its_columns() {
    let (file, layout) = import(&fixture("plain.csv"), &options()).unwrap();
    assert_eq!(layout, ImportLayout::Csv);
    assert_eq!(
        p95s(&file, "tiny"),
        [(1, 50, 2_500), (8, 50, 9_000)],
        "no gaps are filled"
    );
    let first = &file.latencies[0];
    assert_eq!(
        (first.p50_us, first.p99_us, first.energy_uj),
        (2_000, 3_000, Some(1_500))
    );
    assert_eq!(
        (file.models[0].memory_bytes, file.models[0].load_us),
        (3 << 19, 12_000)
    );
    assert_eq!(file.accuracies[0].accuracy, 0.81);
    let names: Vec<_> = file.apps.iter().map(|app| app.name.as_str()).collect();
    assert_eq!(names, ["image", "text"]);
    file.to_catalog(Percentile::P95)
        .unwrap()
        .validate()
        .unwrap();
}

#[test]
fn files_that_cannot_be_imported_are_named_with_line_and_field() {
    let header = "variant,batch,p95_ms,accuracy\n";
    let csv = |lines: &str| refusal("t.csv", &format!("{header}{lines}"));
    let starts = [
        (refusal("t.csv", ""), "t.csv:1: there is no header"),
        (
            refusal("t.csv", header),
            "t.csv:1: there are no lines below the header",
        ),
        (
            refusal("t.csv", "variant,batch,p95,accuracy\na,1,2,0.5\n"),
            "t.csv:1: column `p95` is not known; its unit is part of its name, such as `p95_ms`",
        ),
        (
            refusal("t.csv", "variant,batch,accuracy\na,1,0.5\n"),
            "t.csv:1: a column of latencies is missing",
        ),
        (
            refusal("t.csv", "variant,p95_ms,accuracy\n"),
            "t.csv:1: column `batch` is missing",
        ),
        (csv("a,1,2\n"), "t.csv:2: 3 cells, the header has 4"),
        (
            csv("a,1,2,0.5\n\na,x,2,0.5\n"),
            "t.csv:4: column `batch`: `x` is no such number",
        ),
        (
            csv("a,0,2,0.5\n"),
            "t.csv:2: column `batch`: 0, must be at least 1",
        ),
        (
            csv("a,1,-2,0.5\n"),
            "t.csv:2: column `p95_ms`: -2, must be 0 or more",
        ),
        (csv("a,1,,0.5\n"), "t.csv:2: there is no latency"),
        (
            csv("a,1,2,0.5\na,2,0,0.5\n"),
            "t.csv:3: column `p95_ms`: 0, must be above 0 and at most 3600000 (one hour)",
        ),
        (
            csv("a,1,18446744073709551615,0.5\n"),
            "t.csv:2: column `p95_ms`: 18446744073709552000, must be above 0 and at most 3600000",
        ),
        (
            refusal(
                "t.json",
                r#"{"models":[{"name":"a","accuracy":70,"latency_ms_by_batch":{"1":{"p95":1e9}}}]}"#,
            ),
            "t.json: field `models[0].latency_ms_by_batch.1`: 1000000000, must be above 0 and",
        ),
        (
            csv("a,1,2,50\n"),
            "t.csv:2: column `accuracy`: 50, must be 0 to 1",
        ),
        (
            csv("a,1,2,\n"),
            "t.csv:2: column `accuracy`: variant a has none",
        ),
        (
            csv("a,1,2,0.5\na,1,3,0.5\n"),
            "t.csv:3: variant a, batch 1 is there twice",
        ),
        (
            csv("\"a,1,2,0.5\nb,1,2,0.5\n"),
            "t.csv:2: 1 cells, the header has 4",
        ),
        (
            refusal("t.json", "{"),
            "t.json: field `.`: EOF while parsing",
        ),
        (
            refusal("t.json", "{\"schema\": 1}"),
            "t.json: is a profile already",
        ),
        (
            refusal("t.json", "{\"models\": []}"),
            "t.json: field `models`: is empty",
        ),
        (
            refusal(
                "t.json",
                r#"{"models":[{"name":"a","accuracy":70,"latency_ms_by_batch":{"0":{"p95":1}}}]}"#,
            ),
            "t.json: field `models[0].latency_ms_by_batch.0`: is no batch size, which is 1 to 4096",
        ),
        (
            refusal(
                "t.json",
                r#"{"models":[{"name":"a","accuracy":70,"latency_ms_by_batch":{"1":{}}}]}"#,
            ),
            "t.json: field `models[0].latency_ms_by_batch.1`: has none of p50, p95, p99",
        ),
        (
            refusal("t.txt", ""),
            "t.txt: neither a folder nor a .json or .csv file",
        ),
        (
            refusal("d/x.txt", ""),
            "d: holds no MODEL/MODEL_bsize-B_profile.json",
        ),
        (
            refusal("d/m/n_bsize-1_profile.json", "[1]"),
            "d/m/n_bsize-1_profile.json: lies in the folder `m`",
        ),
    ];
    for (found, start) in starts {
        assert!(found.starts_with(start), "{found}");
    }
}

#[test]
fn the_artifacts_own_faults_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("profiles");
    let write = |file: &str, text: &str| {
        let file = root.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    let said = |options: &ImportOptions| import(&root, options).unwrap_err().to_string();
    write("cpu/m/m_bsize-1_profile.json", "[0.1, -0.1]");
    let error = said(&options());
    assert!(
        error.contains("no table of accuracies next to it or above it"),
        "{error}"
    );
    write("accuracy.csv", "model,accuracy\nother,0.5\n");
    let error = said(&options());
    assert!(
        error.contains(
            "_bsize-1_profile.json: field `[1]`: -0.1, must be above 0 and at most 3600 s"
        ),
        "{error}"
    );
    write("cpu/m/m_bsize-1_profile.json", "[0.1]");
    let error = said(&options());
    assert!(
        error.ends_with("accuracy.csv: has no accuracy of model `m`"),
        "{error}"
    );
    write("mine.json", r#"[{"model": "m", "accuracy": 61.5}]"#);
    let named = ImportOptions {
        accuracy: Some(root.join("mine.json")),
        ..options()
    };
    let (file, _) = import(&root, &named).unwrap();
    assert_eq!(file.accuracies[0].accuracy, 0.615);
    write("gpu/m/m_bsize-1_profile.json", "[0.1]");
    let error = said(&named);
    assert!(error.contains("holds several tasks, name one: "), "{error}");
}
