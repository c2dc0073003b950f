//! The rule of eviction, by examples and as properties.

use proptest::prelude::*;

use super::*;

fn holding(budget_bytes: u64, variants: &[(u32, u64)]) -> Residents<()> {
    let mut residents = Residents::new(budget_bytes);
    for &(variant, bytes) in variants {
        residents.insert(VariantId(variant), bytes, Micros::ZERO, Arc::new(()));
    }
    residents
}

fn ids(variants: &[u32]) -> Vec<VariantId> {
    variants.iter().copied().map(VariantId).collect()
}

fn need(bytes: u64, soon: &[VariantId]) -> Need<'_> {
    Need {
        variant: VariantId(99),
        bytes,
        parked_bytes: 0,
        soon,
    }
}

#[test]
fn the_least_recently_used_goes_first() {
    let mut residents = holding(100, &[(0, 40), (1, 30), (2, 30)]);
    residents.touch(VariantId(0)).unwrap();
    let evicted = residents.make_room(need(50, &[])).unwrap();
    assert_eq!(evicted.to_vec(), ids(&[1, 2]));
    assert_eq!(residents.variants(), ids(&[0]));
    assert_eq!(residents.resident_bytes(), 40);
}

#[test]
fn evict_idle_spares_pinned_and_used_variants() {
    let mut residents = holding(100, &[(0, 40), (1, 30), (2, 20), (3, 10)]);
    residents.pin(VariantId(2));
    let used = residents.touch(VariantId(1)).unwrap();
    assert_eq!(residents.evict_idle().to_vec(), ids(&[0, 3]));
    assert_eq!(residents.variants(), ids(&[1, 2]));
    drop(used);
    assert_eq!(residents.evict_idle().to_vec(), ids(&[1]));
    assert_eq!(residents.free_bytes(), 80);
}

#[test]
fn nothing_is_evicted_when_there_is_room() {
    let mut residents = holding(100, &[(0, 40)]);
    assert!(residents.make_room(need(60, &[])).unwrap().is_empty());
}

#[test]
fn parked_bytes_are_not_room() {
    let mut residents = holding(100, &[(0, 40), (1, 10)]);
    let need = Need {
        parked_bytes: 20,
        ..need(50, &[])
    };
    assert_eq!(residents.make_room(need).unwrap().to_vec(), ids(&[0]));
}

#[test]
fn pinned_and_used_variants_stay() {
    let mut residents = holding(100, &[(0, 40), (1, 30), (2, 30)]);
    residents.pin(VariantId(0));
    let _in_use = residents.touch(VariantId(1)).unwrap();
    let refused = residents.make_room(need(31, &[]));
    assert_eq!(refused, Err(NoRoom { free_bytes: 30 }));
    assert_eq!(residents.variants(), ids(&[0, 1, 2]), "nothing was evicted");
    let evicted = residents.make_room(need(30, &[])).unwrap();
    assert_eq!(evicted.to_vec(), ids(&[2]));
}

#[test]
fn variants_needed_soon_go_last_and_the_latest_of_them_first() {
    let mut residents = holding(90, &[(0, 30), (1, 30), (2, 30)]);
    let soon = ids(&[0, 1]);
    let evicted = residents.make_room(need(30, &soon)).unwrap();
    assert_eq!(evicted.to_vec(), ids(&[2]));
    residents.insert(VariantId(3), 30, Micros::ZERO, Arc::new(()));
    let evicted = residents.make_room(need(60, &soon)).unwrap();
    assert_eq!(evicted.to_vec(), ids(&[3, 1]));
}

#[test]
fn a_slow_load_outlives_a_quick_one_of_its_size_but_not_for_ever() {
    let mut residents = Residents::new(100);
    residents.insert(VariantId(0), 50, Micros(1_000), Arc::new(()));
    residents.insert(VariantId(1), 50, Micros(400), Arc::new(()));
    for round in 0..4 {
        let evicted = residents.make_room(need(50, &[])).unwrap();
        if evicted.to_vec() == ids(&[0]) {
            assert!(round > 1, "it was evicted as if its load were quick");
            return;
        }
        residents.insert(VariantId(round + 2), 50, Micros(400), Arc::new(()));
    }
    panic!("a variant that no batch uses stays for ever");
}

#[test]
fn a_variant_that_need_not_go_in_the_end_stays() {
    let mut residents = holding(100, &[(0, 10), (1, 60), (2, 30)]);
    let evicted = residents.make_room(need(60, &[])).unwrap();
    assert_eq!(evicted.to_vec(), ids(&[1]), "0 need not go");
}

#[test]
fn a_load_ahead_spares_variants_needed_sooner_and_gives_way() {
    let mut residents = holding(100, &[(0, 60), (1, 30)]);
    let soon = ids(&[0, 7]);
    let ahead = Need {
        variant: VariantId(7),
        ..need(50, &soon)
    };
    assert_eq!(
        residents.begin_load(ahead, 1),
        Err(NoRoom { free_bytes: 40 })
    );
    let small = Need { bytes: 40, ..ahead };
    assert_eq!(residents.begin_load(small, 1).unwrap().to_vec(), ids(&[1]));
    assert_eq!(
        (residents.reserved_bytes(), residents.free_bytes()),
        (40, 0)
    );
    residents.make_room(need(90, &[])).unwrap();
    let late = residents.end_load(VariantId(7), Micros::ZERO, Arc::new(()));
    assert!(!late, "its room was given away");
    assert_eq!(residents.variants(), ids(&[]));
}

#[derive(Clone, Debug)]
enum CacheStep {
    Use(u32),
    Ahead(Vec<u32>),
    Loaded,
    Hold(u32),
    Drop,
}

fn steps() -> impl Strategy<Value = Vec<CacheStep>> {
    let step = prop_oneof![
        (0..8u32).prop_map(CacheStep::Use),
        prop::collection::vec(0..8u32, 0..4).prop_map(CacheStep::Ahead),
        Just(CacheStep::Loaded),
        (0..8u32).prop_map(CacheStep::Hold),
        Just(CacheStep::Drop),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    /// The budget holds, no pinned or used variant is evicted, and no variant that is needed soon
    /// is evicted while another one could have been.
    #[test]
    fn the_rule_holds(
        sizes in prop::collection::vec(1..60u64, 8),
        loads in prop::collection::vec(0..1_000u64, 8),
        soon in prop::collection::vec(0..8u32, 0..4),
        pinned in 0..8u32,
        steps in steps(),
    ) {
        let mut residents: Residents<()> = Residents::new(100);
        residents.pin(VariantId(pinned));
        let soon = ids(&soon);
        let mut in_use: Option<(VariantId, Arc<()>)> = None;
        let mut loading: Option<VariantId> = None;
        for step in steps {
            let before: Vec<_> = residents.variants();
            let mut evicted = Evicted::new();
            let mut listed = soon.clone();
            match step {
                CacheStep::Use(v) => {
                    let variant = VariantId(v);
                    if residents.touch(variant).is_none() {
                        let bytes = sizes[v as usize];
                        let need = Need { variant, bytes, parked_bytes: 0, soon: &soon };
                        if let Ok(gone) = residents.make_room(need) {
                            evicted = gone;
                            let load = Micros(loads[v as usize]);
                            residents.insert(variant, bytes, load, Arc::new(()));
                        }
                    }
                }
                CacheStep::Ahead(variants) => {
                    listed = ids(&variants);
                    let first = residents.missing(&listed).next();
                    if let Some((at, variant)) = first {
                        let bytes = sizes[variant.index()];
                        let need = Need { variant, bytes, parked_bytes: 0, soon: &listed };
                        if let Ok(gone) = residents.begin_load(need, at) {
                            evicted = gone;
                            loading = Some(variant);
                        }
                        for sooner in &listed[..at] {
                            prop_assert!(!evicted.contains(sooner), "{sooner:?} is needed sooner");
                        }
                    }
                }
                CacheStep::Loaded => {
                    if let Some(variant) = loading.take() {
                        let load = Micros(loads[variant.index()]);
                        residents.end_load(variant, load, Arc::new(()));
                    }
                }
                CacheStep::Hold(v) => {
                    if let Some(held) = residents.touch(VariantId(v)) {
                        in_use = Some((VariantId(v), held));
                    }
                }
                CacheStep::Drop => in_use = None,
            }
            let taken = residents.resident_bytes() + residents.reserved_bytes();
            prop_assert!(taken <= 100, "{taken} bytes of 100");
            prop_assert!(!evicted.contains(&VariantId(pinned)), "it was pinned");
            if let Some((used, _)) = &in_use {
                prop_assert!(!evicted.contains(used), "it was in use");
            }
            if evicted.iter().any(|gone| listed.contains(gone)) {
                // Then all variants that no batch waits for were too small together.
                let left = before.iter().filter(|v| {
                    !evicted.contains(v)
                        && !listed.contains(v)
                        && **v != VariantId(pinned)
                        && in_use.as_ref().is_none_or(|(used, _)| used != *v)
                });
                let left: u64 = left.map(|v| sizes[v.index()]).sum();
                let smallest = evicted.iter().filter(|gone| listed.contains(gone));
                let smallest = smallest.map(|v| sizes[v.index()]).min().unwrap();
                prop_assert!(
                    left < smallest,
                    "{left} bytes that no batch waits for stayed, {evicted:?} went for {listed:?}"
                );
            }
        }
    }
}
