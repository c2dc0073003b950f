//! Reports of a small sweep, seen through their public surface.
#![allow(clippy::unwrap_used)]

mod page;
#[path = "../behaviour/policies.rs"]
#[allow(dead_code)]
mod policies;
mod sweep;
mod table;
#[path = "../behaviour/yard.rs"]
#[allow(dead_code)]
mod yard;
