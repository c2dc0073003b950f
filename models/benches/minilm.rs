//! A text encoder of MiniLM's size with random weights on the CPU's kernels, in f32, bf16 and int8,
//! compared with onnxruntime in f32, on one thread, in one run and in turns:
//! `cargo bench -p switchyard-models --bench minilm`.
//!
//! `-- --instructions avx2` limits the instructions; the names are those of `Instructions`. `-- --quick`
//! takes fewer turns.
//!
//! onnxruntime comes from PyPI into `target/engines/venv`, once; without Python or network its columns
//! are NaN. Times are medians of single forwards in milliseconds, by the clock and of CPU; on a shared
//! machine the latter is more reliable. Compare ratios, not runs.
#![allow(clippy::unwrap_used)]

#[path = "common/onnx.rs"]
mod onnx;
#[path = "../tests/common/text.rs"]
#[allow(dead_code)]
mod text;
#[path = "common/times.rs"]
mod times;

use std::path::Path;

use candle_core::{Device, Tensor};
use rayon::ThreadPoolBuilder;
use switchyard_models::tokens::stack;
use switchyard_models::{Precision, StagedModel, load_variant, load_variant_at};

use self::onnx::Onnx;
use self::text::{Answers, MINILM, write_app_of};
use self::times::{Result, Times, forwards, limit_instructions, medians};

/// Largest difference of a value of an embedding, which has a length of 1.
const TOLERANCE: f32 = 1e-4;

/// Texts and their tokens.
const CASES: [[usize; 2]; 8] = [
    [1, 16],
    [1, 64],
    [1, 128],
    [1, 512],
    [8, 16],
    [8, 64],
    [8, 128],
    [8, 512],
];

/// Tokens of one turn.
const TURN_TOKENS: usize = 2048;

fn main() -> Result<()> {
    limit_instructions()?;
    let turns = match std::env::args().any(|arg| arg == "--quick") {
        true => 3,
        false => 15,
    };
    let zoo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/engines");
    write_app_of(&MINILM, &zoo, "minilm", Answers::Embeddings, &["encoder"]);
    let folder = zoo.join("minilm/encoder");
    let full = load_variant(&folder, &Device::Cpu)?.model;
    let bf16 = load_variant_at(&folder, Precision::Bf16, &Device::Cpu)?.model;
    let int8 = load_variant_at(&folder, Precision::Int8, &Device::Cpu)?.model;
    let mut theirs = match Onnx::start("minilm.py", &folder) {
        Ok(onnx) => Some(onnx),
        Err(error) => {
            println!("without onnxruntime: {error}");
            None
        }
    };
    if let Some(onnx) = &mut theirs {
        println!("{}", onnx.ask("versions")?);
        compare(&*full, onnx)?;
    }
    println!(
        "{:>5} {:>6}  {:>4}  {:>8} {:>8} {:>8} {:>8}  {:>7} {:>7} {:>7}  {:>9} {:>9} {:>8}",
        "texts",
        "tokens",
        "ms",
        "kernels",
        "bf16",
        "int8",
        "onnxrt",
        "/onnxrt",
        "bf16/",
        "int8/",
        "texts/s",
        "onnxrt/s",
        "GFLOP/s"
    );
    let pool = ThreadPoolBuilder::new().num_threads(1).build()?;
    for [texts, tokens] in CASES {
        let x = ids(texts, tokens)?;
        let runs = (TURN_TOKENS / (texts * tokens)).clamp(1, 20);
        let mut times = [const { Vec::<Times>::new() }; 4];
        for turn in 0..=turns {
            let own = [&full, &bf16, &int8].map(|model| forwards(&pool, &**model, 0, &x, runs));
            let mut found = Vec::new();
            for own in own {
                found.push(own?);
            }
            found.push(match &mut theirs {
                Some(onnx) => onnx.times(&format!("time {texts} {tokens} {runs}"))?,
                None => Vec::new(),
            });
            // The first turn warms up.
            if turn > 0 {
                for (all, some) in times.iter_mut().zip(found) {
                    all.extend(some);
                }
            }
        }
        let times = times.map(|times| medians(&times));
        for (i, clock) in ["wall", "CPU"].into_iter().enumerate() {
            let [ours, bf16, int8, theirs] = times.map(|times| times[i]);
            let per_s = |ms: f64| texts as f64 * 1e3 / ms;
            println!(
                "{texts:5} {tokens:6}  {clock:>4}  {ours:8.2} {bf16:8.2} {int8:8.2} \
                 {theirs:8.2}  {:7.2} {:7.2} {:7.2}  {:9.1} {:9.1} {:8.0}",
                ours / theirs,
                bf16 / theirs,
                int8 / theirs,
                per_s(ours),
                per_s(theirs),
                texts as f64 * operations(tokens) / ours / 1e6,
            );
        }
    }
    Ok(())
}

/// Token `t` of text `b` is `(31 b + 7 t) % 997`, as in `minilm.py`.
fn ids(texts: usize, tokens: usize) -> Result<Tensor> {
    let text = |b: usize| (0..tokens).map(move |t| ((31 * b + 7 * t) % 997) as u32);
    let texts: Vec<Vec<u32>> = (0..texts).map(|b| text(b).collect()).collect();
    Ok(stack(&texts, &Device::Cpu)?)
}

/// Both engines must compute the same network, otherwise the times prove nothing.
fn compare(model: &dyn StagedModel, onnx: &mut Onnx) -> Result<()> {
    let [texts, tokens] = [2, 40];
    let ours = model.forward(0, &ids(texts, tokens)?)?;
    let ours: Vec<f32> = ours.flatten_all()?.to_vec1()?;
    let theirs = onnx.ask(&format!("embed {texts} {tokens}"))?;
    let theirs: Vec<f32> = serde_json::from_str(&theirs)?;
    let apart = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs());
    let apart = apart.fold(0f32, f32::max);
    if ours.len() != theirs.len() || apart.is_nan() || apart > TOLERANCE {
        return Err(format!("embeddings differ by {apart}").into());
    }
    println!("embeddings differ by {apart:.1e}");
    Ok(())
}

/// Multiplications and additions of one text.
fn operations(tokens: usize) -> f64 {
    let [tokens, hidden, wide] = [tokens, MINILM.hidden, MINILM.wide].map(|size| size as f64);
    let products = tokens * hidden * (4.0 * hidden + 2.0 * wide);
    let attention = 2.0 * tokens * tokens * hidden;
    2.0 * MINILM.layers as f64 * (products + attention)
}
