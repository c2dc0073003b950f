//! A run for a live server has the arrivals of a simulation, and the same answers have the same metrics.

use switchyard_core::event::Reply;
use switchyard_core::policy::EarliestDeadlineFirst;
use switchyard_core::time::{Micros, Time};
use switchyard_sim::metrics::Report;
use switchyard_sim::served::{ServedEnd, ServedRun, ServedTotals};
use switchyard_sim::{Contender, Observer, Scenario, run_observed};

use super::test_bed::{catalog, scenario};

/// Every reply, with its time.
#[derive(Default)]
struct Ends(Vec<(Time, Reply)>);

impl Observer for Ends {
    fn ended(&mut self, now: Time, reply: &Reply) {
        self.0.push((now, reply.clone()));
    }
}

fn simulated(scenario: &Scenario) -> (Report, Vec<(Time, Reply)>) {
    let mut ends = Ends::default();
    let edf = Contender::new("edf", EarliestDeadlineFirst::default);
    let report = run_observed(scenario, &edf, 3, &mut ends).unwrap();
    (report, ends.0)
}

fn several_streams() -> Scenario {
    let workload = "heart=poisson:250@deadline=normal:20ms,5ms;fall=window:3x20ms";
    Scenario {
        duration: Micros::from_millis(3_000),
        skip_first: 50,
        ..scenario(catalog(2), workload)
    }
}

#[test]
fn arrivals_are_those_of_the_simulation() {
    let scenario = several_streams();
    let (_, ends) = simulated(&scenario);
    let run = ServedRun::draw(&scenario, 3).unwrap();
    assert_eq!(run.arrivals().len(), ends.len());
    for (now, reply) in &ends {
        let arrival = run.arrivals()[reply.request.0 as usize];
        assert_eq!((arrival.at + reply.latency, arrival.app), (*now, reply.app));
    }
    assert!(run.arrivals().is_sorted_by_key(|arrival| arrival.at));
}

#[test]
fn the_same_answers_have_the_same_metrics() {
    let scenario = several_streams();
    let (report, ends) = simulated(&scenario);
    let run = ServedRun::draw(&scenario, 3).unwrap();
    let served = ends.iter().map(|(_, reply)| {
        let at = reply.request.0 as usize;
        let since = reply.ran.map_or(run.arrivals()[at].at, |ran| ran.since);
        ServedEnd {
            arrival: at,
            outcome: reply.outcome.clone(),
            latency: reply.latency,
            waited: since.since(run.arrivals()[at].at),
            batch_size: reply.ran.map_or(0, |ran| ran.size),
        }
    });
    let served: Vec<ServedEnd> = served.collect();
    let totals = ServedTotals {
        length: report.simulated_us,
        ..ServedTotals::default()
    };
    let counted = run.report(&served, &totals);
    assert_eq!(counted.total, report.total);
    assert_eq!(counted.apps, report.apps);
    assert_eq!(counted.served, report.served);
    assert_eq!(counted.predictions, report.predictions);
    assert!(report.utilisation().is_some_and(|share| share > 0.0));
    assert_eq!(counted.utilisation(), None, "not reported as 0");

    // A request whose reply never came has failed.
    let counted = run.report(&served[1..], &totals);
    assert_eq!(counted.total.ended(), report.total.ended());
}
