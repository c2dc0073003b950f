//! Every shipped variant in every precision, on one thread: the table of `docs/models.md`.
//!
//! `cargo bench -p switchyard-training --bench precisions`
//!
//! Milliseconds of a batch of 1 and of 8 to the last exit, the medians of runs in turns; weights;
//! accuracy of the last exit over 100 validation inputs of each class.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use candle_core::{Device, Tensor};
use rayon::ThreadPoolBuilder;
use switchyard_models::zoo::{ZooApp, ZooVariant};
use switchyard_models::{Instructions, LoadedVariant, Precision, Zoo, load_variant_at};
use switchyard_training::data::stratified;
use switchyard_training::train::{recipe, validate};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Not a seed of a training run.
const SEED: u64 = 987_654_321;

/// Batch sizes.
const BATCHES: [usize; 2] = [1, 8];

/// Validation inputs of each class.
const PER_CLASS: usize = 100;

/// Time in which the precisions of a variant take turns, for each batch size.
const SPENT: Duration = Duration::from_millis(400);

fn main() -> Result<()> {
    let zoo = Zoo::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../zoo"))?;
    println!("instructions: {}\n", Instructions::chosen().name());
    println!("| variant | ms at 1 | ms at 8 | weights, kB | accuracy |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    let pool = ThreadPoolBuilder::new().num_threads(1).build()?;
    for app in &zoo.apps {
        for variant in &app.variants {
            pool.install(|| rows(app, variant))?;
        }
    }
    Ok(())
}

fn rows(app: &ZooApp, variant: &ZooVariant) -> Result<()> {
    let mut all = Vec::new();
    for precision in Precision::ALL {
        let loaded = load_variant_at(&variant.dir, precision, &Device::Cpu)?;
        all.push((precision, loaded));
    }
    let mut times = Vec::new();
    for batch in BATCHES {
        times.push(in_turns(&all, &inputs(app, variant, batch)?)?);
    }
    for (i, (precision, loaded)) in all.iter().enumerate() {
        let exits = validate(&app.card, &variant.card, loaded.model.as_ref(), PER_CLASS)?;
        let accuracy = exits
            .last()
            .map_or(f64::NAN, switchyard_training::Confusion::accuracy);
        println!(
            "| {}/{} | {:.3} | {:.3} | {} | {accuracy:.3} |",
            app.card.name,
            precision.of_variant(&variant.card.name),
            times[0][i],
            times[1][i],
            loaded.bytes.div_ceil(1000),
        );
    }
    Ok(())
}

/// Median milliseconds of each precision.
fn in_turns(all: &[(Precision, LoadedVariant)], x: &Tensor) -> Result<Vec<f64>> {
    let mut times = vec![Vec::new(); all.len()];
    let start = Instant::now();
    while start.elapsed() < SPENT || times[0].len() < 5 {
        for ((_, loaded), times) in all.iter().zip(&mut times) {
            let start = Instant::now();
            loaded.model.forward(loaded.model.exits().len() - 1, x)?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    Ok(times.iter_mut().map(median).collect())
}

/// The requests of the app's clients, as the variant reads them.
fn inputs(app: &ZooApp, variant: &ZooVariant, batch: usize) -> Result<Tensor> {
    let recipe = recipe(&app.card.name).ok_or("an app without a recipe")?;
    let ranges = app.card.input_ranges(variant.card.inputs.as_deref());
    let ranges = ranges.ok_or("a variant that does not fit its app")?;
    let samples = stratified(recipe.data(), SEED, batch);
    let values: Vec<f32> = samples
        .iter()
        .take(batch)
        .flat_map(|sample| {
            ranges
                .iter()
                .flat_map(|range| &sample.values[range.clone()])
        })
        .copied()
        .collect();
    let width = variant.card.architecture.samples();
    Ok(Tensor::from_vec(values, (batch, width), &Device::Cpu)?)
}
