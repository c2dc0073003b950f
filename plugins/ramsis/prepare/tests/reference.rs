//! The numbers of the public artifact, if its measurements are available.

#![allow(clippy::unwrap_used)]

use ramsis_prepare::tables::Objective;
use ramsis_prepare::{Generator, Spec};

#[path = "../benches/support/image.rs"]
mod image;
#[path = "../benches/support/sixty.rs"]
mod sixty;

/// The public artifact's table: 60 workers, 2,000/s, 150 ms, D = 100, N = 32, nine variants, p95.
#[test]
fn the_artifacts_expectations_are_reproduced() {
    let models = image::nine().unwrap();
    if models[0].name != "shufflenet_v2_x0_5" {
        return; // A stand-in: the measurements are missing.
    }
    assert_eq!(sixty::sixty(&models).len(), 60);
    let spec = Spec {
        objective: Objective::Decision,
        ..Spec::new(models, image::SLO_US, image::WORKERS)
    };
    let made = Generator::new(spec).unwrap().table(2_000.0).unwrap();
    let percent = |share: f64| (share * 1e4).round() / 100.0;
    assert!(percent(made.guarantee.accuracy) == 74.87);
    assert!(percent(made.guarantee.violation_rate) == 0.19);
}
