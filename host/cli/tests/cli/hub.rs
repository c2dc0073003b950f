//! `switchyard add hf:...`, against a server that speaks the hub's URLs.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use switchyard_models::Zoo;

use super::binary::{Ran, command};
use crate::onnx_zoo;
use crate::text_zoo::{Answers, write_app};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A hub with one model, `tests/NAME`. Its thread ends with the process.
struct Hub {
    endpoint: String,
    /// Request lines and tokens, in their order.
    seen: Arc<Mutex<Vec<String>>>,
}

/// A model's files by their names.
type Files = BTreeMap<String, Vec<u8>>;

impl Hub {
    fn start(name: &str, files: Files) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, id) = (Arc::clone(&seen), format!("tests/{name}"));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &id, &files, &log);
            }
        });
        Self { endpoint, seen }
    }

    fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn answer(stream: TcpStream, id: &str, files: &Files, log: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    let (mut path, mut range, mut token) = (String::new(), None, String::new());
    for line in (&mut reader).lines() {
        let line = line.unwrap();
        if let Some(get) = line.strip_prefix("GET ") {
            path = get.split(' ').next().unwrap_or_default().to_owned();
        }
        match line.split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("range") => {
                let range_of = value.trim_start_matches("bytes=").split_once('-');
                range = range_of.map(|(from, to)| (from.to_owned(), to.to_owned()));
            }
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                token = value.to_owned();
            }
            _ => {}
        }
        if line.is_empty() {
            break;
        }
    }
    log.lock().unwrap().push(format!("{path} {token}"));
    let file = path.strip_prefix(&format!("/{id}/resolve/{COMMIT}/"));
    let mut stream = reader.into_inner();
    let head = |status: &str, length: usize| {
        format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n")
    };
    let written = if path == format!("/api/models/{id}/revision/main") {
        let siblings = files
            .keys()
            .map(|name| serde_json::json!({"rfilename": name}));
        let siblings: Vec<_> = siblings.collect();
        let body = serde_json::json!({"siblings": siblings, "sha": COMMIT}).to_string();
        write!(stream, "{}\r\n{body}", head("200 OK", body.len()))
    } else if let Some((file, bytes)) = file.and_then(|file| files.get_key_value(file)) {
        let (from, to) = range.unwrap();
        let from: usize = from.parse().unwrap();
        let to = to.parse().map_or(bytes.len(), |to: usize| to + 1);
        let part = &bytes[from..to];
        let head = head("206 Partial Content", part.len());
        let (last, size) = (to - 1, bytes.len());
        let etag = file.replace('/', "-");
        write!(
            stream,
            "{head}ETag: \"{etag}\"\r\nX-Repo-Commit: {COMMIT}\r\n\
             Content-Range: bytes {from}-{last}/{size}\r\n\r\n"
        )
        .and_then(|()| stream.write_all(part))
    } else {
        write!(stream, "{}\r\n", head("404 Not Found", 0))
    };
    written.unwrap();
}

/// `switchyard add` of a hub's model, with a cache of its own.
fn add(folder: &Path, endpoint: &str, source: &str, options: &[&str]) -> Ran {
    let output = command()
        .args(["add", source, "--zoo"])
        .arg(folder.join("zoo"))
        .arg("--config")
        .arg(folder.join("switchyard.toml"))
        .args(options)
        .env("HF_ENDPOINT", endpoint)
        .env("HF_HOME", folder.join("cache"))
        .env("HF_TOKEN", "secret")
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// An address at which nothing listens.
fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// The files of an encoder as sentence-transformers publishes it.
fn encoder() -> Files {
    let folder = tempfile::tempdir().unwrap();
    write_app(folder.path(), "sense", Answers::Embeddings, &["tiny"]);
    let mut files = Files::new();
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        let bytes = fs::read(folder.path().join("sense/tiny").join(name)).unwrap();
        files.insert(name.to_owned(), bytes);
    }
    let modules = r#"[
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
    ]"#;
    files.insert("modules.json".to_owned(), modules.into());
    let pooling = r#"{"word_embedding_dimension": 16, "pooling_mode_mean_tokens": true}"#;
    files.insert("1_Pooling/config.json".to_owned(), pooling.into());
    files.insert("README.md".to_owned(), "never read".into());
    files
}

#[test]
fn a_model_of_the_hub_is_downloaded_once_and_added_as_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start("Tiny-Sense", encoder());
    let id = "hf:tests/Tiny-Sense";
    let added = add(folder.path(), &hub.endpoint, id, &[]);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    assert!(
        added.stdout.starts_with("added tiny-sense/v1: "),
        "{}",
        added.stdout
    );
    let requests = hub.requests();
    assert!(
        requests.iter().all(|line| line.ends_with(" Bearer secret")),
        "{requests:?}"
    );
    assert!(
        !requests.iter().any(|line| line.contains("README")),
        "{requests:?}"
    );

    let zoo = Zoo::open(&folder.path().join("zoo")).unwrap();
    let app = zoo.app("tiny-sense").unwrap();
    assert_eq!(app.card.task.name(), "embed");
    let card = &app.variants[0].card;
    let origin = format!("{id}@{COMMIT}");
    assert_eq!(card.summary, format!("From {origin}"));
    assert_eq!(card.provenance.command, format!("switchyard add {origin}"));
    assert!(!app.variants[0].dir.join("model.safetensors").is_symlink());

    // The cache has the files: only their list is asked for, and without network nothing.
    let asked = hub.requests().len();
    let again = add(folder.path(), &hub.endpoint, id, &["--as", "second"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(hub.requests().len(), asked + 1);
    let offline = add(folder.path(), &nowhere(), id, &["--as", "third"]);
    assert_eq!(offline.code, Some(0), "{}", offline.stderr);
    assert!(
        offline
            .stderr
            .contains("the cache has hf:tests/Tiny-Sense@0123"),
        "{}",
        offline.stderr
    );
}

#[test]
fn without_network_the_refusal_names_the_endpoint_and_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = nowhere();
    let refused = add(folder.path(), &endpoint, "hf:tests/any", &[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    for wanted in [
        &*format!("hf:tests/any: cannot be downloaded from {endpoint}: "),
        "HF_ENDPOINT",
        "switchyard add FOLDER",
    ] {
        assert!(
            refused.stderr.contains(wanted),
            "{}\n{wanted}",
            refused.stderr
        );
    }
    assert!(!folder.path().join("zoo").exists());
    let hub = Hub::start("other", Files::new());
    let unknown = add(folder.path(), &hub.endpoint, "hf:tests/any", &[]);
    assert_eq!(unknown.code, Some(2), "{}", unknown.stdout);
    assert!(
        unknown.stderr.contains("answers 404") && unknown.stderr.contains("@REVISION"),
        "{}",
        unknown.stderr
    );
    let empty = add(folder.path(), &hub.endpoint, "hf:tests/other", &[]);
    assert!(
        empty
            .stderr
            .contains("has neither model.safetensors nor onnx/model.onnx"),
        "{}",
        empty.stderr
    );
    let wrong = add(folder.path(), &hub.endpoint, "hf:a/b/c", &[]);
    assert!(
        wrong.stderr.contains("expected hf:ORG/NAME"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn a_graph_of_the_hub_comes_with_the_file_of_its_values() {
    let folder = tempfile::tempdir().unwrap();
    let (graph, values) = onnx_zoo::perceptron(1.0).apart("model.onnx_data");
    let files = Files::from([
        ("onnx/model.onnx".to_owned(), graph),
        ("onnx/model.onnx_data".to_owned(), values),
    ]);
    let hub = Hub::start("large", files);
    let added = add(folder.path(), &hub.endpoint, "hf:tests/large", &[]);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let offline = add(folder.path(), &nowhere(), "hf:tests/large", &["--as", "b"]);
    assert_eq!(offline.code, Some(0), "{}", offline.stderr);
}

/// The graph of an architecture that has no kernels here, with the classes of its config.
#[test]
fn a_graph_of_the_hub_has_the_classes_of_its_config() {
    let folder = tempfile::tempdir().unwrap();
    let config = r#"{"model_type": "perceptron", "architectures": ["PForSequenceClassification"],
        "id2label": {"0": "even", "1": "odd", "2": "none"}}"#;
    let files = Files::from([
        ("config.json".to_owned(), config.into()),
        ("model.safetensors".to_owned(), "not asked for".into()),
        (
            "onnx/model.onnx".to_owned(),
            onnx_zoo::perceptron(1.0).bytes(),
        ),
    ]);
    let hub = Hub::start("perceptron", files);
    let added = add(
        folder.path(),
        &hub.endpoint,
        "hf:tests/perceptron@main",
        &["--as", "pulse"],
    );
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    assert!(
        !hub.requests()
            .iter()
            .any(|line| line.contains("safetensors"))
    );
    let zoo = Zoo::open(&folder.path().join("zoo")).unwrap();
    assert_eq!(
        zoo.app("pulse").unwrap().card.classes,
        ["even", "odd", "none"]
    );
}
