//! Ports at paths: who may connect, whose socket is replaced, and whose file is kept.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tempfile::TempDir;

use super::binary::{Process, serve_file, switchyard};
use super::ctl::{TOKEN, operators, put, refused, said};
use super::fixture::{APP, beat, fixture, policy};
use super::test_bed::Setup;

/// The ports of a test's server.
const PORTS: [&str; 3] = ["http", "grpc", "admin"];

/// A folder of its own, with policy and configuration of a server whose ports are relative paths in it.
fn furnished(setup: &Setup) -> TempDir {
    let folder = TempDir::new().unwrap();
    setup.furnish(folder.path());
    let text = setup.toml(fixture(), folder.path());
    let text = text.replace("http = \"127.0.0.1:0\"", "http = \"unix:http\"");
    let text = text.replace(
        "admin = \"127.0.0.1:0\"",
        "grpc = \"unix:grpc\"\nadmin = \"unix:admin\"",
    );
    fs::write(folder.path().join("switchyard.toml"), text).unwrap();
    folder
}

fn started(folder: TempDir) -> Process {
    let process = Process::start(&folder.path().join("switchyard.toml"), folder);
    process.wait_for_line("listening");
    process.wait_for_line("policy switched");
    process
}

/// The answer to one request, head and body.
fn asked(socket: &Path, head: &str, body: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    let length = body.len();
    let request = format!("{head}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn ctl(socket: &Path, arguments: &[&str]) -> Output {
    let mut command = switchyard();
    let admin = format!("unix:{}", socket.display());
    command.args(["ctl", "--admin", &admin]).args(arguments);
    command.env("SWITCHYARD_TOKEN", TOKEN).output().unwrap()
}

/// Readiness over gRPC.
async fn grpc_is_ready(socket: &Path) -> bool {
    let stream = tokio::net::UnixStream::connect(socket).await.unwrap();
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let request = Request::post("http://any/inference.GRPCInferenceService/ServerReady")
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    // A message of no bytes: no field is set.
    let body = Full::new(bytes::Bytes::from_static(&[0; 5]));
    let answer = sender.send_request(request.body(body).unwrap()).await;
    let answer = answer.unwrap().into_body().collect().await.unwrap();
    let status = answer.trailers().unwrap()["grpc-status"].clone();
    // Field 1, `ready`, is true.
    status == "0" && answer.to_bytes().ends_with(&[8, 1])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_port_may_be_a_path_and_a_clean_stop_removes_it() {
    let (_operators, setup) = operators();
    let folder = furnished(&setup);
    let sockets = PORTS.map(|port| folder.path().join(port));
    let [http, grpc, admin] = sockets.clone();
    let mut process = started(folder);
    for socket in &sockets {
        let metadata = fs::metadata(socket).unwrap();
        assert!(metadata.file_type().is_socket());
        assert_eq!(metadata.mode() & 0o777, 0o660);
    }
    let listening = process.wait_for_line("listening");
    let shown = format!("unix:{}", http.display());
    assert_eq!(listening["http"], Value::from(shown));

    // The host of a client of a path may be any.
    let infer = format!("POST /v2/models/{APP}/infer HTTP/1.1\r\nHost: any");
    let answer = asked(&http, &infer, &beat(0));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("fcfs@"), "{answer}");
    assert!(grpc_is_ready(&grpc).await);

    // Reads of the admin port need no token, orders do, and browsers behind a forwarded port are told apart.
    let metrics = asked(&admin, "GET /metrics HTTP/1.1\r\nHost: localhost", "");
    assert!(metrics.starts_with("HTTP/1.1 200"), "{metrics}");
    let foreign = asked(&admin, "GET /metrics HTTP/1.1\r\nHost: evil.example", "");
    assert!(foreign.starts_with("HTTP/1.1 421"), "{foreign}");
    let order = "POST /admin/v1/pools/main/policy/rollback HTTP/1.1\r\nHost: localhost\r\n\
                 Content-Type: application/json";
    let order = asked(&admin, order, "{}");
    assert!(order.starts_with("HTTP/1.1 401"), "{order}");
    let status = said(&ctl(&admin, &["status"]));
    assert!(status.contains("pool main: fcfs@"), "{status}");
    put(&process.policy(), "next", &policy("stability"), None);
    let swapped = said(&ctl(&admin, &["swap", "next"]));
    assert!(swapped.contains("swapped: stability@"), "{swapped}");

    process.terminate();
    assert!(process.ended().success(), "{:?}", process.messages());
    for socket in sockets {
        assert!(!socket.exists(), "{}", socket.display());
    }
    let gone = refused(&ctl(&admin, &["status"]));
    assert!(gone.contains("no server answers on unix:"), "{gone}");
}

#[test]
fn the_socket_of_a_killed_server_is_replaced_and_that_of_a_running_one_kept() {
    let folder = furnished(&Setup::new("main").policy(policy("fcfs")));
    let http = folder.path().join("http");
    let file = folder.path().join("switchyard.toml");
    let mut killed = started(folder);
    let before = fs::metadata(&http).unwrap().ino();
    let second = serve_file(&file);
    let message = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(2), "{message}");
    let expected = format!(
        "server.http: unix:{}: a server answers there; stop that server, or choose another path with --http",
        http.display()
    );
    assert!(message.contains(&expected), "{message}");
    assert_eq!(fs::metadata(&http).unwrap().ino(), before);

    killed.kill();
    assert!(UnixStream::connect(&http).is_err());
    let mut process = started(killed.into_folder());
    let answer = asked(&http, "GET /v2/health/ready HTTP/1.1\r\nHost: a", "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    // A path that another program has taken over is its own.
    fs::remove_file(&http).unwrap();
    let _other = UnixListener::bind(&http).unwrap();
    process.terminate();
    assert!(process.ended().success(), "{:?}", process.messages());
    assert!(UnixStream::connect(&http).is_ok());
}

/// The errors of `serve` and of `serve --check`.
fn mistakes(file: &Path) -> [String; 2] {
    [&[][..], &["--check"]].map(|more| {
        let mut command: Command = switchyard();
        command.args(["serve", "--config"]).arg(file).args(more);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    })
}

#[test]
fn a_path_that_is_no_socket_is_refused_and_kept() {
    let folder = furnished(&Setup::new("main").policy(policy("fcfs")));
    let at = |name: &str| -> PathBuf { folder.path().join(name) };
    fs::write(at("http"), "notes").unwrap();
    for said in mistakes(&at("switchyard.toml")) {
        assert!(said.contains("server.http: unix:"), "{said}");
        assert!(
            said.contains("/http: is there and is not a socket; choose another path with --http"),
            "{said}"
        );
    }
    assert_eq!(fs::read_to_string(at("http")).unwrap(), "notes");
    // None of the other ports is left.
    assert!(!at("grpc").exists() && !at("admin").exists());
}
