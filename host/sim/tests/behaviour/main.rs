//! Behaviour of the simulator, tested through its public API.
#![allow(clippy::unwrap_used)]

mod canaries;
#[path = "../../../core/tests/behaviour/bed/chaos.rs"]
#[allow(dead_code, missing_docs, unreachable_pub)]
mod chaos;
mod conservation;
mod hardware;
mod known;
mod links;
mod oracle;
mod policies;
mod predictions;
mod queueing;
mod repeatable;
mod reports;
mod served;
mod soak;
mod soak_found;
mod specs;
mod stages;
mod stepped;
mod test_bed;
