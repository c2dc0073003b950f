use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use switchyard_server::ingress::{ENDPOINTS, Limits};

use super::test_bed::{ONE_ROW, TestServer};

fn document() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    serde_norway::from_str(&text).unwrap()
}

/// Method and path of every described operation of the clients' port.
fn operations(document: &Value) -> BTreeSet<(String, String)> {
    let mut operations = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        // The admin port's.
        if !item["servers"].is_null() {
            continue;
        }
        for method in item.as_object().unwrap().keys() {
            if method != "parameters" {
                operations.insert((method.to_uppercase(), path.clone()));
            }
        }
    }
    operations
}

#[test]
fn the_description_has_exactly_the_routed_endpoints() {
    let routed: BTreeSet<_> = ENDPOINTS
        .iter()
        .map(|endpoint| (endpoint.method.to_owned(), endpoint.path.to_owned()))
        .collect();
    assert_eq!(operations(&document()), routed);
}

/// Every described operation answers 200, and describes that status.
#[tokio::test]
async fn described_operations_are_served() {
    let document = document();
    let limits = Limits {
        model_control: true,
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    for (method, path) in operations(&document) {
        let real = path
            .replace("{app}", "linear")
            .replace("{variant}", "small");
        let body = if path.ends_with("/infer") {
            ONE_ROW
        } else {
            ""
        };
        let request = super::test_bed::request(&method, &real, &[], body);
        let answer = server.send(request).await;
        let operation = &document["paths"][&path][method.to_lowercase()];
        let status = answer.status.as_str();
        assert!(
            !operation["responses"][status].is_null(),
            "{method} {path}: {status}"
        );
        assert_eq!(status, "200", "{method} {path}");
    }
}

/// No token is asked for; loading is forbidden by default, and that is described.
#[tokio::test]
async fn operations_without_a_token_are_served_or_describe_why_not() {
    let document = document();
    let without: &Value = &document["security"][0];
    assert_eq!(without.as_object().unwrap().len(), 0);
    let server = TestServer::with_defaults().await;
    for (method, path) in operations(&document) {
        let real = path
            .replace("{app}", "linear")
            .replace("{variant}", "small");
        let request = super::test_bed::request(&method, &real, &[], "");
        let status = server.send(request).await.status.as_str().to_owned();
        let operation = &document["paths"][&path][method.to_lowercase()];
        assert!(operation["security"].is_null(), "{path}");
        let is_control = path.starts_with("/v2/repository/models/");
        assert_eq!(status == "403", is_control, "{method} {path}: {status}");
        assert_ne!(status, "401", "{method} {path}");
        let described = &operation["responses"][&status];
        assert!(!described.is_null(), "{method} {path}: {status}");
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk(document: &Value, value: &Value) {
        match value {
            Value::Object(object) => {
                if let Some(Value::String(reference)) = object.get("$ref") {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{reference}");
                }
                object.values().for_each(|value| walk(document, value));
            }
            Value::Array(array) => array.iter().for_each(|value| walk(document, value)),
            _ => {}
        }
    }
    let document = document();
    walk(&document, &document);
}

/// Answers have exactly the fields of their schemas.
#[tokio::test]
async fn answers_have_the_fields_their_schemas_describe() {
    let document = document();
    let server = TestServer::with_defaults().await;
    let answer = server.post("/v2/models/linear/infer", ONE_ROW).await.json();
    let metadata = server.get("/v2/models/linear").await.json();
    let config = server.get("/v2/models/linear/config").await.json();
    let stats = server.get("/v2/models/linear/stats").await.json();
    let index = server.post("/v2/repository/index", "").await.json();
    for (schema, value) in [
        ("ServerMetadata", &server.get("/v2").await.json()),
        ("AppMetadata", &metadata),
        ("TensorMetadata", &metadata["inputs"][0]),
        ("AppConfig", &config),
        ("AppStatistics", &stats),
        ("VariantStatistics", &stats["model_stats"][0]),
        ("RepositoryEntry", &index[0]),
        ("AnswerParameters", &answer["parameters"]),
    ] {
        let described = document["components"]["schemas"][schema]["properties"].as_object();
        let described: BTreeSet<_> = described.unwrap().keys().collect();
        let served: BTreeSet<_> = value.as_object().unwrap().keys().collect();
        assert_eq!(described, served, "{schema}");
    }
}

#[test]
fn the_limits_described_are_the_defaults() {
    let text = document()["info"]["description"]
        .as_str()
        .unwrap()
        .to_owned();
    let limits = Limits::default();
    for limit in [
        format!("{} MiB", limits.max_body_bytes >> 20),
        format!("{} KiB", limits.max_header_bytes >> 10),
        format!("{} s", limits.body_read_timeout.as_secs()),
        format!("{} s", limits.header_read_timeout.as_secs()),
        format!("{} connections", limits.max_connections),
        format!("{} MiB for the bodies", limits.request_memory_bytes >> 20),
        format!("{} bytes/s", limits.min_rate),
        format!("{} s from its first byte", limits.head_timeout.as_secs()),
        format!("{} s for an answer", limits.write_timeout.as_secs()),
    ] {
        assert!(text.contains(&limit), "{limit} is not in the description");
    }
}
