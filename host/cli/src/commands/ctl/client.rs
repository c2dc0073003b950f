//! Requests to the admin port of a running server.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;
use switchyard_server::admin::{PolicyOrder, ServerStatus, Verb};
use switchyard_server::policies::Swap;

use super::address::{AdminAddress, AdminServer};
use crate::commands::failure::Failure;
use crate::probe::Answer;

/// Longest wait for a policy that compiles: the longest `compile_timeout_s` of a server is an hour.
const SWAP_PATIENCE: Duration = Duration::from_secs(3_700);

/// How often the server is asked for the result.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// The variable of the token.
const TOKEN: &str = "SWITCHYARD_TOKEN";

/// Asks the admin port.
pub(super) struct AdminClient {
    admin: AdminAddress,
    server: AdminServer,
    /// For reads, where they need one.
    token: Option<String>,
}

/// An order that goes on after its answer.
#[derive(Deserialize)]
struct Loading {
    ordered_at_us: u64,
    /// Name of its operator.
    by: String,
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
    // A file of operators has a name before the token, and may have `read` after it.
    let words: Vec<&str> = text.split_whitespace().collect();
    let token = match words.as_slice() {
        [_, token, "read"] => *token,
        words => words.last().copied().unwrap_or_default(),
    };
    match token.is_empty() || token.contains(|c: char| c.is_control()) {
        true => Err(Failure::input("the operator's token is empty")),
        false => Ok(token.to_owned()),
    }
}

// === impl AdminClient ===

impl AdminClient {
    /// Asks the port of this address, trusts the authorities in `ca`, and reads with the token of a file or
    /// the environment, if there is one.
    pub(super) fn new(
        admin: &AdminAddress,
        ca: Option<&Path>,
        token_file: Option<&Path>,
    ) -> Result<Self, Failure> {
        let has_token =
            token_file.is_some() || std::env::var_os(TOKEN).is_some_and(|token| !token.is_empty());
        Ok(Self {
            admin: admin.clone(),
            server: AdminServer::new(admin, ca)?,
            token: has_token.then(|| token(token_file)).transpose()?,
        })
    }

    pub(super) fn status(&self) -> Result<ServerStatus, Failure> {
        self.json(&self.read("/admin/v1/status")?)
    }

    /// The decision of a window, as the server writes it.
    pub(super) fn decision(&self, pool: &str, window: u64) -> Result<Value, Failure> {
        let path = format!("/admin/v1/pools/{}/windows/{window}", quoted(pool));
        self.json(&self.read(&path)?)
    }

    /// The last decision about a request.
    pub(super) fn decision_about(&self, pool: &str, request: u64) -> Result<Value, Failure> {
        let path = format!("/admin/v1/pools/{}/requests/{request}", quoted(pool));
        self.json(&self.read(&path)?)
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
            return self.result(pool, &loading);
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
        let headers = format!("{}Content-Type: application/json\r\n", bearer(token));
        let body = serde_json::to_vec(order).map_err(Failure::check)?;
        self.good(self.ask(&request, &headers, &body)?)
    }

    /// The result of an order that goes on; others may order meanwhile.
    fn result(&self, pool: &str, loading: &Loading) -> Result<Swap, Failure> {
        let began = Instant::now();
        while began.elapsed() < SWAP_PATIENCE {
            let status = self.status()?;
            let pools = status.pools.into_iter();
            let swaps = pools.filter(|report| report.driver.pool == pool);
            let mut swaps = swaps.flat_map(|report| report.policies.swaps);
            let is_it = |swap: &Swap| swap.at_us >= loading.ordered_at_us && swap.by == loading.by;
            if let Some(swap) = swaps.find(is_it) {
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

    fn read(&self, path: &str) -> Result<Answer, Failure> {
        let headers = self.token.as_deref().map(bearer).unwrap_or_default();
        self.good(self.ask(&format!("GET {path}"), &headers, b"")?)
    }

    fn ask(&self, request: &str, headers: &str, body: &[u8]) -> Result<Answer, Failure> {
        self.server.ask(request, headers, body).map_err(|error| {
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

/// The line of a head with a token.
fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
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
