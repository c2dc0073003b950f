//! A server of the apps of a zoo in a folder of its own. Without a policy in the folder the fallback
//! decides.

use std::net::SocketAddr;
use std::path::Path;

use switchyard_server::config::Config;
use switchyard_server::server::{ConfigSource, Listeners, ServeError, Server};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::client::Client;

/// A running server.
pub(crate) struct ZooServer {
    http: SocketAddr,
    pub(crate) admin: SocketAddr,
    zoo: TempDir,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), ServeError>>,
}

/// Of the configuration, in the folder of the zoo.
const CONFIG: &str = "switchyard.toml";

/// Name of the policy, in the folder of the zoo.
pub(crate) const POLICY: &str = "policy.wasm";

/// The text of the configuration.
fn config(dir: &Path, apps: &[&str]) -> String {
    let dir = dir.display();
    let named = apps
        .iter()
        .map(|app| format!("[[app]]\nname = \"{app}\"\nzoo = \"{dir}\"\n"));
    format!(
        r#"
[server]
model_control = true
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
policy = "policy"
[policies]
dir = "{dir}"
[profile]
dir = "{dir}"
measure_s = 1
"#,
        named.collect::<String>()
    )
}

impl ZooServer {
    pub(crate) async fn start(zoo: TempDir, apps: &[&str]) -> Self {
        let file = zoo.path().join(CONFIG);
        let text = config(zoo.path(), apps);
        std::fs::write(&file, &text).unwrap();
        let config = Config::read(&file).unwrap();
        let listeners = Listeners::bind(&config.server).unwrap();
        let http = listeners.http_addr().unwrap().tcp().unwrap();
        let admin = listeners.admin_addr().unwrap().tcp().unwrap();
        // For commands that read it; the server keeps its free ports, as with --http and --admin.
        let found = format!("http = \"{http}\"");
        std::fs::write(&file, text.replace("http = \"127.0.0.1:0\"", &found)).unwrap();
        let ports = config.server.clone();
        let read = move || {
            let mut config = Config::read(&file)?;
            (config.server.http, config.server.admin) = (ports.http.clone(), ports.admin.clone());
            Ok(config)
        };
        let file = zoo.path().join(CONFIG);
        let starting = tokio::task::spawn_blocking(move || Server::start(config));
        let mut server = starting.await.unwrap().unwrap();
        server.follow(ConfigSource {
            file: Some(file),
            read: Box::new(read),
        });
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve(listeners, async {
            let _ = stopped.await;
        }));
        Self {
            http,
            admin,
            zoo,
            stop,
            serving,
        }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.http).await
    }

    /// The folder of the zoo.
    pub(crate) fn zoo(&self) -> &Path {
        self.zoo.path()
    }

    /// Writes another configuration.
    pub(crate) fn serve_apps(&self, apps: &[&str]) {
        self.configure(&config(self.zoo(), apps));
    }

    /// Writes the text of another configuration, as editors do.
    pub(crate) fn configure(&self, text: &str) {
        let next = self.zoo().join("next.tmp");
        std::fs::write(&next, text).unwrap();
        std::fs::rename(next, self.zoo().join(CONFIG)).unwrap();
    }

    /// Shuts down; the zoo and the profile in it are left.
    pub(crate) async fn stop(self) -> TempDir {
        self.stop.send(()).unwrap();
        self.serving.await.unwrap().unwrap();
        self.zoo
    }
}
