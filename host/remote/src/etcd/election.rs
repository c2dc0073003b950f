//! The one active scheduler: the first that writes the key has it, for as long as it renews its lease.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::calls::{self, Keys};
use super::client::{Etcd, RETRY};
use super::fence::Fence;
use super::grant::{Grant, NotRenewed};

/// Pause before a renewal that failed is tried again.
const RENEW_AGAIN: Duration = Duration::from_millis(200);

/// Longest wait for etcd at the end.
const END_LIMIT: Duration = Duration::from_millis(400);

/// A scheduler that may be the active one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The key that the active one has.
    pub key: String,
    /// Its name there, for those that stand by and their clients.
    pub name: String,
}

/// An election in which this process takes part.
pub struct Election {
    leave: watch::Sender<bool>,
    running: JoinHandle<()>,
}

// === impl Election ===

impl Election {
    /// Takes part from now on, in the background, whenever the process is fit.
    pub fn start(
        etcd: Arc<Etcd>,
        candidate: Candidate,
        fence: Arc<Fence>,
        is_fit: impl Fn() -> bool + Send + 'static,
    ) -> Self {
        let (leave, mut left) = watch::channel(false);
        let running = tokio::spawn(async move {
            let mut held = None;
            tokio::select! {
                () = take_part(&etcd, &candidate, &fence, is_fit, &mut held) => {}
                // An error: the election is gone as well.
                _ = left.wait_for(|left| *left) => {}
            }
            fence.step_down();
            if let Some(grant) = held {
                grant.revoke().await;
            }
        });
        Self { leave, running }
    }

    /// Steps down, so that another scheduler is active at once.
    pub async fn end(&mut self) {
        self.leave.send_replace(true);
        if timeout(END_LIMIT, &mut self.running).await.is_err() {
            // The lease ends by itself.
            self.running.abort();
        }
    }
}

async fn take_part<'a>(
    etcd: &'a Etcd,
    candidate: &Candidate,
    fence: &Fence,
    is_fit: impl Fn() -> bool,
    held: &mut Option<Grant<'a>>,
) {
    loop {
        while !is_fit() {
            sleep(RETRY).await;
        }
        if let Err(reason) = campaign(etcd, candidate, fence, held).await {
            tracing::debug!(reason, "no election");
            // A watch that breaks while etcd answers is worth no word.
            if let Err(reason) = etcd.connect().await {
                etcd.is_away(&reason);
            }
            sleep(RETRY).await;
        }
    }
}

/// Waits while another scheduler has the key; otherwise tries to write it, and holds it.
async fn campaign<'a>(
    etcd: &'a Etcd,
    Candidate { key, name }: &Candidate,
    fence: &Fence,
    held: &mut Option<Grant<'a>>,
) -> Result<(), String> {
    let channel = etcd.connect().await?;
    let keys = Keys::one(key);
    let found = calls::range(&channel, &keys).await?;
    etcd.is_back();
    if let Some(pair) = found.pairs.first() {
        fence.stands_by(&String::from_utf8_lossy(&pair.value));
        let mut changes = calls::watch(&channel, &keys, found.revision).await?;
        return changes.changed().await;
    }
    let grant = held.insert(Grant::obtain(etcd).await?);
    if calls::put_new(&grant.channel, key, name.clone().into(), grant.id).await? {
        hold(etcd, grant, fence, name).await;
    }
    if let Some(grant) = held.take() {
        grant.revoke().await;
    }
    Ok(())
}

/// Renews the lease, and steps down where it may have ended.
async fn hold(etcd: &Etcd, grant: &mut Grant<'_>, fence: &Fence, name: &str) {
    // Clocks differ in their rates, and a batch takes a while from the look at the fence to its worker.
    let margin = etcd.ttl() / 5;
    let mut until = grant.until - margin;
    fence.take(until, name);
    let mut pause = grant.pause();
    loop {
        sleep_until(until.min(Instant::now() + pause)).await;
        match timeout_at(until, grant.renew()).await {
            Ok(Ok(())) => {
                until = grant.until - margin;
                if !fence.extend(until) {
                    break;
                }
                pause = grant.pause();
            }
            Ok(Err(NotRenewed::Away(reason))) if Instant::now() < until => {
                etcd.is_away(&reason);
                pause = RENEW_AGAIN;
            }
            Ok(Err(_)) | Err(_) => break,
        }
    }
    fence.step_down();
}
