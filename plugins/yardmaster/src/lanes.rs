//! Lanes: the requests of an app whose costs are alike have a queue, a menu and a forecast of their own, so that a
//! long text is no reason to give up short ones. The first lanes are those of the apps for requests as long as the
//! profile's.

use switchyard_sdk::{RequestId, Window};

use crate::menu::Menu;

/// A lane's largest cost over its least. The lane of cost 1 begins at a half.
const WIDTH: f64 = 4.0;

/// Lanes of an app below and above that of cost 1.
const BELOW: i32 = -2;
const ABOVE: i32 = 4;

/// Requests that shares and mean costs remember: older ones fade.
const MEMORY: f64 = 1_000.0;

/// A menu is computed again when the mean cost has changed by this share.
const NEWS: f64 = 0.05;

/// The requests of an app whose costs are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lane {
    app: usize,
    band: i32,
    /// Requests that were seen.
    seen: f64,
    /// Their mean cost in rows of the profile.
    cost: f64,
    /// The cost that its menu was computed for.
    menu_cost: f64,
}

/// All lanes. They are never removed, so that a lane's number stays.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    list: Vec<Lane>,
    /// By app: the menu for cost 1.
    profiled: Vec<Menu>,
    /// The latest request that was seen.
    until: Option<RequestId>,
}

/// The lane of a cost, 0 for that of cost 1.
fn band(mut cost: f64) -> i32 {
    let (half, mut band) = (WIDTH.sqrt(), 0);
    while cost >= half && band < ABOVE {
        cost /= WIDTH;
        band += 1;
    }
    while cost < 1.0 / half && band > BELOW {
        cost *= WIDTH;
        band -= 1;
    }
    band
}

// === impl Lane ===

impl Lane {
    fn new(app: usize, band: i32, cost: f64) -> Self {
        Self {
            app,
            band,
            seen: 0.0,
            cost,
            menu_cost: cost,
        }
    }
}

// === impl Lanes ===

impl Lanes {
    /// One lane per app.
    pub(crate) fn new(menus: &[Menu]) -> Self {
        Self {
            list: (0..menus.len()).map(|app| Lane::new(app, 0, 1.0)).collect(),
            profiled: menus.to_vec(),
            until: None,
        }
    }

    /// Learns the costs of a window's new requests, and gives each lane its menu.
    pub(crate) fn learn(&mut self, window: &Window, menus: &mut Vec<Menu>) {
        // Fast path: every request is as long as those of the profile.
        if window.raw().cost.is_none() {
            return;
        }
        let mut latest = self.until;
        for request in window.requests() {
            if self.until.is_none_or(|until| request.id() > until) {
                self.see(request.app().index(), request.cost(), menus);
                latest = latest.max(Some(request.id()));
            }
        }
        self.until = latest;
        for (lane, menu) in self.list.iter_mut().zip(menus) {
            if (lane.cost / lane.menu_cost - 1.0).abs() > NEWS {
                lane.menu_cost = lane.cost;
                menu.rescale(&self.profiled[lane.app], lane.cost);
            }
        }
    }

    fn see(&mut self, app: usize, cost: f64, menus: &mut Vec<Menu>) {
        let at = self.find(app, cost).unwrap_or_else(|| {
            let mut menu = menus[app].clone();
            menu.rescale(&self.profiled[app], cost);
            menus.push(menu);
            self.list.push(Lane::new(app, band(cost), cost));
            self.list.len() - 1
        });
        let of_app = self.list.iter_mut().filter(|lane| lane.app == app);
        let total: f64 = of_app.map(|lane| lane.seen).sum();
        let keep = (MEMORY / (total + 1.0)).min(1.0);
        for lane in self.list.iter_mut().filter(|lane| lane.app == app) {
            lane.seen *= keep;
        }
        let lane = &mut self.list[at];
        lane.seen += keep;
        lane.cost += (cost - lane.cost) * keep / lane.seen;
    }

    fn find(&self, app: usize, cost: f64) -> Option<usize> {
        let band = band(cost);
        let mut lanes = self.list.iter();
        lanes.position(|lane| lane.app == app && lane.band == band)
    }

    /// The lane of a request that was learned.
    pub(crate) fn of(&self, app: usize, cost: f64) -> usize {
        if self.list.len() == self.profiled.len() {
            return app;
        }
        self.find(app, cost).unwrap_or(app)
    }

    /// The app of a lane.
    pub(crate) fn app(&self, lane: usize) -> usize {
        self.list[lane].app
    }

    /// The cost of a request that takes the time in the lane's menu.
    pub(crate) fn unit(&self, lane: usize) -> f64 {
        self.list[lane].menu_cost
    }

    /// The lane's share of its app's arrivals.
    pub(crate) fn share(&self, lane: usize) -> f64 {
        let Lane {
            app, band, seen, ..
        } = self.list[lane];
        let of_app = self.list.iter().filter(|other| other.app == app);
        let total: f64 = of_app.map(|other| other.seen).sum();
        match total > 0.0 {
            true => seen / total,
            // Before the first request.
            false => f64::from(u8::from(band == 0)),
        }
    }
}
