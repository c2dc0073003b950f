use std::fmt::Write;

use super::bench::{LINEAR, ONE_ROW, Server};

const INFER: &str = "/v2/models/linear/infer";

/// A request and what is wrong with it.
struct Wrong {
    method: &'static str,
    path: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
}

const fn infer(body: &'static str) -> Wrong {
    Wrong {
        method: "POST",
        path: INFER,
        headers: &[],
        body,
    }
}

const fn framed(json_length: &'static [(&'static str, &'static str)], body: &'static str) -> Wrong {
    Wrong {
        headers: json_length,
        ..infer(body)
    }
}

const fn at(method: &'static str, path: &'static str) -> Wrong {
    Wrong {
        method,
        path,
        headers: &[],
        body: ONE_ROW,
    }
}

const WRONG: &[(&str, Wrong)] = &[
    ("nothing at all", infer("")),
    ("not JSON", infer("ecg=1")),
    ("cut JSON", infer(r#"{"inputs":[{"name":"x","shape":[1,3"#)),
    ("not an object", infer("[1,2,3]")),
    ("no inputs", infer("{}")),
    (
        "wrong shape",
        infer(r#"{"inputs":[{"name":"x","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}]}"#),
    ),
    (
        "too few elements",
        infer(r#"{"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2]}]}"#),
    ),
    (
        "too many elements",
        infer(
            r#"{"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[[1,2,3],[4,5,6]]}]}"#,
        ),
    ),
    (
        "too many rows",
        infer(r#"{"inputs":[{"name":"x","shape":[9,3],"datatype":"FP32","data":[]}]}"#),
    ),
    (
        "negative dimension",
        infer(r#"{"inputs":[{"name":"x","shape":[-1,3],"datatype":"FP32","data":[]}]}"#),
    ),
    (
        "wrong datatype",
        infer(r#"{"inputs":[{"name":"x","shape":[1,3],"datatype":"INT64","data":[1,2,3]}]}"#),
    ),
    (
        "wrong element",
        infer(r#"{"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[1,"two",3]}]}"#),
    ),
    (
        "wrong name",
        infer(r#"{"inputs":[{"name":"ecg","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]}"#),
    ),
    (
        "wrong output",
        infer(
            r#"{"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]}],"outputs":[{"name":"z"}]}"#,
        ),
    ),
    (
        "wrong timeout",
        infer(
            r#"{"parameters":{"timeout":"soon"},"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]}"#,
        ),
    ),
    (
        "truncated binary",
        framed(
            &[("inference-header-content-length", "94")],
            "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,3],\"datatype\":\"FP32\",\"parameters\":{\"binary_data_size\":12}}]}1234567",
        ),
    ),
    (
        "JSON length beyond the body",
        framed(&[("inference-header-content-length", "500")], "{}"),
    ),
    (
        "JSON length that is no number",
        framed(&[("inference-header-content-length", "all")], "{}"),
    ),
    (
        "raw body of a wrong length",
        framed(&[("inference-header-content-length", "0")], "1234567"),
    ),
    ("not gzip", framed(&[("content-encoding", "gzip")], ONE_ROW)),
    (
        "unknown encoding",
        framed(&[("content-encoding", "br")], ONE_ROW),
    ),
    ("unknown app", at("POST", "/v2/models/liver/infer")),
    (
        "unknown variant",
        at("POST", "/v2/models/linear/versions/huge/infer"),
    ),
    ("unknown path", at("GET", "/v2/model/linear")),
    ("wrong method on infer", at("GET", INFER)),
    (
        "wrong method on metadata",
        at("DELETE", "/v2/models/linear"),
    ),
    (
        "load with weights",
        Wrong {
            body: r#"{"parameters": {"file:1/model.bin": "AA=="}}"#,
            ..at("POST", "/v2/repository/models/linear/load")
        },
    ),
    (
        "unload with a parameter of the wrong type",
        Wrong {
            body: r#"{"parameters": {"unload_dependents": "yes"}}"#,
            ..at("POST", "/v2/repository/models/linear/unload")
        },
    ),
    (
        "load that fails",
        at("POST", "/v2/repository/models/failing/load"),
    ),
    (
        "load of an unknown app",
        at("POST", "/v2/repository/models/liver/load"),
    ),
];

/// Every class of wrong request: its status, and the message that names the field.
#[tokio::test]
async fn wrong_requests() {
    let server = Server::with_defaults().await;
    let mut table = String::new();
    for (name, wrong) in WRONG {
        let request = super::bench::request(wrong.method, wrong.path, wrong.headers, wrong.body);
        let answer = server.send(request).await;
        writeln!(
            table,
            "{name}\n  {} {}",
            answer.status.as_u16(),
            answer.error()
        )
        .unwrap();
    }
    insta::assert_snapshot!(table);
    assert!(server.bench.last_call.lock().unwrap().is_none());
    // A load that fails was tried; everything else went no further than the ingress.
    let refused = server.bench.refused.lock().unwrap().len();
    assert_eq!(refused, WRONG.len() - 1);
}

#[tokio::test]
async fn a_405_says_what_is_allowed() {
    let server = Server::with_defaults().await;
    let answer = server.get(INFER).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("allow")),
        (405, Some("POST"))
    );
    let answer = server.post("/v2", "").await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("allow")),
        (405, Some("GET, HEAD"))
    );
}

#[tokio::test]
async fn the_backends_failures_have_their_statuses() {
    let server = Server::with_defaults().await;
    for (priority, status, says) in [
        (1, 429, "queue full: pending of pool \"main\" (1024)"),
        (2, 503, "not ready: no worker is up"),
        (3, 503, "refused by the policy: no variant in time"),
        (
            4,
            504,
            "dropped: its deadline passed after 1500 us in the queue",
        ),
        (5, 500, "failed: worker cpu0 stopped"),
    ] {
        let body = ONE_ROW.replacen(
            '{',
            &format!(r#"{{"parameters":{{"priority":{priority}}},"#),
            1,
        );
        let answer = server.post("/v2/models/failing/infer", body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.error().as_str()),
            (status, says)
        );
        let retry_after = answer.header("retry-after");
        assert_eq!(retry_after, (status == 429).then_some("2"));
    }
    assert!(server.bench.refused.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_backend_is_told_what_was_refused() {
    let server = Server::with_defaults().await;
    server.post(INFER, "{}").await;
    server.get("/v2/nothing").await;
    let refused = server.bench.refused.lock().unwrap().clone();
    assert_eq!(refused, [(Some(LINEAR), 400), (None, 404)]);
}
