//! A pool without models: executors that fail, crash and hang, and the driver that goes on.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "pool/health.rs"]
mod health;
#[path = "pool/losses.rs"]
mod losses;
#[path = "pool/statistics.rs"]
mod statistics;
#[path = "pool/test_bed.rs"]
mod test_bed;
