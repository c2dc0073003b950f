//! The one trait between the HTTP port and the rest of the server.

use std::any::Any;
use std::future::{Future, ready};
use std::sync::Weak;

use switchyard_protocol::{
    AppIndex, AppInfo, Control, InferAnswer, InferCall, InferError, ProtocolError, VariantIndex,
    VariantStats,
};

/// Ends with the connection that it is of.
pub type ConnectionLife = Weak<dyn Any + Send + Sync>;

/// The apps and their scheduling, as the HTTP port sees them.
pub trait Backend: Send + Sync + 'static {
    /// All apps, by [`AppIndex`]. The list does not change: other apps are another backend.
    fn apps(&self) -> &[AppInfo];

    /// The index of the app with this name.
    fn app_index(&self, name: &str) -> Option<AppIndex>;

    /// Whether the schedulers turn. Takes no lock: the answer comes at once.
    ///
    /// # Errors
    /// The reason, for the operator: the process should be restarted.
    fn live(&self) -> Result<(), String> {
        Ok(())
    }

    /// Whether the server should get requests: every pool has a worker that is up and a policy, its
    /// loads of the start have ended, and not every app has failed to load.
    ///
    /// # Errors
    /// The reason, for the operator who reads the answer of the readiness probe.
    fn server_ready(&self) -> Result<(), String>;

    /// Whether the app is ready, or one variant of it.
    ///
    /// # Errors
    /// The reason.
    fn app_ready(&self, app: AppIndex, variant: Option<VariantIndex>) -> Result<(), String>;

    /// The state of a variant, in the words of Triton's repository index, and the reason if it is
    /// not `READY`.
    fn app_state(&self, app: AppIndex, variant: VariantIndex) -> (&'static str, String) {
        match self.app_ready(app, Some(variant)) {
            Ok(()) => ("READY", String::new()),
            Err(reason) => ("UNAVAILABLE", reason),
        }
    }

    /// Loads or unloads an app. After a load the app is ready. After an unload the backend accepts
    /// no further request of the app, and has answered those that it had accepted.
    ///
    /// # Errors
    /// The reason why the app is not loaded.
    fn control(
        &self,
        app: AppIndex,
        verb: Control,
    ) -> impl Future<Output = Result<(), InferError>> + Send;

    /// Serves an app that only a folder of models has. `false`: no folder has it.
    ///
    /// # Errors
    /// The reason why it cannot be served.
    fn add(&self, _name: &str) -> impl Future<Output = Result<bool, InferError>> + Send {
        async { Ok(false) }
    }

    /// Replaces the encoded images of a call by tensors. Blocks for as long as decoding takes. `grow`
    /// is called before each allocation with the bytes that are held after it, without the body, and
    /// at the end with those that stay.
    ///
    /// # Errors
    /// The input and the row of the first image that is refused; any error of `grow`.
    fn decode_images(
        &self,
        _call: &mut InferCall,
        _grow: &mut dyn FnMut(usize) -> Result<(), ProtocolError>,
    ) -> Result<(), ProtocolError> {
        Ok(())
    }

    /// Schedules and computes one request.
    ///
    /// The future is dropped when the client closes its connection; the backend may then skip the
    /// work.
    ///
    /// # Errors
    /// The reason why the request ended without an answer.
    fn infer(
        &self,
        call: InferCall,
    ) -> impl Future<Output = Result<InferAnswer, InferError>> + Send;

    /// Whether it runs ranges of stages for schedulers.
    fn runs_stages(&self) -> bool {
        false
    }

    /// Runs the stages of a call that has some. Activations that it keeps are dropped after the end of
    /// the connection.
    ///
    /// # Errors
    /// As [`infer`](Self::infer); a server with a scheduler refuses.
    fn infer_stages(
        &self,
        _call: InferCall,
        _connection: ConnectionLife,
    ) -> impl Future<Output = Result<InferAnswer, InferError>> + Send {
        let reason = "switchyard_session: stages run on `switchyard worker` only; leave it out";
        ready(Err(InferError::Failed(reason.to_owned())))
    }

    /// Its metrics in the Prometheus text format, for `/metrics`; `None`: another port has them.
    fn metrics(&self) -> Option<String> {
        None
    }

    /// Counters of one variant since the start of the server.
    fn stats(&self, app: AppIndex, variant: VariantIndex) -> VariantStats;

    /// Whether the backend has use for [`InferCall::parent`].
    fn wants_parents(&self) -> bool {
        false
    }

    /// Counts a request that the HTTP port refused as wrong, with the HTTP status of its answer.
    /// The scheduler never sees such a request.
    fn on_refused(&self, _app: Option<AppIndex>, _status: u16) {}
}
