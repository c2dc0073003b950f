//! Switchyard: an inference server whose scheduler is a WebAssembly policy.
//!
//! In data order:
//! - [`config`]: one TOML file; [`assembly`]: the parts of each pool, from zoo and profile
//! - [`ingress`]: requests arrive over HTTP; [`backend`]: their rows go to a pool
//! - [`driver`]: a thread per pool that drives the scheduling core; [`evidence`]: a thread that
//!   counts neighbours; [`clock`]: the pool's time
//! - [`policies`]: hot reload of policies; [`observed`]: the time of their window calls
//! - [`reloads`]: hot reload of weights
//! - [`prepare`]: a command that makes artifacts for loads that grow
//! - [`recorder`]: windows and plans in a file; [`shadow`]: a candidate whose plans are compared and
//!   not applied; [`judge`]: the worth of two plans; [`reasons`]: the reasons that policies give
//! - [`telemetry`]: logs and metrics; [`admin`]: the port that shows them; [`readiness`]: the models
//!   and policies that the server waits for
//! - [`sockets`]: the addresses of the ports, of TCP or a path
//! - [`tls`]: certificates and handshakes of the ports
//! - [`traces`]: traces of single requests, for a collector of OpenTelemetry
//! - [`mod@inspect`]: every mistake of a configuration, without a start
//! - [`server`]: starts and joins all parts, within the `descriptors` of the process; [`shutdown`]:
//!   the signals and failures that stop it

#![forbid(unsafe_code)]

pub mod admin;
pub mod assembly;
pub mod backend;
pub mod clock;
pub mod config;
mod descriptors;
pub mod driver;
pub mod evidence;
pub mod ingress;
pub mod inspect;
pub mod judge;
pub mod observed;
pub mod policies;
pub mod prepare;
pub mod readiness;
pub mod reasons;
pub mod recorder;
pub mod reloads;
pub mod server;
pub mod shadow;
pub mod shutdown;
pub mod sockets;
pub mod telemetry;
pub mod tls;
pub mod traces;
