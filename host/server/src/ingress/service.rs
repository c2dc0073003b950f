//! One request to one response: routing, and the endpoints that are not inference.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::{Method, Request, StatusCode};
use serde::{Deserialize, Serialize};

use super::backend::{AppInfo, Backend, Control, InferError};
use super::body;
use super::control::ControlRequest;
use super::error::{Failure, ProtocolError};
use super::infer::infer;
use super::limits::Limits;
use super::metadata;
use super::reply::{Reply, json, with_body};
use super::route::{AppAction, Endpoint, Route};

/// What all connections share.
pub(super) struct Service<B> {
    pub(super) backend: Arc<B>,
    pub(super) limits: Limits,
    /// Set once, when the shutdown begins.
    pub(super) draining: AtomicBool,
}

impl<B: Backend> Service<B> {
    /// Answers one request. Failures are answers too.
    pub(super) async fn respond(&self, request: Request<Incoming>) -> Reply {
        let (head, mut body) = request.into_parts();
        let path = head.uri.path();
        let mut app = None;
        let result = match routed(&head.method, path) {
            Ok(route) => {
                self.dispatch(route, &head.headers, &mut body, &mut app)
                    .await
            }
            Err(error) => Err(error.into()),
        };
        let reply = result.unwrap_or_else(|failure| {
            let reply = failure.reply();
            if let Failure::Protocol(error) = &failure {
                tracing::debug!(%error, path, "refused");
                self.backend.on_refused(app, reply.status().as_u16());
            }
            reply
        });
        let timed_out = reply.status() == StatusCode::REQUEST_TIMEOUT;
        if !body.is_end_stream() && !timed_out {
            tokio::spawn(body::discard(body, &self.limits));
        }
        reply
    }

    async fn dispatch(
        &self,
        route: Route<'_>,
        headers: &hyper::HeaderMap,
        body: &mut Incoming,
        app: &mut Option<usize>,
    ) -> Result<Reply, Failure> {
        match route {
            Route::App {
                app: name,
                variant,
                action,
            } => {
                let index = self.app(&name)?;
                *app = Some(index);
                let variant = match variant {
                    Some(variant) => Some(find_variant(&self.backend.apps()[index], &variant)?),
                    None => None,
                };
                if action != AppAction::Infer {
                    return self.describe(index, variant, action);
                }
                self.not_draining()?;
                infer(&self.backend, &self.limits, (index, variant), headers, body).await
            }
            Route::ServerMetadata => Ok(json(StatusCode::OK, &metadata::server())),
            Route::Live => Ok(fixed(br#"{"live":true}"#)),
            Route::Ready => self.ready(),
            Route::AllStats => {
                let apps = 0..self.backend.apps().len();
                let stats: Vec<_> = apps
                    .flat_map(|app| metadata::stats(&*self.backend, app, None))
                    .collect();
                Ok(json(StatusCode::OK, &metadata::stats_body(&stats)))
            }
            Route::RepositoryIndex => self.repository_index(body).await,
            Route::RepositoryControl { app: name, verb } => {
                let index = self.app(&name)?;
                *app = Some(index);
                self.not_draining()?;
                self.control(index, verb, body).await
            }
        }
    }

    fn app(&self, name: &str) -> Result<usize, ProtocolError> {
        self.backend.app_index(name).ok_or_else(|| {
            let names = self.backend.apps().iter().map(|app| app.name.as_str());
            ProtocolError::UnknownApp {
                name: name.to_owned(),
                known: names.collect::<Vec<_>>().join(", "),
            }
        })
    }

    fn not_draining(&self) -> Result<(), InferError> {
        if self.draining.load(Ordering::Acquire) {
            return Err(InferError::Draining);
        }
        Ok(())
    }

    fn ready(&self) -> Result<Reply, Failure> {
        self.not_draining()?;
        self.backend.server_ready().map_err(InferError::NotReady)?;
        Ok(fixed(br#"{"live":true,"ready":true}"#))
    }

    /// Everything about an app but inference.
    fn describe(
        &self,
        index: usize,
        variant: Option<usize>,
        action: AppAction,
    ) -> Result<Reply, Failure> {
        let app = &self.backend.apps()[index];
        match action {
            AppAction::Ready => {
                self.not_draining()?;
                let ready = self.backend.app_ready(index, variant);
                ready.map_err(InferError::NotReady)?;
                let name = &app.name;
                Ok(json(StatusCode::OK, &AppReady { name, ready: true }))
            }
            AppAction::Config => Ok(json(StatusCode::OK, &metadata::config(app))),
            AppAction::Stats => {
                let stats = metadata::stats(&*self.backend, index, variant);
                Ok(json(StatusCode::OK, &metadata::stats_body(&stats)))
            }
            AppAction::Metadata | AppAction::Infer => {
                Ok(json(StatusCode::OK, &metadata::app(app, variant)))
            }
        }
    }

    async fn control(
        &self,
        app: usize,
        verb: Control,
        body: &mut Incoming,
    ) -> Result<Reply, Failure> {
        let body = body::read(body, &self.limits).await?;
        ControlRequest::check(&body, verb)?;
        self.backend.control(app, verb).await?;
        Ok(fixed(b"{}"))
    }

    async fn repository_index(&self, body: &mut Incoming) -> Result<Reply, Failure> {
        let body = body::read(body, &self.limits).await?;
        let query = if body.is_empty() {
            IndexQuery::default()
        } else {
            serde_json::from_slice(&body)
                .map_err(|error| ProtocolError::malformed("body", error.to_string()))?
        };
        let index = metadata::repository_index(&*self.backend, query.ready);
        Ok(json(StatusCode::OK, &index))
    }
}

#[derive(Serialize)]
struct AppReady<'a> {
    name: &'a str,
    ready: bool,
}

/// Body of a repository index request.
#[derive(Default, Deserialize)]
struct IndexQuery {
    /// List only what is ready.
    #[serde(default)]
    ready: bool,
}

/// The route of a request, if it has the right method.
fn routed<'a>(method: &Method, path: &'a str) -> Result<Route<'a>, ProtocolError> {
    let route = Route::parse(path)?;
    let Endpoint { method: served, .. } = route.endpoint();
    // hyper sends no body in answer to HEAD, so it is served as GET.
    let matches = method.as_str() == served || (*method == Method::HEAD && served == "GET");
    if matches {
        return Ok(route);
    }
    Err(ProtocolError::MethodNotAllowed {
        method: method.to_string(),
        path: path.to_owned(),
        allow: if served == "GET" { "GET, HEAD" } else { served },
    })
}

fn find_variant(app: &AppInfo, name: &str) -> Result<usize, ProtocolError> {
    let found = app.variants.iter().position(|variant| variant == name);
    found.ok_or_else(|| ProtocolError::UnknownVariant {
        app: app.name.clone(),
        name: name.to_owned(),
        known: app.variants.join(", "),
    })
}

fn fixed(body: &'static [u8]) -> Reply {
    with_body(StatusCode::OK, Bytes::from_static(body))
}
