//! The SDK's latencies and penalties equal the host's, to the bit.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use switchyard_core::catalog::Penalty;
use switchyard_core::ids as core;
use switchyard_core::profile::{Profile, ProfileRow};
use switchyard_core::time::Micros;
use switchyard_sdk::bindings::exports::switchyard::policy::scheduling as raw;
use switchyard_sdk::testing::CatalogBuilder;
use switchyard_sdk::{Catalog, ExitId, VariantId, WorkerId, utility};

const STAGES: u32 = 4;

/// From-stage, stages, with a head, batch, latency.
fn row() -> impl Strategy<Value = (u32, u32, bool, u32, u64)> {
    (
        0..STAGES,
        1..=STAGES,
        any::<bool>(),
        1u32..10,
        1u64..100_000,
    )
        .prop_filter("a range of stages", |(from, len, ..)| from + len <= STAGES)
}

/// Exits after stages 2 and 4.
fn exit_after(stage: u32) -> Option<u32> {
    [2, STAGES]
        .iter()
        .position(|&after| after == stage)
        .map(|exit| exit as u32)
}

proptest! {
    #[test]
    fn latencies_are_the_hosts(rows in proptest::collection::vec(row(), 0..40), max_batch in 1u32..12) {
        let rows: Vec<_> = rows
            .into_iter()
            .map(|(from, len, head, batch, latency)| raw::ProfileRow {
                kind: 0,
                variant: 0,
                from_stage: from,
                to_stage: from + len,
                exit: exit_after(from + len).filter(|_| head),
                batch,
                latency,
                energy_uj: None,
            })
            .collect();
        let builder = CatalogBuilder::new().app("a", &["x"]).variant("v", &[0.9]).max_batch(max_batch);
        let mut catalog = builder.stages(STAGES).early_exit("early", 2, &[0.5]).worker("w").raw();
        catalog.profile.clone_from(&rows);
        let catalog = Catalog::new(catalog).unwrap();
        let profile = Profile::new(0.95, rows.iter().map(host_row), []);
        for (from, to) in (0..STAGES).flat_map(|from| (from + 1..=STAGES).map(move |to| (from, to))) {
            for exit in [None, exit_after(to)] {
                let ours = catalog.run_latencies_us(WorkerId(0), VariantId(0), from, to, exit.map(ExitId));
                for batch in 1..=max_batch {
                    let theirs = profile.latency(
                        core::KindId(0), core::VariantId(0), from, to, exit.map(core::ExitId), batch,
                    );
                    let ours = ours.get(batch as usize - 1).copied();
                    prop_assert_eq!(ours, theirs.map(|t| t.0), "[{}, {}) {:?} x{}", from, to, exit, batch);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn penalties_are_the_hosts(deadline in 0u64..1_000, end in 0u64..3_000) {
        for (ours, theirs) in [
            (raw::Penalty::Step, Penalty::Step),
            (raw::Penalty::Linear, Penalty::Linear),
            (raw::Penalty::Sigmoid, Penalty::Sigmoid),
        ] {
            let ours = utility::loss(ours, deadline, end);
            let theirs = theirs.loss(Micros(deadline), Micros(end));
            prop_assert_eq!(ours.to_bits(), theirs.to_bits(), "{} for {}", end, deadline);
        }
    }
}

fn host_row(row: &raw::ProfileRow) -> ProfileRow {
    ProfileRow {
        kind: core::KindId(row.kind),
        variant: core::VariantId(row.variant),
        from_stage: row.from_stage,
        to_stage: row.to_stage,
        exit: row.exit.map(core::ExitId),
        batch: row.batch,
        latency: Micros(row.latency),
        energy_uj: row.energy_uj,
    }
}
