//! Threads, for every crate of the host:
//! - [`ServiceThread`]: a thread that is stopped and joined when its owner drops it
//! - [`panic_text`]: the message of a caught panic
//! - [`cores`], [`pin`]: the cores that a thread runs on

#![forbid(unsafe_code)]

mod cores;
mod panic;
mod service;

pub use cores::{cores, pin};
pub use panic::panic_text;
pub use service::ServiceThread;
