//! The other ways to run a batch, or a request that was refused, and their expected results.

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Plan};
use switchyard_core::time::Time;
use switchyard_core::window::Window;

use super::outlook::{Judge, Outlook};

/// The end of a worker's queue.
const END: u32 = u32::MAX;

/// One way to run some requests, and the expected result by the profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alternative {
    /// The worker.
    pub worker: WorkerId,
    /// The variant.
    pub variant: VariantId,
    /// The exit that answers; none: the requests are parked.
    pub exit: Option<ExitId>,
    /// When the requests are expected to end.
    pub end: Option<Time>,
    /// Mean expected utility of the requests (SneakPeek eq. 2).
    pub utility: Option<f64>,
    /// Requests expected to end after their deadline.
    pub late: usize,
}

/// Looks for other ways in one decided window.
pub struct Alternatives<'a> {
    catalog: &'a Catalog,
    window: &'a Window,
    plan: &'a Plan,
    judge: Judge<'a>,
}

// === impl Alternatives ===

impl<'a> Alternatives<'a> {
    /// The window must fit the catalog. It is taken to show the resident variants if it names any.
    pub fn new(catalog: &'a Catalog, window: &'a Window, plan: &'a Plan) -> Self {
        let shows_residents = !window.residents.is_empty();
        Self {
            catalog,
            window,
            plan,
            judge: Judge::new(catalog, window, shows_residents),
        }
    }

    /// The expected result of each dispatch of the plan, in its order.
    pub fn planned(&self) -> Vec<Alternative> {
        let outlooks = self.judge.outlooks(self.plan);
        let batches = self.plan.batches();
        batches
            .map(|(dispatch, members)| self.result(&outlooks, dispatch, members))
            .collect()
    }

    /// The best ways to run the batch at this position alone, one per variant and exit, the best first.
    /// The rest of the plan stays. None for requests that must go on where they are parked.
    pub fn to_dispatch(&self, at: usize) -> Vec<Alternative> {
        let Some((dispatch, members)) = self.plan.batches().nth(at) else {
            return Vec::new();
        };
        if dispatch.from_stage > 0 {
            return Vec::new();
        }
        let mut others = self.of(members, |other| {
            let mut plan = self.plan.clone();
            plan.dispatches[at] = Dispatch {
                size: dispatch.size,
                ..other
            };
            plan
        });
        let chosen = (dispatch.variant, dispatch.exit);
        others.retain(|other| (other.variant, other.exit) != chosen);
        others
    }

    /// The best ways to run a request that the plan refuses, or leaves to wait.
    pub fn to_request(&self, id: RequestId) -> Vec<Alternative> {
        self.of(&[id], |other| {
            let mut plan = self.plan.clone();
            plan.rejects.retain(|refused| *refused != id);
            plan.dispatch(other, [id]);
            plan
        })
    }

    fn of(&self, members: &[RequestId], plan: impl Fn(Dispatch) -> Plan) -> Vec<Alternative> {
        let mut best: Vec<Alternative> = Vec::new();
        for other in self.ways(members) {
            let outlooks = self.judge.outlooks(&plan(other));
            let found = self.result(&outlooks, &other, members);
            let way = |it: &&mut Alternative| (it.variant, it.exit) == (found.variant, found.exit);
            match best.iter_mut().find(way) {
                Some(known) if is_better(&found, known) => *known = found,
                Some(_) => {}
                None => best.push(found),
            }
        }
        best.sort_by(|a, b| {
            let utility = |it: &Alternative| it.utility.unwrap_or(-1.0);
            utility(b).total_cmp(&utility(a)).then(a.end.cmp(&b.end))
        });
        best
    }

    /// Every variant of the requests' app from its first stage to each exit, on every worker that is up.
    fn ways(&self, members: &[RequestId]) -> Vec<Dispatch> {
        let Some(app) = members.first().and_then(|&id| self.judge.app_of(id)) else {
            return Vec::new();
        };
        let up = self.window.workers.up.iter();
        let workers = (0..).map(WorkerId).zip(up).filter(|(_, up)| **up != 0);
        let mut ways = Vec::new();
        for (worker, _) in workers {
            for (variant, of) in self.catalog.variants_of(app) {
                if members.len() > of.max_batch as usize {
                    continue;
                }
                ways.extend(
                    (0..)
                        .map(ExitId)
                        .zip(&of.exits)
                        .map(|(exit, end)| Dispatch {
                            worker,
                            variant,
                            from_stage: 0,
                            to_stage: end.after_stage,
                            exit: Some(exit),
                            place: END,
                            size: 0,
                        }),
                );
            }
        }
        ways
    }

    fn result(
        &self,
        outlooks: &[Outlook],
        dispatch: &Dispatch,
        members: &[RequestId],
    ) -> Alternative {
        let of = |id: &RequestId| self.judge.position(*id).and_then(|at| outlooks.get(at));
        let found: Vec<&Outlook> = members.iter().filter_map(of).collect();
        let utilities: Option<f64> = found.iter().map(|outlook| outlook.utility).sum();
        let is_late = |id: &&RequestId| {
            let end = of(id).and_then(|outlook| outlook.end);
            let deadline = self.judge.deadline(**id);
            end.zip(deadline)
                .is_some_and(|(end, deadline)| end > deadline)
        };
        Alternative {
            worker: dispatch.worker,
            variant: dispatch.variant,
            exit: dispatch.exit,
            end: found.first().and_then(|outlook| outlook.end),
            utility: utilities.map(|sum| sum / found.len().max(1) as f64),
            late: members.iter().filter(is_late).count(),
        }
    }
}

fn is_better(one: &Alternative, other: &Alternative) -> bool {
    let utility = |it: &Alternative| it.utility.unwrap_or(-1.0);
    match utility(one).total_cmp(&utility(other)) {
        std::cmp::Ordering::Equal => one.end < other.end,
        order => order.is_gt(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use switchyard_core::policy::WindowFields;
    use switchyard_policy::trial;

    use super::*;

    /// Two pending requests, the first of the app `three`.
    fn window(catalog: &Catalog) -> Window {
        trial::window_of(catalog, WindowFields::default(), 2)
    }

    fn one(variant: u32, exit: u32, to_stage: u32, worker: u32) -> Dispatch {
        Dispatch {
            worker: WorkerId(worker),
            variant: VariantId(variant),
            from_stage: 0,
            to_stage,
            exit: Some(ExitId(exit)),
            place: END,
            size: 0,
        }
    }

    #[test]
    fn other_variants_and_exits_come_by_their_expected_utility() {
        let catalog = trial::catalog();
        let window = window(&catalog);
        let first = RequestId(window.requests.id[0]);
        let mut plan = Plan::default();
        plan.dispatch(one(0, 0, 1, 1), [first]);
        let found = Alternatives::new(&catalog, &window, &plan);
        let chosen = found.planned()[0];
        assert_eq!((chosen.variant, chosen.late), (VariantId(0), 0));
        assert_eq!(chosen.end.unwrap().since(window.now).0, 1_250);
        let others = found.to_dispatch(0);
        let app = catalog.variants[0].app;
        let exits: usize = catalog.variants_of(app).map(|(_, v)| v.exits.len()).sum();
        assert_eq!(others.len(), exits - 1, "{others:?}");
        let utilities: Vec<f64> = others.iter().map(|it| it.utility.unwrap()).collect();
        assert!(utilities.is_sorted_by(|a, b| a >= b), "{utilities:?}");
        assert!(others.iter().all(|it| it.variant != VariantId(0)));
    }

    #[test]
    fn a_refused_request_has_the_ways_that_it_could_have_gone() {
        let catalog = trial::catalog();
        let window = window(&catalog);
        let first = RequestId(window.requests.id[0]);
        let plan = Plan {
            rejects: vec![first],
            ..Plan::default()
        };
        let found = Alternatives::new(&catalog, &window, &plan).to_request(first);
        assert!(found[0].utility.unwrap() > 0.0, "{found:?}");
    }
}
