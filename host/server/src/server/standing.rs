//! Whether this scheduler is the active one, and whether etcd answers.

use std::sync::Arc;

use switchyard_remote::{Candidate, Election, Etcd, Fence};
use tokio::task::JoinHandle;

use super::serving::ServingPools;
use crate::config::{Config, EtcdConfig};
use crate::telemetry::{Registry, names};

/// The part of this server in an election.
pub(super) struct Standing {
    election: Election,
    gauge: JoinHandle<()>,
}

/// Takes part in the election of the configuration, once every pool is ready; nothing without one.
pub(super) fn elect(config: &Config, pools: &Arc<ServingPools>) -> Option<Standing> {
    let fence = pools.starter().fence.clone()?;
    let etcd = Etcd::shared(config.etcd.options()?);
    let http = || config.server.http.to_string();
    let candidate = Candidate {
        key: config.etcd.election.clone()?,
        name: config.etcd.advertise.clone().unwrap_or_else(http),
    };
    let gauge = tokio::spawn(show_active(Arc::clone(&fence), pools.registry().clone()));
    let pools = Arc::clone(pools);
    let is_ready = move || {
        let pools = pools.all();
        pools
            .iter()
            .all(|pool| pool.handle().readiness().check().is_ok())
    };
    Some(Standing {
        election: Election::start(etcd, candidate, fence, is_ready),
        gauge,
    })
}

async fn show_active(fence: Arc<Fence>, registry: Registry) {
    let gauge = registry.gauge(names::ACTIVE, []);
    let mut is_held = false;
    loop {
        gauge.set(f64::from(u8::from(is_held)));
        fence.turned(!is_held).await;
        is_held = !is_held;
    }
}

/// Keeps the metric of etcd until it is aborted; nothing without etcd.
pub(super) fn show_etcd(config: &EtcdConfig, registry: &Registry) -> Option<JoinHandle<()>> {
    let mut absence = Etcd::shared(config.options()?).absence();
    let gauge = registry.gauge(names::ETCD_UP, []);
    Some(tokio::spawn(async move {
        loop {
            let is_away = !absence.borrow_and_update().is_empty();
            gauge.set(f64::from(u8::from(!is_away)));
            // An error: no part of the process uses etcd any more.
            if absence.changed().await.is_err() {
                return;
            }
        }
    }))
}

// === impl Standing ===

impl Standing {
    /// Steps down.
    pub(super) async fn end(mut self) {
        self.election.end().await;
        self.gauge.abort();
    }
}
