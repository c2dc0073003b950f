//! A lease of etcd: its keys last for as long as it is renewed.

use std::time::Duration;

use tokio::time::Instant;

use super::calls;
use super::client::Etcd;
use crate::channel::Channel;

/// A lease.
pub(super) struct Grant<'a> {
    etcd: &'a Etcd,
    pub(super) id: i64,
    pub(super) channel: Channel,
    /// etcd keeps it at least until then: counted from before the question.
    pub(super) until: Instant,
}

/// Why a lease was not renewed.
pub(super) enum NotRenewed {
    /// It has ended, and its keys with it.
    Ended,
    /// etcd does not answer: it may have ended.
    Away(String),
}

// === impl Grant ===

impl<'a> Grant<'a> {
    pub(super) async fn obtain(etcd: &'a Etcd) -> Result<Self, String> {
        let channel = etcd.connect().await?;
        let asked = Instant::now();
        let id = calls::grant(&channel, etcd.ttl().as_secs()).await?;
        Ok(Self {
            id,
            channel,
            until: asked + etcd.ttl(),
            etcd,
        })
    }

    /// Pause between two renewals.
    pub(super) fn pause(&self) -> Duration {
        self.etcd.ttl() / 3
    }

    pub(super) async fn renew(&mut self) -> Result<(), NotRenewed> {
        let is_kept = self.ask().await.map_err(NotRenewed::Away)?;
        self.etcd.is_back();
        match is_kept {
            true => Ok(()),
            false => Err(NotRenewed::Ended),
        }
    }

    async fn ask(&mut self) -> Result<bool, String> {
        if self.channel.is_closed() {
            self.channel = self.etcd.connect().await?;
        }
        let asked = Instant::now();
        let kept = calls::keep_alive(&self.channel, self.id, self.pause()).await;
        match kept {
            Ok(is_kept) => {
                self.until = asked + self.etcd.ttl();
                Ok(is_kept)
            }
            Err(reason) => {
                // Another member may answer.
                if let Ok(channel) = self.etcd.connect().await {
                    self.channel = channel;
                }
                Err(reason)
            }
        }
    }

    /// Ends it, if etcd answers.
    pub(super) async fn revoke(self) {
        // Without an answer it ends by itself.
        let _ = calls::revoke(&self.channel, self.id).await;
    }
}
