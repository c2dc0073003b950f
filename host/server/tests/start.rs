//! Starts that fail: one line that names the field, the value and the way out.

#![allow(clippy::unwrap_used)]

use std::net::TcpListener;

use switchyard_server::config::ServerConfig;
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
