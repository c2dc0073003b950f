//! Profiles: the file, imports, the core's table, and measuring with a bench that computes nothing.
#![allow(clippy::unwrap_used)]

mod file;
mod import;
mod measure;
mod table;
mod toy;
