//! Fields out of range are refused by name; poor inputs give warnings.

#![allow(clippy::unwrap_used)]

use ramsis_prepare::tables::{Arrivals, Balancing, Batching};
use ramsis_prepare::{Generator, Grid, Model, Note, Spec};

fn model(name: &str, accuracy: f64, ms: &[u64]) -> Model {
    Model {
        name: name.to_owned(),
        accuracy,
        latency_us: ms.iter().map(|ms| ms * 1_000).collect(),
    }
}

fn spec() -> Spec {
    let models = vec![
        model("large", 0.8, &[100, 200]),
        model("small", 0.5, &[20, 30, 40]),
    ];
    Spec {
        grid: Grid::Fixed(5),
        ..Spec::new(models, 150_000, 4)
    }
}

fn refused(change: impl FnOnce(&mut Spec)) -> String {
    let mut spec = spec();
    change(&mut spec);
    Generator::new(spec).unwrap_err().to_string()
}

#[test]
fn fields_out_of_range_are_named() {
    let cases = [
        (refused(|spec| spec.workers = 0), "`workers`"),
        (refused(|spec| spec.slo_us = 0), "`slo_us`"),
        (refused(|spec| spec.queue_max = 256), "`queue_max`"),
        (refused(|spec| spec.grid = Grid::Fixed(0)), "`grid`"),
        (refused(|spec| spec.models.clear()), "`models`"),
        (
            refused(|spec| spec.models[1].accuracy = 1.1),
            "`models[1].accuracy (small)`",
        ),
        (
            refused(|spec| spec.models[0].latency_us[1] = 1),
            "`models[0].latency_us (large)`",
        ),
        (
            refused(|spec| spec.models[1].name = "large".to_owned()),
            "`models[1].name (large)`",
        ),
        (
            refused(|spec| spec.arrivals = Arrivals::Gamma { shape: 0.1 }),
            "`arrivals`",
        ),
        (
            refused(|spec| {
                spec.balancing = Balancing::ShortestQueue;
                spec.batching = Batching::Variable;
            }),
            "`batching`",
        ),
    ];
    for (said, field) in cases {
        assert!(said.starts_with(field), "{said}");
    }
    let generator = Generator::new(spec()).unwrap();
    for load in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = generator.table(load).unwrap_err().to_string();
        assert!(error.starts_with("`load_rps`"), "{error}");
    }
}

#[test]
fn an_unmeetable_deadline_leaves_the_fastest_variant() {
    let spec = Spec {
        slo_us: 10_000,
        ..spec()
    };
    let generator = Generator::new(spec).unwrap();
    let notes = generator.notes(&[20.0]);
    assert!(matches!(&notes[..], [Note::SloUnmet { variant, .. }] if variant == "small"));
    let made = generator.table(20.0).unwrap();
    assert!((made.guarantee.violation_rate, made.guarantee.accuracy) == (1.0, 0.0));
    assert!(made.actions.iter().all(|action| action.variant == 0));
    assert_eq!(generator.spec().models[0].name, "small");
}

#[test]
fn a_load_beyond_capacity_gives_a_warning_and_a_poor_guarantee() {
    let generator = Generator::new(spec()).unwrap();
    // 3 requests in 40 ms on each of four workers.
    assert!((generator.capacity_rps() - 300.0).abs() < 1e-9);
    assert_eq!(generator.notes(&[100.0]), []);
    let notes = generator.notes(&[100.0, 900.0]);
    assert!(matches!(
        notes[..],
        [Note::BeyondCapacity {
            load_rps: 900.0,
            ..
        }]
    ));
    let guarantee = generator.table(900.0).unwrap().guarantee;
    assert!(guarantee.violation_rate > 0.99 && guarantee.full > 0.99);
}

#[test]
fn only_batches_that_a_variant_takes_are_offered() {
    let generator = Generator::new(spec()).unwrap();
    let made = generator.table(30.0).unwrap();
    let set = generator.set(vec![made.entry.clone()]);
    assert_eq!((set.queue_max, set.variants.len()), (3, 2));
    let table = made.table(&set).unwrap();
    assert_eq!(table.action(1, 149_999).variant, 1);
    assert_eq!(table.action(3, 149_999).variant, 0);
}

#[test]
fn the_hash_depends_on_every_input() {
    let hash = |spec: Spec| Generator::new(spec).unwrap().hash(30.0);
    let first = hash(spec());
    assert_eq!(first, hash(spec()));
    assert_ne!(first, Generator::new(spec()).unwrap().hash(31.0));
    let changes: [fn(&mut Spec); 6] = [
        |spec| spec.workers = 5,
        |spec| spec.slo_us += 1,
        |spec| spec.grid = Grid::Models,
        |spec| spec.batching = Batching::Variable,
        |spec| spec.models[0].latency_us[0] -= 1,
        |spec| spec.models[0].accuracy += 0.01,
    ];
    for change in changes {
        let mut spec = spec();
        change(&mut spec);
        assert_ne!(first, hash(spec));
    }
}

#[test]
fn the_guarantee_of_shortest_queue_is_at_least_that_of_round_robin() {
    for load in [20.0, 60.0] {
        let of = |balancing| {
            let spec = Spec {
                balancing,
                ..spec()
            };
            Generator::new(spec).unwrap().table(load).unwrap().guarantee
        };
        let turns = of(Balancing::RoundRobin);
        let shortest = of(Balancing::ShortestQueue);
        assert!(shortest.accuracy_of_all > turns.accuracy_of_all - 0.005);
        assert!(shortest.violation_rate < turns.violation_rate + 0.005);
    }
}
