//! Behaviour of the scheduling core, seen through its public interface.
#![allow(clippy::unwrap_used)]

mod bed;
mod decisions;
mod goodput;
mod guarding;
mod plans;
mod properties;
mod serving;
mod windows;
