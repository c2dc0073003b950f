//! Windows with known rates (`@known`).

use std::sync::{Arc, Mutex};

use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Description, Policy, PolicyFault};
use switchyard_core::time::Micros;
use switchyard_core::window::Window;
use switchyard_sim::{Contender, Workload, run};

use crate::test_bed::{catalog, scenario};

/// Times and rates of all windows.
type Seen = Arc<Mutex<Vec<(u64, Vec<f64>)>>>;

struct Recorder(Description, Seen);

impl Policy for Recorder {
    fn description(&self) -> &Description {
        &self.0
    }

    fn configure(&mut self, _: &Catalog) -> Result<(), PolicyFault> {
        Ok(())
    }

    fn schedule(&mut self, window: &Window, _: &mut Plan) -> Result<(), PolicyFault> {
        let seen = (window.now.0, window.arrival_rate.clone());
        self.1.lock().unwrap().push(seen);
        Ok(())
    }
}

/// The windows of a policy every 100 ms.
fn rates(workload: &str) -> Vec<(u64, Vec<f64>)> {
    let seen = Seen::default();
    let description = Description {
        name: "recorder".to_owned(),
        every: Some(Micros::from_millis(100)),
        when_empty: true,
        ..Description::default()
    };
    let mut scenario = scenario(catalog(2), workload);
    scenario.duration = Micros::from_millis(3_000);
    let contender = {
        let seen = Arc::clone(&seen);
        Contender::new("recorder", move || {
            Recorder(description.clone(), Arc::clone(&seen))
        })
    };
    run(&scenario, &contender, 1).unwrap();
    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
    seen.retain(|(now_us, _)| *now_us < 2_900_000);
    seen
}

#[test]
fn a_known_rate_changes_with_the_phase_at_once() {
    let seen = rates("heart=phases:1000x0.35s,10x0.65s@known;fall=poisson:70");
    assert!(seen.len() >= 29, "{}", seen.len());
    for (now_us, rates) in &seen {
        let expected = if now_us % 1_000_000 < 350_000 {
            1e3
        } else {
            10.0
        };
        assert!((rates[0] - expected).abs() < 1e-6, "{now_us}: {rates:?}");
    }
    let measured: Vec<f64> = seen.iter().map(|(_, rates)| rates[1]).collect();
    assert!(
        measured.windows(2).any(|pair| pair[0] != pair[1]),
        "measured"
    );
}

#[test]
fn known_streams_of_an_app_add_up() {
    for (_, rates) in rates("mmpp:60,60,1,1@known@mix=heart:1,fall:3; heart=poisson:5@known") {
        assert!((rates[0] - 20.0).abs() < 1e-6, "{rates:?}");
        assert!((rates[1] - 45.0).abs() < 1e-6, "{rates:?}");
    }
}

#[test]
fn a_process_without_a_rate_cannot_be_known() {
    let workload: Workload = "window:5x100ms@known".parse().unwrap();
    let mut scenario = scenario(catalog(1), "poisson:1");
    scenario.workload = workload;
    let contender = Contender::new("recorder", || {
        Recorder(Description::default(), Seen::default())
    });
    let error = run(&scenario, &contender, 1).unwrap_err().to_string();
    assert!(error.contains("@known: window"), "{error}");
}
