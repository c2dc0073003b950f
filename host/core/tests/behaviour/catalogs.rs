//! Catalogs that no scheduler takes.

use std::sync::Arc;

use switchyard_core::catalog::{Catalog, LATENCY_MAX};
use switchyard_core::ids::{KindId, VariantId};
use switchyard_core::profile::{LoadRow, Profile};
use switchyard_core::time::Micros;

use crate::bed::catalog;

fn refusal(catalog: Catalog) -> Option<String> {
    catalog.validate().err().map(|error| error.to_string())
}

#[test]
fn a_latency_above_one_hour_is_refused() {
    let good = Arc::unwrap_or_clone(catalog(1));
    let with = |latency| {
        let mut rows: Vec<_> = good.profile.rows().collect();
        rows.last_mut().unwrap().latency = latency;
        let profile = Profile::new(0.95, rows, good.profile.loads());
        refusal(Catalog {
            profile,
            ..good.clone()
        })
    };
    assert_eq!(with(LATENCY_MAX), None);
    assert_eq!(
        with(Micros(u64::MAX)).unwrap(),
        "catalog: profile[kind cpu-1t, variant fall/only, batch 8]: 18446744073709551615 us is \
         above 3600000000 us, one hour; measure the profile again"
    );
}

#[test]
fn a_load_time_above_one_hour_is_refused() {
    let mut catalog = Arc::unwrap_or_clone(catalog(1));
    let load = LoadRow {
        kind: KindId(0),
        variant: VariantId(1),
        latency: LATENCY_MAX + Micros(1),
    };
    catalog.profile = Profile::new(0.95, catalog.profile.rows(), [load]);
    assert_eq!(
        refusal(catalog).unwrap(),
        "catalog: profile[kind cpu-1t, variant heart/large, load]: 3600000001 us is above \
         3600000000 us, one hour; measure the profile again"
    );
}
