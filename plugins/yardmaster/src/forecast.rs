//! The load that a schedule must expect: arrivals, and the price of a worker's time.

use switchyard_sdk::{AppId, Window, WorkerRef};

use crate::classes::Classes;
use crate::job::Jobs;
use crate::lanes::Lanes;
use crate::menu::Menu;
use crate::price::{self, Demand};
use crate::settings::YardmasterSettings;

/// A full batch takes at most this share of the time from arrival to deadline: its first request waits.
const FULL: f64 = 0.9;

/// Length of the host's measurement of arrivals.
const RATE_US: f64 = 500_000.0;

/// Price of time and arrivals to expect after a window.
#[derive(Debug)]
pub(crate) struct Forecast {
    /// The price of a microsecond of a worker of speed 1.
    pub(crate) price: f64,
    /// Per lane.
    pub(crate) arrivals: Vec<Arrivals>,
}

/// Expected arrivals of a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrivals {
    /// Requests per microsecond.
    pub(crate) per_us: f64,
    /// Time from arrival to deadline.
    pub(crate) allowed_us: f64,
    /// Utility of the most accurate answer in time.
    pub(crate) worth: f64,
    /// Its accuracy.
    pub(crate) accuracy_max: f64,
    /// Earnings of a request with its best choice in a full batch, less the price of its time.
    pub(crate) surplus: f64,
}

// === impl Forecast ===

impl Forecast {
    /// The forecast for the jobs of a window; the first window was opened at `began_us`.
    pub(crate) fn new(
        window: &Window,
        menus: &[Menu],
        lanes: &Lanes,
        classes: &Classes,
        jobs: &Jobs,
        settings: &YardmasterSettings,
        began_us: u64,
    ) -> Self {
        // The host counts arrivals of the last 500 ms, which begin before the first window.
        let since_us = window.now_us().saturating_sub(began_us);
        let scale = RATE_US / since_us.clamp(RATE_US as u64 / 50, RATE_US as u64) as f64;
        let apps: Vec<AppId> = window.catalog().apps().map(|app| app.id).collect();
        let rates = (0..menus.len()).map(|lane| {
            let rate = window.arrival_rate(apps[lanes.app(lane)]) / 1e6 * scale;
            rate * lanes.share(lane)
        });
        let rates: Vec<f64> = rates.collect();
        let sum: f64 = rates.iter().sum();
        let slos = jobs
            .allowed_us
            .iter()
            .zip(&rates)
            .map(|(slo_us, rate)| match sum > 0.0 {
                true => slo_us * rate / sum,
                false => slo_us / menus.len() as f64,
            });
        // The more workers, the sooner one of them is free for requests that wait.
        let up = window.workers().filter(WorkerRef::is_up).count() as f64;
        let horizon_us = slos.sum::<f64>() * settings.horizon * 2.0 * up / (up + 1.0);
        let each = jobs.allowed_us.iter().zip(&rates).zip(&jobs.queues);
        let demands: Vec<Demand> = each
            .map(|((slo_us, rate), queue)| Demand {
                waiting: queue.len() as f64,
                arriving: rate * horizon_us,
                batch_max: (queue.len() as f64 + rate * slo_us).ceil().max(1.0) as usize,
                within_us: *slo_us * FULL,
            })
            .collect();
        let speeds = window
            .workers()
            .filter(WorkerRef::is_up)
            .map(|worker| classes.speeds[classes.of[worker.id().index()]] / worker.slowdown());
        let room_us = speeds.sum::<f64>() * horizon_us * settings.fill;
        let punctuality = settings.punctuality;
        let price = price::price(menus, classes, &demands, room_us, punctuality);
        let each = menus.iter().zip(&demands).zip(rates).zip(&jobs.allowed_us);
        let arrivals = each.map(|(((menu, demand), per_us), &allowed_us)| {
            let accuracy_max = menu.unseen.iter().copied().fold(0.0, f64::max);
            let from_evidence = menu
                .from_evidence
                .map_or(0.0, |accuracy| accuracy + punctuality);
            let surplus = price::surplus(menu, classes, demand, punctuality, price);
            Arrivals {
                per_us,
                allowed_us,
                worth: accuracy_max + punctuality - from_evidence,
                accuracy_max,
                surplus: surplus - from_evidence,
            }
        });
        Self {
            price,
            arrivals: arrivals.collect(),
        }
    }
}
