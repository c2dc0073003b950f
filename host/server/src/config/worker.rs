//! `[[worker]]`: something that runs one batch at a time.

use serde::Deserialize;

/// One worker.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerConfig {
    /// Name in logs, metrics and pools.
    pub name: String,
    /// What it computes on.
    #[serde(default)]
    pub device: Device,
    /// Threads it computes with.
    #[serde(default = "default_threads")]
    pub threads: usize,
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

/// What a worker computes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// The processor.
    #[default]
    Cpu,
}

// === impl WorkerConfig ===

impl WorkerConfig {
    /// Budget in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_mb << 20
    }
}

// === impl Device ===

impl Device {
    /// Name in kinds and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
        }
    }
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
