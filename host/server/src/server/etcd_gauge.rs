//! Whether etcd answers, as a metric.

use switchyard_remote::Etcd;
use tokio::task::JoinHandle;

use crate::config::EtcdConfig;
use crate::telemetry::{Registry, names};

/// Keeps the metric until it is aborted; nothing without etcd.
pub(super) fn follow(config: &EtcdConfig, registry: &Registry) -> Option<JoinHandle<()>> {
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
