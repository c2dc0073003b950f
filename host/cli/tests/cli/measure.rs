//! Quality measured on labelled rows: `switchyard add --data` and `switchyard measure`.

mod images;

use std::fs;
use std::io::Write;
use std::path::Path;

use switchyard_models::Zoo;
use switchyard_models::card::QualityMetric;
use zip::write::SimpleFileOptions;

use super::binary::{Ran, switchyard};
use crate::onnx::{FLOAT, Graph, Node, OPEN, Value};
use crate::onnx_zoo;

/// A graph that answers with its input, of this width.
fn identity(width: i64) -> Vec<u8> {
    let shape = Some(&[OPEN, width][..]);
    let graph = Graph {
        nodes: vec![Node::new("Identity", &["x"], "y")],
        inputs: vec![Value::new("x", FLOAT, shape)],
        outputs: vec![Value::new("y", FLOAT, shape)],
        ..Graph::default()
    };
    graph.bytes()
}

fn add(folder: &Path, options: &[&str]) -> Ran {
    let at = |name: &str| folder.join(name).display().to_string();
    let (graph, zoo, config) = (at("graph.onnx"), at("zoo"), at("switchyard.toml"));
    let mut args = vec!["add", &graph, "--zoo", &zoo, "--config", &config];
    args.extend(options);
    switchyard(&args)
}

fn measure(folder: &Path, name: &str, data: &Path, options: &[&str]) -> Ran {
    let zoo = folder.join("zoo").display().to_string();
    let data = data.display().to_string();
    let mut args = vec!["measure", name, "--zoo", &zoo, "--data", &data];
    args.extend(options);
    switchyard(&args)
}

/// The scores of the three classes, and the true one. The largest score is the answer: 4 of 6 are
/// right, and the second class is taken for the third twice.
const ROWS: [([f32; 3], &str); 6] = [
    ([0.9, 0.0, 0.1], "even"),
    ([3.0, 2.0, 1.0], "even"),
    ([0.0, 1.0, 0.5], "odd"),
    ([0.0, 1.0, 1.5], "odd"),
    ([-1.0, -2.0, -0.5], "odd"),
    ([0.0, 0.0, 0.25], "none"),
];

const CLASSES: [&str; 3] = ["even", "odd", "none"];

/// A folder with the graph and the names of its classes.
fn classifier() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("graph.onnx"), identity(3)).unwrap();
    fs::write(folder.path().join("labels.txt"), "even\nodd\nnone\n").unwrap();
    folder
}

fn csv(header: &str) -> String {
    let rows = ROWS.map(|([a, b, c], label)| format!("{a},{b},{c},{label}\n"));
    format!("{header}\n{}", rows.concat())
}

fn jsonl() -> String {
    let rows =
        ROWS.map(|(scores, label)| format!("{{\"input\": {scores:?}, \"label\": {label:?}}}\n"));
    rows.concat()
}

/// An array as `numpy.save` writes it.
fn npy(descr: &str, shape: &str, body: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}\n");
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), body].concat()
}

fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let compressed =
        SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    for (name, bytes) in arrays {
        archive
            .start_file(format!("{name}.npy"), compressed)
            .unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn arrays() -> Vec<u8> {
    let scores = ROWS.iter().flat_map(|(scores, _)| scores);
    let scores: Vec<u8> = scores
        .flat_map(|&score| f64::from(score).to_le_bytes())
        .collect();
    let labels = ROWS
        .iter()
        .map(|(_, label)| CLASSES.iter().position(|of| of == label).unwrap());
    let labels: Vec<u8> = labels
        .flat_map(|label| (label as i64).to_le_bytes())
        .collect();
    npz(&[
        ("x", npy("<f8", "6, 3", &scores)),
        ("label", npy("<i8", "6,", &labels)),
    ])
}

#[test]
fn accuracy_recall_and_confusion_of_rows_are_on_the_card() {
    let folder = classifier();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let labels = folder.path().join("labels.txt").display().to_string();
    let files = [
        (
            "numbered",
            file("numbered.csv", csv("x_0,x_1,x_2,label").as_bytes()),
        ),
        (
            "ordered",
            file("ordered.csv", csv("first,second,third,label").as_bytes()),
        ),
        ("json", file("rows.jsonl", jsonl().as_bytes())),
        ("arrays", file("rows.npz", &arrays())),
    ];
    for (app, data) in &files {
        let ran = add(
            folder.path(),
            &["--as", app, "--classes", &labels, "--data", data],
        );
        assert_eq!(ran.code, Some(0), "{app}: {}", ran.stderr);
        let said = format!("quality 0.6667 (accuracy of 6 rows of {data})");
        assert!(ran.stdout.contains(&said), "{}", ran.stdout);
        let by_order = "input `x`: the 3 columns from `first` to `third`, in their order";
        assert_eq!(
            ran.stderr.contains(by_order),
            *app == "ordered",
            "{}",
            ran.stderr
        );
    }
    let zoo = Zoo::open(&folder.path().join("zoo")).unwrap();
    for (app, data) in &files {
        let app = zoo.app(app).unwrap();
        let card = &app.variants[0].card;
        let exit = &card.exits[0];
        assert!((exit.accuracy - 4.0 / 6.0).abs() < 1e-12);
        assert_eq!(exit.recall, [1.0, 1.0 / 3.0, 1.0]);
        assert_eq!(exit.confusion, [[2, 0, 0], [0, 1, 2], [0, 0, 1]]);
        let quality = card.quality.as_ref().unwrap();
        assert_eq!((quality.metric, quality.rows), (QualityMetric::Accuracy, 6));
        assert_eq!(&quality.data, data);
        assert!(!card.quality_unknown);
        assert_eq!(app.card.validation.samples, 6);
        assert_eq!(app.card.validation.frequencies, [2.0 / 6.0, 0.5, 1.0 / 6.0]);
    }
}

/// Every refusal names the place and the way out, and leaves no model behind.
#[test]
fn wrong_rows_are_refused_with_their_place() {
    let folder = classifier();
    let labels = folder.path().join("labels.txt").display().to_string();
    let refused = |name: &str, content: &[u8], options: &[&str], wanted: &[&str]| {
        let data = folder.path().join(name);
        fs::write(&data, content).unwrap();
        let data = data.display().to_string();
        let mut args = vec!["--as", "pulse", "--classes", &labels, "--data", &data];
        args.extend(options);
        let ran = add(folder.path(), &args);
        assert_eq!(ran.code, Some(2), "{name}: {}", ran.stdout);
        let place = format!("{data}: ");
        for wanted in wanted.iter().chain([&place.as_str()]) {
            assert!(
                ran.stderr.contains(wanted),
                "{name}: {}\n{wanted}",
                ran.stderr
            );
        }
        let left = fs::read_dir(folder.path().join("zoo")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{name}");
    };
    let csv = |rows: &str| format!("x_0,x_1,x_2,label\n{rows}").into_bytes();
    refused("empty.csv", &csv(""), &[], &["has no rows"]);
    refused(
        "a.csv",
        &csv("1,2,3,even\n1,red,3,odd\n"),
        &[],
        &["line 3: `x_1`: \"red\", must be a number"],
    );
    refused(
        "b.csv",
        &csv("1,2,,even\n"),
        &[],
        &["line 2: `x_2`: NaN", "non_finite = true"],
    );
    refused(
        "c.csv",
        &csv("1,2,3,even\n1,2,3,evn\n"),
        &[],
        &[
            "line 3: `label`: \"evn\", must be the name of a class (`even`, `odd`, `none`)",
            "position, 0 to 2",
        ],
    );
    refused(
        "d.csv",
        &csv("1,2,3,0\n1,2,3,3\n"),
        &[],
        &["line 3: `label`: \"3\"", "0 to 2"],
    );
    refused("e.csv", &csv("1,2,3,even\n1,2,3\n"), &[], &["line 3"]);
    refused(
        "f.csv",
        b"a,b,label\n1,2,even\n",
        &[],
        &["2 columns", "has 3 values"],
    );
    refused(
        "g.csv",
        b"a,b,c,kind\n1,2,3,even\n",
        &[],
        &["no labels `label`", "--label NAME"],
    );
    refused(
        "h.jsonl",
        b"{\"input\": [1, 2], \"label\": \"even\"}\n",
        &[],
        &["line 1: `input`: 2 values, must be 3"],
    );
    refused(
        "i.jsonl",
        b"{\"y\": 1, \"z\": 2, \"label\": 0}\n",
        &[],
        &["line 1: has no `x`"],
    );
    refused("j.jsonl", b"[1]\n", &[], &["line 1: no JSON object"]);
    let arrays = |rows: &str| {
        let body = [0; 36];
        let labels = npy("<i8", "2,", &[0; 16]);
        npz(&[("x", npy("<f4", rows, &body)), ("label", labels)])
    };
    refused(
        "k.npz",
        &arrays("3, 3"),
        &[],
        &["`x`: has 3 rows, `label` has 2"],
    );
    let wide = npz(&[
        ("x", npy("<f4", "1, 4", &[0; 16])),
        ("label", npy("<i8", "1,", &[0; 8])),
    ]);
    refused("l.npz", &wide, &[], &["row 0: `x`: 4 values, must be 3"]);
    refused("m.npz", b"PK", &[], &["no file of numpy.savez"]);
    refused("n.txt", b"", &[], &[".csv, .jsonl or .npz"]);
    refused(
        "o.csv",
        &csv("1,2,3,1\n"),
        &["--task", "tensors"],
        &["task \"tensors\"", "--quality"],
    );
}

/// A class without rows has an unknown recall, which is not 0.
#[test]
fn a_class_without_rows_leaves_recall_out() {
    let folder = classifier();
    let labels = folder.path().join("labels.txt").display().to_string();
    let data = folder.path().join("two.csv");
    fs::write(
        &data,
        "a,b,c,label\n1,0,0,even\n0,1,0,even\n0,1,0,odd\n0,1,0,odd\n",
    )
    .unwrap();
    let data = data.display().to_string();
    let ran = add(
        folder.path(),
        &["--as", "pulse", "--classes", &labels, "--data", &data],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout
            .contains("no recall per class, since 1 of 3 classes, such as `none`"),
        "{}",
        ran.stdout
    );
    let zoo = Zoo::open(&folder.path().join("zoo")).unwrap();
    let exit = &zoo.app("pulse").unwrap().variants[0].card.exits[0];
    assert_eq!(exit.accuracy, 0.75);
    assert_eq!(exit.recall, [0.75; 3]);
    assert!(exit.confusion.is_empty());
}

#[test]
fn numbers_scores_and_embeddings_have_their_own_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let measured = |app: &str, width: i64, task: &str, name: &str, content: &str| {
        fs::write(folder.path().join("graph.onnx"), identity(width)).unwrap();
        let data = folder.path().join(name);
        fs::write(&data, content).unwrap();
        let data = data.display().to_string();
        let ran = add(
            folder.path(),
            &["--as", app, "--task", task, "--data", &data],
        );
        assert_eq!(ran.code, Some(0), "{app}: {}", ran.stderr);
        let zoo = Zoo::open(&folder.path().join("zoo")).unwrap();
        let card = zoo.app(app).unwrap().variants[0].card.clone();
        (
            card.exits[0].accuracy,
            card.quality.unwrap().metric,
            ran.stdout,
        )
    };
    // sklearn.metrics.r2_score([3, -0.5, 2, 7], [2.5, 0, 2, 8])
    let rows = "x,label\n2.5,3\n0,-0.5\n2,2\n8,7\n";
    let (quality, metric, _) = measured("price", 1, "regress", "price.csv", rows);
    assert!((quality - 0.948_608_137).abs() < 1e-6, "{quality}");
    assert_eq!(metric, QualityMetric::R2);
    // Of two numbers per row, the mean: r2_score([[0.5, 1], [-1, 1.5], [7, -6]], ...).
    let rows = "{\"x\": [0, 2], \"label\": [0.5, 1]}\n{\"x\": [-1, 2], \"label\": [-1, 1.5]}\n\
        {\"x\": [8, -5], \"label\": [7, -6]}\n";
    let (quality, ..) = measured("two", 2, "regress", "two.jsonl", rows);
    assert!((quality - 0.950_728_372).abs() < 1e-6, "{quality}");
    let rows = "x,label\n1,40\n2,30\n3,20\n";
    let (quality, metric, said) = measured("fit", 1, "score", "fit.csv", rows);
    assert_eq!((quality, metric), (0.0, QualityMetric::Spearman));
    assert!(said.contains("-1.0000 counts as 0"), "{said}");
    // Cosines 1, 0.7, 0 and -1 against the ranks 3, 1, 2, 0: 1 - 6 * 2 / 60.
    let rows = "{\"input\": [[1, 0], [2, 0]], \"label\": 4}\n{\"input\": [[1, 0], [1, 1]], \"label\": 2}\n\
        {\"input\": [[1, 0], [0, 3]], \"label\": 3}\n{\"input\": [[1, 0], [-1, 0]], \"label\": 1}\n";
    let (quality, metric, _) = measured("alike", 2, "embed", "pairs.jsonl", rows);
    assert!((quality - 0.8).abs() < 1e-9, "{quality}");
    assert_eq!(metric, QualityMetric::Spearman);
    let columns = "x1_0,x1_1,x2_0,x2_1,label\n1,0,2,0,4\n1,0,1,1,2\n1,0,0,3,3\n1,0,-1,0,1\n";
    let (quality, ..) = measured("columns", 2, "embed", "pairs.csv", columns);
    assert!((quality - 0.8).abs() < 1e-9, "{quality}");

    let constant = folder.path().join("same.csv");
    fs::write(&constant, "x,label\n1,5\n2,5\n").unwrap();
    let refused = measure(folder.path(), "price", &constant, &[]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("`label`: are all equal"),
        "{}",
        refused.stderr
    );
}

/// The models of a zoo were added without data; their cards may be written by hand.
#[test]
fn a_model_in_the_zoo_is_measured_and_its_card_keeps_its_text() {
    let folder = tempfile::tempdir().unwrap();
    onnx_zoo::write(&folder.path().join("zoo"));
    let app = folder.path().join("zoo/pulse");
    let card = app.join("graph/model.toml");
    let before = fs::read_to_string(&card).unwrap();
    fs::write(&card, format!("# My notes.\n{before}")).unwrap();
    let mut rows = String::from("label");
    (0..onnx_zoo::SAMPLES).for_each(|i| rows += &format!(",s{i}"));
    rows += "\n";
    for row in 0..9 {
        rows += &format!("{}", row % 3);
        (0..onnx_zoo::SAMPLES).for_each(|i| rows += &format!(",{}", (row * 5 + i * 3) % 7));
        rows += "\n";
    }
    let data = folder.path().join("rows.csv");
    fs::write(&data, rows).unwrap();

    let one = measure(folder.path(), "pulse/graph", &data, &[]);
    assert_eq!(one.code, Some(0), "{}", one.stderr);
    let both = measure(folder.path(), "pulse", &data, &[]);
    assert_eq!(both.code, Some(0), "{}", both.stderr);
    let lines: Vec<&str> = both.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", both.stdout);
    // The same weights, as a graph and as tensors.
    assert_eq!(
        lines[0].split_once(": "),
        lines[1]
            .replace("/plain", "/graph")
            .as_str()
            .split_once(": ")
    );
    let after = fs::read_to_string(&card).unwrap();
    assert!(after.starts_with("# My notes.\n"), "{after}");
    assert!(
        after.contains("[quality]\nmetric = \"accuracy\"\nrows = 9\n"),
        "{after}"
    );
    let zoo = Zoo::open(&folder.path().join("zoo")).unwrap();
    let pulse = zoo.app("pulse").unwrap();
    assert_eq!(pulse.card.validation.samples, 9);
    for variant in &pulse.variants {
        let exit = &variant.card.exits[0];
        assert_eq!(exit.confusion.iter().flatten().sum::<u64>(), 9);
        assert_ne!(exit.accuracy, 0.9, "that of the card by hand");
    }

    let unknown = measure(folder.path(), "pulse/grap", &data, &[]);
    assert!(
        unknown.stderr.contains("did you mean `graph`?"),
        "{}",
        unknown.stderr
    );
    let unknown = measure(folder.path(), "puls", &data, &[]);
    assert!(
        unknown.stderr.contains("did you mean `pulse`?"),
        "{}",
        unknown.stderr
    );
}
