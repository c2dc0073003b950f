//! Links to workers take time, and workers die at random.

use switchyard_core::ids::WorkerId;
use switchyard_core::time::{Micros, Time};
use switchyard_sim::{LinkTimes, Observer, RandomDeaths, Scenario, run, run_observed};

use crate::policies::{edf, first_come};
use crate::test_bed::{catalog, scenario, single_server};

const LINKS: LinkTimes = LinkTimes {
    delay_us: Micros(3_000),
    jitter_us: Micros::ZERO,
    loss: 0.0,
    resend_us: Micros(40_000),
};

const DEATHS: RandomDeaths = RandomDeaths {
    lives_us: Micros(400_000),
    away_us: Micros(50_000),
};

/// Counts deaths by worker.
#[derive(Default)]
struct Deaths(Vec<(Time, WorkerId)>);

impl Observer for Deaths {
    fn lost(&mut self, now: Time, worker: WorkerId) {
        self.0.push((now, worker));
    }
}

/// Requests of 10 ms each, far apart.
fn sparse(links: LinkTimes) -> Scenario {
    let mut scenario = scenario(single_server(10_000), "periodic:5");
    scenario.requests_max = 2_000;
    scenario.duration = Micros(u64::MAX);
    scenario.links = Some(links);
    scenario
}

#[test]
fn a_batch_takes_the_time_of_both_ways_and_of_messages_sent_again() {
    let alone = first_come([0, 0], [1, 1], [0, 0]);
    let latency = |links| run(&sparse(links), &alone, 1).unwrap().total.latency;
    assert_eq!(latency(LINKS).mean_ms, 16.0);
    let jittery = latency(LinkTimes {
        jitter_us: Micros(2_000),
        ..LINKS
    });
    assert!((jittery.mean_ms - 18.0).abs() < 0.1, "{jittery:?}");
    // A message in ten is lost, a hundredth twice: 2 * (0.1 * 40 + 0.01 * 80 + 0.001 * 160 ...) = 10 ms.
    let lossy = latency(LinkTimes { loss: 0.1, ..LINKS });
    assert!((lossy.mean_ms - 26.0).abs() < 2.0, "{lossy:?}");
    assert_eq!(lossy.p50_ms, 16.0);
}

/// The policy sees nothing of it, so the same answers are in time on the server and late at the client.
#[test]
fn the_wire_counts_for_the_client_only() {
    let alone = first_come([0, 0], [1, 1], [0, 0]);
    let total = |wire| {
        let mut catalog = (*single_server(10_000)).clone();
        catalog.apps[0].slo = Micros(12_000);
        let mut scenario = scenario(catalog, "periodic:5");
        scenario.wire = Micros(wire);
        run(&scenario, &alone, 1).unwrap().total
    };
    let [server, near, far] = [0, 2_000, 2_001].map(total);
    assert_eq!((server.latency.mean_ms, server.late), (10.0, 0));
    assert_eq!((near.latency.mean_ms, near.late), (12.0, 0));
    assert_eq!((far.late, far.in_time), (server.in_time, 0));
    assert_eq!(far.queued_ms, server.queued_ms);
}

/// With two batches at a worker the second waits there while the first answer is on its way.
#[test]
fn a_second_batch_at_a_worker_hides_the_way() {
    let throughput = |outstanding| {
        let mut catalog = (*single_server(10_000)).clone();
        catalog.workers[0].outstanding = outstanding;
        let mut scenario = scenario(catalog, "periodic:200");
        scenario.duration = Micros::from_millis(5_000);
        scenario.links = Some(LINKS);
        let report = run(&scenario, &first_come([0, 0], [1, 1], [0, 0]), 1).unwrap();
        report.total.answered() as f64 / (report.simulated_us.0 as f64 / 1e6)
    };
    let [one, two] = [1, 2].map(throughput);
    assert!((one - 1e3 / 16.0).abs() < 2.0, "{one}");
    assert!((two - 1e3 / 10.0).abs() < 2.0, "{two}");
}

#[test]
fn deaths_and_links_have_draws_of_their_own() {
    let deaths_of = |change: fn(&mut Scenario)| {
        let mut scenario = scenario(catalog(8), "heart=poisson:400;fall=gamma:200,0.5");
        scenario.duration = Micros::from_millis(5_000);
        scenario.deaths = Some(DEATHS);
        change(&mut scenario);
        let mut deaths = Deaths::default();
        let report = run_observed(&scenario, &edf(), 3, &mut deaths).unwrap();
        assert_eq!(report.total.ended(), report.total.arrivals);
        assert_eq!(report, run(&scenario, &edf(), 3).unwrap(), "it repeats");
        // Those after the last arrival depend on the end of the run.
        deaths
            .0
            .retain(|(at, _)| *at < Time::ZERO + scenario.duration);
        (deaths.0, report.total.arrivals)
    };
    let (deaths, arrivals) = deaths_of(|_| {});
    // Eight workers, 5 s, 450 ms from death to death.
    assert!((60..120).contains(&deaths.len()), "{}", deaths.len());
    let (with_links, arrivals_with_links) = deaths_of(|scenario| {
        scenario.links = Some(LinkTimes {
            loss: 0.01,
            ..LINKS
        });
    });
    assert_eq!((with_links, arrivals_with_links), (deaths, arrivals));
    let (none, arrivals_without) = deaths_of(|scenario| scenario.deaths = None);
    assert_eq!((none.len(), arrivals_without), (0, arrivals));
}

#[test]
fn wrong_numbers_are_refused_with_their_range() {
    let refused = |change: fn(&mut Scenario)| {
        let mut scenario = sparse(LINKS);
        change(&mut scenario);
        let error = run(&scenario, &edf(), 1).unwrap_err();
        assert_eq!(scenario.validate().unwrap_err(), error);
        error.to_string()
    };
    let error = refused(|scenario| scenario.links = Some(LinkTimes { loss: 1.0, ..LINKS }));
    assert_eq!(error, "links.loss: must be at least 0 and below 1");
    let error = refused(|scenario| {
        scenario.deaths = Some(RandomDeaths {
            away_us: Micros::ZERO,
            ..DEATHS
        });
    });
    assert_eq!(error, "deaths.away_us: must be above 0");
}
