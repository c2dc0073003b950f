//! Cost of a request's evidence on the ingress path, by number of training points. The scan ends
//! and HNSW begins above 65,536 points: `cargo bench -p switchyard-models --bench neighbours`.

use std::collections::HashMap;
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use candle_core::{Device, Tensor};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use switchyard_models::SneakPeek;
use switchyard_models::features::Features;

const DIMENSIONS: usize = 12;
const CLASSES: usize = 7;
const SAMPLES: usize = 187;
const K: usize = 5;
const ROUNDS: usize = 2_001;

fn main() -> Result<(), Box<dyn Error>> {
    println!("{K} neighbours of {SAMPLES} samples in {DIMENSIONS} dimensions, medians");
    println!("{:>8}  {:>8}  {:>9}", "points", "open ms", "search us");
    let dir = tempfile::tempdir()?;
    for points in [2_000, 16_384, 65_536, 65_537] {
        let mut rng = Pcg64::seed_from_u64(1);
        let mut tensor = |rows: usize, columns: usize| {
            let values: Vec<f32> = (0..rows * columns).map(|_| rng.random()).collect();
            Tensor::from_vec(values, (rows, columns), &Device::Cpu)
        };
        let tensors = HashMap::from([
            ("projection", tensor(SAMPLES, DIMENSIONS)?),
            ("points", tensor(points, DIMENSIONS)?),
            (
                "labels",
                (tensor(points, 1)?.flatten_all()? * CLASSES as f64)?.floor()?,
            ),
        ]);
        let file = dir.path().join("evidence.safetensors");
        candle_core::safetensors::save(&tensors, &file)?;
        let start = Instant::now();
        let sneakpeek = SneakPeek::open(&file, Features::Raw, SAMPLES, CLASSES)?;
        let open_ms = start.elapsed().as_secs_f64() * 1e3;
        let mut counts = Vec::new();
        let mut times_us: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let input: Vec<f32> = (0..SAMPLES).map(|_| rng.random_range(0.0..0.01)).collect();
                let start = Instant::now();
                sneakpeek.counts(black_box(&input), K, &mut counts);
                start.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        times_us.sort_by(f64::total_cmp);
        println!("{points:8}  {open_ms:8.1}  {:9.2}", times_us[ROUNDS / 2]);
    }
    Ok(())
}
