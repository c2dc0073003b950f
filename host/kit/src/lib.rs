//! Builds policy components from sources, for `cargo xtask plugins` and
//! `switchyard policy new|build`.
//!
//! - [`toolchain`]: finds or installs a Rust compiler for WebAssembly; [`cargo`]: calls it
//! - [`component`]: encodes a core module as a component, in this process
//! - [`install`]: writes files by a rename
//! - [`contract`]: the WIT package that every policy is built against, part of this program
//! - [`scaffold`]: makes a new project from the examples in `plugins/examples`
//! - [`project`]: builds a project in any [`Language`]
//! - [`shell`]: shows and runs commands
//!
//! This crate knows no server and runs no component.

#![forbid(unsafe_code)]

pub mod cargo;
pub mod component;
pub mod contract;
pub mod install;
pub mod project;
pub mod scaffold;
pub mod shell;
pub mod toolchain;

mod language;
mod manifest;
mod programs;

pub use language::Language;
