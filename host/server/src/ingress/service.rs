//! One request to one response: routing, and every endpoint but inference.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::{HeaderMap, Request, StatusCode};
use serde_json::Value;
use switchyard_protocol::metadata::{self, AppMetadata, AppReady, ServerMetadata};
use switchyard_protocol::{
    AppAction, AppIndex, AppInfo, Control, IndexQuery, InferError, ProtocolError, RequestFailure,
    Route, VariantIndex, check_origin,
};

use super::backend::Backend;
use super::backends::{Backends, Exposed};
use super::body::{self, BodyLimit, BodyReader};
use super::connection_state::ConnectionState;
use super::infer::infer;
use super::limits::Limits;
use super::memory::{MemoryShare, RequestMemory};
use super::reply::{self, Reply, json, json_bytes};
use super::turnstile::Turnstiles;

/// The largest body of a request about the repository: its parameters are names and booleans.
const REPOSITORY_BODY: BodyLimit<'static> = BodyLimit {
    bytes: 64 << 10,
    scope: " for a request about the repository",
};

/// The state that all connections share.
pub(super) struct Service<B> {
    backends: Arc<Backends<B>>,
    memory: Arc<RequestMemory>,
    turnstiles: Turnstiles,
    /// A [`Stage`].
    stage: AtomicU8,
}

/// The life of a server. It only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Serving,
    /// Readiness has fallen; all else is as before.
    Leaving,
    /// New inferences are refused.
    Draining,
}

/// One request, and the backend that it keeps to its end.
struct Exchange<'a, B> {
    service: &'a Service<B>,
    exposed: Arc<Exposed<B>>,
}

/// A request and its connection.
struct Asked<'a> {
    headers: &'a HeaderMap,
    body: &'a mut Incoming,
    connection: &'a ConnectionState,
}

// === impl Service ===

impl<B: Backend> Service<B> {
    pub(super) fn new(backends: Arc<Backends<B>>) -> Self {
        let limits = backends.limits();
        Self {
            memory: Arc::new(RequestMemory::new(limits.request_memory_bytes)),
            turnstiles: Turnstiles::start(),
            backends,
            stage: AtomicU8::new(Stage::Serving as u8),
        }
    }

    pub(super) fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Release);
    }

    fn is_before(&self, stage: Stage) -> Result<(), InferError> {
        if self.stage.load(Ordering::Acquire) >= stage as u8 {
            return Err(InferError::Draining);
        }
        Ok(())
    }

    /// Whether a health check would wait for the requests that are under way.
    pub(super) fn is_crowded(&self) -> bool {
        self.turnstiles.is_crowded()
    }

    /// Counts a connection that was refused.
    pub(super) fn on_connection_refused(&self) {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let exposed = self.backends.current();
        exposed.backend.on_refused(None, status.as_u16());
    }

    /// Answers one request, also one that fails.
    pub(super) async fn respond(
        &self,
        request: Request<Incoming>,
        connection: &Arc<ConnectionState>,
    ) -> Reply {
        let (head, mut body) = request.into_parts();
        let path = head.uri.path();
        let mut app = None;
        let exchange = Exchange {
            service: self,
            exposed: self.backends.current(),
        };
        let result = match Route::of(head.method.as_str(), path) {
            Ok(route) => {
                let asked = Asked {
                    headers: &head.headers,
                    body: &mut body,
                    connection,
                };
                exchange.dispatch(route, asked, &mut app).await
            }
            Err(error) => Err(error.into()),
        };
        let reply = result.unwrap_or_else(|failure| {
            if let RequestFailure::Protocol(error) = &failure {
                tracing::debug!(%error, path, "refused");
                let backend = &exchange.exposed.backend;
                backend.on_refused(app, error.status().as_u16());
            }
            reply::failure(&failure)
        });
        let timed_out = reply.status() == StatusCode::REQUEST_TIMEOUT;
        if !body.is_end_stream() && !timed_out {
            let connection = Arc::clone(connection);
            tokio::spawn(body::discard(body, self.backends.limits(), connection));
        }
        reply
    }
}

// === impl Exchange ===

impl<B: Backend> Exchange<'_, B> {
    fn backend(&self) -> &B {
        &self.exposed.backend
    }

    fn limits(&self) -> &Limits {
        self.service.backends.limits()
    }

    /// Serves a route; sets `app` once the app is known, for the count of refused requests.
    async fn dispatch(
        &self,
        route: Route<'_>,
        asked: Asked<'_>,
        app: &mut Option<AppIndex>,
    ) -> Result<Reply, RequestFailure> {
        match route {
            Route::App {
                app: name,
                variant,
                action,
            } => {
                let index = self.app(&name)?;
                *app = Some(index);
                let variant = match variant {
                    Some(variant) => find_variant(self.info(index), &variant)?,
                    None => None,
                };
                if action != AppAction::Infer {
                    return self.describe(index, variant, action);
                }
                self.service.is_before(Stage::Draining)?;
                infer(
                    &self.exposed.backend,
                    &self.service.memory,
                    &self.service.turnstiles,
                    &self.exposed.bodies[index.0],
                    (index, variant),
                    asked.headers,
                    self.reader(asked.body, asked.connection),
                )
                .await
            }
            Route::ServerMetadata => Ok(json(&ServerMetadata::new(env!("CARGO_PKG_VERSION")))),
            Route::Live => {
                self.backend().live().map_err(InferError::NotReady)?;
                Ok(fixed(metadata::LIVE_BODY))
            }
            Route::Ready => self.ready(),
            Route::AllStats => {
                let apps = (0..self.backend().apps().len()).map(AppIndex);
                let stats: Vec<_> = apps.flat_map(|app| self.stats(app, None)).collect();
                Ok(json(&metadata::stats(&stats)))
            }
            Route::RepositoryIndex => self.repository_index(asked).await,
            Route::RepositoryControl { app: name, verb } => {
                self.allows_control()?;
                let index = self.app(&name);
                *app = index.as_ref().ok().copied();
                if verb == Control::Unload {
                    index.as_ref().map_err(Clone::clone)?;
                }
                check_origin(asked.headers, !asked.body.is_end_stream())?;
                self.service.is_before(Stage::Draining)?;
                match index {
                    Ok(index) => self.control(index, verb, asked).await,
                    Err(unknown) => self.add(&name, asked, unknown).await,
                }
            }
        }
    }

    fn reader<'a>(
        &'a self,
        body: &'a mut Incoming,
        connection: &'a ConnectionState,
    ) -> BodyReader<'a, Incoming> {
        BodyReader {
            body,
            connection,
            limits: self.limits(),
            memory: &self.service.memory,
        }
    }

    fn allows_control(&self) -> Result<(), ProtocolError> {
        if self.limits().model_control {
            return Ok(());
        }
        Err(ProtocolError::Forbidden {
            field: "path",
            reason:
                "clients may not load or unload apps on this server; `model_control = true` in \
                     [server] of its configuration allows it"
                    .to_owned(),
        })
    }

    fn app(&self, name: &str) -> Result<AppIndex, ProtocolError> {
        self.backend().app_index(name).ok_or_else(|| {
            let names = self.backend().apps().iter().map(|app| app.name.as_str());
            ProtocolError::UnknownApp {
                name: name.to_owned(),
                known: names.collect::<Vec<_>>().join(", "),
            }
        })
    }

    fn info(&self, app: AppIndex) -> &AppInfo {
        &self.backend().apps()[app.0]
    }

    fn ready(&self) -> Result<Reply, RequestFailure> {
        self.service.is_before(Stage::Leaving)?;
        self.backend()
            .server_ready()
            .map_err(InferError::NotReady)?;
        Ok(fixed(metadata::READY_BODY))
    }

    /// Every endpoint of an app but inference.
    fn describe(
        &self,
        index: AppIndex,
        variant: Option<VariantIndex>,
        action: AppAction,
    ) -> Result<Reply, RequestFailure> {
        let app = self.info(index);
        match action {
            AppAction::Ready => {
                self.service.is_before(Stage::Leaving)?;
                let ready = self.backend().app_ready(index, variant);
                ready.map_err(InferError::NotReady)?;
                Ok(json(&AppReady::new(&app.name)))
            }
            AppAction::Config => Ok(json(&metadata::config(app))),
            AppAction::Stats => Ok(json(&metadata::stats(&self.stats(index, variant)))),
            AppAction::Metadata | AppAction::Infer => Ok(json(&AppMetadata::new(app, variant))),
        }
    }

    /// Statistics of an app's variants, or of the pinned one.
    fn stats(&self, index: AppIndex, variant: Option<VariantIndex>) -> Vec<Value> {
        let app = self.info(index);
        let variants = match variant {
            Some(VariantIndex(variant)) => variant..variant + 1,
            None => 0..app.variants.len(),
        };
        variants
            .map(|variant| {
                let stats = self.backend().stats(index, VariantIndex(variant));
                metadata::variant_stats(&app.name, &app.variants[variant], &stats)
            })
            .collect()
    }

    async fn control(
        &self,
        app: AppIndex,
        verb: Control,
        asked: Asked<'_>,
    ) -> Result<Reply, RequestFailure> {
        let client = asked.connection.peer;
        let body = self.repository_body(asked).await?;
        verb.check_body(&body)?;
        log_control(client, &self.info(app).name, verb);
        self.backend().control(app, verb).await?;
        Ok(fixed(b"{}"))
    }

    /// Serves an app that only a folder of models has.
    async fn add(
        &self,
        name: &str,
        asked: Asked<'_>,
        unknown: ProtocolError,
    ) -> Result<Reply, RequestFailure> {
        let client = asked.connection.peer;
        let body = self.repository_body(asked).await?;
        Control::Load.check_body(&body)?;
        log_control(client, name, Control::Load);
        match self.backend().add(name).await? {
            true => Ok(fixed(b"{}")),
            false => Err(unknown.into()),
        }
    }

    async fn repository_body(&self, asked: Asked<'_>) -> Result<Bytes, ProtocolError> {
        let reader = self.reader(asked.body, asked.connection);
        let mut share = MemoryShare::default();
        reader.read(REPOSITORY_BODY, &mut share).await
    }

    /// Every variant and its state.
    async fn repository_index(&self, asked: Asked<'_>) -> Result<Reply, RequestFailure> {
        let body = self.repository_body(asked).await?;
        let query = IndexQuery::parse(&body)?;
        let mut entries = Vec::new();
        for (app_index, app) in self.backend().apps().iter().enumerate() {
            for (variant_index, variant) in app.variants.iter().enumerate() {
                let (app_index, variant_index) = (AppIndex(app_index), VariantIndex(variant_index));
                let (state, reason) = self.backend().app_state(app_index, variant_index);
                if state == "READY" || !query.ready {
                    let entry = metadata::repository_entry(&app.name, variant, state, &reason);
                    entries.push(entry);
                }
            }
        }
        Ok(json(&entries))
    }
}

/// Versions of clients that count versions: the policy chooses, as without a version.
const ANY_VARIANT: [&str; 2] = ["1", "latest"];

fn find_variant(app: &AppInfo, name: &str) -> Result<Option<VariantIndex>, ProtocolError> {
    let found = app.variants.iter().position(|variant| variant == name);
    if found.is_none() && ANY_VARIANT.contains(&name) {
        return Ok(None);
    }
    let found = found.ok_or_else(|| ProtocolError::UnknownVariant {
        app: app.name.clone(),
        name: name.to_owned(),
        known: app.variants.join(", "),
    });
    found.map(|at| Some(VariantIndex(at)))
}

/// Unloading takes an app from all clients: the log says on whose request.
fn log_control(client: SocketAddr, app: &str, verb: Control) {
    let verb = match verb {
        Control::Load => "load",
        Control::Unload => "unload",
    };
    tracing::info!(%client, app, verb, "model control");
}

fn fixed(body: &'static [u8]) -> Reply {
    json_bytes(StatusCode::OK, Bytes::from_static(body))
}
