//! Switchyard: an inference server whose scheduler is a WebAssembly policy.
//!
//! In data order:
//! - [`config`]: one TOML file; [`assembly`]: zoo and profile make it the parts of pools
//! - [`ingress`]: requests come in over HTTP; [`backend`]: and go to a pool, row by row
//! - [`driver`]: a thread per pool that drives the scheduling core; [`evidence`]: counts
//!   neighbours beside it; [`clock`]: its time
//! - [`policies`]: hot reload, beside the driver; [`observed`]: what policies take
//! - [`prepare`]: a command that makes artifacts for loads that grow
//! - [`recorder`]: windows and plans into a file, beside the driver; [`shadow`]: a candidate that
//!   is asked and not obeyed; `judge`: what two plans are worth; `reasons`: why, as policies say
//! - [`telemetry`]: logs and metrics; [`admin`]: the port that shows them; [`readiness`]
//! - [`server`] joins them; [`shutdown`] says when to stop.

pub mod admin;
pub mod assembly;
pub mod backend;
pub mod clock;
pub mod config;
pub mod driver;
pub mod evidence;
pub mod ingress;
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
pub mod telemetry;
