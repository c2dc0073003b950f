//! The hardware of a configuration's workers: cores, devices and their memory, kinds.

use std::collections::BTreeMap;

use switchyard_executor::memory::BudgetExceedsDevice;
use switchyard_executor::{Device, DeviceError, DeviceName, KindToMeasure, device};
use thiserror::Error;

use crate::config::{Config, Origin, WorkerConfig};

/// Why a worker cannot run here.
#[derive(Debug, Error)]
pub enum HardwareError {
    /// It names cores that this process may not use.
    #[error("{origin}: {field}: {reason}")]
    Cores {
        /// Where it is named.
        origin: Origin,
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

/// Opens the device of each worker. A GPU is opened once for each of its workers; for a worker on
/// another machine the processor stands in.
pub(super) fn open(workers: &[WorkerConfig]) -> Result<Vec<Device>, HardwareError> {
    let mut granted: BTreeMap<String, u64> = BTreeMap::new();
    let mut devices = Vec::with_capacity(workers.len());
    for worker in workers {
        if worker.remote.is_some() {
            devices.push(Device::Cpu);
            continue;
        }
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

/// The cores that workers name and this process may not use.
pub(super) fn check_cores(config: &Config) -> Vec<HardwareError> {
    let workers = config.workers.iter().enumerate();
    let workers = workers.filter(|(_, worker)| worker.remote.is_none());
    let named: Vec<_> = workers
        .flat_map(|(i, worker)| {
            let cores = worker.cores.iter().enumerate();
            cores.map(move |(j, core)| (format!("worker[{i}].cores[{j}]"), *core))
        })
        .collect();
    let refused = |field: &str, reason| HardwareError::Cores {
        origin: config.written.origin(field),
        field: field.to_owned(),
        reason,
    };
    let Some((first, _)) = named.first() else {
        return Vec::new();
    };
    let known = match switchyard_threads::cores() {
        Ok(known) => known,
        Err(error) => return vec![refused(first, error.to_string())],
    };
    let unknown = named.iter().filter(|(_, core)| !known.contains(core));
    let shown: Vec<_> = known.iter().map(usize::to_string).collect();
    let shown = shown.join(", ");
    unknown
        .map(|(field, core)| refused(field, format!("{core}, this process may run on {shown}")))
        .collect()
}

/// The kind of a worker. Workers of one kind share a profile.
pub(super) fn kind_of(worker: &WorkerConfig) -> String {
    let here = || worker.device.kind(worker.threads);
    worker.remote_kind().unwrap_or_else(here)
}

/// The kinds among these workers, each once.
pub(super) fn kinds(workers: &[WorkerConfig]) -> Vec<KindToMeasure> {
    let mut kinds: Vec<KindToMeasure> = Vec::new();
    for worker in workers {
        let name = kind_of(worker);
        if !kinds.iter().any(|kind| kind.name == name) {
            let is_here = worker.remote.is_none();
            kinds.push(KindToMeasure {
                name,
                device: match is_here {
                    true => worker.device,
                    false => DeviceName::Cpu,
                },
                threads: match is_here {
                    true => worker.threads,
                    false => 1,
                },
                build: None,
            });
        }
    }
    kinds
}
