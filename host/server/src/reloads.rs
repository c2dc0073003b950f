//! Hot reload of weights: a thread per pool watches the files of its variants. It reads changed files
//! while the old weights serve, tries the new weights, and has them run from the next batch on.
//!
//! If any step fails, the old weights serve on and the log gives the reason. Batches that run keep the
//! weights they began with; so do requests that are parked between two stages.

mod watch;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use switchyard_core::ids::VariantId;
use switchyard_policy::files::FileWatcher;

use crate::driver::{Message, PoolHandle, PoolWeights};
use crate::telemetry::{Counter, Registry, names};

/// Reloads that are kept.
const KEPT: usize = 64;

/// The parts that a pool's weights are watched with.
pub struct ReloadsParts {
    /// The pool.
    pub pool: Arc<PoolHandle>,
    /// Its weights.
    pub weights: PoolWeights,
    /// The variants that are watched, with their folders.
    pub variants: Vec<FollowedVariant>,
    /// Where reloads are counted.
    pub registry: Registry,
}

/// A variant and its files.
#[derive(Clone, Debug)]
pub struct FollowedVariant {
    /// Its id.
    pub id: VariantId,
    /// `app/variant`.
    pub name: String,
    /// Its folder.
    pub dir: PathBuf,
}

/// Watches a pool's weights until dropped.
pub struct Reloads {
    log: ReloadLog,
    _watcher: Option<FileWatcher>,
}

/// The results of the last reloads, oldest first. Clones share the same list.
#[derive(Clone, Default)]
pub struct ReloadLog(Arc<Mutex<VecDeque<Reload>>>);

/// One reload of changed weights, and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reload {
    /// `app/variant`.
    pub variant: String,
    /// Microseconds from the server's start to the end of the reload.
    pub at_us: u64,
    /// Duration of reading and trying, in microseconds.
    pub took_us: u64,
    /// The reason why the old weights serve on; `None` if the new ones serve.
    pub error: Option<String>,
}

// === impl Reloads ===

impl Reloads {
    /// Watches the files from now on. If they cannot be watched, the log gives the reason, the weights
    /// are served, and a change needs a restart.
    pub fn start(parts: ReloadsParts) -> Self {
        let log = ReloadLog::default();
        let pool = parts.pool.name().to_owned();
        let dirs: BTreeMap<VariantId, PathBuf> = parts
            .variants
            .iter()
            .map(|v| (v.id, v.dir.clone()))
            .collect();
        let counters = parts.variants.iter().map(|variant| {
            let counter = |result| {
                let labels = [("variant", variant.name.as_str()), ("result", result)];
                parts.registry.counter(names::CACHE_RELOADS, labels)
            };
            (variant.id, (counter("switched"), counter("refused")))
        });
        let renewer = Renewer {
            log: log.clone(),
            counters: counters.collect(),
            parts,
        };
        let watcher = watch::watch(&pool, dirs, move |variant| renewer.renew(variant));
        let watcher = watcher.inspect_err(|error| {
            tracing::error!(pool, %error, "weights are not watched: a change needs a restart");
        });
        Self {
            log,
            _watcher: watcher.ok(),
        }
    }

    /// The results of the last reloads.
    pub fn log(&self) -> &ReloadLog {
        &self.log
    }
}

// === impl ReloadLog ===

impl ReloadLog {
    /// The reloads, oldest first.
    pub fn entries(&self) -> Vec<Reload> {
        self.lock().iter().cloned().collect()
    }

    fn push(&self, reload: Reload) {
        let mut entries = self.lock();
        if entries.len() == KEPT {
            entries.pop_front();
        }
        entries.push_back(reload);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Reload>> {
        // The list is consistent wherever its thread may panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === the renewer ===

struct Renewer {
    parts: ReloadsParts,
    /// Renewals that were switched to, and refused ones.
    counters: BTreeMap<VariantId, (Counter, Counter)>,
    log: ReloadLog,
}

impl Renewer {
    fn renew(&self, variant: VariantId) {
        let ReloadsParts {
            pool,
            weights,
            variants,
            ..
        } = &self.parts;
        let named = variants.iter().find(|followed| followed.id == variant);
        let name = named.map_or("", |followed| followed.name.as_str());
        let began = pool.clock().now();
        let renewed = weights.renew(variant);
        let at = pool.clock().now();
        let took = at.since(began);
        if let Some((switched, refused)) = self.counters.get(&variant) {
            let counter = if renewed.is_ok() { switched } else { refused };
            counter.increment(1);
        }
        let mut error = None;
        let pool_name = pool.name();
        match renewed {
            Ok(models) => {
                tracing::info!(
                    pool = pool_name,
                    variant = name,
                    took_us = took.0,
                    "weights changed: the new ones serve"
                );
                pool.send(Message::Replace(variant, models));
            }
            Err(refused) => {
                tracing::error!(pool = pool_name, variant = name, error = %refused, "weights refused: the old ones serve on");
                error = Some(refused.to_string());
            }
        }
        self.log.push(Reload {
            variant: name.to_owned(),
            at_us: at.0,
            took_us: took.0,
            error,
        });
    }
}
