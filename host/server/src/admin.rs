//! The admin port: metrics, status, the decision behind an answer, and orders of operators.
//!
//! - `connections`: the listener, with its own limits, so that it answers in a flood of inferences
//! - `sender`: refuses requests that a web page sends
//! - `status`: the state of pools, as JSON
//! - `dashboard`: the page for browsers, and the numbers it shows
//! - `questions`: asks a driver, which may be slow or stuck
//! - `operators`: who may order; `orders`: swaps, promotions and rollbacks

mod connections;
mod dashboard;
mod decision;
mod operators;
mod orders;
mod questions;
mod sender;
mod status;

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Extension, FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use serde::de::DeserializeOwned;
use switchyard_core::decision::Decision;
use switchyard_core::ids::RequestId;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use self::connections::{AdminListener, ConnectionLimits};
pub use self::dashboard::{Dashboard, PoolView};
pub(crate) use self::operators::check as check_operators;
use self::operators::{NotAllowed, Operators};
pub use self::orders::{PolicyOrder, Verb};
use self::questions::{Questions, Unanswered};
use self::sender::{PortNames, ReachedAt};
pub use self::status::{PoolReport, ServerStatus};
use crate::clock::Clock;
use crate::driver::{Message, PoolHandle};
use crate::policies::{PoliciesHandle, SwapOrder};
use crate::reloads::ReloadLog;
use crate::shadow::ShadowSlot;
use crate::sockets::BoundPort;
use crate::telemetry::{PROMETHEUS, Registry};
use crate::tls::Tls;

/// Largest order, in bytes.
const ORDER_BYTES_MAX: usize = 64 << 10;

/// The paths of the dashboard's page.
const PAGE: [&str; 2] = ["/", "/dashboard"];

/// The parts that the admin port reads.
pub struct Admin {
    pools: AdminPools,
    registry: Registry,
    clock: Clock,
    questions: Questions,
    operators: Operators,
    names: PortNames,
    tls: Option<Arc<Tls>>,
    /// Whether reads need a token.
    is_open: bool,
}

/// The pools that serve now.
pub type AdminPools = Arc<ArcSwap<Vec<AdminPool>>>;

/// One pool, as the admin port reaches it.
pub struct AdminPool {
    /// Its driver.
    pub pool: Arc<PoolHandle>,
    /// Its policies.
    pub policies: PoliciesHandle,
    /// The results of changed weights.
    pub reloads: ReloadLog,
    /// The place of its shadow.
    pub shadow: ShadowSlot,
}

/// The variable parts of a path. A wrong one is answered as other errors are.
struct OfPath<T>(T);

// === impl Admin ===

impl Admin {
    /// Reads from these pools.
    pub fn new(pools: AdminPools, registry: Registry, clock: Clock) -> Self {
        Self {
            pools,
            registry,
            clock,
            questions: Questions::default(),
            operators: Operators::default(),
            names: PortNames::default(),
            tls: None,
            is_open: false,
        }
    }

    /// Accepts orders of the operators in this file. Without one it only reads.
    #[must_use]
    pub fn with_operators(self, file: Option<PathBuf>) -> Self {
        Self {
            operators: Operators::new(file),
            ..self
        }
    }

    /// Serves TLS if it is given, and answers requests for these names too.
    #[must_use]
    pub fn with_names(self, hosts: Vec<String>, tls: Option<Tls>) -> Self {
        Self {
            names: PortNames {
                hosts,
                is_tls: tls.is_some(),
            },
            tls: tls.map(Arc::new),
            ..self
        }
    }

    /// The registry of the metrics.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    async fn status_of(
        &self,
        serving: &[AdminPool],
        deadline: Instant,
    ) -> Result<ServerStatus, Response> {
        let mut pools = Vec::with_capacity(serving.len());
        for pool in serving {
            pools.push(PoolReport {
                driver: self.ask(pool, Message::Status, deadline).await?,
                policies: pool.policies.status(),
                reloads: pool.reloads.entries(),
                shadow: pool.shadow.status(),
            });
        }
        let mut checks = serving.iter().map(|pool| pool.pool.readiness().check());
        let waits_for = checks.find_map(Result::err);
        Ok(ServerStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            now_us: self.clock.now().0,
            ready: waits_for.is_none(),
            waits_for,
            pools,
        })
    }

    async fn dashboard(&self) -> Result<Dashboard, Response> {
        let serving = self.pools.load_full();
        let deadline = self.questions.deadline();
        let status = self.status_of(&serving, deadline).await?;
        let mut views = Vec::with_capacity(serving.len());
        for pool in serving.iter() {
            views.push(PoolView {
                recent: self.ask(pool, Message::Recent, deadline).await?,
                components: orders::components(&pool.policies).await,
            });
        }
        Ok(Dashboard::new(status, self.operators.are_named(), views))
    }

    async fn decision_of(&self, pool: &AdminPool, id: u64) -> Response {
        let question = |reply| Message::Decision(id, reply);
        let deadline = self.questions.deadline();
        match self.ask(pool, question, deadline).await {
            Ok(Some(found)) => explained(pool, found, None).await,
            Ok(None) => self.not_kept(pool, &format!("window {id}"), deadline).await,
            Err(refused) => refused,
        }
    }

    /// The last kept decision about a request.
    async fn decision_about(&self, pool: &AdminPool, request: RequestId) -> Response {
        let question = |reply| Message::DecisionAbout(request, reply);
        let deadline = self.questions.deadline();
        match self.ask(pool, question, deadline).await {
            Ok(Some(found)) => explained(pool, found, Some(request)).await,
            Ok(None) => {
                let which = format!("a window about request {}", request.0);
                self.not_kept(pool, &which, deadline).await
            }
            Err(refused) => refused,
        }
    }

    /// The answer about a window that is not there.
    async fn not_kept(&self, pool: &AdminPool, which: &str, deadline: Instant) -> Response {
        let status = match self.ask(pool, Message::Status, deadline).await {
            Ok(status) => status,
            Err(refused) => return refused,
        };
        let text = format!(
            "{which} is not kept: pool `{}` has had {} windows and keeps the last ones, as many as \
             `windows_kept` of its [[pool]] says",
            status.pool, status.windows,
        );
        error(StatusCode::NOT_FOUND, &text)
    }

    /// Asks the driver of a pool; 503 with the reason if it does not answer.
    async fn ask<T>(
        &self,
        pool: &AdminPool,
        question: impl FnOnce(oneshot::Sender<T>) -> Message,
        deadline: Instant,
    ) -> Result<T, Response> {
        let (reply, answer) = oneshot::channel();
        let (handle, message) = (Arc::clone(&pool.pool), question(reply));
        let send = move || handle.send(message);
        let answered = self.questions.ask(send, answer, deadline).await;
        answered.map_err(|reason| {
            let name = pool.pool.name();
            let text = match reason {
                Unanswered::Ended => format!("pool `{name}` is shutting down"),
                Unanswered::Late { patience } => format!(
                    "the driver of pool `{name}` did not answer within {patience:?}; \
                     /metrics answers without it"
                ),
            };
            error(StatusCode::SERVICE_UNAVAILABLE, &text)
        })
    }
}

// === impl OfPath ===

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for OfPath<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(path)) => Ok(Self(path)),
            Err(refused) => Err(error(refused.status(), &refused.body_text())),
        }
    }
}

/// Off the async threads: the alternatives of a large window take some time.
async fn explained(pool: &AdminPool, found: Arc<Decision>, request: Option<RequestId>) -> Response {
    let catalog = Arc::clone(pool.pool.catalog());
    let written = spawn_blocking(move || decision::json(&catalog, &found, request));
    match written.await {
        Ok(json) => Json(json).into_response(),
        Err(_) => error(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the decision cannot be explained",
        ),
    }
}

/// Serves the admin port until aborted. Beyond this machine every request needs a token.
pub async fn serve(port: BoundPort, admin: Admin) {
    let is_local = port.address().is_ok_and(|address| address.is_local());
    let listener = match port.listen() {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the admin port accepts no connections"),
    };
    let admin = Arc::new(Admin {
        is_open: !is_local,
        ..admin
    });
    let router = routes()
        .into_iter()
        .fold(Router::new(), |router, (_, path, handler)| {
            router.route(path, handler)
        })
        .layer(DefaultBodyLimit::max(ORDER_BYTES_MAX))
        .layer(middleware::from_fn_with_state(
            Arc::clone(&admin),
            only_allowed,
        ))
        .with_state(Arc::clone(&admin));
    let port = AdminListener {
        listener,
        tls: admin.tls.clone(),
        limits: ConnectionLimits::default(),
    };
    connections::serve(port, router).await;
}

/// Method, path and handler of each endpoint.
fn routes() -> [(&'static str, &'static str, MethodRouter<Arc<Admin>>); 9] {
    [
        ("GET", PAGE[0], get(page)),
        ("GET", PAGE[1], get(page)),
        ("GET", "/admin/v1/dashboard", get(numbers)),
        ("GET", "/metrics", get(metrics)),
        ("GET", "/admin/v1/status", get(status)),
        ("GET", "/admin/v1/windows/{id}", get(window)),
        (
            "GET",
            "/admin/v1/pools/{pool}/windows/{id}",
            get(pool_window),
        ),
        (
            "GET",
            "/admin/v1/pools/{pool}/requests/{id}",
            get(pool_request),
        ),
        ("POST", "/admin/v1/pools/{pool}/policy/{verb}", post(order)),
    ]
}

/// Method and path of each endpoint, as the API description lists them.
pub fn endpoints() -> impl Iterator<Item = (&'static str, &'static str)> {
    routes().into_iter().map(|(method, path, _)| (method, path))
}

/// Refuses requests that a web page sends, and beyond loopback those without an operator's token.
async fn only_allowed(
    State(admin): State<Arc<Admin>>,
    Extension(own): Extension<Option<ReachedAt>>,
    request: Request,
    next: Next,
) -> Response {
    let (target, headers) = (request.uri(), request.headers());
    if let Err(refused) = sender::check(target, headers, own, &admin.names) {
        return error(refused.status(), &refused.to_string());
    }
    // The page holds no number of the server: it asks for them with the operator's token.
    let is_page = PAGE.contains(&request.uri().path());
    if admin.is_open
        && !is_page
        && let Err(refused) = admin.operators.reader(headers)
    {
        return not_allowed(&refused);
    }
    next.run(request).await
}

/// The answer to a request without the token that it needs.
fn not_allowed(refused: &NotAllowed) -> Response {
    let mut answer = error(refused.status(), &refused.to_string());
    if answer.status() == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer");
        answer
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, bearer);
    }
    answer
}

async fn metrics(State(admin): State<Arc<Admin>>) -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, PROMETHEUS)],
        admin.registry.render(),
    )
}

async fn status(State(admin): State<Arc<Admin>>) -> Response {
    let deadline = admin.questions.deadline();
    match admin.status_of(&admin.pools.load_full(), deadline).await {
        Ok(status) => Json(status).into_response(),
        Err(refused) => refused,
    }
}

/// The page.
async fn page() -> Response {
    dashboard::page().into_response()
}

/// The numbers of the page.
async fn numbers(State(admin): State<Arc<Admin>>) -> Response {
    match admin.dashboard().await {
        Ok(dashboard) => Json(dashboard).into_response(),
        Err(refused) => refused,
    }
}

/// A window of the first pool, which is the only pool in most configurations.
async fn window(State(admin): State<Arc<Admin>>, OfPath(id): OfPath<u64>) -> Response {
    match admin.pools.load_full().first() {
        Some(pool) => admin.decision_of(pool, id).await,
        None => error(StatusCode::NOT_FOUND, "there are no pools"),
    }
}

async fn pool_window(
    State(admin): State<Arc<Admin>>,
    OfPath((name, id)): OfPath<(String, u64)>,
) -> Response {
    let pools = admin.pools.load_full();
    match pools.iter().find(|pool| pool.pool.name() == name) {
        Some(pool) => admin.decision_of(pool, id).await,
        None => error(StatusCode::NOT_FOUND, "no such pool"),
    }
}

async fn pool_request(
    State(admin): State<Arc<Admin>>,
    OfPath((name, id)): OfPath<(String, u64)>,
) -> Response {
    let pools = admin.pools.load_full();
    match pools.iter().find(|pool| pool.pool.name() == name) {
        Some(pool) => admin.decision_about(pool, RequestId(id)).await,
        None => error(StatusCode::NOT_FOUND, "no such pool"),
    }
}

async fn order(
    State(admin): State<Arc<Admin>>,
    OfPath((name, verb)): OfPath<(String, Verb)>,
    headers: HeaderMap,
    order: Result<Json<PolicyOrder>, JsonRejection>,
) -> Response {
    let by = match admin.operators.orderer(&headers) {
        Ok(by) => by,
        Err(refused) => return not_allowed(&refused),
    };
    let Json(order) = match order {
        Ok(order) => order,
        Err(refused) => return error(refused.status(), &refused.body_text()),
    };
    let serving = admin.pools.load_full();
    let Some(pool) = serving.iter().find(|pool| pool.pool.name() == name) else {
        return error(StatusCode::NOT_FOUND, "no such pool");
    };
    if verb != Verb::Shadow
        && let Some(other) = follower(&serving, pool)
    {
        let text = format!(
            "pool `{other}` follows {} too, and an order would change both: give one of them another \
             `policy` in its [[pool]], such as a copy of the file",
            pool.policies.status().file,
        );
        return error(StatusCode::CONFLICT, &text);
    }
    if verb == Verb::Shadow {
        let (slot, policies) = (pool.shadow.clone(), pool.policies.clone());
        let (status, body) = orders::shadow(&name, slot, &policies, &order, &by).await;
        return (status, Json(body)).into_response();
    }
    let shadow = pool.shadow.status();
    let to = match order.target(verb, &pool.policies, shadow.as_ref()) {
        Ok(to) => to,
        Err(reason) => return error(StatusCode::BAD_REQUEST, &reason),
    };
    let expect = order.expect;
    let order = SwapOrder { to, expect, by };
    let now_us = admin.clock.now().0;
    let (status, body) = orders::carry_out(&name, pool.policies.clone(), order, now_us).await;
    (status, Json(body)).into_response()
}

/// Another pool that follows the same file as this one.
fn follower<'a>(serving: &'a [AdminPool], pool: &AdminPool) -> Option<&'a str> {
    let file = pool.policies.status().file;
    let mut others = serving
        .iter()
        .filter(|other| other.pool.name() != pool.pool.name());
    let follower = others.find(|other| other.policies.status().file == file);
    follower.map(|other| other.pool.name())
}

fn error(status: StatusCode, text: &str) -> Response {
    (status, Json(serde_json::json!({ "error": text }))).into_response()
}
