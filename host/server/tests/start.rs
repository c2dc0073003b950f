//! Starts that fail: one line that names the field, the value and the way out.

#![allow(clippy::unwrap_used)]

use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use switchyard_server::assembly::PoolPlan;
use switchyard_server::config::{Config, ServerConfig};
use switchyard_server::server::{ConfigSource, Listeners, Server};
use switchyard_server::sockets::ListenAddress;

#[test]
fn an_address_that_cannot_be_listened_on_is_named_with_the_way_out() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap();
    // 192.0.2.0/24 is for documentation: no machine has such an address.
    for (address, reason, way_out) in [
        (
            taken,
            "Address already in use",
            "choose another port with --admin",
        ),
        (
            "192.0.2.1:0".parse().unwrap(),
            "Cannot assign requested address",
            "such as 127.0.0.1:0",
        ),
    ] {
        let config = ServerConfig {
            http: "127.0.0.1:0".parse().unwrap(),
            admin: ListenAddress::Tcp(address),
            ..ServerConfig::default()
        };
        let said = Listeners::bind(&config).err().unwrap().to_string();
        let start = format!("server.admin: {address}: {reason}");
        assert!(
            said.starts_with(&start) && said.ends_with(way_out),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1);
    }
    let config = ServerConfig {
        http: "127.0.0.1:0".parse().unwrap(),
        grpc: Some(taken.into()),
        ..ServerConfig::default()
    };
    let said = Listeners::bind(&config).err().unwrap().to_string();
    let start = format!("server.grpc: {taken}: Address already in use");
    assert!(
        said.starts_with(&start) && said.ends_with("choose another port with --grpc"),
        "{said}"
    );
}

#[test]
fn every_app_that_is_not_in_its_zoo_is_named() {
    let text = r#"
        app = [{ name = "heart" }, { name = "fall" }]
        worker = [{ name = "cpu-a" }, { name = "cpu-b" }]
        pool = [
            { name = "one", apps = ["heart"], workers = ["cpu-a"], policy = "fcfs" },
            { name = "two", apps = ["fall"], workers = ["cpu-b"], policy = "fcfs" },
        ]
    "#;
    let config = Config::parse(text, Path::new("t.toml"), Path::new("/nowhere")).unwrap();
    let said = PoolPlan::all(&config).err().unwrap().to_string();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    for (line, app) in lines.iter().zip(["heart", "fall"]) {
        let start = format!("t.toml:2: app {app}: /nowhere/models/zoo/{app}");
        let way_out =
            format!("`--zoo`, or `zoo` in [[app]], is the folder that has the folder {app}");
        assert!(
            line.starts_with(&start) && line.ends_with(&way_out),
            "{line}"
        );
    }
}

/// NaN stays NaN on CPUs only.
#[test]
fn numbers_that_are_not_finite_are_no_work_for_a_gpu() {
    let zoo = tempfile::tempdir().unwrap();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/zoo/heart");
    let heart = zoo.path().join("heart");
    std::fs::create_dir_all(heart.join("cnn-small")).unwrap();
    for file in ["model.toml", "weights.safetensors"] {
        let file = Path::new("cnn-small").join(file);
        std::fs::copy(shipped.join(&file), heart.join(&file)).unwrap();
    }
    let card = std::fs::read_to_string(shipped.join("app.toml")).unwrap();
    let with_evidence = format!("non_finite = true\n{card}");
    let (without, _) = with_evidence.split_once("[sneakpeek]").unwrap();
    let start = |card: &str, device: &str| {
        std::fs::write(heart.join("app.toml"), card).unwrap();
        let text = format!(
            r#"
            app = [{{ name = "heart", zoo = {:?} }}]
            worker = [{{ name = "w" }}]
            pool = [{{ name = "one", apps = ["heart"], workers = ["w"], policy = "fcfs" }}]
            "#,
            zoo.path()
        );
        let config = Config::parse(&text, Path::new("t.toml"), Path::new("/nowhere"));
        let mut config = config.unwrap();
        // A program without CUDA refuses such a worker by itself.
        config.workers[0].device = device.parse().unwrap();
        PoolPlan::all(&config).map(drop).map_err(|e| e.to_string())
    };
    assert_eq!(start(without, "cpu"), Ok(()));
    let gpu = start(without, "cuda:0").unwrap_err();
    assert!(
        gpu.contains("app heart, non_finite: worker w has a GPU"),
        "{gpu}"
    );
    let evidence = start(&with_evidence, "cpu").unwrap_err();
    assert!(
        evidence.contains("field `non_finite`: true, but"),
        "{evidence}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_that_changes_during_the_start_is_read_again() {
    let following = tokio::task::spawn_blocking(|| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("switchyard.toml");
        let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/paper");
        let text = format!(
            r#"
            app = [{{ name = "alexnet" }}]
            worker = [{{ name = "w" }}]
            pool = [{{ name = "main", apps = ["alexnet"], workers = ["w"], policy = "edf-fallback" }}]
            policies = {{ dir = {:?} }}
            profile = {{ file = {:?}, stand_in = true }}
            "#,
            folder.path(),
            paper.join("mael/profile.json"),
        );
        for (is_changed, patience) in [
            (false, Duration::from_millis(500)),
            (true, Duration::from_secs(60)),
        ] {
            std::fs::write(&file, &text).unwrap();
            let mut server = Server::start(Config::read(&file).unwrap()).unwrap();
            if is_changed {
                std::fs::write(&file, format!("{text}# changed\n")).unwrap();
            }
            let (tell, read) = mpsc::channel();
            let again = file.clone();
            server.follow(ConfigSource {
                file: Some(file.clone()),
                read: Box::new(move || {
                    let _ = tell.send(());
                    Config::read(&again)
                }),
            });
            assert_eq!(read.recv_timeout(patience).is_ok(), is_changed);
        }
    });
    following.await.unwrap();
}
