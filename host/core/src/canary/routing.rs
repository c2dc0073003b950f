//! The routes of the members. A route gives out arrivals without a window, so those of one member are in
//! force at a time: of the member on duty.

use super::slots::Member;
use crate::plan::{Plan, Route};

/// The latest routes of each member.
#[derive(Debug, Default)]
pub(super) struct MemberRoutes {
    /// By [`Member`], at most one per app.
    of: [Vec<Route>; 3],
    /// The member whose routes are in force, and gets every arrival; none while no member routes.
    in_force: Option<Member>,
    /// It has routed anew since the last plan.
    is_changed: bool,
}

// === impl MemberRoutes ===

impl MemberRoutes {
    /// The member that gets the arrivals, once a member routes.
    pub(super) fn in_force(&self) -> Option<Member> {
        self.in_force
    }

    /// Whether a member routes.
    pub(super) fn any(&self) -> bool {
        self.of.iter().any(|routes| !routes.is_empty())
    }

    /// Takes the routes of a member's plan.
    pub(super) fn learn(&mut self, member: Member, from: &mut Vec<Route>) {
        self.is_changed |= !from.is_empty() && self.in_force == Some(member);
        let routes = &mut self.of[member as usize];
        for route in from.drain(..) {
            match routes.iter_mut().find(|known| known.app == route.app) {
                Some(known) => *known = route,
                None => routes.push(route),
            }
        }
    }

    /// Puts the routes of the member on duty into a plan, unless they are in force. Apps that only
    /// others route get an empty one: their arrivals are pending again.
    pub(super) fn put_in_force(&mut self, on_duty: Member, plan: &mut Plan) {
        let is_current = self.in_force == Some(on_duty) && !self.is_changed;
        if is_current || !self.any() {
            return;
        }
        let own = &self.of[on_duty as usize];
        plan.routes.extend(own.iter().cloned());
        for route in self.of.iter().flatten() {
            if plan.routes.iter().all(|put| put.app != route.app) {
                plan.routes.push(Route {
                    app: route.app,
                    lanes: Vec::new(),
                });
            }
        }
        self.in_force = Some(on_duty);
        self.is_changed = false;
    }

    /// The scheduler has ended all routes: those of the member on duty come in force with the next plan.
    pub(super) fn ended(&mut self) {
        self.in_force = None;
        self.is_changed = false;
    }

    /// The scheduler has ended all routes, and only the serving policy routes from now on.
    pub(super) fn keep_serving(&mut self) {
        for member in [Member::Baseline, Member::Candidate] {
            self.of[member as usize].clear();
        }
        self.ended();
    }

    /// The scheduler has ended all routes, and the members route anew.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{AppId, ExitId, VariantId, WorkerId};
    use crate::plan::Lane;

    fn route(app: u32, worker: u32) -> Route {
        Route {
            app: AppId(app),
            lanes: vec![Lane {
                worker: WorkerId(worker),
                variant: VariantId(0),
                exit: ExitId(0),
                weight: 1.0,
                min_batch: 1,
                max_batch: 1,
                capacity: 8,
            }],
        }
    }

    /// App and worker of each route that is put in force; no worker for an empty one.
    fn put(routes: &mut MemberRoutes, member: Member) -> Vec<(u32, Option<u32>)> {
        let mut plan = Plan::default();
        routes.put_in_force(member, &mut plan);
        let lead = |route: &Route| route.lanes.first().map(|lane| lane.worker.0);
        plan.routes.iter().map(|r| (r.app.0, lead(r))).collect()
    }

    #[test]
    fn the_member_on_duty_routes() {
        let mut routes = MemberRoutes::default();
        assert_eq!(put(&mut routes, Member::Serving), []);
        assert_eq!(routes.in_force(), None);
        routes.learn(Member::Serving, &mut vec![route(0, 1), route(1, 1)]);
        routes.learn(Member::Candidate, &mut vec![route(0, 2)]);
        let of_serving = [(0, Some(1)), (1, Some(1))];
        assert_eq!(put(&mut routes, Member::Serving), of_serving);
        assert_eq!(put(&mut routes, Member::Serving), []);
        assert_eq!(
            put(&mut routes, Member::Candidate),
            [(0, Some(2)), (1, None)]
        );
        assert_eq!(put(&mut routes, Member::Baseline), [(0, None), (1, None)]);
        assert_eq!(routes.in_force(), Some(Member::Baseline));
    }

    #[test]
    fn the_routes_of_the_serving_policy_stay_once_it_is_alone() {
        let mut routes = MemberRoutes::default();
        routes.learn(Member::Serving, &mut vec![route(0, 1)]);
        routes.learn(Member::Candidate, &mut vec![route(0, 2), route(1, 2)]);
        put(&mut routes, Member::Serving);
        routes.keep_serving();
        assert_eq!(routes.in_force(), None);
        assert_eq!(put(&mut routes, Member::Serving), [(0, Some(1))]);
        assert_eq!(put(&mut routes, Member::Serving), []);
        routes.ended();
        assert_eq!(put(&mut routes, Member::Serving), [(0, Some(1))]);
    }

    #[test]
    fn a_new_route_is_put_in_force_while_its_member_is_on_duty() {
        let mut routes = MemberRoutes::default();
        routes.learn(Member::Serving, &mut vec![route(0, 1)]);
        put(&mut routes, Member::Serving);
        routes.learn(Member::Candidate, &mut vec![route(0, 2)]);
        assert_eq!(put(&mut routes, Member::Serving), []);
        routes.learn(Member::Serving, &mut vec![route(0, 3)]);
        assert_eq!(put(&mut routes, Member::Serving), [(0, Some(3))]);
    }
}
