//! Behaviour of the scheduling core, seen through its public interface.
#![allow(clippy::unwrap_used)]

mod bed;
mod decisions;
mod guarding;
mod losing;
mod plans;
mod properties;
mod serving;
mod windows;
