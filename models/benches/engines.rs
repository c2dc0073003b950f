//! ResNet-20 at 32 x 32 and ResNet-50 at 224 x 224 on the CPU's kernels, in f32, in bf16 and in
//! int8, compared with the plain operations of training and with onnxruntime (in f32), in one run
//! and in turns: `cargo bench -p switchyard-models --bench engines`.
//!
//! `-- --instructions avx2` limits the instructions; the names are those of `Instructions`.
//!
//! onnxruntime comes from PyPI into `target/engines/venv`, once; without Python or network its
//! columns are NaN. With `ORT_DYLIB_PATH`, the same graphs are also served as
//! variants of a zoo, in this process: the column `served` is the time that a worker would take
//! with them, and needs no Python once the graphs are in `target/engines`. Times are medians of
//! single forwards in milliseconds, by the clock and of CPU; on a shared machine the latter is more
//! reliable. Compare ratios, not runs.

#[path = "common/onnx.rs"]
mod onnx;
#[path = "common/times.rs"]
mod times;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use candle_core::{Device, Tensor};
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Normal};
use rand_pcg::Pcg64;
use rayon::ThreadPoolBuilder;
use switchyard_models::{
    Precision, StagedModel, load_variant, load_variant_at, load_variant_plain,
};

use self::onnx::Onnx;
use self::times::{Result, forwards, limit_instructions, medians};

/// Inputs of the largest batch.
const BATCH_MAX: usize = 8;

/// Largest difference to onnxruntime's logits, relative to the largest of them.
const TOLERANCE: f32 = 1e-3;

/// A residual network of this crate's own layout.
struct Network {
    name: &'static str,
    size: usize,
    classes: usize,
    block: &'static str,
    /// Channels, kernel and stride; whether a pooling follows.
    stem: ([usize; 3], bool),
    /// Channels, blocks and stride.
    groups: &'static [[usize; 3]],
    stages: usize,
    /// Forwards of one turn.
    runs: usize,
    turns: usize,
}

const NETWORKS: [Network; 2] = [
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

/// Batch and threads.
const CASES: [[usize; 2]; 4] = [[1, 1], [1, 2], [8, 1], [8, 2]];

fn main() -> Result<()> {
    limit_instructions()?;
    let is_quick = std::env::args().any(|arg| arg == "--quick");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/engines");
    std::fs::create_dir_all(&folder)?;
    for network in &NETWORKS {
        network.write(&folder)?;
    }
    let mut theirs = match Onnx::start("engines.py", &folder) {
        Ok(onnx) => Some(onnx),
        Err(error) => {
            println!("without onnxruntime: {error}");
            None
        }
    };
    if let Some(onnx) = &mut theirs {
        println!("{}", onnx.ask("versions")?);
    }
    println!(
        "{:8} {:>5} {:>7}  {:>4}  {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}  {:>7} {:>7} {:>7} {:>7}",
        "network",
        "batch",
        "threads",
        "ms",
        "kernels",
        "bf16",
        "int8",
        "plain",
        "onnxrt",
        "served",
        "/onnxrt",
        "/plain",
        "bf16/",
        "int8/"
    );
    for network in &NETWORKS {
        let packed = load_variant(&folder.join(network.name), &Device::Cpu)?.model;
        let narrow =
            |precision| load_variant_at(&folder.join(network.name), precision, &Device::Cpu);
        let bf16 = narrow(Precision::Bf16)?.model;
        let int8 = narrow(Precision::Int8)?.model;
        let plain = load_variant_plain(&folder.join(network.name), &Device::Cpu)?.model;
        let exit = packed.exits().len() - 1;
        let wanted = network.logits(&*packed)?;
        if let Some(onnx) = &mut theirs {
            let found = onnx.ask(&format!("logits {} 2", network.name))?;
            network.compare(
                "onnxruntime",
                &wanted,
                &serde_json::from_str::<Vec<f32>>(&found)?,
            )?;
        }
        let served = network.serve(&folder, theirs.as_mut())?;
        if let Some(served) = &served {
            network.compare("served", &wanted, &network.logits(&**served)?)?;
        }
        let turns = if is_quick { 3 } else { network.turns };
        for [batch, threads] in CASES {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
            let x = network.input()?.narrow(0, 0, batch)?;
            let runs = network.runs.div_ceil(batch);
            let mut times = [const { Vec::new() }; 6];
            for turn in 0..=turns {
                let ours = forwards(&pool, &*packed, exit, &x, runs)?;
                let bf16 = forwards(&pool, &*bf16, exit, &x, runs)?;
                let int8 = forwards(&pool, &*int8, exit, &x, runs)?;
                let plain = match turn % 3 {
                    0 => forwards(&pool, &*plain, exit, &x, 1)?,
                    _ => Vec::new(),
                };
                let name = network.name;
                let theirs = match &mut theirs {
                    Some(onnx) => onnx.times(&format!("time {name} {batch} {threads} {runs}"))?,
                    None => Vec::new(),
                };
                let served = match &served {
                    Some(served) => forwards(&pool, &**served, 0, &x, runs)?,
                    None => Vec::new(),
                };
                // The first turn warms up.
                if turn > 0 {
                    let some = [ours, bf16, int8, plain, theirs, served];
                    for (all, some) in times.iter_mut().zip(some) {
                        all.extend(some);
                    }
                }
            }
            let times = times.map(|times| medians(&times));
            for (i, clock) in ["wall", "CPU"].into_iter().enumerate() {
                let [ours, bf16, int8, plain, theirs, served] = times.map(|times| times[i]);
                println!(
                    "{:8} {batch:5} {threads:7}  {clock:>4}  {ours:8.3} {bf16:8.3} {int8:8.3} \
                     {plain:8.3} {theirs:8.3} {served:8.3}  {:7.2} {:7.2} {:7.2} {:7.2}",
                    network.name,
                    ours / theirs,
                    ours / plain,
                    bf16 / theirs,
                    int8 / theirs
                );
            }
        }
    }
    Ok(())
}

// === impl Network ===

impl Network {
    /// Writes a folder as a variant of a zoo, and the files that `engines.py` reads.
    fn write(&self, folder: &Path) -> Result<()> {
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

    fn card(&self, name: &str, weights: &str, stages: usize, architecture: &str) -> String {
        format!(
            "name = \"{name}\"\nsummary = \"Random weights\"\nweights = {weights}\n\
             max_batch = {BATCH_MAX}\nstages = {stages}\n\n{architecture}\n\
             [[exits]]\nname = \"final\"\nafter_stage = {stages}\naccuracy = 0.5\n\n\
             [provenance]\ncommand = \"engines\"\ndata = \"none\"\n",
        )
    }

    /// The network as a variant that is an ONNX graph; `None` without onnxruntime or without the
    /// graph's file.
    fn serve(
        &self,
        folder: &Path,
        onnx: Option<&mut Onnx>,
    ) -> Result<Option<Arc<dyn StagedModel>>> {
        if let Err(reason) = switchyard_models::onnx::ready() {
            println!("{}: not served as a graph: {reason}", self.name);
            return Ok(None);
        }
        let name = format!("{}-graph", self.name);
        let dir = folder.join(&name);
        std::fs::create_dir_all(&dir)?;
        let file = dir.join("model.onnx");
        if let Some(onnx) = onnx {
            onnx.ask(&format!("save {} {}", self.name, file.display()))?;
        }
        if !file.exists() {
            println!(
                "{}: not served as a graph: no {}",
                self.name,
                file.display()
            );
            return Ok(None);
        }
        let card = self.card(
            &name,
            "\"model.onnx\"",
            1,
            "[architecture]\nkind = \"onnx\"\n",
        );
        std::fs::write(dir.join("model.toml"), card)?;
        Ok(Some(load_variant(&dir, &Device::Cpu)?.model))
    }

    fn numbers(&self) -> Vec<f32> {
        let mut rng = Pcg64::seed_from_u64(12);
        let count = BATCH_MAX * 3 * self.size * self.size;
        (0..count).map(|_| rng.random_range(-1.0..1.0)).collect()
    }

    fn input(&self) -> Result<Tensor> {
        let shape = (BATCH_MAX, 3 * self.size * self.size);
        Ok(Tensor::from_vec(self.numbers(), shape, &Device::Cpu)?)
    }

    /// Logits of the first two inputs.
    fn logits(&self, model: &dyn StagedModel) -> Result<Vec<f32>> {
        let mut x = self.input()?.narrow(0, 0, 2)?;
        for stage in 0..model.stages() {
            x = model.run_stage(stage, &x)?;
        }
        let logits = model.logits(model.exits().len() - 1, &x)?;
        Ok(logits.flatten_all()?.to_vec1()?)
    }

    /// Both engines must compute the same network, otherwise the times prove nothing.
    fn compare(&self, engine: &str, ours: &[f32], theirs: &[f32]) -> Result<()> {
        let scale = theirs.iter().fold(0f32, |most, x| most.max(x.abs()));
        let apart = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs());
        let apart = apart.fold(0f32, f32::max);
        let name = self.name;
        if ours.len() != theirs.len() || apart.is_nan() || apart > TOLERANCE * scale {
            let reason = format!("{name}, {engine}: logits differ by {apart} of {scale}");
            return Err(reason.into());
        }
        let apart = apart / scale;
        println!("{name}, {engine}: logits differ by {apart:.1e} of the largest");
        Ok(())
    }
}
