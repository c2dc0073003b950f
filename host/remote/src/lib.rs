//! Workers on other machines: any server of the Open Inference Protocol over gRPC.
//!
//! In data order:
//! - [`address`]: the address of a server
//! - [`options`]: how a server is used; [`model`]: the names of variants on the far side; [`metadata`]: whether its models fit the apps
//! - `request`, `body`: from a batch to a message, whose tensors are not copied; `response`: back
//! - [`tls`], `stream`: the bytes of a connection, encrypted or not
//! - `channel`: one HTTP/2 connection and its calls; `messages`: answers of many messages; `opening`: whether its server is fit
//! - `link`: the connection that lives and is watched, on the thread of `runtime`; `lease`: how long it may;
//!   `turns`: the batches that its server has
//! - `parked`: the activations that a server keeps
//! - [`executor`]: a server as an [`Executor`](switchyard_executor::Executor)
//! - [`resolver`]: the addresses of a name; [`etcd`]: workers that register themselves; [`source`]: either;
//!   `members`: the servers that they list
//! - `slots`: which server has which slot; `follow`: as they come and go; [`fleet`]: a slot as an executor
//!
//! Without tonic: hyper's client and the messages and frames of `switchyard-protocol`, which the gRPC
//! port uses too, are enough for a few calls, and send tensors without a copy.

#![forbid(unsafe_code)]

pub mod address;
mod body;
mod channel;
pub mod etcd;
pub mod executor;
pub mod fleet;
mod follow;
mod lease;
mod link;
mod members;
mod messages;
pub mod metadata;
pub mod model;
mod opening;
pub mod options;
mod parked;
mod request;
pub mod resolver;
mod response;
mod runtime;
mod slots;
pub mod source;
mod stream;
pub mod tls;
mod turns;

pub use address::{RemoteAddress, WrongAddress};
pub use etcd::Etcd;
pub use etcd::election::{Candidate, Election};
pub use etcd::fence::{Fence, NotActive, Term};
pub use etcd::options::{EtcdAddress, EtcdOptions, WrongEtcdAddress};
pub use etcd::registration::{RegisteredWorker, Registration};
pub use etcd::shared::{SharedKey, SharedVersion, SharedView};
pub use executor::RemoteExecutor;
pub use fleet::{Fleet, FleetSlot};
pub use metadata::Misfit;
pub use model::{RemoteModel, RemoteOutputs, RemoteTensor};
pub use options::{ConnectError, FleetOptions, RemoteOptions, StageRanges};
pub use resolver::{FoundAddresses, NameResolver, Resolve};
pub use source::MemberSource;
pub use tls::{ClientFiles, RemoteTls, RemoteTlsError};
