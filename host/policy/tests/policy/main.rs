//! The crate against real components: the guests under `tests/guests`, one folder per
//! misbehaviour, and components that the tests make themselves.

#![allow(clippy::unwrap_used)]

mod artifacts;
mod contracts;
mod faults;
mod hostile;
#[path = "../../../../tests/common/hostile.rs"]
mod hostile_parts;
mod loading;
mod recording;
mod served;
mod state;
mod support;
#[cfg(target_arch = "x86_64")]
mod tiers;
mod wasi;
mod watching;
mod workers;
