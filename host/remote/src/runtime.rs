//! The thread of all connections, shared by every remote worker of the process.

use std::future::Future;
use std::io;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

/// The runtime while a connection lives.
static SHARED: Mutex<Weak<RemoteRuntime>> = Mutex::new(Weak::new());

/// A runtime of one thread. It ends with its last user.
#[derive(Debug)]
pub(crate) struct RemoteRuntime(Option<Runtime>);

// === impl RemoteRuntime ===

impl RemoteRuntime {
    /// The one runtime.
    ///
    /// # Errors
    /// The operating system refuses its thread.
    pub(crate) fn shared() -> io::Result<Arc<Self>> {
        // Whole at every point where a panic could strike.
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = shared.upgrade() {
            return Ok(runtime);
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("remote-workers")
            .enable_all()
            .build()?;
        let runtime = Arc::new(Self(Some(runtime)));
        *shared = Arc::downgrade(&runtime);
        Ok(runtime)
    }

    /// Runs a future on the runtime and waits for its end; `None` if it panicked.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (done, ended) = sync_channel(1);
        self.0.as_ref()?.spawn(async move {
            // The receiver waits below.
            let _ = done.send(future.await);
        });
        ended.recv().ok()
    }

    /// Runs a future in the background.
    pub(crate) fn spawn(
        &self,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Option<AbortHandle> {
        Some(self.0.as_ref()?.spawn(future).abort_handle())
    }
}

impl Drop for RemoteRuntime {
    fn drop(&mut self) {
        // The last user may be a task of another runtime, which must not block.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
