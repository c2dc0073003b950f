//! Catalogs and windows made for trials of policies: every shape that a host can send, so that no
//! policy meets one first while it serves.
//!
//! `switchyard policy check` examines policies on all of them (`switchyard-conformance`); tests of
//! recordings, replays and shadows use them as data.

mod catalog;
mod windows;

pub use catalog::{catalog, changed_catalog};
pub use windows::{MadeWindow, made_windows, window_of};
