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
#[path = "common/resnet.rs"]
mod resnet;
#[path = "common/times.rs"]
mod times;

use std::path::Path;
use std::sync::Arc;

use candle_core::{Device, Tensor};
use rayon::ThreadPoolBuilder;
use switchyard_models::{
    Precision, StagedModel, load_variant, load_variant_at, load_variant_plain,
};

use self::onnx::Onnx;
use self::resnet::{BATCH_MAX, NETWORKS, Network};
use self::times::{Result, forwards, limit_instructions, medians};

/// Largest difference to onnxruntime's logits, relative to the largest of them.
const TOLERANCE: f32 = 1e-3;

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

    fn input(&self) -> Result<Tensor> {
        let shape = (BATCH_MAX, 3 * self.size * self.size);
        Ok(Tensor::from_vec(self.numbers(), shape, &Device::Cpu)?)
    }

    /// Logits of the first two inputs.
    fn logits(&self, model: &dyn StagedModel) -> Result<Vec<f32>> {
        let x = self.input()?.narrow(0, 0, 2)?;
        let x = model.run_stages(0..model.stages(), &x)?;
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
