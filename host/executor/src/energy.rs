//! Energy of processors and GPUs, on machines that count it.
//!
//! The energy of a kind of worker is that of its processor: [`Rapl`] counts the CPU's kinds,
//! [`Nvml`] those that are measured on the first of NVIDIA's GPUs. Of a kind that none counts on this
//! machine the operator may declare the power
//! ([`ProfileFile::declare_power`](switchyard_profile::ProfileFile::declare_power)), which the
//! profile marks as declared.

mod meter;
mod nvml;
mod rapl;

pub use meter::{EnergyMeter, Meters};
pub use nvml::Nvml;
pub use rapl::{POWERCAP, Rapl};
