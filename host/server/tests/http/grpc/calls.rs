//! Every call but inferences.

use std::sync::atomic::Ordering;

use prost::Message;
use serde_json::json;
use switchyard_protocol::grpc::messages::inference::*;
use switchyard_server::ingress::Limits;

use super::client::{Client, SERVICE, one_row};
use crate::http::test_bed::{ONE_ROW, TestServer};

async fn ask<M: Message + Default>(client: &mut Client, name: &str, request: &impl Message) -> M {
    client
        .call(&format!("{SERVICE}{name}"), request)
        .await
        .message()
}

#[tokio::test]
async fn the_server_says_whether_it_is_live_and_ready() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    for up in [true, false] {
        server.backend.alive.store(up, Ordering::Relaxed);
        server.backend.ready.store(up, Ordering::Relaxed);
        let live: ServerLiveResponse = ask(&mut client, "ServerLive", &ServerLiveRequest {}).await;
        let ready: ServerReadyResponse =
            ask(&mut client, "ServerReady", &ServerReadyRequest {}).await;
        assert_eq!((live.live, ready.ready), (up, up));
    }
}

#[tokio::test]
async fn an_app_or_a_variant_says_whether_it_is_ready() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    for (name, version, expected) in [
        ("linear", "", true),
        ("linear", "large", true),
        ("linear", "1", true),
        ("failing", "large", false),
        ("no-such-app", "", false),
        ("linear", "no-such-variant", false),
    ] {
        let request = ModelReadyRequest {
            name: name.to_owned(),
            version: version.to_owned(),
        };
        let answer: ModelReadyResponse = ask(&mut client, "ModelReady", &request).await;
        assert_eq!(answer.ready, expected, "{name} {version}");
    }
}

/// Facts about the server that both protocols state, from one source.
#[tokio::test]
async fn metadata_configuration_and_statistics_are_those_of_http() {
    let server = TestServer::with_defaults().await;
    server.post("/v2/models/linear/infer", ONE_ROW).await;
    let mut client = Client::of(&server).await;
    let about: ServerMetadataResponse =
        ask(&mut client, "ServerMetadata", &ServerMetadataRequest {}).await;
    let over_http = server.get("/v2").await.json();
    let own = json!({"name": about.name, "version": about.version, "extensions": about.extensions});
    assert_eq!(own, over_http);

    let request = ModelMetadataRequest {
        name: "linear".to_owned(),
        version: String::new(),
    };
    let app: ModelMetadataResponse = ask(&mut client, "ModelMetadata", &request).await;
    let tensors = |tensors: &[model_metadata_response::TensorMetadata]| {
        let tensors = tensors.iter().map(|tensor| {
            json!({"name": tensor.name, "datatype": tensor.datatype, "shape": tensor.shape})
        });
        tensors.collect::<Vec<_>>()
    };
    let own = json!({
        "name": app.name,
        "versions": app.versions,
        "platform": app.platform,
        "inputs": tensors(&app.inputs),
        "outputs": tensors(&app.outputs),
    });
    assert_eq!(own, server.get("/v2/models/linear").await.json());

    let request = ModelConfigRequest {
        name: "linear".to_owned(),
        version: String::new(),
    };
    let answer: ModelConfigResponse = ask(&mut client, "ModelConfig", &request).await;
    let config = answer.config.unwrap();
    let over_http = server.get("/v2/models/linear/config").await.json();
    assert_eq!(over_http["max_batch_size"], config.max_batch_size);
    assert!(config.dynamic_batching.is_some());
    let input = &config.input[0];
    assert_eq!(
        over_http["input"][0]["data_type"],
        input.data_type().as_str_name()
    );
    assert_eq!(over_http["input"][0]["dims"], json!(input.dims));
    assert_eq!(over_http["output"][1]["name"], config.output[1].name);
}

#[tokio::test]
async fn unknown_names_are_refused_with_the_text_of_http() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let request = ModelMetadataRequest {
        name: "no-such-app".to_owned(),
        version: String::new(),
    };
    let over_http = server.get("/v2/models/no-such-app").await.error();
    for call in ["ModelMetadata", "ModelConfig", "ModelStatistics"] {
        let ended = client.call(&format!("{SERVICE}{call}"), &request).await;
        assert_eq!(ended.failure(), (5, &*over_http));
    }
    let request = ModelMetadataRequest {
        name: "linear".to_owned(),
        version: "no-such-variant".to_owned(),
    };
    let over_http = server
        .get("/v2/models/linear/versions/no-such-variant")
        .await
        .error();
    let ended = client
        .call(&format!("{SERVICE}ModelMetadata"), &request)
        .await;
    assert_eq!(ended.failure(), (5, &*over_http));
}

#[tokio::test]
async fn the_repository_is_listed_loaded_and_unloaded() {
    let limits = Limits {
        model_control: true,
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut client = Client::of(&server).await;
    let index = |ready| RepositoryIndexRequest {
        ready,
        ..RepositoryIndexRequest::default()
    };
    let all: RepositoryIndexResponse = ask(&mut client, "RepositoryIndex", &index(false)).await;
    let ready: RepositoryIndexResponse = ask(&mut client, "RepositoryIndex", &index(true)).await;
    assert_eq!((all.models.len(), ready.models.len()), (8, 7));
    let states = all.models.iter().map(|model| &*model.state);
    assert_eq!(states.filter(|state| *state == "UNAVAILABLE").count(), 1);

    let unload = RepositoryModelUnloadRequest {
        model_name: "linear".to_owned(),
        parameters: [(
            "unload_dependents".to_owned(),
            ModelRepositoryParameter {
                parameter_choice: Some(model_repository_parameter::ParameterChoice::BoolParam(
                    false,
                )),
            },
        )]
        .into(),
        ..RepositoryModelUnloadRequest::default()
    };
    let _: RepositoryModelUnloadResponse = ask(&mut client, "RepositoryModelUnload", &unload).await;
    let ended = client
        .call(&format!("{SERVICE}ModelInfer"), &one_row("linear"))
        .await;
    assert_eq!(ended.failure(), (14, "not ready: it is unloaded"));
    let load = RepositoryModelLoadRequest {
        model_name: "linear".to_owned(),
        ..RepositoryModelLoadRequest::default()
    };
    let _: RepositoryModelLoadResponse = ask(&mut client, "RepositoryModelLoad", &load).await;
    client.infer(&one_row("linear")).await;

    let path = format!("{SERVICE}RepositoryModelLoad");
    let config = RepositoryModelLoadRequest {
        parameters: [("config".to_owned(), ModelRepositoryParameter::default())].into(),
        ..load.clone()
    };
    let ended = client.call(&path, &config).await;
    assert_eq!(ended.code, 3);
    assert!(
        ended.text.starts_with("parameters.config: not supported"),
        "{}",
        ended.text
    );
    let unknown = RepositoryModelLoadRequest {
        model_name: "no-such-app".to_owned(),
        ..RepositoryModelLoadRequest::default()
    };
    assert_eq!(client.call(&path, &unknown).await.code, 5);
    let failing = RepositoryModelLoadRequest {
        model_name: "failing".to_owned(),
        ..RepositoryModelLoadRequest::default()
    };
    let ended = client.call(&path, &failing).await;
    assert_eq!(ended.failure(), (13, "failed: its weights are cut off"));
}

#[tokio::test]
async fn without_model_control_and_from_web_pages_nothing_is_loaded() {
    let load = RepositoryModelLoadRequest {
        model_name: "linear".to_owned(),
        ..RepositoryModelLoadRequest::default()
    };
    let path = format!("{SERVICE}RepositoryModelLoad");
    let server = TestServer::with_defaults().await;
    let ended = Client::of(&server).await.call(&path, &load).await;
    assert_eq!(ended.code, 7);
    assert!(
        ended.text.contains("`model_control = true`"),
        "{}",
        ended.text
    );

    let limits = Limits {
        model_control: true,
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let body = super::client::frame(&load);
    let headers = [("origin", "http://evil.example")];
    let ended = Client::of(&server)
        .await
        .call_with(&path, &headers, body)
        .await;
    assert_eq!(ended.code, 7);
    assert!(ended.text.starts_with("Origin: "), "{}", ended.text);
}
