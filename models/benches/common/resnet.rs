//! Residual networks with random weights, in the files of a zoo and in those that `engines.py` reads.

use std::collections::HashMap;
use std::path::Path;

use candle_core::{Device, Tensor};
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Normal};
use rand_pcg::Pcg64;

/// Inputs of the largest batch.
pub(crate) const BATCH_MAX: usize = 8;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A residual network of this crate's own layout.
pub(crate) struct Network {
    pub(crate) name: &'static str,
    pub(crate) size: usize,
    pub(crate) classes: usize,
    pub(crate) block: &'static str,
    /// Channels, kernel and stride; whether a pooling follows.
    pub(crate) stem: ([usize; 3], bool),
    /// Channels, blocks and stride.
    pub(crate) groups: &'static [[usize; 3]],
    pub(crate) stages: usize,
    /// Forwards of one turn.
    pub(crate) runs: usize,
    pub(crate) turns: usize,
}

pub(crate) const NETWORKS: [Network; 2] = [
    Network {
        name: "resnet20",
        size: 32,
        classes: 10,
        block: "basic",
        stem: ([16, 3, 1], false),
        groups: &[[16, 3, 1], [32, 3, 2], [64, 3, 2]],
        stages: 8,
        runs: 20,
        turns: 25,
    },
    Network {
        name: "resnet50",
        size: 224,
        classes: 1000,
        block: "bottleneck",
        stem: ([64, 7, 2], true),
        groups: &[[64, 3, 1], [128, 4, 2], [256, 6, 2], [512, 3, 2]],
        stages: 8,
        runs: 2,
        turns: 15,
    },
];

// === impl Network ===

impl Network {
    /// Writes a folder as a variant of a zoo, and the files that `engines.py` reads.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let mut rng = Pcg64::seed_from_u64(11);
        let mut tensors = HashMap::new();
        let mut parameters = 0;
        let mut add = |name: String, shape: [usize; 2], gain: f64| -> Result<()> {
            let normal = Normal::new(0.0, gain * (2.0 / shape[0] as f64).sqrt())?;
            let count = shape[0] * shape[1];
            let values: Vec<f32> = normal
                .sample_iter(&mut rng)
                .take(count)
                .map(|value: f64| value as f32)
                .collect();
            parameters += count;
            tensors.insert(name, Tensor::from_vec(values, &shape, &Device::Cpu)?);
            Ok(())
        };
        let ([stem, kernel, _], _) = self.stem;
        add(
            "stem.weight".to_owned(),
            [kernel * kernel * 3 + 1, stem],
            1.0,
        )?;
        let mut channels = stem;
        for (i, &[inner, blocks, stride]) in self.groups.iter().enumerate() {
            for j in 0..blocks {
                let at = format!("group{}.block{j}", i + 1);
                let (output, convs) = match self.block {
                    "basic" => (inner, vec![[channels * 9, inner], [inner * 9, inner]]),
                    _ => (
                        inner * 4,
                        vec![[channels, inner], [inner * 9, inner], [inner, inner * 4]],
                    ),
                };
                let last = convs.len() - 1;
                for (n, [rows, columns]) in convs.into_iter().enumerate() {
                    let gain = if n == last { 0.1 } else { 1.0 };
                    add(
                        format!("{at}.conv{}.weight", n + 1),
                        [rows + 1, columns],
                        gain,
                    )?;
                }
                if channels != output || (j == 0 && stride != 1) {
                    add(format!("{at}.skip.weight"), [channels + 1, output], 0.7)?;
                }
                channels = output;
            }
        }
        let head = format!("exit{}", self.groups.len());
        add(format!("{head}.weight"), [channels, self.classes], 1.0)?;
        parameters += self.classes;
        tensors.insert(
            format!("{head}.bias"),
            Tensor::zeros(self.classes, candle_core::DType::F32, &Device::Cpu)?,
        );
        let dir = folder.join(self.name);
        std::fs::create_dir_all(&dir)?;
        candle_core::safetensors::save(&tensors, dir.join("weights.safetensors"))?;
        std::fs::copy(
            dir.join("weights.safetensors"),
            folder.join(format!("{}.safetensors", self.name)),
        )?;
        let weights = format!("\"weights.safetensors\"\nparameters = {parameters}");
        let card = self.card(self.name, &weights, self.stages, &self.architecture());
        std::fs::write(dir.join("model.toml"), card)?;
        let numbers = self.numbers().into_iter().flat_map(f32::to_le_bytes);
        let input = folder.join(format!("{}.input", self.name));
        std::fs::write(input, numbers.collect::<Vec<u8>>())?;
        let architecture: toml::Table = toml::from_str(&self.architecture())?;
        let spec = serde_json::to_string(&architecture["architecture"])?;
        std::fs::write(folder.join(format!("{}.json", self.name)), spec)?;
        Ok(())
    }

    fn architecture(&self) -> String {
        let ([channels, kernel, stride], pool) = self.stem;
        let groups = self.groups.iter().map(|[channels, blocks, stride]| {
            format!("{{ channels = {channels}, blocks = {blocks}, stride = {stride} }}")
        });
        format!(
            "[architecture]\nkind = \"resnet2d\"\nsize = {}\nclasses = {}\n\
             layout = \"switchyard\"\nblock = \"{}\"\nexits = [{}]\n\
             stem = {{ channels = {channels}, kernel = {kernel}, stride = {stride}, pool = {pool} \
             }}\ngroups = [{}]\n",
            self.size,
            self.classes,
            self.block,
            self.groups.len(),
            groups.collect::<Vec<_>>().join(", ")
        )
    }

    pub(crate) fn card(
        &self,
        name: &str,
        weights: &str,
        stages: usize,
        architecture: &str,
    ) -> String {
        format!(
            "name = \"{name}\"\nsummary = \"Random weights\"\nweights = {weights}\n\
             max_batch = {BATCH_MAX}\nstages = {stages}\n\n{architecture}\n\
             [[exits]]\nname = \"final\"\nafter_stage = {stages}\naccuracy = 0.5\n\n\
             [provenance]\ncommand = \"engines\"\ndata = \"none\"\n",
        )
    }

    /// Values of [`BATCH_MAX`] inputs, from -1 to 1.
    pub(crate) fn numbers(&self) -> Vec<f32> {
        let mut rng = Pcg64::seed_from_u64(12);
        let count = BATCH_MAX * 3 * self.size * self.size;
        (0..count).map(|_| rng.random_range(-1.0..1.0)).collect()
    }
}
