//! The whole server, proved through its public surface: real HTTP, real models, real
//! components, and where it says so the real binary.

// Signals and symbolic links.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]
#![allow(missing_docs)]

#[path = "../../../tests/common/free_address.rs"]
mod free_address;
#[path = "../../../tests/common/hostile.rs"]
#[allow(dead_code)]
mod hostile_parts;
#[path = "../../../models/tests/common/onnx.rs"]
#[allow(dead_code)]
mod onnx;
#[path = "../../../models/tests/common/onnx_zoo.rs"]
#[allow(dead_code)]
mod onnx_zoo;
#[path = "../../../tests/common/pypi.rs"]
mod pypi;
#[cfg(target_os = "linux")]
#[path = "../../../tests/common/etcd.rs"]
mod real_etcd;
#[path = "../../../models/tests/common/text.rs"]
#[allow(dead_code)]
mod text_zoo;

mod live {
    pub(crate) mod binary;
    pub(crate) mod client;
    pub(crate) mod fixture;
    pub(crate) mod load;
    pub(crate) mod logs;
    pub(crate) mod metrics;
    pub(crate) mod test_bed;
    pub(crate) mod zoo_server;

    mod allowed;
    mod canaries;
    mod changes;
    #[cfg(target_os = "linux")]
    mod clock;
    mod conservation;
    mod ctl;
    mod dashboard;
    mod drift;
    #[cfg(target_os = "linux")]
    mod etcd;
    mod faults;
    mod files;
    mod graphs;
    mod guests;
    mod hostile;
    mod kinds;
    mod kubernetes;
    mod models;
    mod monitoring;
    mod preparing;
    mod process;
    mod recording;
    mod remote;
    mod remote_tls;
    mod routers;
    mod shadow;
    mod slicing;
    mod stopping;
    mod swaps;
    mod text;
    #[cfg(feature = "traces")]
    mod traces;
    mod tritons;
    mod unix_sockets;
}
