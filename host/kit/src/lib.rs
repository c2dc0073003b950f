//! From sources to policy components: what `cargo xtask plugins` and `switchyard policy new|build`
//! share.
//!
//! - [`toolchain`]: a Rust compiler for WebAssembly, found or installed; [`cargo`]: how it is
//!   called
//! - [`component`]: a core module becomes a component, in this process
//! - [`install`]: files that appear whole or not at all
//! - [`contract`]: the WIT package that every policy is built against, carried along
//! - [`scaffold`]: a new project, from the examples in `plugins/examples`
//! - [`project`]: a project in any of the [`Language`]s becomes a component
//! - [`shell`]: how a command is shown and run
//!
//! Nothing here knows a server or runs a component.

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

pub use language::Language;
