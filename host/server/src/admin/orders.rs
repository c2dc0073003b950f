//! Orders of operators: swap, promote and roll back the policy of a pool, and try a candidate in a canary.

use std::path::PathBuf;
use std::time::Duration;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::policies::{CanarySettings, PoliciesHandle, SwapError, SwapOrder, SwapTarget};
use crate::shadow::{ShadowSlot, ShadowStatus};

/// How long an order is waited for. A policy may compile for longer: then the answer is 202, and the
/// status has the result.
const PATIENCE: Duration = Duration::from_secs(12);

/// Components that are listed.
const COMPONENTS_MAX: usize = 256;

const WRONG_NAME: &str =
    "policy: must be the name of a component in the folder of policies, without .wasm";

/// The kind of an order: the last part of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// To a component in the folder of policies.
    Swap,
    /// To the candidate that the pool's shadow asks.
    Promote,
    /// To a version that served before.
    Rollback,
    /// To a canary: the policy that serves, and a candidate with a share of the requests.
    Canary,
    /// To the same policy, with another shadow or without one.
    Shadow,
}

/// An order to a pool, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyOrder {
    /// Swap, canary and shadow: name of the component in the folder of policies, without `.wasm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Rollback: first digits of the version's hash; by default the version that served before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// First digits of the hash of the version that serves now; with another one the answer is 409.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
    /// Canary: its settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanarySettings>,
}

// === impl PolicyOrder ===

impl PolicyOrder {
    /// The policy that serves afterwards.
    ///
    /// # Errors
    /// A field is missing, is not of this kind of orders, or has a value that names no policy.
    pub(super) fn target(
        &self,
        verb: Verb,
        policies: &PoliciesHandle,
        shadow: Option<&ShadowStatus>,
    ) -> Result<SwapTarget, String> {
        let refused = |reason: &str| Err(reason.to_owned());
        let component = |name: &str| policies.component(name);
        if self.canary.is_some() && verb != Verb::Canary {
            return refused("canary: only an order for a canary has its settings");
        }
        match (verb, &self.policy, &self.version) {
            (Verb::Swap, Some(name), None) if is_plain(name) => {
                Ok(SwapTarget::File(component(name)))
            }
            (Verb::Canary, Some(name), None) if is_plain(name) => {
                let settings = self.canary.unwrap_or_default();
                let checked = settings.validate();
                checked.map_err(|reason| format!("canary.{reason}"))?;
                Ok(SwapTarget::Canary(component(name), settings))
            }
            (Verb::Swap | Verb::Canary, _, None) => refused(WRONG_NAME),
            (Verb::Rollback, None, None) => Ok(SwapTarget::Previous),
            (Verb::Rollback, None, Some(digits)) => Ok(SwapTarget::Version(digits.clone())),
            (Verb::Promote, None, None) => match shadow {
                _ if policies.runs_canary() => Ok(SwapTarget::Candidate),
                Some(ShadowStatus {
                    hash: Some(hash),
                    file,
                    ..
                }) => Ok(SwapTarget::Compared(PathBuf::from(file), hash.clone())),
                Some(shadow) => Err(format!("the shadow of {} is not loaded", shadow.file)),
                None => refused(
                    "the pool has neither a canary nor a shadow: orders `canary` and `shadow` begin one",
                ),
            },
            (Verb::Swap | Verb::Canary | Verb::Promote, _, Some(_)) => {
                refused("version: only a rollback has one")
            }
            (Verb::Shadow, ..) => refused("a shadow serves no request"),
            (Verb::Rollback | Verb::Promote, Some(_), _) => {
                refused("policy: only a swap and a canary have one")
            }
        }
    }
}

/// Names of the components that an order can name, in order.
pub(super) async fn components(policies: &PoliciesHandle) -> Vec<String> {
    let folders = policies.folders();
    let listed = spawn_blocking(move || {
        let folders = folders.iter();
        let entries = folders.filter_map(|folder| std::fs::read_dir(folder).ok());
        let names = entries.flatten().flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            name.strip_suffix(".wasm").map(str::to_owned)
        });
        let mut names: Vec<_> = names.filter(|name| is_plain(name)).collect();
        names.sort_unstable();
        names.dedup();
        names.truncate(COMPONENTS_MAX);
        names
    });
    listed.await.unwrap_or_default()
}

/// Begins a shadow, or ends it if the order names no policy; the status and the body of the answer.
pub(super) async fn shadow(
    pool: &str,
    slot: ShadowSlot,
    policies: &PoliciesHandle,
    order: &PolicyOrder,
    by: &str,
) -> (StatusCode, Value) {
    let refused = |status, reason: &str| (status, json!({ "error": reason }));
    if order.version.is_some() || order.canary.is_some() {
        return refused(
            StatusCode::BAD_REQUEST,
            "an order for a shadow has a policy only",
        );
    }
    let file = match &order.policy {
        None => None,
        Some(name) if is_plain(name) => Some(policies.component(name)),
        Some(_) => return refused(StatusCode::BAD_REQUEST, WRONG_NAME),
    };
    if let Some(missing) = file.as_ref().filter(|file| !file.is_file()) {
        let (missing, hint) = (missing.display(), policies.hint(missing));
        let reason = format!("{missing}: there is no such component{hint}");
        return refused(StatusCode::NOT_FOUND, &reason);
    }
    tracing::info!(pool, by, ?file, "ordered: shadow");
    let changed = spawn_blocking(move || match file {
        Some(file) => slot.start_candidate(file).map(|()| slot.status()),
        None => {
            slot.end();
            Ok(None)
        }
    });
    match changed.await {
        Ok(Ok(status)) => (StatusCode::OK, json!({ "shadow": status })),
        Ok(Err(error)) => refused(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        Err(_) => refused(
            StatusCode::SERVICE_UNAVAILABLE,
            "the server is shutting down",
        ),
    }
}

/// A name of a file in the folder of policies, and of no other.
fn is_plain(name: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    !name.is_empty() && !name.starts_with('.') && name.chars().all(is_known)
}

/// Has an order carried out; the status and the body of the answer. The log is the audit.
pub(super) async fn carry_out(
    pool: &str,
    policies: PoliciesHandle,
    order: SwapOrder,
    now_us: u64,
) -> (StatusCode, Value) {
    let SwapOrder { to, expect, by } = &order;
    tracing::info!(pool, by, ?to, ?expect, "ordered");
    let by = by.clone();
    let ordered = policies.clone();
    let carried_out = tokio::spawn(async move { ordered.order(order).await });
    match timeout(PATIENCE, carried_out).await {
        Ok(Ok(Ok(swap))) => (StatusCode::OK, json!(swap)),
        Ok(Ok(Err(refused))) => {
            let hint = match &refused {
                SwapError::Load(error) if error.is_not_found() => policies.hint(&error.file),
                _ => String::new(),
            };
            let error = format!("{refused}{hint}");
            (status_of(&refused), json!({ "error": error }))
        }
        Ok(Err(_)) => (
            StatusCode::SERVICE_UNAVAILABLE,
            json!({ "error": SwapError::Stopped.to_string() }),
        ),
        Err(_) => (
            StatusCode::ACCEPTED,
            json!({ "state": "loading", "ordered_at_us": now_us, "by": by }),
        ),
    }
}

fn status_of(refused: &SwapError) -> StatusCode {
    match refused {
        SwapError::Load(error) if error.is_not_found() => StatusCode::NOT_FOUND,
        SwapError::Load(_) => StatusCode::UNPROCESSABLE_ENTITY,
        SwapError::NoVersion(_) | SwapError::NoCanary => StatusCode::NOT_FOUND,
        SwapError::Conflict { .. } | SwapError::NotCompared { .. } | SwapError::NoPolicy => {
            StatusCode::CONFLICT
        }
        SwapError::NotWritten(_) => StatusCode::INTERNAL_SERVER_ERROR,
        SwapError::Stopped | SwapError::NotActive(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}
