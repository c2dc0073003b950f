//! The entry of a worker, for as long as it serves.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::calls;
use super::client::{Etcd, RETRY};
use super::grant::{Grant, NotRenewed};
use super::members::RegisteredValue;

/// Longest wait for etcd at the end of a worker.
const END_LIMIT: Duration = Duration::from_secs(1);

/// A worker to register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredWorker {
    /// The prefix of the workers' keys.
    pub prefix: String,
    /// Its own name among them. A process that starts later under the same name takes the entry over.
    pub name: String,
    /// The address for schedulers, `HOST:PORT`.
    pub address: String,
}

/// An entry that is kept. Without [`end`](Self::end) it lasts until its lease ends.
pub struct Registration {
    leave: watch::Sender<bool>,
    keeping: JoinHandle<()>,
}

// === impl Registration ===

impl Registration {
    /// Registers from now on, in the background. While etcd is away it tries again.
    pub fn start(etcd: Arc<Etcd>, worker: RegisteredWorker) -> Self {
        let (leave, left) = watch::channel(false);
        let value = RegisteredValue {
            address: worker.address.clone(),
            incarnation: incarnation(),
        };
        Self {
            leave,
            keeping: tokio::spawn(keep(etcd, worker, value, left)),
        }
    }

    /// Takes the entry back: schedulers send no more batches.
    pub async fn end(&mut self) {
        self.leave.send_replace(true);
        // Without an answer the lease ends by itself.
        let _ = timeout(END_LIMIT, &mut self.keeping).await;
    }
}

/// A number that no other process of this name has: the time of its start.
fn incarnation() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_micros() as u64
}

async fn keep(
    etcd: Arc<Etcd>,
    worker: RegisteredWorker,
    value: RegisteredValue,
    mut left: watch::Receiver<bool>,
) {
    let key = format!("{}/{}", worker.prefix, worker.name);
    // A struct of plain fields.
    let value = serde_json::to_string(&value).unwrap_or_default();
    let mut grant = None;
    tokio::select! {
        () = entered(&etcd, &key, &value, &mut grant) => {}
        // An error: the worker is gone as well.
        _ = left.wait_for(|left| *left) => {}
    }
    if let Some(grant) = grant {
        grant.revoke().await;
        tracing::info!(key, "left etcd");
    }
}

/// Keeps the entry until it is dropped. The lease stays with the caller.
async fn entered<'a>(etcd: &'a Etcd, key: &str, value: &str, held: &mut Option<Grant<'a>>) {
    loop {
        let granted = match Grant::obtain(etcd).await {
            Ok(grant) => calls::put(&grant.channel, key, value.to_owned().into(), grant.id)
                .await
                .map(|()| grant),
            Err(reason) => Err(reason),
        };
        let grant = match granted {
            Ok(grant) => held.insert(grant),
            Err(reason) => {
                etcd.is_away(&reason);
                sleep(RETRY).await;
                continue;
            }
        };
        etcd.is_back();
        tracing::info!(key, value, "registered in etcd");
        let mut pause = grant.pause();
        loop {
            sleep(pause).await;
            match grant.renew().await {
                Ok(()) => pause = grant.pause(),
                // A lease does not end while etcd is down: the same one is tried again.
                Err(NotRenewed::Away(reason)) => {
                    etcd.is_away(&reason);
                    pause = RETRY;
                }
                Err(NotRenewed::Ended) => break,
            }
        }
        *held = None;
    }
}
