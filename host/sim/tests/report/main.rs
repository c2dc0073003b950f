//! Reports of a small sweep, tested through their public API.
#![allow(clippy::unwrap_used)]

mod page;
#[path = "../behaviour/policies.rs"]
#[allow(dead_code)]
mod policies;
mod sweep;
mod table;
#[path = "../behaviour/test_bed.rs"]
#[allow(dead_code)]
mod test_bed;
