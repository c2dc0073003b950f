//! The admin port: metrics, status, and the decision behind an answer. Read-only.

mod decision;

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::driver::{Message, PoolHandle, PoolStatus};
use crate::policies::{PoliciesHandle, PoliciesStatus};
use crate::readiness::Readiness;
use crate::reloads::{Reload, ReloadLog};
use crate::shadow::{ShadowLog, ShadowStatus};
use crate::telemetry::Registry;

/// The media type of the Prometheus text format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The parts that the admin port reads.
pub struct Admin {
    pools: Vec<AdminPool>,
    readiness: Arc<Readiness>,
    registry: Registry,
    clock: Clock,
}

/// One pool, as the admin port reaches it.
pub struct AdminPool {
    /// Its driver.
    pub pool: Arc<PoolHandle>,
    /// Its policies.
    pub policies: PoliciesHandle,
    /// The results of changed weights.
    pub reloads: ReloadLog,
    /// The findings of its shadow, if it has one.
    pub shadow: Option<ShadowLog>,
}

/// `GET /admin/v1/status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// The server's version.
    pub version: String,
    /// Microseconds since it began.
    pub now_us: u64,
    /// Every pool has its models and its policy.
    pub ready: bool,
    /// The reason if it is not ready.
    pub waits_for: Option<String>,
    /// Its pools.
    pub pools: Vec<PoolReport>,
}

/// One pool of [`ServerStatus`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolReport {
    /// Requests and windows.
    #[serde(flatten)]
    pub driver: PoolStatus,
    /// Versions and swaps.
    pub policies: PoliciesStatus,
    /// Changed weights and their results, oldest first.
    pub reloads: Vec<Reload>,
    /// Its shadow, if it has one.
    pub shadow: Option<ShadowStatus>,
}

// === impl Admin ===

impl Admin {
    /// Reads from these pools.
    pub fn new(
        pools: Vec<AdminPool>,
        readiness: Arc<Readiness>,
        registry: Registry,
        clock: Clock,
    ) -> Self {
        Self {
            pools,
            readiness,
            registry,
            clock,
        }
    }

    /// The registry of the metrics.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }
}

/// Serves the admin port until aborted.
pub async fn serve(listener: TcpListener, admin: Admin) {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/admin/v1/status", get(status))
        .route("/admin/v1/windows/{id}", get(window))
        .route("/admin/v1/pools/{pool}/windows/{id}", get(pool_window))
        .with_state(Arc::new(admin));
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "the admin port is closed");
    }
}

async fn metrics(State(admin): State<Arc<Admin>>) -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, PROMETHEUS)],
        admin.registry.render(),
    )
}

async fn status(State(admin): State<Arc<Admin>>) -> Response {
    let mut pools = Vec::with_capacity(admin.pools.len());
    for pool in &admin.pools {
        let Some(driver) = ask(&pool.pool, Message::Status).await else {
            return stopped();
        };
        pools.push(PoolReport {
            driver,
            policies: pool.policies.status(),
            reloads: pool.reloads.entries(),
            shadow: pool.shadow.as_ref().map(ShadowLog::status),
        });
    }
    let waits_for = admin.readiness.server().err();
    let status = ServerStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now_us: admin.clock.now().0,
        ready: waits_for.is_none(),
        waits_for,
        pools,
    };
    Json(status).into_response()
}

/// A window of the first pool, which is the only pool in most configurations.
async fn window(State(admin): State<Arc<Admin>>, Path(id): Path<u64>) -> Response {
    match admin.pools.first() {
        Some(pool) => decision_of(pool, id).await,
        None => error(StatusCode::NOT_FOUND, "there are no pools"),
    }
}

async fn pool_window(
    State(admin): State<Arc<Admin>>,
    Path((name, id)): Path<(String, u64)>,
) -> Response {
    match admin.pools.iter().find(|pool| pool.pool.name() == name) {
        Some(pool) => decision_of(pool, id).await,
        None => error(StatusCode::NOT_FOUND, "no such pool"),
    }
}

async fn decision_of(pool: &AdminPool, id: u64) -> Response {
    match ask(&pool.pool, |reply| Message::Decision(id, reply)).await {
        Some(Some(found)) => Json(decision::json(pool.pool.catalog(), &found)).into_response(),
        Some(None) => error(StatusCode::NOT_FOUND, "this window is not kept (any more)"),
        None => stopped(),
    }
}

/// Asks a driver; `None` if it has ended.
async fn ask<T: Send + 'static>(
    pool: &Arc<PoolHandle>,
    question: impl FnOnce(oneshot::Sender<T>) -> Message,
) -> Option<T> {
    let (reply, answer) = oneshot::channel();
    let (pool, message) = (Arc::clone(pool), question(reply));
    tokio::task::spawn_blocking(move || pool.send(message))
        .await
        .ok()?;
    answer.await.ok()
}

fn stopped() -> Response {
    error(StatusCode::SERVICE_UNAVAILABLE, "the pool is shutting down")
}

fn error(status: StatusCode, text: &str) -> Response {
    (status, Json(serde_json::json!({ "error": text }))).into_response()
}
