//! From a profile to the core's table, its confusion matrices, and a whole catalog.

use switchyard_core::ids::{ExitId, KindId, VariantId, WorkerId};
use switchyard_core::time::Micros;
use switchyard_profile::{AppCell, LatencyCell, Percentile, ProfileFile};

use crate::toy::{latency, names, profile, profiled_catalog};

fn refusal(profile: &ProfileFile) -> String {
    let catalog = profiled_catalog();
    profile
        .to_core(names(&catalog), Percentile::P95)
        .unwrap_err()
        .to_string()
}

#[test]
fn the_core_gets_ids_and_one_percentile() {
    let catalog = profiled_catalog();
    for (percentile, extra) in [
        (Percentile::P50, 0),
        (Percentile::P95, 10),
        (Percentile::P99, 20),
    ] {
        let core = profile().to_core(names(&catalog), percentile).unwrap();
        assert_eq!(core.percentile(), percentile.share());
        let at = |to_stage, exit: Option<u32>, batch| {
            core.latency(
                KindId(0),
                VariantId(0),
                0,
                to_stage,
                exit.map(ExitId),
                batch,
            )
        };
        assert_eq!(at(3, Some(1), 8), Some(Micros(2_400 + extra)));
        assert_eq!(at(1, Some(0), 1), Some(Micros(100 + extra)));
        assert_eq!(at(1, None, 1), Some(Micros(100 + extra)));
        assert_eq!(at(1, Some(0), 9), None);
        assert_eq!(core.load_time(KindId(0), VariantId(0)), Micros(700));
    }
}

#[test]
fn cells_that_the_catalog_lacks_are_left_out() {
    let catalog = profiled_catalog();
    let mut profile = profile();
    let known = profile.latencies.len();
    for change in [
        (|cell| cell.kind = "cpu-64t".to_owned()) as fn(&mut LatencyCell),
        |cell| cell.variant = "gone".to_owned(),
        |cell| cell.exit = Some("gone".to_owned()),
    ] {
        let mut cell = latency(3, Some("after3"), 2);
        change(&mut cell);
        profile.latencies.push(cell);
    }
    let core = profile.to_core(names(&catalog), Percentile::P95).unwrap();
    assert_eq!(core.rows().count(), known);
}

#[test]
fn a_missing_cell_is_named() {
    let mut profile = profile();
    profile
        .latencies
        .retain(|cell| cell.exit.as_deref() != Some("after3") || cell.batch != 8);
    assert_eq!(
        refusal(&profile),
        "profile: not measured: kind cpu-1t, variant toy/v0, stages 0 to 3, exit after3, batch 8"
    );
    profile.models.clear();
    assert_eq!(
        refusal(&profile),
        "profile: not measured: kind cpu-1t, variant toy/v0, load time"
    );
}

#[test]
fn a_variant_that_has_changed_is_refused() {
    let mut profile = profile();
    profile.models[0].memory_bytes = 41;
    assert_eq!(
        refusal(&profile),
        "profile: `models[cpu-1t, toy/v0].memory_bytes` differs: measured on `41`, here it is `40`"
    );
}

#[test]
fn a_profile_that_brings_its_apps_makes_a_catalog() {
    let mut profile = profile();
    profile.models[0].kind = "gpu".to_owned();
    profile
        .latencies
        .iter_mut()
        .for_each(|cell| cell.kind = "gpu".to_owned());
    let missing = profile.to_catalog(Percentile::P95).unwrap_err().to_string();
    assert_eq!(missing, "profile: not measured: app toy of variant v0");
    profile.apps.push(AppCell {
        name: "toy".to_owned(),
        slo_us: 5_000,
    });
    assert!(profile.has_apps());
    let catalog = profile.to_catalog(Percentile::P95).unwrap();
    catalog.validate().unwrap();
    let variant = &catalog.variants[0];
    assert_eq!((variant.stages, variant.max_batch), (3, 8));
    let exits: Vec<_> = variant
        .exits
        .iter()
        .map(|exit| (exit.after_stage, exit.accuracy))
        .collect();
    assert_eq!(exits, [(1, 0.75), (3, 0.9)]);
    assert_eq!(catalog.kinds, ["gpu"]);
    assert_eq!(catalog.apps[0].slo, Micros(5_000));
    let latency = catalog.latency(WorkerId(0), VariantId(0), ExitId(1), 8);
    assert_eq!(latency, Some(Micros(2_410)));
    profile.accuracies.pop();
    let missing = profile.to_catalog(Percentile::P95).unwrap_err().to_string();
    assert_eq!(
        missing,
        "profile: not measured: variant toy/v0, accuracy of exit after3"
    );
}

#[test]
fn exits_without_a_matrix_get_the_measured_one() {
    let mut profile = profile();
    profile.accuracies[0].confusion = vec![vec![8, 1, 1], vec![0, 10, 0], vec![5, 0, 5]];
    profile.accuracies[1].confusion = Vec::new();
    let catalog = profiled_catalog();
    let mut variants = catalog.variants.clone();
    profile
        .add_confusions(&catalog.apps, &mut variants, |_| false)
        .unwrap();
    let exits = &variants[0].exits;
    assert_eq!(exits[0].recall, [0.8, 1.0, 0.5]);
    let row = exits[0].confusion.as_ref().unwrap().row(2);
    assert_eq!(row, Some(&[0.5, 0.0, 0.5][..]));
    assert_eq!(exits[1], catalog.variants[0].exits[1], "none was measured");
    // An exit's own matrix is not replaced.
    profile.accuracies[0].confusion = vec![vec![1, 0, 0]; 3];
    let before = variants.clone();
    profile
        .add_confusions(&catalog.apps, &mut variants, |_| false)
        .unwrap();
    assert_eq!(variants, before);
    // A variant without a card of its own gets its measured accuracy too.
    let mut narrow = catalog.variants.clone();
    profile.accuracies[0].confusion = vec![vec![1, 0, 0], vec![0, 1, 0], vec![0, 0, 1]];
    profile
        .add_confusions(&catalog.apps, &mut narrow, |variant| variant.name == "v0")
        .unwrap();
    assert_eq!(
        (before[0].exits[0].accuracy, narrow[0].exits[0].accuracy),
        (0.5, 0.75)
    );
    for (confusion, message) in [
        (
            vec![vec![8, 1, 1], vec![0, 0, 0], vec![5, 0, 5]],
            "class c1: no input of it was counted",
        ),
        (vec![vec![1, 1]; 2], "class c2: 2 rows for 3 classes"),
    ] {
        profile.accuracies[0].confusion = confusion;
        let mut variants = catalog.variants.clone();
        let refused = profile.add_confusions(&catalog.apps, &mut variants, |_| false);
        assert_eq!(
            refused.unwrap_err().to_string(),
            format!("profile: confusion of app toy, variant v0, exit after1, {message}")
        );
    }
}
