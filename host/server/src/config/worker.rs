//! `[[worker]]`: a worker, which runs one batch at a time.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use switchyard_executor::DeviceName;

use super::RemoteConfig;

/// One worker.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerConfig {
    /// Name in logs, metrics and pools.
    ///
    /// String; required; example `"cpu-a"`.
    pub name: String,
    /// Device that computes: the processor, or an NVIDIA GPU, counted from 0. A GPU needs [another
    /// build](gpu.md).
    ///
    /// `"cpu"`, `"cuda:0"`; default `"cpu"`; example `"cpu"`.
    #[serde(default, deserialize_with = "device")]
    pub device: DeviceName,
    /// Threads that compute. Workers with the same device and threads are of one kind and share a
    /// profile. On a GPU, threads only assemble batches, and workers of the same GPU model are of
    /// one kind. All workers together should have no more threads than the machine has cores.
    ///
    /// Integer, 1 to 1024; default `1`; example `2`.
    #[serde(default = "default_threads")]
    pub threads: usize,
    /// Processor cores of the threads, one each, in Linux's numbering. With `[]` the system
    /// chooses. A core that the process may not use (`taskset`, cpuset) is refused at the start.
    /// Two workers may share a core. Linux only.
    ///
    /// List of integers, `threads` of them or none; default `[]`; example `[0]`.
    #[serde(default)]
    pub cores: Vec<usize>,
    /// Budget for resident models and parked activations. A larger model never runs here. The
    /// workers of a GPU must not have more together than the GPU has; a running batch takes memory
    /// on top. Weights count in the precision of the variant; on a processor, 3 x 3 convolutions of
    /// 32 to 256 channels in 32 bits take up to 16/9 of that.
    ///
    /// Integer, MiB, 1 to 16777216; default `512`; example `64`.
    #[serde(default = "default_memory_mb")]
    pub memory_mb: u64,
    /// Variants that stay resident, as `app/variant`. They are loaded first, and must fit in
    /// `memory_mb` together. Unloading their app frees them too.
    ///
    /// List of strings; default `[]`; example `["heart/cnn"]`.
    #[serde(default)]
    pub pin: Vec<String>,
    /// Power of the computing worker, the same for all workers of a kind. It gives energies if the
    /// machine has no readable energy counters (RAPL for the CPU).
    ///
    /// Number, watts, above 0; default none; example `15.0`.
    pub power_w: Option<f64>,
    /// Batches that may wait in the worker's queue. A plan with more is refused.
    ///
    /// Integer, 1 to 65536; default `8`; example `4`.
    #[serde(default = "default_queue_max")]
    pub queue_max: u32,
    /// Partly run requests that may be parked on the worker. A plan with more is refused.
    ///
    /// Integer, 0 to 65536; default `64`; example `0`.
    #[serde(default = "default_parked_max")]
    pub parked_max: u32,
    /// Server on another machine that runs its batches; see below.
    ///
    /// Table; default none: this process; example `{ url = "grpc://10.0.0.2:8001" }`.
    #[serde(default)]
    pub remote: Option<RemoteConfig>,
}

// === impl WorkerConfig ===

impl WorkerConfig {
    /// Budget in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_mb << 20
    }

    /// Device and threads that workers of its kind share, known without opening the device. On a GPU
    /// the number of threads makes no difference.
    pub fn kind(&self) -> (DeviceName, usize, Option<String>) {
        match (&self.remote, self.device) {
            (Some(_), device) => (device, 0, self.remote_kind()),
            (None, DeviceName::Cpu) => (self.device, self.threads, None),
            (None, DeviceName::Cuda(_)) => (self.device, 0, None),
        }
    }

    /// The name of the kind of a worker on another machine.
    pub fn remote_kind(&self) -> Option<String> {
        let kind = self.remote.as_ref()?.kind.as_ref();
        Some(format!("remote:{}", kind.unwrap_or(&self.name)))
    }

    /// The workers that it stands for: itself, or one for each slot of its `remote`.
    pub fn slots(&self) -> Vec<Self> {
        let Some((remote, at_most)) = self.remote.as_ref().zip(self.at_most()) else {
            return vec![self.clone()];
        };
        let slot = |at| Self {
            name: self.slot_name(at),
            remote: Some(RemoteConfig {
                kind: Some(remote.kind.clone().unwrap_or_else(|| self.name.clone())),
                slot: Some(at),
                ..remote.clone()
            }),
            ..self.clone()
        };
        (0..at_most).map(slot).collect()
    }

    /// The slots of its `remote`; none of a worker that is one server or of this process.
    pub fn at_most(&self) -> Option<usize> {
        self.remote.as_ref()?.at_most
    }

    /// The name of one of its slots.
    pub(super) fn slot_name(&self, at: usize) -> String {
        format!("{}-{at}", self.name)
    }

    /// Itself as the process on the other machine runs it.
    #[must_use]
    pub fn here(self) -> Self {
        Self {
            remote: None,
            ..self
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
