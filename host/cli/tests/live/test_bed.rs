//! A server in this process, with a policy file that tests replace.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use switchyard_server::admin::{PoolReport, ServerStatus};
use switchyard_server::config::Config;
use switchyard_server::policies::{PoliciesHandle, Swap};
use switchyard_server::server::{Listeners, ServeError, Server};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::client::{Client, get};
use super::fixture::{APP, Fixture, fixture};
use super::logs;
use super::metrics::Metrics;

/// Longest wait for an event on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Label of the native fallback.
pub(crate) const FALLBACK: &str = "edf-fallback@";

/// Configuration of a server. The name of its pool distinguishes its log lines from those of other
/// tests.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) pool: &'static str,
    component: Option<Vec<u8>>,
    zoo: Option<PathBuf>,
    server: String,
    app: String,
    worker: String,
    lines: String,
    policies: String,
    profile: String,
}

/// A running server.
pub(crate) struct TestBed {
    pub(crate) http: SocketAddr,
    pub(crate) admin: SocketAddr,
    /// The component that is followed.
    pub(crate) policy: PathBuf,
    /// Asks for swaps from inside the process.
    pub(crate) policies: PoliciesHandle,
    pool: &'static str,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), ServeError>>,
    _folder: TempDir,
}

// === impl Setup ===

impl Setup {
    pub(crate) fn new(pool: &'static str) -> Self {
        Self {
            pool,
            component: None,
            zoo: None,
            server: String::new(),
            app: String::new(),
            worker: String::new(),
            lines: String::new(),
            policies: String::new(),
            profile: String::new(),
        }
    }

    /// The component that is there at the start.
    pub(crate) fn policy(mut self, component: Vec<u8>) -> Self {
        self.component = Some(component);
        self
    }

    /// Lines for `[server]`.
    pub(crate) fn server(mut self, lines: &str) -> Self {
        self.server = lines.to_owned();
        self
    }

    /// Lines for `[[app]]`.
    pub(crate) fn app(mut self, lines: &str) -> Self {
        self.app = lines.to_owned();
        self
    }

    /// Another zoo than the one that tests share.
    pub(crate) fn zoo(mut self, zoo: &Path) -> Self {
        self.zoo = Some(zoo.to_path_buf());
        self
    }

    /// Lines for each `[[worker]]`.
    pub(crate) fn worker(mut self, lines: &str) -> Self {
        self.worker = lines.to_owned();
        self
    }

    /// Lines for `[[pool]]`.
    pub(crate) fn lines(mut self, lines: &str) -> Self {
        self.lines = lines.to_owned();
        self
    }

    /// Lines for `[policies]`.
    pub(crate) fn policies(mut self, lines: &str) -> Self {
        self.policies = lines.to_owned();
        self
    }

    /// Lines for `[profile]`.
    pub(crate) fn profile(mut self, lines: &str) -> Self {
        self.profile = lines.to_owned();
        self
    }

    /// The configuration as text, policies in `folder`.
    pub(crate) fn toml(&self, fixture: &Fixture, folder: &Path) -> String {
        let Self { pool, .. } = self;
        let zoo = self.zoo.as_ref().unwrap_or(&fixture.zoo).display();
        let profiles = fixture.profiles.display();
        let folder = folder.display();
        // A test machine is busy: a policy must not exceed its budget by accident.
        let budget = if self.lines.contains("window_budget_ms") {
            ""
        } else {
            "window_budget_ms = 500"
        };
        format!(
            r#"
[server]
http = "127.0.0.1:0"
admin = "127.0.0.1:0"
{server}
[[app]]
name = "{APP}"
zoo = "{zoo}"
{app}
[[worker]]
name = "{pool}-a"
memory_mb = 64
{worker}
[[worker]]
name = "{pool}-b"
memory_mb = 64
{worker}
[[pool]]
name = "{pool}"
apps = ["{APP}"]
workers = ["{pool}-a", "{pool}-b"]
policy = "active"
{budget}
{lines}
[policies]
dir = "{folder}"
{policies}
[profile]
dir = "{profiles}"
measure_s = 1
{profile}
"#,
            server = self.server,
            app = self.app,
            lines = self.lines,
            worker = self.worker,
            policies = self.policies,
            profile = self.profile,
        )
    }

    /// The configuration, read and checked.
    pub(crate) fn config_in(&self, fixture: &Fixture, folder: &Path) -> Config {
        let text = self.toml(fixture, folder);
        Config::parse(&text, Path::new("test.toml"), Path::new("")).unwrap()
    }

    /// Puts the component where the configuration says.
    pub(crate) fn furnish(&self, folder: &Path) -> PathBuf {
        let policy = folder.join("active.wasm");
        if let Some(component) = &self.component {
            fs::write(&policy, component).unwrap();
        }
        policy
    }

    /// Starts the server and waits until it has its models, and its policy if it was given one.
    pub(crate) async fn start(self) -> TestBed {
        let test_bed = self.clone().start_unready().await;
        if self.component.is_some() {
            let tried = test_bed.until("a first policy", |pool| !pool.policies.swaps.is_empty());
            tried.await;
        }
        test_bed
    }

    /// Starts the server without waiting for anything.
    pub(crate) async fn start_unready(self) -> TestBed {
        let folder = TempDir::new().unwrap();
        let path = folder.path().to_path_buf();
        let setup = self.clone();
        let config = tokio::task::spawn_blocking(move || setup.config_in(fixture(), &path));
        self.start_configured(config.await.unwrap(), folder).await
    }

    /// Starts a server with a configuration of its own, policies in `folder`, and waits for its
    /// policy.
    pub(crate) async fn start_with(self, text: &str, folder: TempDir) -> TestBed {
        let config = Config::parse(text, Path::new("test.toml"), Path::new("")).unwrap();
        let test_bed = self.start_configured(config, folder).await;
        test_bed.swap_number(1).await;
        test_bed
    }

    /// As [`start`](Self::start), with artifacts that are put into the policy's own folder first.
    pub(crate) async fn start_with_artifacts(self, furnish: impl FnOnce(&Path)) -> TestBed {
        let folder = TempDir::new().unwrap();
        furnish(&folder.path().join("active"));
        let path = folder.path().to_path_buf();
        let setup = self.clone();
        let config = tokio::task::spawn_blocking(move || setup.config_in(fixture(), &path));
        let test_bed = self.start_configured(config.await.unwrap(), folder).await;
        test_bed.swap_number(1).await;
        test_bed
    }

    /// Starts a server with a configuration of its own, without waiting for anything.
    pub(crate) async fn start_configured(self, config: Config, folder: TempDir) -> TestBed {
        logs::capture();
        let policy = self.furnish(folder.path());
        let pool = self.pool;
        let listeners = Listeners::bind(&config.server).unwrap();
        let starting = tokio::task::spawn_blocking(move || Server::start(config));
        let server = starting.await.unwrap().unwrap();
        let http = listeners.http_addr().unwrap().tcp().unwrap();
        let admin = listeners.admin_addr().unwrap().tcp().unwrap();
        let policies = server.policies().pop().unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve(listeners, async {
            let _ = stopped.await;
        }));
        TestBed {
            http,
            admin,
            policy,
            policies,
            pool,
            stop,
            serving,
            _folder: folder,
        }
    }
}

// === impl TestBed ===

impl TestBed {
    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.http).await
    }

    /// The one pool, as `/admin/v1/status` has it.
    pub(crate) async fn pool(&self) -> PoolReport {
        let mut pools = self.status().await.pools;
        assert_eq!(pools.len(), 1);
        pools.pop().unwrap()
    }

    pub(crate) async fn status(&self) -> ServerStatus {
        serde_json::from_str(&get(self.admin, "/admin/v1/status").await.text).unwrap()
    }

    /// `/metrics` as it is.
    pub(crate) async fn exposition(&self) -> String {
        get(self.admin, "/metrics").await.text
    }

    pub(crate) async fn metrics(&self) -> Metrics {
        Metrics::parse(&self.exposition().await)
    }

    /// Waits for the pool to be as wanted.
    pub(crate) async fn until(
        &self,
        event: &str,
        wanted: impl Fn(&PoolReport) -> bool,
    ) -> PoolReport {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let pool = self.pool().await;
            if wanted(&pool) {
                return pool;
            }
            assert!(Instant::now() < give_up, "waited for {event}: {pool:#?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until `count` attempts to change the policy have ended; the last of them.
    pub(crate) async fn swap_number(&self, count: usize) -> Swap {
        let pool = self
            .until("a swap", |pool| pool.policies.swaps.len() >= count)
            .await;
        pool.policies.swaps.get(count - 1).unwrap().clone()
    }

    /// Replaces the policy's component atomically.
    pub(crate) fn replace(&self, component: &[u8]) {
        let part = self.policy.with_extension("part");
        fs::write(&part, component).unwrap();
        fs::rename(&part, &self.policy).unwrap();
    }

    /// Writes a component over the policy, as `cp` does.
    pub(crate) fn overwrite(&self, component: &[u8]) {
        fs::write(&self.policy, component).unwrap();
    }

    /// Fields of this pool's log lines with this message.
    pub(crate) fn logged(&self, message: &str) -> Vec<serde_json::Value> {
        logs::lines(self.pool, message)
    }

    /// Waits until the pool is empty and checks that every accepted request has ended once.
    pub(crate) async fn settled(&self) -> PoolReport {
        let pool = self
            .until("an empty pool", |pool| pool.driver.live == 0)
            .await;
        assert_eq!(pool.driver.imbalance, 0);
        assert_eq!(pool.driver.accepted, pool.driver.ended);
        assert_eq!(
            self.metrics().await.sum("switchyard_ledger_imbalance", &[]),
            0
        );
        pool
    }

    /// Shuts down and waits for the end.
    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.serving.await.unwrap().unwrap();
    }
}
