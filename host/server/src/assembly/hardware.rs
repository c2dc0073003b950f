//! The hardware of a configuration's workers: cores, devices and their memory, kinds.

use std::collections::BTreeMap;
use std::path::PathBuf;

use switchyard_executor::memory::BudgetExceedsDevice;
use switchyard_executor::{Device, DeviceError, DeviceName, KindToMeasure, device};
use thiserror::Error;

use crate::config::{Config, WorkerConfig};

/// Why a worker cannot run here.
#[derive(Debug, Error)]
pub enum HardwareError {
    /// It names cores that this process may not use.
    #[error("{config}: {field}: {reason}")]
    Cores {
        /// The configuration.
        config: PathBuf,
        /// The field, such as `worker[0].cores[1]`.
        field: String,
        /// The reason.
        reason: String,
    },
    /// Its device cannot be opened.
    #[error("worker {worker}: device: {error}")]
    Device {
        /// The worker.
        worker: String,
        /// The error of the device.
        error: DeviceError,
    },
    /// Its device has less memory than its workers are granted.
    #[error("worker {worker}: memory_mb: the workers of `{device}` have {error}")]
    Memory {
        /// The first worker whose budget exceeds the rest.
        worker: String,
        /// Its device.
        device: DeviceName,
        /// The memory that was granted, and that of the device.
        error: BudgetExceedsDevice,
    },
}

/// Opens the device of each worker. A GPU is opened once for each of its workers.
pub(super) fn open(workers: &[WorkerConfig]) -> Result<Vec<Device>, HardwareError> {
    let mut granted: BTreeMap<String, u64> = BTreeMap::new();
    let mut devices = Vec::with_capacity(workers.len());
    for worker in workers {
        let opened = worker.device.open();
        let opened = opened.map_err(|error| HardwareError::Device {
            worker: worker.name.clone(),
            error,
        })?;
        let granted = granted.entry(worker.device.to_string()).or_default();
        *granted += worker.memory_bytes();
        if let Some(memory) = device::memory(&opened) {
            let fits = memory.grant(*granted);
            fits.map_err(|error| HardwareError::Memory {
                worker: worker.name.clone(),
                device: worker.device,
                error,
            })?;
        }
        devices.push(opened);
    }
    Ok(devices)
}

/// Every core that a worker names is one that this process may use.
pub(super) fn check_cores(config: &Config) -> Result<(), HardwareError> {
    let workers = config.workers.iter().enumerate();
    let named =
        workers.flat_map(|(i, worker)| worker.cores.iter().enumerate().map(move |c| (i, c)));
    let mut known = None;
    for (i, (j, core)) in named {
        let refused = |reason| HardwareError::Cores {
            config: config.source.clone(),
            field: format!("worker[{i}].cores[{j}]"),
            reason,
        };
        let known = match &known {
            Some(known) => known,
            None => known
                .insert(switchyard_threads::cores().map_err(|error| refused(error.to_string()))?),
        };
        if !known.contains(core) {
            let known: Vec<_> = known.iter().map(usize::to_string).collect();
            let reason = format!("{core}, this process may run on {}", known.join(", "));
            return Err(refused(reason));
        }
    }
    Ok(())
}

/// The kind of a worker. Workers of one kind share a profile.
pub(super) fn kind_of(worker: &WorkerConfig) -> String {
    worker.device.kind(worker.threads)
}

/// The kinds among these workers, each once.
pub(super) fn kinds(workers: &[WorkerConfig]) -> Vec<KindToMeasure> {
    let mut kinds: Vec<KindToMeasure> = Vec::new();
    for worker in workers {
        let name = kind_of(worker);
        if !kinds.iter().any(|kind| kind.name == name) {
            kinds.push(KindToMeasure {
                name,
                device: worker.device,
                threads: worker.threads,
            });
        }
    }
    kinds
}
