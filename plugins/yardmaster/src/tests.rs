//! Cases computed by hand.

#![allow(clippy::unwrap_used)]

mod decisions;
mod lanes;
mod prices;
mod slices;

use switchyard_sdk::testing::CatalogBuilder;

/// An app of 100 ms with a step penalty; variants as (name, accuracy, microseconds per request).
fn with_app(catalog: CatalogBuilder, name: &str, variants: &[(&str, f64, u64)]) -> CatalogBuilder {
    let app = catalog
        .app(name, &["x", "y"])
        .penalty(switchyard_sdk::Penalty::Step);
    variants
        .iter()
        .fold(app, |app, &(variant, accuracy, each_us)| {
            app.variant(variant, &[accuracy, accuracy])
                .max_batch(4)
                .latency(0, each_us)
        })
}
