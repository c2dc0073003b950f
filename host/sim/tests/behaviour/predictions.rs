//! Answers by true and predicted class.

use switchyard_core::catalog::{Catalog, Confusion};
use switchyard_core::time::Micros;
use switchyard_sim::metrics::Predictions;
use switchyard_sim::{Scenario, run};

use crate::policies::{edf, first_come};
use crate::test_bed::{catalog, scenario};

/// `heart` with three classes; each exit has its own confusion matrix.
fn three_classes() -> Catalog {
    let mut catalog = catalog(4);
    let heart = &mut catalog.apps[0];
    heart.classes.push("c".to_owned());
    heart.prior.push(0.5);
    heart.frequencies = vec![0.5, 0.3, 0.2];
    heart.sneakpeek = None;
    let matrices = [
        [vec![70, 20, 10], vec![30, 60, 10], vec![0, 50, 50]],
        [vec![80, 0, 20], vec![10, 80, 10], vec![20, 10, 70]],
        [vec![90, 10, 0], vec![0, 90, 10], vec![5, 5, 90]],
    ];
    let exits = catalog.variants[..2]
        .iter_mut()
        .flat_map(|variant| &mut variant.exits);
    for (exit, counts) in exits.zip(matrices) {
        let confusion = Confusion::from_counts(&counts).unwrap();
        exit.recall = confusion.recall();
        exit.confusion = Some(confusion);
    }
    catalog
}

fn long(catalog: Catalog) -> Scenario {
    Scenario {
        duration: Micros::from_millis(100_000),
        ..scenario(catalog, "heart=poisson:300")
    }
}

fn of<'a>(predictions: &'a [Predictions], app: &str) -> &'a Predictions {
    predictions.iter().find(|it| it.app == app).unwrap()
}

#[test]
fn answers_are_drawn_from_the_row_of_the_true_class() {
    // The last exit of `large`, with the third matrix, answers all requests.
    let report = run(
        &long(three_classes()),
        &first_come([1, 2], [3, 1], [1, 0]),
        1,
    )
    .unwrap();
    let heart = of(&report.predictions, "heart");
    let rows = [[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.05, 0.05, 0.9]];
    for (counts, shares) in heart.counts.iter().zip(rows) {
        let all: u64 = counts.iter().sum();
        assert!(all > 4_000, "{counts:?}");
        for (&count, share) in counts.iter().zip(shares) {
            let got = count as f64 / all as f64;
            assert!((got - share).abs() < 0.02, "{got}, not {share}");
        }
    }
    let answers: u64 = heart.counts.iter().flatten().sum();
    let total = &report.total;
    assert_eq!(answers, total.in_time + total.late);
    let right: u64 = (0..3).map(|class| heart.counts[class][class]).sum();
    let sampled = total.accuracy_sampled.unwrap();
    assert!((right as f64 / answers as f64 - sampled).abs() < 1e-12);
    // By hand from the counts, for one class.
    let (c, counts) = (&heart.classes[2], &heart.counts);
    let named = counts[0][2] + counts[1][2] + counts[2][2];
    assert_eq!(c.false_alarms, counts[0][2] + counts[1][2]);
    assert_eq!(c.precision, Some(counts[2][2] as f64 / named as f64));
    let others: u64 = counts[..2].iter().flatten().sum();
    let rate = c.false_alarms as f64 / others as f64;
    assert_eq!(c.false_alarm_rate, Some(rate));
}

/// One draw decides whether an answer is wrong and which wrong class it names.
#[test]
fn matrices_change_no_other_metric() {
    let policy = first_come([0, 2], [1, 1], [0, 0]);
    let with = run(&long(three_classes()), &policy, 3).unwrap();
    let mut without = three_classes();
    for exit in without.variants.iter_mut().flat_map(|v| &mut v.exits) {
        exit.confusion = None;
    }
    let without = run(&long(without), &policy, 3).unwrap();
    assert_eq!(with.total, without.total);
    assert_eq!(with.apps, without.apps);
}

#[test]
fn apps_with_unknown_mistakes_are_left_out() {
    let mut catalog = three_classes();
    let apps = |catalog: &Catalog| -> Vec<String> {
        let mut scenario = long(catalog.clone());
        scenario.duration = Micros::from_millis(100);
        let predictions = run(&scenario, &edf(), 1).unwrap().predictions;
        predictions.into_iter().map(|it| it.app).collect()
    };
    // With two classes, a wrong answer names the other one.
    assert_eq!(apps(&catalog), ["heart", "fall"]);
    catalog.variants[1].exits[0].confusion = None;
    assert_eq!(apps(&catalog), ["fall"]);
}

#[test]
fn a_wrong_matrix_is_named() {
    let mut catalog = three_classes();
    let counts = vec![vec![1, 1, 1]; 3];
    catalog.variants[1].exits[1].confusion = Some(Confusion::from_counts(&counts).unwrap());
    let error = run(&long(catalog), &edf(), 1).unwrap_err().to_string();
    let begins = "catalog: variants[1].exits[1].confusion of app heart, variant large, \
                  exit stage3, class a: its row says 0.333";
    assert!(error.starts_with(begins), "{error}");
}
