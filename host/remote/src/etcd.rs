//! etcd, where workers register and schedulers find them.
//!
//! - [`options`]: how it is reached; `client`: the connection, and whether it answers; `calls`: its calls
//! - `members`: the workers under a prefix, as they come and go; [`registration`]: one of them
//! - `grant`: a lease of etcd

pub(crate) mod calls;
mod client;
mod grant;
pub(crate) mod members;
pub mod options;
pub mod registration;

pub use client::Etcd;
