//! The memory of all requests together, and the large codec jobs at once.
//!
//! A body takes its share of one semaphore as it grows, in the steps in which its buffer grows, and
//! a decompressed body the same. The share is held until the request has ended: binary tensors stay
//! in the body, and the tensors of a JSON body are about as large as its text. A body that announces
//! its length takes no more than others before its bytes come, so that an announcement holds no
//! memory of others.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use switchyard_protocol::ProtocolError;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::connection_state::ConnectionState;

/// Bytes of a request that count as memory of its connection: a usual request takes no share, and
/// no lock. 4,096 connections of this size have 64 MiB.
const FREE_BYTES: usize = 16 << 10;

/// Bytes of one permit: a permit count is a u32, and bodies have up to 4 GiB.
const BLOCK_BYTES: usize = 1 << 10;

/// Longest wait for a share or for a codec job: after it the client may try another server in time
/// for its deadline.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Seconds after which a refused client may try again.
const RETRY_AFTER_S: u32 = 1;

/// Large codec jobs at once: one per core, at least 2, so that one slow job does not stop all
/// others, and at most 8, so that their buffers stay few.
const CODEC_JOBS_MIN: usize = 2;
const CODEC_JOBS_MAX: usize = 8;

/// Memory and threads that the requests of a server share.
#[derive(Debug)]
pub(super) struct RequestMemory {
    blocks: Arc<Semaphore>,
    total_bytes: usize,
    codec_jobs: Arc<Semaphore>,
}

/// The memory of one request, given back on drop.
#[derive(Debug, Default)]
pub(super) struct MemoryShare {
    blocks: Option<OwnedSemaphorePermit>,
    /// Whether small requests count too, because their connection has many of them.
    counts_all: bool,
}

/// A large codec job, which ends on drop.
#[derive(Debug)]
pub(super) struct CodecJob {
    _permit: Option<OwnedSemaphorePermit>,
}

// === impl RequestMemory ===

impl RequestMemory {
    pub(super) fn new(total_bytes: usize) -> Self {
        let cores = available_parallelism().map_or(1, std::num::NonZero::get);
        let jobs = cores.clamp(CODEC_JOBS_MIN, CODEC_JOBS_MAX);
        let blocks = (total_bytes / BLOCK_BYTES).min(Semaphore::MAX_PERMITS);
        Self {
            blocks: Arc::new(Semaphore::new(blocks)),
            total_bytes,
            codec_jobs: Arc::new(Semaphore::new(jobs)),
        }
    }

    /// Makes a share at least this large.
    ///
    /// # Errors
    /// 503 if there is no room within a second.
    pub(super) async fn grow(
        &self,
        share: &mut MemoryShare,
        bytes: usize,
    ) -> Result<(), ProtocolError> {
        let Some(missing) = share.missing(bytes) else {
            return Ok(());
        };
        if bytes > self.total_bytes {
            return Err(self.too_small(bytes));
        }
        let blocks = Arc::clone(&self.blocks);
        let permit = match blocks.try_acquire_many_owned(missing) {
            Ok(permit) => permit,
            Err(_) => {
                let acquired = Arc::clone(&self.blocks).acquire_many_owned(missing);
                match timeout(WAIT_MAX, acquired).await {
                    Ok(Ok(permit)) => permit,
                    Ok(Err(_)) | Err(_) => return Err(self.full()),
                }
            }
        };
        share.add(permit);
        Ok(())
    }

    /// The same on a thread that may block, within a runtime.
    pub(super) fn grow_blocking(
        &self,
        share: &mut MemoryShare,
        bytes: usize,
    ) -> Result<(), ProtocolError> {
        if share.missing(bytes).is_none() {
            return Ok(());
        }
        Handle::current().block_on(self.grow(share, bytes))
    }

    /// Begins a large job for a request that is not accepted yet.
    ///
    /// # Errors
    /// 503 if all jobs are busy for a second.
    pub(super) async fn begin_job(&self) -> Result<CodecJob, ProtocolError> {
        let job = Arc::clone(&self.codec_jobs).acquire_owned();
        match timeout(WAIT_MAX, job).await {
            Ok(permit) => Ok(CodecJob {
                _permit: permit.ok(),
            }),
            Err(_) => Err(ProtocolError::Busy {
                resource: "all threads for large bodies are at work".to_owned(),
                retry_after_s: RETRY_AFTER_S,
            }),
        }
    }

    /// Begins a large job for an answer, which is computed by now and worth any wait.
    pub(super) async fn begin_answer_job(&self) -> CodecJob {
        CodecJob {
            _permit: Arc::clone(&self.codec_jobs).acquire_owned().await.ok(),
        }
    }

    /// No wait makes this request fit.
    fn too_small(&self, bytes: usize) -> ProtocolError {
        let (wanted, all) = (bytes.div_ceil(1 << 20), self.total_bytes >> 20);
        ProtocolError::malformed(
            "body",
            format!(
                "takes up to {wanted} MiB of memory, all requests together have {all} MiB \
                 (server.request_memory_mb): send fewer rows or smaller inputs"
            ),
        )
    }

    fn full(&self) -> ProtocolError {
        let megabytes = self.total_bytes >> 20;
        ProtocolError::Busy {
            resource: format!(
                "the bodies of other requests fill the {megabytes} MiB of server.request_memory_mb"
            ),
            retry_after_s: RETRY_AFTER_S,
        }
    }
}

// === impl MemoryShare ===

impl MemoryShare {
    /// Whether it must grow for a request of this size.
    pub(super) fn lacks(&self, bytes: usize) -> bool {
        self.missing(bytes).is_some()
    }

    /// Blocks that it lacks for a request of this size; `None` if it has them.
    fn missing(&self, bytes: usize) -> Option<u32> {
        if self.is_free(bytes) {
            return None;
        }
        let held = self.blocks.as_ref();
        let held = held.map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = bytes.div_ceil(BLOCK_BYTES).saturating_sub(held);
        u32::try_from(missing).ok().filter(|missing| *missing > 0)
    }

    /// Gives back all but the share of a request of this size.
    pub(super) fn shrink(&mut self, bytes: usize) {
        let kept = match self.is_free(bytes) {
            true => 0,
            false => bytes.div_ceil(BLOCK_BYTES),
        };
        if let Some(held) = &mut self.blocks {
            let surplus = held.num_permits().saturating_sub(kept);
            drop(held.split(surplus));
        }
    }

    /// The share of a request of this connection.
    pub(super) fn of(connection: &ConnectionState) -> Self {
        Self {
            blocks: None,
            counts_all: connection.is_multiplexed(),
        }
    }

    /// The share of one of many requests of a connection.
    pub(super) fn of_many() -> Self {
        Self {
            blocks: None,
            counts_all: true,
        }
    }

    fn is_free(&self, bytes: usize) -> bool {
        bytes <= FREE_BYTES && !self.counts_all
    }

    fn add(&mut self, permit: OwnedSemaphorePermit) {
        match &mut self.blocks {
            Some(held) => held.merge(permit),
            None => self.blocks = Some(permit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sockets::Peer;

    #[tokio::test]
    async fn requests_share_the_memory_and_give_it_back() {
        let memory = RequestMemory::new(1 << 20);
        let mut small = MemoryShare::default();
        memory.grow(&mut small, FREE_BYTES).await.unwrap();
        assert_eq!(memory.blocks.available_permits(), 1024);

        let (mut first, mut second) = (MemoryShare::default(), MemoryShare::default());
        memory.grow(&mut first, 600 << 10).await.unwrap();
        memory.grow(&mut first, 700 << 10).await.unwrap();
        memory.grow(&mut first, 100 << 10).await.unwrap();
        assert_eq!(memory.blocks.available_permits(), 324);
        let error = memory.grow(&mut second, 400 << 10).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "busy: the bodies of other requests fill the 1 MiB of server.request_memory_mb"
        );
        assert_eq!(error.status(), 503);
        first.shrink(500 << 10);
        memory.grow(&mut second, 400 << 10).await.unwrap();
        first.shrink(1_000_000);
        first.shrink(FREE_BYTES);
        assert_eq!(memory.blocks.available_permits(), 624);
        drop(second);
        assert_eq!(memory.blocks.available_permits(), 1024);
    }

    #[tokio::test]
    async fn small_requests_of_a_connection_with_many_count() {
        let memory = RequestMemory::new(1 << 20);
        let connection = ConnectionState::new(Peer::User(None), true);
        let mut small = MemoryShare::of(&connection);
        memory.grow(&mut small, 100).await.unwrap();
        assert_eq!(memory.blocks.available_permits(), 1023);
        small.shrink(0);
        assert_eq!(memory.blocks.available_permits(), 1024);
    }

    #[tokio::test]
    async fn a_request_larger_than_all_memory_is_no_reason_to_wait() {
        let memory = RequestMemory::new(1 << 20);
        let error = memory
            .grow(&mut MemoryShare::default(), 5 << 20)
            .await
            .unwrap_err();
        assert_eq!(error.status(), 400);
        let text = error.to_string();
        assert!(
            text.contains("takes up to 5 MiB of memory, all requests together have 1 MiB"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn large_jobs_at_once_are_few() {
        let memory = RequestMemory::new(1 << 20);
        let mut jobs = Vec::new();
        while let Ok(job) = memory.begin_job().await {
            jobs.push(job);
        }
        assert!((CODEC_JOBS_MIN..=CODEC_JOBS_MAX).contains(&jobs.len()));
        jobs.pop();
        assert!(memory.begin_job().await.is_ok());
    }
}
