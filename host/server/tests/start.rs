//! Starts that fail: one line that names the field, the value and the way out.

#![allow(clippy::unwrap_used)]

use std::net::TcpListener;
use std::path::Path;

use switchyard_server::assembly::PoolPlan;
use switchyard_server::config::{Config, ServerConfig};
use switchyard_server::server::Listeners;

#[tokio::test]
async fn an_address_that_cannot_be_listened_on_is_named_with_the_way_out() {
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
            admin: address,
            ..ServerConfig::default()
        };
        let said = Listeners::bind(&config).await.err().unwrap().to_string();
        let start = format!("server.admin: {address}: {reason}");
        assert!(
            said.starts_with(&start) && said.ends_with(way_out),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1);
    }
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
        let start = format!("app {app}: /nowhere/models/zoo/{app}");
        let way_out = format!("`switchyard train {app}` makes one");
        assert!(
            line.starts_with(&start) && line.ends_with(&way_out),
            "{line}"
        );
    }
}
