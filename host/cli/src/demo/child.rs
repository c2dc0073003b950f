//! The server process: its log names the ports, its admin port gives the status, a signal stops it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::{Instant, sleep, timeout};

use super::error::DemoError;
use switchyard_server::admin::ServerStatus;

/// Longest time to listen, to become ready, and to stop.
const PATIENCE: Duration = Duration::from_secs(120);

/// Time between two looks at the status.
const POLL: Duration = Duration::from_millis(20);

/// A running server.
pub(crate) struct ServerProcess {
    child: Child,
    /// Address for requests.
    pub(crate) http: SocketAddr,
    admin: SocketAddr,
}

// === impl ServerProcess ===

impl ServerProcess {
    /// Starts this program as a server; its log lines go to `tell`.
    pub(crate) async fn start(
        config: &Path,
        tell: impl Fn(&str) + Send + 'static,
    ) -> Result<Self, DemoError> {
        let program = std::env::current_exe().map_err(failed("cannot be found"))?;
        let mut child = Command::new(program)
            .args(["--log", "json", "serve", "--config"])
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed("cannot be started"))?;
        let stderr = child.stderr.take();
        let stderr = stderr.ok_or_else(|| DemoError::Server("has no log".to_owned()))?;
        let mut lines = BufReader::new(stderr).lines();
        let listening = timeout(PATIENCE, listening(&mut lines, &tell)).await;
        let (http, admin) =
            listening.map_err(|_| DemoError::Server("did not listen in time".to_owned()))??;
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                tell(&readable(&line));
            }
        });
        Ok(Self { child, http, admin })
    }

    /// The status, from the admin port.
    pub(crate) async fn status(&self) -> Result<ServerStatus, DemoError> {
        let body = self.admin("/admin/v1/status").await?;
        serde_json::from_slice(&body).map_err(failed("gave an unreadable status"))
    }

    /// The sum of a metric over its series.
    pub(crate) async fn metric(&self, name: &str) -> Result<f64, DemoError> {
        let page = self.admin("/metrics").await?;
        let page = String::from_utf8_lossy(&page);
        let series = page.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            rest.starts_with(['{', ' ']).then_some(())?;
            rest.rsplit(' ').next()?.parse::<f64>().ok()
        });
        Ok(series.sum())
    }

    async fn admin(&self, path: &str) -> Result<bytes::Bytes, DemoError> {
        let client = Client::builder(TokioExecutor::new()).build_http::<Empty<bytes::Bytes>>();
        let uri = format!("http://{}{path}", self.admin);
        let uri = uri.parse().map_err(failed("has an invalid address"))?;
        let response = client
            .get(uri)
            .await
            .map_err(failed("does not answer on its admin port"))?;
        let body = response.into_body().collect().await;
        let body = body.map_err(failed("does not answer on its admin port"))?;
        Ok(body.to_bytes())
    }

    /// Waits for a status; `step` names it in the error.
    pub(crate) async fn until(
        &self,
        step: &str,
        wanted: impl Fn(&ServerStatus) -> bool,
    ) -> Result<ServerStatus, DemoError> {
        let began = Instant::now();
        loop {
            let status = self.status().await?;
            if wanted(&status) {
                return Ok(status);
            }
            if began.elapsed() > PATIENCE {
                return Err(DemoError::Server(format!("did not {step} in time")));
            }
            sleep(POLL).await;
        }
    }

    /// Its resident memory in MiB; none where the system does not say.
    pub(crate) fn memory_mib(&self) -> Option<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()?)).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib / 1024.0)
    }

    /// Sends SIGTERM and waits for the process to drain and end.
    pub(crate) async fn stop(mut self) -> Result<ExitStatus, DemoError> {
        #[cfg(unix)]
        if let Some(pid) = self
            .child
            .id()
            .and_then(|pid| rustix::process::Pid::from_raw(pid as i32))
        {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)
                .map_err(failed("cannot be stopped"))?;
        }
        #[cfg(not(unix))]
        self.child
            .start_kill()
            .map_err(failed("cannot be stopped"))?;
        let stopped = timeout(PATIENCE, self.child.wait()).await;
        stopped
            .map_err(|_| DemoError::Server("did not stop in time".to_owned()))?
            .map_err(failed("cannot be waited for"))
    }
}

/// Reads the log up to the line that names the ports.
async fn listening(
    lines: &mut Lines<BufReader<ChildStderr>>,
    tell: &impl Fn(&str),
) -> Result<(SocketAddr, SocketAddr), DemoError> {
    let mut last = String::new();
    while let Some(line) = lines.next_line().await.map_err(failed("has no log"))? {
        last = readable(&line);
        tell(&last);
        let line: Value = serde_json::from_str(&line).unwrap_or_default();
        let address = |name: &str| line["fields"][name].as_str()?.parse().ok();
        if let (Some(http), Some(admin)) = (address("http"), address("admin")) {
            return Ok((http, admin));
        }
    }
    Err(DemoError::Server(format!("ended: {last}")))
}

/// A log line as text: the message, then its fields.
fn readable(line: &str) -> String {
    let Ok(Value::Object(entry)) = serde_json::from_str(line) else {
        // Not a log line: printed before logging began, or by a panic.
        return line.to_owned();
    };
    let level = entry
        .get("level")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let none = Map::new();
    let fields = entry
        .get("fields")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let plain = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let mut words = vec![level.to_owned()];
    words.extend(fields.get("message").map(plain));
    for (name, value) in fields.iter().filter(|(name, _)| *name != "message") {
        words.push(format!("{name}={}", plain(value)));
    }
    words.join(" ")
}

fn failed<E: std::fmt::Display>(step: &'static str) -> impl Fn(E) -> DemoError {
    move |error| DemoError::Server(format!("{step}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_become_text() {
        let line = r#"{"timestamp":"t","level":"INFO","fields":{"message":"listening","http":"127.0.0.1:1","n":3},"target":"x"}"#;
        assert_eq!(readable(line), "INFO listening http=127.0.0.1:1 n=3");
        assert_eq!(readable("error: no"), "error: no");
    }
}
