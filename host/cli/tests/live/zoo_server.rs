//! A server of the apps of a zoo in a folder of its own, without a policy: the fallback decides.

use std::net::SocketAddr;
use std::path::Path;

use switchyard_server::config::Config;
use switchyard_server::server::{Listeners, ServeError, Server};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::client::Client;

/// A running server.
pub(crate) struct ZooServer {
    http: SocketAddr,
    zoo: TempDir,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), ServeError>>,
}

fn config(dir: &Path, apps: &[&str]) -> Config {
    let dir = dir.display();
    let named = apps
        .iter()
        .map(|app| format!("[[app]]\nname = \"{app}\"\nzoo = \"{dir}\"\n"));
    let text = format!(
        r#"
[server]
http = "127.0.0.1:0"
admin = "127.0.0.1:0"
{}
[[worker]]
name = "w"
memory_mb = 64
[[pool]]
name = "main"
apps = {apps:?}
workers = ["w"]
policy = "none"
[policies]
dir = "{dir}"
[profile]
dir = "{dir}"
measure_s = 1
"#,
        named.collect::<String>()
    );
    Config::parse(&text, Path::new("test.toml"), Path::new("")).unwrap()
}

impl ZooServer {
    pub(crate) async fn start(zoo: TempDir, apps: &[&str]) -> Self {
        let config = config(zoo.path(), apps);
        let listeners = Listeners::bind(&config.server).await.unwrap();
        let starting = tokio::task::spawn_blocking(move || Server::start(config));
        let server = starting.await.unwrap().unwrap();
        let http = listeners.http_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve(listeners, async {
            let _ = stopped.await;
        }));
        Self {
            http,
            zoo,
            stop,
            serving,
        }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.http).await
    }

    /// Shuts down; the zoo and the profile in it are left.
    pub(crate) async fn stop(self) -> TempDir {
        self.stop.send(()).unwrap();
        self.serving.await.unwrap().unwrap();
        self.zoo
    }
}
