//! Threads, for every crate of the host:
//! - [`ServiceThread`]: a thread that is stopped and joined when its owner drops it
//! - [`panic_text`]: the message of a caught panic
//! - [`cores`], [`pin`], [`keep_off`]: the cores that a thread runs on
//! - [`exact_timers`]: sleeps without slack

#![forbid(unsafe_code)]

mod cores;
mod panic;
mod service;
mod timers;

pub use cores::{cores, keep_off, pin};
pub use panic::panic_text;
pub use service::ServiceThread;
pub use timers::exact_timers;
