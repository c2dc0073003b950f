//! `[[worker]]`: something that runs one batch at a time.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use switchyard_executor::DeviceName;

/// One worker.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerConfig {
    /// Name in logs, metrics and pools.
    pub name: String,
    /// What it computes on.
    #[serde(default, deserialize_with = "device")]
    pub device: DeviceName,
    /// Threads it computes with.
    #[serde(default = "default_threads")]
    pub threads: usize,
    /// Cores that its threads run on, one each; none: any.
    #[serde(default)]
    pub cores: Vec<usize>,
    /// Budget for resident models and parked activations, in MiB.
    #[serde(default = "default_memory_mb")]
    pub memory_mb: u64,
    /// Variants that stay resident once loaded, as `app/variant`; they are loaded first.
    #[serde(default)]
    pub pin: Vec<String>,
    /// What it draws while it computes, in watts: its batches' energy where nothing measures it.
    pub power_w: Option<f64>,
    /// Batches that may wait in its queue.
    #[serde(default = "default_queue_max")]
    pub queue_max: u32,
    /// Partly run requests that may be parked on it.
    #[serde(default = "default_parked_max")]
    pub parked_max: u32,
}

// === impl WorkerConfig ===

impl WorkerConfig {
    /// Budget in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_mb << 20
    }

    /// What it has in common with workers of its kind, without a look at the machine: on a card,
    /// the processor's threads make no difference.
    pub fn kind(&self) -> (DeviceName, usize) {
        match self.device {
            DeviceName::Cpu => (self.device, self.threads),
            DeviceName::Cuda(_) => (self.device, 0),
        }
    }
}

/// A device by its name.
fn device<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DeviceName, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse().map_err(D::Error::custom)
}

fn default_threads() -> usize {
    1
}

fn default_memory_mb() -> u64 {
    512
}

fn default_queue_max() -> u32 {
    8
}

fn default_parked_max() -> u32 {
    64
}
