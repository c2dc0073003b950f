//! Requests to the admin port of a running server.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;
use switchyard_server::admin::{PolicyOrder, ServerStatus, Verb};
use switchyard_server::policies::Swap;

use crate::commands::failure::Failure;
use crate::probe::{self, Answer};

/// Longest wait for a policy that compiles: the longest `compile_timeout_s` of a server is an hour.
const SWAP_PATIENCE: Duration = Duration::from_secs(3_700);

/// How often the server is asked for the result.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// The variable of the token.
const TOKEN: &str = "SWITCHYARD_TOKEN";

/// Asks the admin port.
pub(super) struct AdminClient {
    admin: SocketAddr,
}

/// An order that goes on after its answer.
#[derive(Deserialize)]
struct Loading {
    ordered_at_us: u64,
}

/// The operator's token, from a file or the environment.
pub(super) fn token(file: Option<&Path>) -> Result<String, Failure> {
    let text = match file {
        Some(file) => std::fs::read_to_string(file)
            .map_err(|error| Failure::input(format!("--token {}: {error}", file.display())))?,
        None => std::env::var(TOKEN).map_err(|_| {
            Failure::input(format!(
                "an order needs the operator's token: --token FILE, or the variable {TOKEN}"
            ))
        })?,
    };
    // A file of operators has a name before the token.
    let token = text.split_whitespace().next_back().unwrap_or_default();
    match token.is_empty() || token.contains(|c: char| c.is_control()) {
        true => Err(Failure::input("the operator's token is empty")),
        false => Ok(token.to_owned()),
    }
}

// === impl AdminClient ===

impl AdminClient {
    pub(super) fn new(admin: SocketAddr) -> Self {
        Self { admin }
    }

    pub(super) fn status(&self) -> Result<ServerStatus, Failure> {
        let answer = self.ask("GET /admin/v1/status", "", b"")?;
        self.json(&self.good(answer)?)
    }

    /// The decision of a window, as the server writes it.
    pub(super) fn decision(&self, pool: &str, window: u64) -> Result<Value, Failure> {
        let path = format!("GET /admin/v1/pools/{}/windows/{window}", quoted(pool));
        let answer = self.ask(&path, "", b"")?;
        self.json(&self.good(answer)?)
    }

    /// The last decision about a request.
    pub(super) fn decision_about(&self, pool: &str, request: u64) -> Result<Value, Failure> {
        let path = format!("GET /admin/v1/pools/{}/requests/{request}", quoted(pool));
        let answer = self.ask(&path, "", b"")?;
        self.json(&self.good(answer)?)
    }

    /// Sends an order, and waits until it is carried out.
    pub(super) fn order(
        &self,
        pool: &str,
        verb: Verb,
        order: &PolicyOrder,
        token: &str,
    ) -> Result<Swap, Failure> {
        let answer = self.post(pool, verb, order, token)?;
        if answer.status == 202 {
            let loading: Loading = self.json(&answer)?;
            return self.result(pool, loading.ordered_at_us);
        }
        self.json(&answer)
    }

    /// Begins a shadow, or ends it without a policy.
    pub(super) fn shadow(
        &self,
        pool: &str,
        policy: Option<String>,
        token: &str,
    ) -> Result<Value, Failure> {
        let order = PolicyOrder {
            policy,
            ..PolicyOrder::default()
        };
        self.json(&self.post(pool, Verb::Shadow, &order, token)?)
    }

    fn post(
        &self,
        pool: &str,
        verb: Verb,
        order: &PolicyOrder,
        token: &str,
    ) -> Result<Answer, Failure> {
        let verb = match verb {
            Verb::Swap => "swap",
            Verb::Promote => "promote",
            Verb::Rollback => "rollback",
            Verb::Canary => "canary",
            Verb::Shadow => "shadow",
        };
        let request = format!("POST /admin/v1/pools/{}/policy/{verb}", quoted(pool));
        let headers =
            format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n");
        let body = serde_json::to_vec(order).map_err(Failure::check)?;
        self.good(self.ask(&request, &headers, &body)?)
    }

    /// The result of an order that goes on.
    fn result(&self, pool: &str, since_us: u64) -> Result<Swap, Failure> {
        let began = Instant::now();
        while began.elapsed() < SWAP_PATIENCE {
            let status = self.status()?;
            let pools = status.pools.into_iter();
            let swaps = pools.filter(|report| report.driver.pool == pool);
            let mut swaps = swaps.flat_map(|report| report.policies.swaps);
            if let Some(swap) = swaps.find(|swap| swap.at_us >= since_us && !swap.by.is_empty()) {
                return match &swap.error {
                    None => Ok(swap),
                    Some(error) => Err(Failure::check(error)),
                };
            }
            std::thread::sleep(ASK_EVERY);
        }
        Err(Failure::check(
            "the order has no result yet: `switchyard ctl events` shows it",
        ))
    }

    fn ask(&self, request: &str, headers: &str, body: &[u8]) -> Result<Answer, Failure> {
        probe::ask(self.admin, request, headers, body).map_err(|error| {
            Failure::check(format!(
                "no server answers on {}: {error}; --admin names the address of its admin port",
                self.admin
            ))
        })
    }

    /// The answer, unless it is a refusal.
    fn good(&self, answer: Answer) -> Result<Answer, Failure> {
        if (200..300).contains(&answer.status) {
            return Ok(answer);
        }
        let body = String::from_utf8_lossy(&answer.body);
        let reason = serde_json::from_str::<Value>(&body).ok();
        let reason = reason.and_then(|body| Some(body.get("error")?.as_str()?.to_owned()));
        let reason = reason.unwrap_or_else(|| format!("status {}: {}", answer.status, body.trim()));
        Err(Failure::check(reason))
    }

    fn json<T: for<'de> Deserialize<'de>>(&self, answer: &Answer) -> Result<T, Failure> {
        serde_json::from_slice(&answer.body).map_err(|error| {
            Failure::check(format!(
                "{}: not an answer of this version's admin port: {error}",
                self.admin
            ))
        })
    }
}

/// A name as a part of a path.
fn quoted(name: &str) -> String {
    let mut quoted = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                quoted.push(byte.into());
            }
            _ => quoted.push_str(&format!("%{byte:02X}")),
        }
    }
    quoted
}
