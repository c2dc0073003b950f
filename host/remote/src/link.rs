//! The link to a server: a connection that is driven and watched at all times, and opened again when the
//! server ends it between two batches.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchyard_executor::{Absence, GiveUp, ReportAbsence};
use switchyard_protocol::grpc::Rpc;
use switchyard_protocol::grpc::messages::inference::ModelInferResponse;
use tokio::sync::{Mutex as OneAtATime, watch};
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::{sleep, timeout};

use crate::body::Parts;
use crate::channel::{CallError, Channel, NotAnswered};
use crate::lease::Lease;
use crate::opening::{is_ready, open};
use crate::options::{ConnectError, RemoteOptions};
use crate::runtime::RemoteRuntime;
use crate::turns::Turns;

/// Pause between two questions about the server's health.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Longest wait for the answer. A server that runs a batch may take longer.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(1);

/// Longest time of a call whose answer nothing depends on.
const TELL_TIMEOUT: Duration = Duration::from_secs(5);

/// A link.
pub(crate) struct Link {
    state: Arc<LinkState>,
    watching: Mutex<Option<AbortHandle>>,
    runtime: Arc<RemoteRuntime>,
}

struct LinkState {
    options: RemoteOptions,
    channel: Mutex<Channel>,
    /// One connection is opened at a time.
    opening: OneAtATime<()>,
    lease: Arc<Lease>,
    turns: Turns,
    /// True once no answer is awaited any more.
    given_up: watch::Sender<bool>,
}

// === impl Link ===

impl Link {
    /// Connects to the server.
    ///
    /// # Errors
    /// As [`open`].
    pub(crate) fn open(options: &RemoteOptions) -> Result<Self, ConnectError> {
        let runtime = RemoteRuntime::shared()
            .map_err(|error| ConnectError::Away(format!("no thread for connections: {error}")))?;
        let asked = options.clone();
        let channel = runtime.wait(async move { open(&asked).await });
        let panicked = || ConnectError::Away("connecting panicked".to_owned());
        let channel = channel.unwrap_or_else(|| Err(panicked()))?;
        Ok(Self::on(options.clone(), channel, Arc::default(), runtime))
    }

    /// On a connection that is open and fit.
    pub(crate) fn on(
        options: RemoteOptions,
        channel: Channel,
        lease: Arc<Lease>,
        runtime: Arc<RemoteRuntime>,
    ) -> Self {
        Self {
            state: Arc::new(LinkState {
                turns: Turns::new(options.timeout),
                options,
                channel: Mutex::new(channel),
                opening: OneAtATime::default(),
                lease,
                given_up: watch::Sender::new(false),
            }),
            watching: Mutex::default(),
            runtime,
        }
    }

    /// Sends a batch and waits for its answer. The call is cancelled when the batch takes longer than the
    /// server may, when the time is over that its requests have left, and when the batch is given up.
    pub(crate) fn infer(
        &self,
        body: Parts,
        left: Option<Duration>,
    ) -> Result<ModelInferResponse, CallError> {
        let state = Arc::clone(&self.state);
        let answer = self
            .runtime
            .wait(async move { state.infer(body, left).await });
        answer.unwrap_or_else(|| Err(CallError::Lost("the call panicked".to_owned())))
    }

    /// Sends a call that needs no answer.
    pub(crate) fn tell(&self, body: Parts) {
        let channel = self.state.channel();
        let told = async move {
            let path = Rpc::ModelInfer.path();
            let sent = channel.send::<ModelInferResponse>(path, body, TELL_TIMEOUT);
            // Without it the server forgets by itself.
            let _ = timeout(TELL_TIMEOUT, sent).await;
        };
        let _ = self.runtime.spawn(told);
    }

    /// Whether the server runs batches of some stages.
    pub(crate) fn runs_stages(&self) -> bool {
        self.state.channel().runs_stages
    }

    /// Reports when the server takes no more batches, and stops watching then.
    pub(crate) fn watch(&self, report: ReportAbsence) -> GiveUp {
        let state = Arc::clone(&self.state);
        let watching = self.runtime.spawn(async move {
            let absence = state.absence().await;
            // The receiver may wait for room in its queue.
            spawn_blocking(move || report(absence));
        });
        *self.watching.lock().unwrap_or_else(PoisonError::into_inner) = watching;
        let state = Arc::clone(&self.state);
        Box::new(move || {
            state.given_up.send_replace(true);
        })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let watching = self
            .watching
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(watching) = watching {
            watching.abort();
        }
    }
}

// === impl LinkState ===

impl LinkState {
    async fn infer(
        &self,
        body: Parts,
        left: Option<Duration>,
    ) -> Result<ModelInferResponse, CallError> {
        let _on_the_way = self.lease.send();
        let mut given_up = self.given_up.subscribe();
        let turn = self.turns.send();
        let left = left.filter(|left| *left < turn.longest);
        let limit = left.unwrap_or(turn.longest);
        let no_answer = |limit| CallError::no_answer(&self.options.address, limit);
        let answer = tokio::select! {
            biased;
            answer = timeout(limit, self.exchange(body, limit)) => {
                answer.unwrap_or_else(|_| Err(no_answer(limit)))
            }
            () = turn.passed() => return Err(no_answer(self.options.timeout)),
            // An error: the link is gone as well.
            _ = given_up.wait_for(|given_up| *given_up) => {
                return Err(CallError::Lost("the batch was given up".to_owned()));
            }
        };
        match answer {
            // The requests ran out of time, the server did not.
            Err(CallError::TimedOut(reason)) if left.is_some() => {
                turn.give_up();
                Err(CallError::Late(reason))
            }
            answer => answer,
        }
    }

    async fn exchange(
        &self,
        body: Parts,
        limit: Duration,
    ) -> Result<ModelInferResponse, CallError> {
        let path = Rpc::ModelInfer.path();
        let sent = self.channel().send(path, body, limit).await;
        match sent {
            Ok(answer) => Ok(answer),
            Err(NotAnswered::Failed(error)) => Err(error),
            // The server closed the connection while nothing ran.
            Err(NotAnswered::Unsent(body, _)) => {
                let channel = self.open_again().await;
                let channel = channel.map_err(|error| CallError::Lost(error.to_string()))?;
                let sent = channel.send(path, body, limit).await;
                sent.map_err(NotAnswered::into_error)
            }
        }
    }

    /// Waits until the server takes no more batches.
    async fn absence(&self) -> Absence {
        loop {
            let channel = self.channel();
            tokio::select! {
                () = sleep(LOOK_EVERY) => {}
                () = channel.closed() => {}
                () = self.lease.ended() => {
                    let address = &self.options.address;
                    return Absence::Leaving(format!("{address}: its name lists it no longer"));
                }
            }
            if let Err(absence) = self.look(&channel).await {
                return absence;
            }
        }
    }

    /// A look at the server's health.
    async fn look(&self, channel: &Channel) -> Result<(), Absence> {
        if !channel.is_closed() {
            let was_busy = self.lease.is_busy();
            match is_ready(channel, HEALTH_TIMEOUT).await {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    let reason = format!("{}: is not ready", self.options.address);
                    return Err(Absence::Leaving(reason));
                }
                // The end of the batch says more.
                Err(CallError::TimedOut(_)) if was_busy || self.lease.is_busy() => return Ok(()),
                Err(error) if !channel.is_closed() => return Err(Absence::Lost(error.reason())),
                Err(_) => {}
            }
        }
        // Servers close idle connections, and all connections before they end.
        let is_busy = self.lease.is_busy();
        match self.open_again().await {
            Ok(_) => Ok(()),
            Err(error) if is_busy => Err(Absence::Leaving(error.to_string())),
            Err(error) => Err(Absence::Lost(error.to_string())),
        }
    }

    /// Replaces a connection that the server has closed. Batches on the old one end there.
    async fn open_again(&self) -> Result<Channel, ConnectError> {
        let _turn = self.opening.lock().await;
        let now = self.channel();
        if !now.is_closed() {
            return Ok(now);
        }
        let channel = open(&self.options).await?;
        *self.lock() = channel.clone();
        Ok(channel)
    }

    fn channel(&self) -> Channel {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Channel> {
        // Whole at every point where a panic could strike.
        self.channel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
