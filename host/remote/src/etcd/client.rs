//! etcd, as this process reaches it.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;

use super::options::EtcdOptions;
use crate::channel::{Channel, Pings};

/// Pause before etcd is asked again after a failure.
pub(crate) const RETRY: Duration = Duration::from_millis(500);

/// etcd's servers count pings that come more often than every five seconds, or without a call, as abuse.
const PINGS: Pings = Pings {
    after: Duration::from_secs(6),
    while_idle: false,
};

/// Those in use, so that all parts of a process agree whether etcd answers.
static SHARED: Mutex<Vec<Weak<Etcd>>> = Mutex::new(Vec::new());

/// etcd, as this process reaches it.
pub struct Etcd {
    options: EtcdOptions,
    /// The endpoint that answered last.
    answered: AtomicUsize,
    /// Why it is away; empty: it is not.
    away: watch::Sender<String>,
}

// === impl Etcd ===

impl Etcd {
    /// Reached in this way: one for all who reach it so. No call is made yet.
    pub fn shared(options: EtcdOptions) -> Arc<Self> {
        // Whole at every point where a panic could strike.
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|etcd| etcd.strong_count() > 0);
        let mut known = shared.iter().filter_map(Weak::upgrade);
        if let Some(etcd) = known.find(|etcd| etcd.options == options) {
            return etcd;
        }
        let etcd = Arc::new(Self {
            options,
            answered: AtomicUsize::new(0),
            away: watch::Sender::default(),
        });
        shared.push(Arc::downgrade(&etcd));
        etcd
    }

    /// How long it keeps the entries of a process that is silent.
    pub fn ttl(&self) -> Duration {
        self.options.ttl
    }

    /// Why it is away, as it changes; empty while it answers.
    pub fn absence(&self) -> watch::Receiver<String> {
        self.away.subscribe()
    }

    /// Connects to the first endpoint that answers, beginning with the last one that did.
    ///
    /// # Errors
    /// No endpoint answers: the reason of each.
    pub(crate) async fn connect(&self) -> Result<Channel, String> {
        let endpoints = &self.options.endpoints;
        let first = self.answered.load(Ordering::Relaxed);
        let mut reasons = Vec::new();
        for turn in 0..endpoints.len() {
            let at = (first + turn) % endpoints.len();
            let tls = self.options.tls.as_ref();
            match Channel::connect(&endpoints[at].0, tls, PINGS).await {
                Ok(channel) => {
                    self.answered.store(at, Ordering::Relaxed);
                    return Ok(channel);
                }
                Err(error) => reasons.push(error.reason()),
            }
        }
        Err(reasons.join("; "))
    }

    /// It has answered.
    pub(crate) fn is_back(&self) {
        let was_away = self.away.send_if_modified(|away| {
            let was_away = !away.is_empty();
            away.clear();
            was_away
        });
        if was_away {
            tracing::info!("etcd answers again");
        }
    }

    /// It does not answer. The next connection begins with another endpoint.
    pub(crate) fn is_away(&self, reason: &str) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        let is_news = self.away.send_if_modified(|away| {
            let is_news = away.is_empty();
            reason.clone_into(away);
            is_news
        });
        if is_news {
            tracing::warn!(reason, "etcd is away: its last answers stay");
        }
    }
}

impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Etcd").field(&self.options).finish()
    }
}
