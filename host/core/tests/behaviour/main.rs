//! Behaviour of the scheduling core, seen through its public surface.
#![allow(clippy::unwrap_used)]

mod decisions;
mod guarding;
mod plans;
mod properties;
mod serving;
mod yard;
