//! Latency of every variant and exit of a zoo on one thread:
//! `RAYON_NUM_THREADS=1 cargo run -p switchyard-models --example latency -- models/zoo`.

use std::path::Path;
use std::time::Instant;

use candle_core::{Device, Tensor};
use switchyard_models::heart::stratified;
use switchyard_models::{Zoo, load_variant};

const BATCHES: [usize; 3] = [1, 8, 32];
const ROUNDS: usize = 61;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1).unwrap_or("models/zoo".to_owned());
    let zoo = Zoo::open(Path::new(&dir))?;
    println!("median (p95) in milliseconds, batch {BATCHES:?}");
    for app in &zoo.apps {
        for variant in &app.variants {
            let started = Instant::now();
            let loaded = load_variant(&variant.dir, &Device::Cpu)?;
            let load_ms = started.elapsed().as_secs_f64() * 1e3;
            for (exit, card) in loaded.card.exits.iter().enumerate() {
                print!("{}/{} {:>10}", app.card.name, loaded.card.name, card.name);
                for batch in BATCHES {
                    let (median, p95) = measure(loaded.model.as_ref(), exit, batch)?;
                    print!("  {median:7.3} ({p95:7.3})");
                }
                println!("  accuracy {:.3}", card.accuracy);
            }
            println!("    loads in {load_ms:.1} ms, {} bytes", loaded.bytes);
        }
        if let Some(sneakpeek) = app.sneakpeek()? {
            let beats = stratified(5, 50);
            let mut counts = Vec::new();
            let started = Instant::now();
            for beat in &beats {
                sneakpeek.counts(&beat.samples, 5, &mut counts);
            }
            let each_us = started.elapsed().as_secs_f64() * 1e6 / beats.len() as f64;
            println!(
                "    evidence: {each_us:.1} us, {} points",
                sneakpeek.points()
            );
        }
    }
    Ok(())
}

fn measure(
    model: &dyn switchyard_models::StagedModel,
    exit: usize,
    batch: usize,
) -> candle_core::Result<(f64, f64)> {
    let values: Vec<f32> = stratified(1, batch.div_ceil(7))
        .into_iter()
        .take(batch)
        .flat_map(|beat| beat.samples)
        .collect();
    let x = Tensor::from_vec(values, (batch, ()), &Device::Cpu)?;
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        model.forward(exit, &x)?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok((times[ROUNDS / 2], times[ROUNDS * 95 / 100]))
}
