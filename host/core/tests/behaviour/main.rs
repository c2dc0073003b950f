//! Behaviour of the scheduling core, seen through its public interface.
#![allow(clippy::unwrap_used)]

mod bed;
mod canaries;
mod catalogs;
mod costs;
mod decisions;
mod fairness;
mod goodput;
mod guarding;
mod lanes;
mod late;
mod losing;
mod outstanding;
mod pinned;
mod plans;
mod properties;
mod recovering;
mod serving;
mod windows;
