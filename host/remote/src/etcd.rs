//! etcd, where workers register and schedulers find them.
//!
//! - [`options`]: how it is reached; `client`: the connection, and whether it answers; `calls`: its calls
//! - `members`: the workers under a prefix, as they come and go; [`registration`]: one of them
//! - [`shared`]: versions of files that schedulers share
//! - `grant`: a lease of etcd; [`election`]: the one scheduler that is active; [`fence`]: keeps the others from
//!   acting

pub(crate) mod calls;
mod client;
pub mod election;
pub mod fence;
mod grant;
pub(crate) mod members;
pub mod options;
pub mod registration;
pub mod shared;

pub use client::Etcd;
