//! HTTP: one request to one response.

use std::sync::Arc;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method, Request, StatusCode};
use switchyard_protocol::metadata::{self, AppMetadata, AppReady, ServerMetadata};
use switchyard_protocol::{
    AppAction, AppIndex, Control, IndexQuery, InferError, ProtocolError, RequestFailure, Route,
};

use super::backend::Backend;
use super::body::{self, BodyLimit, BodyReader};
use super::connection_state::ConnectionState;
use super::infer::infer;
use super::memory::MemoryShare;
use super::reply::{self, Reply, json, json_bytes, typed_bytes};
use super::service::{Exchange, Service, Stage, Version, VersionStats, find_version};
use crate::telemetry::PROMETHEUS;

/// The largest body of a request about the repository: its parameters are names and booleans.
const REPOSITORY_BODY: BodyLimit<'static> = BodyLimit {
    bytes: 64 << 10,
    scope: " for a request about the repository",
};

/// Path of the metrics of a server without an admin port.
const METRICS: &str = "/metrics";

/// A request and its connection.
struct Asked<'a> {
    headers: &'a HeaderMap,
    body: &'a mut Incoming,
    connection: &'a ConnectionState,
}

/// Answers one request, also one that fails.
pub(super) async fn respond<B: Backend>(
    service: &Service<B>,
    request: Request<Incoming>,
    connection: &Arc<ConnectionState>,
) -> Reply {
    let (head, mut body) = request.into_parts();
    let path = head.uri.path();
    let mut app = None;
    let exchange = service.begin();
    let metrics = match path {
        METRICS if head.method == Method::GET => exchange.backend().metrics(),
        _ => None,
    };
    let routed = Route::of(head.method.as_str(), path);
    let result = match (metrics, routed) {
        (Some(text), _) => {
            let prometheus = HeaderValue::from_static(PROMETHEUS);
            Ok(typed_bytes(StatusCode::OK, text.into(), prometheus))
        }
        (None, Ok(route)) => {
            let asked = Asked {
                headers: &head.headers,
                body: &mut body,
                connection,
            };
            dispatch(&exchange, route, asked, &mut app).await
        }
        (None, Err(error)) => Err(error.into()),
    };
    let reply = result.unwrap_or_else(|failure| {
        exchange.on_failure(app, &failure, path);
        reply::failure(&failure)
    });
    let timed_out = reply.status() == StatusCode::REQUEST_TIMEOUT;
    if !body.is_end_stream() && !timed_out {
        let connection = Arc::clone(connection);
        tokio::spawn(body::discard(body, &service.limits(), connection));
    }
    reply
}

/// Serves a route; sets `app` once the app is known, for the count of refused requests.
async fn dispatch<B: Backend>(
    exchange: &Exchange<'_, B>,
    route: Route<'_>,
    asked: Asked<'_>,
    app: &mut Option<AppIndex>,
) -> Result<Reply, RequestFailure> {
    let service = exchange.service;
    match route {
        Route::App {
            app: name,
            variant,
            action,
        } => {
            let index = exchange.app(&name)?;
            *app = Some(index);
            let version = match variant {
                Some(variant) => find_version(exchange.info(index), &variant)?,
                None => Version::Unnamed,
            };
            if action != AppAction::Infer {
                return describe(exchange, index, version, action);
            }
            service.is_before(Stage::Draining)?;
            infer(
                &exchange.exposed.backend,
                &service.memory,
                &service.turnstiles,
                &exchange.exposed.bodies[index.0],
                (index, version.pinned()),
                asked.headers,
                reader(exchange, asked.body, asked.connection),
            )
            .await
        }
        Route::ServerMetadata => {
            let runs_stages = exchange.backend().runs_stages();
            Ok(json(&ServerMetadata::new(
                env!("CARGO_PKG_VERSION"),
                runs_stages,
            )))
        }
        Route::Live => {
            exchange.backend().live().map_err(InferError::NotReady)?;
            Ok(fixed(metadata::LIVE_BODY))
        }
        Route::Ready => {
            exchange.ready()?;
            Ok(fixed(metadata::READY_BODY))
        }
        Route::AllStats => Ok(stats(&exchange.all_stats())),
        // Boxed: rare requests take no room in the futures of the others.
        Route::RepositoryIndex => Box::pin(repository_index(exchange, asked)).await,
        Route::RepositoryControl { app: name, verb } => {
            Box::pin(repository_control(exchange, (&name, verb), asked, app)).await
        }
    }
}

async fn repository_index<B: Backend>(
    exchange: &Exchange<'_, B>,
    asked: Asked<'_>,
) -> Result<Reply, RequestFailure> {
    let body = repository_body(exchange, asked).await?;
    let query = IndexQuery::parse(&body)?;
    let entries = exchange.repository(query.ready);
    let entries = entries.iter().map(|entry| {
        metadata::repository_entry(entry.app, entry.variant, entry.state, &entry.reason)
    });
    Ok(json(&entries.collect::<Vec<_>>()))
}

async fn repository_control<B: Backend>(
    exchange: &Exchange<'_, B>,
    what: (&str, Control),
    asked: Asked<'_>,
    app: &mut Option<AppIndex>,
) -> Result<Reply, RequestFailure> {
    let client = asked.connection.peer;
    let has_body = !asked.body.is_end_stream();
    let index = exchange.may_control(what, asked.headers, has_body, app)?;
    let body = repository_body(exchange, asked).await?;
    what.1.check_body(&body)?;
    exchange.control(what, index, client).await?;
    Ok(fixed(b"{}"))
}

fn reader<'a, B: Backend>(
    exchange: &'a Exchange<'_, B>,
    body: &'a mut Incoming,
    connection: &'a ConnectionState,
) -> BodyReader<'a, Incoming> {
    BodyReader {
        body,
        connection,
        limits: exchange.service.limits(),
        memory: &exchange.service.memory,
    }
}

/// Every endpoint of an app but inference.
fn describe<B: Backend>(
    exchange: &Exchange<'_, B>,
    index: AppIndex,
    version: Version,
    action: AppAction,
) -> Result<Reply, RequestFailure> {
    let app = exchange.info(index);
    match action {
        AppAction::Ready => {
            exchange.app_ready(index, version.pinned())?;
            Ok(json(&AppReady::new(&app.name)))
        }
        AppAction::Config => Ok(json(&metadata::config(app))),
        AppAction::Stats => Ok(stats(&exchange.stats(index, version))),
        AppAction::Metadata | AppAction::Infer => {
            Ok(json(&AppMetadata::new(app, version.pinned())))
        }
    }
}

fn stats(entries: &[VersionStats<'_>]) -> Reply {
    let entries = entries
        .iter()
        .map(|entry| metadata::variant_stats(entry.app, entry.version, &entry.stats));
    json(&metadata::stats(&entries.collect::<Vec<_>>()))
}

async fn repository_body<B: Backend>(
    exchange: &Exchange<'_, B>,
    asked: Asked<'_>,
) -> Result<Bytes, ProtocolError> {
    let mut share = MemoryShare::of(asked.connection);
    let reader = reader(exchange, asked.body, asked.connection);
    reader.read(REPOSITORY_BODY, &mut share).await
}

fn fixed(body: &'static [u8]) -> Reply {
    json_bytes(StatusCode::OK, Bytes::from_static(body))
}
