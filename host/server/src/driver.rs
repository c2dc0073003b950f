//! The live driver of the scheduling core, one per pool: it owns the scheduler and the state of
//! every accepted request. The rest of the server sends it messages by a [`PoolHandle`].
//!
//! ```text
//! calls ---Submit--->  queue  <---Worker--- worker threads
//!                        |    <---Evidence- evidence thread
//!                        v    <---Install-- policy thread
//!       a turn: handle the messages, poll until empty, wait for the next
//! ```
//!
//! Turns are taken by the timer thread, or inline by the thread that brings a message: `combining`.

mod answers;
mod combining;
mod crew;
mod demand;
mod drift;
mod ends;
mod handle;
mod launches;
mod loads;
mod losses;
mod message;
mod models;
mod pacer;
mod parts;
mod policies;
mod pool;
mod pulse;
mod recent;
mod restarts;
mod row_trace;
mod stats;
mod status;
mod sync;
mod traces;
mod turn;
mod waiters;
mod weights;

#[cfg(test)]
mod combining_tests;

pub use handle::{NotServed, PoolHandle};
pub use message::{
    CallEnd, CallError, Message, PoolCall, RowAnswer, RowInput, SubmittedCall, Ticket, Watch,
};
pub use models::{AppState, LoadEnd, ModelStates};
pub use parts::{BuildExecutor, PoolExecutor, PoolParts, WorkerAddress};
pub use pool::{Pool, PoolError};
pub use recent::{AppRecent, PolicyRecent, RecentReport, RunRecent, WorkerRecent};
pub(crate) use restarts::{PAUSE_MAX, REMOTE_PAUSE_MAX};
pub use restarts::{Restarted, StartNumber};
pub use stats::VariantCounters;
pub use status::{PoolStatus, ResidentStatus, WorkerStatus};
pub use weights::PoolWeights;
