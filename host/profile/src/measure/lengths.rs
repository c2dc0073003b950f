//! Latencies of requests of different lengths.

use switchyard_core::catalog::Variant;
use switchyard_core::ids::VariantId;
use switchyard_core::time::Micros;

use super::bench::{BenchError, KindBench, StageRange};
use crate::samples::percentiles;
use crate::schema::LengthCell;

/// Samples of each length. They are taken in turn, so that a disturbance falls on one of each.
const ROUNDS: usize = 7;

/// Above the typical length none is measured beyond the first that takes longer.
const LONGEST_RUN: Micros = Micros::from_millis(500);

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
    // The first round warms up, and finds the lengths to measure.
    let mut measured = Vec::with_capacity(lengths.all.len());
    for &length in &lengths.all {
        match bench.run_length(id, whole, length) {
            Ok(took) => {
                measured.push(length);
                if took > LONGEST_RUN && length > lengths.typical {
                    break;
                }
            }
            Err(error) if length == lengths.typical => return Err(error),
            // A model may take some sizes only, such as multiples of 32 pixels.
            Err(_) => {}
        }
    }
    let mut samples_us = vec![Vec::with_capacity(ROUNDS); measured.len()];
    for _ in 0..ROUNDS {
        for (samples, &length) in samples_us.iter_mut().zip(&measured) {
            samples.push(bench.run_length(id, whole, length)?.0);
        }
    }
    let cells = measured.iter().zip(samples_us);
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
