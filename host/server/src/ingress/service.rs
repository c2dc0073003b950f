//! The state that all connections share, and the questions of both protocols.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use hyper::{HeaderMap, StatusCode};
use switchyard_protocol::{
    AppIndex, AppInfo, Control, InferError, ProtocolError, RequestFailure, VariantIndex,
    VariantStats, check_origin,
};
use tokio::sync::watch;

use super::backend::Backend;
use super::backends::{Backends, Exposed};
use super::limits::Limits;
use super::memory::RequestMemory;
use super::turnstile::Turnstiles;
use crate::sockets::Peer;

/// The state that all connections share.
pub(super) struct Service<B> {
    backends: Arc<Backends<B>>,
    pub(super) memory: Arc<RequestMemory>,
    pub(super) turnstiles: Turnstiles,
    /// A [`Stage`].
    stage: AtomicU8,
    /// Turns true with [`Stage::Draining`], for those who wait for it.
    draining: watch::Sender<bool>,
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
pub(super) struct Exchange<'a, B> {
    pub(super) service: &'a Service<B>,
    pub(super) exposed: Arc<Exposed<B>>,
}

/// The version that a client names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// None: the policy chooses.
    Unnamed,
    /// A name of clients that count versions: the policy chooses too.
    Counted(&'static str),
    /// A variant.
    Pinned(VariantIndex),
}

/// The statistics of a variant, or of all variants of an app under the name of a version.
pub(super) struct VersionStats<'a> {
    pub(super) app: &'a str,
    pub(super) version: &'a str,
    pub(super) stats: VariantStats,
}

/// A variant and its state.
pub(super) struct VariantState<'a> {
    pub(super) app: &'a str,
    pub(super) variant: &'a str,
    pub(super) state: &'static str,
    /// Empty when ready.
    pub(super) reason: String,
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
            draining: watch::Sender::new(false),
        }
    }

    pub(super) fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Release);
        self.draining.send_replace(stage == Stage::Draining);
    }

    pub(super) fn is_before(&self, stage: Stage) -> Result<(), InferError> {
        if self.stage.load(Ordering::Acquire) >= stage as u8 {
            return Err(InferError::Draining);
        }
        Ok(())
    }

    /// Completes when the drain begins. Cancel safe.
    pub(super) async fn draining(&self) {
        // An error: the sender is gone, which is part of `self`.
        let _ = self
            .draining
            .subscribe()
            .wait_for(|draining| *draining)
            .await;
    }

    /// Whether a health check would wait for the requests that are under way.
    pub(super) fn is_crowded(&self) -> bool {
        self.turnstiles.is_crowded()
    }

    /// The limits of now.
    pub(super) fn limits(&self) -> Arc<Limits> {
        self.backends.limits()
    }

    /// Begins a request with the backend that serves now.
    pub(super) fn begin(&self) -> Exchange<'_, B> {
        Exchange {
            service: self,
            exposed: self.backends.current(),
        }
    }

    /// Counts a connection that was refused.
    pub(super) fn on_connection_refused(&self) {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let exposed = self.backends.current();
        exposed.backend.on_refused(None, status.as_u16());
    }
}

// === impl Version ===

impl Version {
    /// The variant that the client insists on.
    pub(super) const fn pinned(self) -> Option<VariantIndex> {
        match self {
            Self::Pinned(variant) => Some(variant),
            Self::Unnamed | Self::Counted(_) => None,
        }
    }
}

// === impl Exchange ===

impl<B: Backend> Exchange<'_, B> {
    pub(super) fn backend(&self) -> &B {
        &self.exposed.backend
    }

    /// Counts a wrong request. The backend knows of its own failures.
    pub(super) fn on_failure(&self, app: Option<AppIndex>, failure: &RequestFailure, path: &str) {
        if let RequestFailure::Protocol(error) = failure {
            tracing::debug!(%error, path, "refused");
            self.backend().on_refused(app, error.status().as_u16());
        }
    }

    pub(super) fn app(&self, name: &str) -> Result<AppIndex, ProtocolError> {
        find_app(self.backend(), name)
    }

    pub(super) fn info(&self, app: AppIndex) -> &AppInfo {
        &self.backend().apps()[app.0]
    }

    pub(super) fn ready(&self) -> Result<(), RequestFailure> {
        self.service.is_before(Stage::Leaving)?;
        let ready = self.backend().server_ready();
        ready.map_err(|reason| InferError::NotReady(reason).into())
    }

    pub(super) fn app_ready(
        &self,
        app: AppIndex,
        variant: Option<VariantIndex>,
    ) -> Result<(), RequestFailure> {
        self.service.is_before(Stage::Leaving)?;
        let ready = self.backend().app_ready(app, variant);
        ready.map_err(|reason| InferError::NotReady(reason).into())
    }

    /// Statistics of an app's variants, of the pinned one, or of all of them together for a client that
    /// counts versions.
    pub(super) fn stats(&self, index: AppIndex, version: Version) -> Vec<VersionStats<'_>> {
        let app = self.info(index);
        let of = |variant: usize| VersionStats {
            app: &app.name,
            version: &app.variants[variant],
            stats: self.backend().stats(index, VariantIndex(variant)),
        };
        match version {
            Version::Unnamed => (0..app.variants.len()).map(of).collect(),
            Version::Pinned(VariantIndex(variant)) => vec![of(variant)],
            Version::Counted(version) => {
                let mut stats = VariantStats::default();
                for variant in 0..app.variants.len() {
                    stats += &of(variant).stats;
                }
                vec![VersionStats {
                    app: &app.name,
                    version,
                    stats,
                }]
            }
        }
    }

    /// Statistics of every variant of every app.
    pub(super) fn all_stats(&self) -> Vec<VersionStats<'_>> {
        let apps = (0..self.backend().apps().len()).map(AppIndex);
        apps.flat_map(|app| self.stats(app, Version::Unnamed))
            .collect()
    }

    /// Every variant and its state, or only those that are ready.
    pub(super) fn repository(&self, only_ready: bool) -> Vec<VariantState<'_>> {
        let mut states = Vec::new();
        for (app_index, app) in self.backend().apps().iter().enumerate() {
            for (variant_index, variant) in app.variants.iter().enumerate() {
                let (app_index, variant_index) = (AppIndex(app_index), VariantIndex(variant_index));
                let (state, reason) = self.backend().app_state(app_index, variant_index);
                if state == "READY" || !only_ready {
                    states.push(VariantState {
                        app: &app.name,
                        variant,
                        state,
                        reason,
                    });
                }
            }
        }
        states
    }

    /// Checks that the client may load or unload an app, before its body is read. An app that the
    /// server does not have yet can be loaded: the inner error is for the case that no folder has it.
    pub(super) fn may_control(
        &self,
        (name, verb): (&str, Control),
        headers: &HeaderMap,
        has_body: bool,
        app: &mut Option<AppIndex>,
    ) -> Result<Result<AppIndex, ProtocolError>, RequestFailure> {
        self.allows_control()?;
        let index = self.app(name);
        *app = index.as_ref().ok().copied();
        if verb == Control::Unload {
            index.as_ref().map_err(Clone::clone)?;
        }
        check_origin(headers, has_body)?;
        self.service.is_before(Stage::Draining)?;
        Ok(index)
    }

    fn allows_control(&self) -> Result<(), ProtocolError> {
        if self.service.limits().model_control {
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

    /// Loads or unloads an app, or serves one that only a folder of models has.
    pub(super) async fn control(
        &self,
        (name, verb): (&str, Control),
        index: Result<AppIndex, ProtocolError>,
        client: Peer,
    ) -> Result<(), RequestFailure> {
        log_control(client, name, verb);
        match index {
            Ok(index) => Ok(self.backend().control(index, verb).await?),
            Err(unknown) => match self.backend().add(name).await? {
                true => Ok(()),
                false => Err(unknown.into()),
            },
        }
    }
}

/// The index of an app.
pub(super) fn find_app<B: Backend>(backend: &B, name: &str) -> Result<AppIndex, ProtocolError> {
    backend.app_index(name).ok_or_else(|| {
        let names = backend.apps().iter().map(|app| app.name.as_str());
        ProtocolError::UnknownApp {
            name: name.to_owned(),
            known: names.collect::<Vec<_>>().join(", "),
        }
    })
}

/// Versions of clients that count versions: the policy chooses, as without a version.
pub const ANY_VARIANT: [&str; 2] = ["1", "latest"];

/// The version of a name.
pub(super) fn find_version(app: &AppInfo, name: &str) -> Result<Version, ProtocolError> {
    let found = app.variants.iter().position(|variant| variant == name);
    if let Some(found) = found {
        return Ok(Version::Pinned(VariantIndex(found)));
    }
    let counted = ANY_VARIANT.into_iter().find(|counted| *counted == name);
    counted
        .map(Version::Counted)
        .ok_or_else(|| ProtocolError::UnknownVariant {
            app: app.name.clone(),
            name: name.to_owned(),
            known: app.variants.join(", "),
        })
}

/// Unloading takes an app from all clients: the log says on whose request.
fn log_control(client: Peer, app: &str, verb: Control) {
    let verb = match verb {
        Control::Load => "load",
        Control::Unload => "unload",
    };
    tracing::info!(%client, app, verb, "model control");
}
