use std::fmt::Write;

use super::test_bed::{LINEAR, ONE_ROW, TestServer};
use switchyard_server::ingress::Limits;

const INFER: &str = "/v2/models/linear/infer";

/// A request that the HTTP port must refuse, or that must fail.
struct WrongRequest {
    method: &'static str,
    path: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
}

const fn infer(body: &'static str) -> WrongRequest {
    WrongRequest {
        method: "POST",
        path: INFER,
        headers: &[],
        body,
    }
}

const fn framed(
    json_length: &'static [(&'static str, &'static str)],
    body: &'static str,
) -> WrongRequest {
    WrongRequest {
        headers: json_length,
        ..infer(body)
    }
}

const fn at(method: &'static str, path: &'static str) -> WrongRequest {
    WrongRequest {
        method,
        path,
        headers: &[],
        body: ONE_ROW,
    }
}

const WRONG: &[(&str, WrongRequest)] = &[
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
        "dimension that is not whole",
        infer(r#"{"inputs":[{"name":"x","shape":[1,2.5],"datatype":"FP32","data":[1,2,3]}]}"#),
    ),
    (
        "timeout of 2^63",
        infer(
            r#"{"parameters":{"timeout":9223372036854775808},"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]}"#,
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
        "JSON length that is not a number",
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
        "index with an array",
        WrongRequest {
            body: "[]",
            ..at("POST", "/v2/repository/index")
        },
    ),
    (
        "load with an array",
        WrongRequest {
            body: "[]",
            ..at("POST", "/v2/repository/models/linear/load")
        },
    ),
    (
        "load with weights",
        WrongRequest {
            body: r#"{"parameters": {"file:1/model.bin": "AA=="}}"#,
            ..at("POST", "/v2/repository/models/linear/load")
        },
    ),
    (
        "unload with a parameter of the wrong type",
        WrongRequest {
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

/// Every class of wrong request: its status, and its message, which names the field.
#[tokio::test]
async fn wrong_requests() {
    let limits = Limits {
        model_control: true,
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut table = String::new();
    for (name, wrong) in WRONG {
        let request = super::test_bed::request(wrong.method, wrong.path, wrong.headers, wrong.body);
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
    assert!(server.backend.last_call.lock().unwrap().is_none());
    // The backend tried the load that fails; the HTTP port refused all the others.
    let refused = server.backend.refused.lock().unwrap().len();
    assert_eq!(refused, WRONG.len() - 1);
}

#[tokio::test]
async fn a_405_lists_the_allowed_methods() {
    let server = TestServer::with_defaults().await;
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
async fn failures_of_the_backend_have_their_statuses() {
    let server = TestServer::with_defaults().await;
    for (priority, status, message) in [
        (1, 429, "queue full: pending of pool \"main\" (1024)"),
        (2, 503, "not ready: no worker is up"),
        (
            3,
            429,
            "refused by the policy: fcfs@2 rejected this request in window 7",
        ),
        (
            4,
            504,
            "dropped: no answer was possible before the deadline, after 1500 us in the queue",
        ),
        (5, 500, "failed: worker cpu0 stopped"),
        (
            6,
            429,
            "overloaded: the requests ahead leave no time to answer before the deadline",
        ),
        (
            7,
            504,
            "deadline too short: even the fastest variant takes longer on an idle worker; allow \
             more time with the parameter timeout, in microseconds",
        ),
        (
            8,
            429,
            "above share: the app asks for more than its fair share of the workers, and its queue \
             is full; ask less often, or add workers",
        ),
    ] {
        let body = ONE_ROW.replacen(
            '{',
            &format!(r#"{{"parameters":{{"priority":{priority}}},"#),
            1,
        );
        let answer = server.post("/v2/models/failing/infer", body).await;
        assert_eq!(
            (
                answer.status.as_u16(),
                answer.json()["error"].as_str().unwrap()
            ),
            (status, message)
        );
        let retry_after = answer.header("retry-after");
        assert_eq!(retry_after, [1, 6, 8].contains(&priority).then_some("2"));
    }
    assert!(server.backend.refused.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_backend_counts_refused_requests() {
    let server = TestServer::with_defaults().await;
    server.post(INFER, "{}").await;
    server.get("/v2/nothing").await;
    let refused = server.backend.refused.lock().unwrap().clone();
    assert_eq!(refused, [(Some(LINEAR), 400), (None, 404)]);
}

#[tokio::test]
async fn a_refusal_by_the_policy_names_the_request_and_its_window() {
    let server = TestServer::with_defaults().await;
    let parameters = r#"{"id":"r-42","parameters":{"priority":3},"#;
    let body = ONE_ROW.replacen('{', parameters, 1);
    let answer = server.post("/v2/models/failing/infer", body).await;
    assert_eq!(answer.status, 429);
    let said = answer.json();
    assert_eq!(said["id"], "r-42");
    assert_eq!(said["window"], 7);
    assert_eq!(said["policy"], "fcfs@2");
    assert_eq!(said["reason"], "rejected_by_policy");
}

/// NaN and infinity, which JSON cannot carry.
#[tokio::test]
async fn binary_numbers_that_are_not_finite_are_refused() {
    let server = TestServer::with_defaults().await;
    for number in [f32::NAN, f32::NEG_INFINITY] {
        let body = [1.0, 2.0, number].map(f32::to_le_bytes).concat();
        let headers = [("inference-header-content-length", "0")];
        let answer = server.post_with(INFER, &headers, body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.error().as_str()),
            (
                400,
                "body: \"x\": element 2: expected a finite FP32 number, got NaN or infinity"
            )
        );
    }
}

#[tokio::test]
async fn a_whole_dimension_with_a_point_is_accepted() {
    let server = TestServer::with_defaults().await;
    let body = ONE_ROW.replace("[1,3]", "[1.0,3.0]");
    assert_eq!(server.post(INFER, body).await.status, 200);
}
