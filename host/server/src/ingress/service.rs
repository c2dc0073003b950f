//! One request to one response: routing, and every endpoint but inference.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::{HeaderMap, Request, StatusCode};
use serde_json::Value;
use switchyard_protocol::metadata::{self, AppMetadata, AppReady, ServerMetadata};
use switchyard_protocol::{
    AppAction, AppIndex, AppInfo, Control, IndexQuery, InferError, ProtocolError, RequestFailure,
    Route, VariantIndex,
};

use super::backend::Backend;
use super::body;
use super::infer::infer;
use super::limits::Limits;
use super::reply::{self, Reply, json, json_bytes};

/// The state that all connections share.
pub(super) struct Service<B> {
    pub(super) backend: Arc<B>,
    pub(super) limits: Limits,
    /// Set once, when the shutdown begins.
    pub(super) draining: AtomicBool,
}

impl<B: Backend> Service<B> {
    /// Answers one request, also one that fails.
    pub(super) async fn respond(&self, request: Request<Incoming>) -> Reply {
        let (head, mut body) = request.into_parts();
        let path = head.uri.path();
        let mut app = None;
        let result = match Route::of(head.method.as_str(), path) {
            Ok(route) => {
                self.dispatch(route, &head.headers, &mut body, &mut app)
                    .await
            }
            Err(error) => Err(error.into()),
        };
        let reply = result.unwrap_or_else(|failure| {
            if let RequestFailure::Protocol(error) = &failure {
                tracing::debug!(%error, path, "refused");
                self.backend.on_refused(app, error.status().as_u16());
            }
            reply::failure(&failure)
        });
        let timed_out = reply.status() == StatusCode::REQUEST_TIMEOUT;
        if !body.is_end_stream() && !timed_out {
            tokio::spawn(body::discard(body, &self.limits));
        }
        reply
    }

    /// Serves a route; sets `app` once the app is known, for the count of refused requests.
    async fn dispatch(
        &self,
        route: Route<'_>,
        headers: &HeaderMap,
        body: &mut Incoming,
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
                    Some(variant) => Some(find_variant(self.info(index), &variant)?),
                    None => None,
                };
                if action != AppAction::Infer {
                    return self.describe(index, variant, action);
                }
                self.not_draining()?;
                infer(&self.backend, &self.limits, (index, variant), headers, body).await
            }
            Route::ServerMetadata => Ok(json(&ServerMetadata::new(env!("CARGO_PKG_VERSION")))),
            Route::Live => {
                self.backend.live().map_err(InferError::NotReady)?;
                Ok(fixed(metadata::LIVE_BODY))
            }
            Route::Ready => self.ready(),
            Route::AllStats => {
                let apps = (0..self.backend.apps().len()).map(AppIndex);
                let stats: Vec<_> = apps.flat_map(|app| self.stats(app, None)).collect();
                Ok(json(&metadata::stats(&stats)))
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

    fn app(&self, name: &str) -> Result<AppIndex, ProtocolError> {
        self.backend.app_index(name).ok_or_else(|| {
            let names = self.backend.apps().iter().map(|app| app.name.as_str());
            ProtocolError::UnknownApp {
                name: name.to_owned(),
                known: names.collect::<Vec<_>>().join(", "),
            }
        })
    }

    fn info(&self, app: AppIndex) -> &AppInfo {
        &self.backend.apps()[app.0]
    }

    fn not_draining(&self) -> Result<(), InferError> {
        if self.draining.load(Ordering::Acquire) {
            return Err(InferError::Draining);
        }
        Ok(())
    }

    fn ready(&self) -> Result<Reply, RequestFailure> {
        self.not_draining()?;
        self.backend.server_ready().map_err(InferError::NotReady)?;
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
                self.not_draining()?;
                let ready = self.backend.app_ready(index, variant);
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
                let stats = self.backend.stats(index, VariantIndex(variant));
                metadata::variant_stats(&app.name, &app.variants[variant], &stats)
            })
            .collect()
    }

    async fn control(
        &self,
        app: AppIndex,
        verb: Control,
        body: &mut Incoming,
    ) -> Result<Reply, RequestFailure> {
        let body = body::read(body, &self.limits).await?;
        verb.check_body(&body)?;
        self.backend.control(app, verb).await?;
        Ok(fixed(b"{}"))
    }

    /// Every variant and its state.
    async fn repository_index(&self, body: &mut Incoming) -> Result<Reply, RequestFailure> {
        let body = body::read(body, &self.limits).await?;
        let query = IndexQuery::parse(&body)?;
        let mut entries = Vec::new();
        for (app_index, app) in self.backend.apps().iter().enumerate() {
            for (variant_index, variant) in app.variants.iter().enumerate() {
                let (app_index, variant_index) = (AppIndex(app_index), VariantIndex(variant_index));
                let (state, reason) = self.backend.app_state(app_index, variant_index);
                if state == "READY" || !query.ready {
                    let entry = metadata::repository_entry(&app.name, variant, state, &reason);
                    entries.push(entry);
                }
            }
        }
        Ok(json(&entries))
    }
}

fn find_variant(app: &AppInfo, name: &str) -> Result<VariantIndex, ProtocolError> {
    let found = app.variants.iter().position(|variant| variant == name);
    let found = found.ok_or_else(|| ProtocolError::UnknownVariant {
        app: app.name.clone(),
        name: name.to_owned(),
        known: app.variants.join(", "),
    });
    found.map(VariantIndex)
}

fn fixed(body: &'static [u8]) -> Reply {
    json_bytes(StatusCode::OK, Bytes::from_static(body))
}
