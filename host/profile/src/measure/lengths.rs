//! Latencies of requests of different lengths.

use switchyard_core::catalog::Variant;
use switchyard_core::ids::VariantId;

use super::bench::{BenchError, KindBench, StageRange};
use crate::samples::percentiles;
use crate::schema::LengthCell;

/// Samples of each length. They are taken in turn, so that a disturbance falls on one of each.
const ROUNDS: usize = 7;

/// Measures all stages of a variant with one request of each length; none if all are equally long.
pub(super) fn measure_lengths(
    bench: &mut dyn KindBench,
    (kind, app): (&str, &str),
    (id, variant): (VariantId, &Variant),
) -> Result<Vec<LengthCell>, BenchError> {
    let Some(lengths) = bench.lengths(id)? else {
        return Ok(Vec::new());
    };
    let whole = StageRange {
        from: 0,
        to: variant.stages,
        exit: Some(variant.last_exit()),
    };
    let mut samples_us = vec![Vec::with_capacity(ROUNDS); lengths.all.len()];
    // The first round warms up.
    for round in 0..=ROUNDS {
        for (samples, &length) in samples_us.iter_mut().zip(&lengths.all) {
            let took = bench.run_length(id, whole, length)?;
            if round > 0 {
                samples.push(took.0);
            }
        }
    }
    let cells = lengths.all.iter().zip(samples_us);
    let cells = cells.map(|(&length, samples)| LengthCell {
        kind: kind.to_owned(),
        app: app.to_owned(),
        variant: variant.name.clone(),
        length,
        is_typical: length == lengths.typical,
        samples: samples.len() as u32,
        p50_us: percentiles(samples).p50_us,
    });
    Ok(cells.collect())
}
