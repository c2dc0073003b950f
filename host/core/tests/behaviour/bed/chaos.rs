//! A hostile policy: a seeded mix of sensible plans, nonsense and faults.

use std::sync::{Arc, Mutex};

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Lane, Plan, Route};
use switchyard_core::policy::{
    Description, FaultKind, Policy, PolicyFault, Triggers, WindowFields,
};
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::Window;

pub struct Chaos {
    description: Description,
    random: Pcg64,
    catalog: Catalog,
    /// Share of plans that are nonsense, 0 to 1.
    hostility: f64,
}

impl Chaos {
    pub fn new(seed: u64, hostility: f64, catalog: &Catalog) -> Self {
        let mut random = Pcg64::seed_from_u64(seed);
        Self {
            description: Description {
                name: format!("chaos-{seed}"),
                version: "1".to_owned(),
                every: random.random_bool(0.5).then_some(Micros(700)),
                when_empty: random.random_bool(0.3),
                on: Triggers {
                    arrival: random.random_bool(0.7),
                    worker_idle: random.random_bool(0.7),
                    completion: random.random_bool(0.5),
                    evidence: random.random_bool(0.5),
                },
                wants: WindowFields {
                    evidence: random.random_bool(0.5),
                    completions: random.random_bool(0.5),
                    placed: true,
                    residents: random.random_bool(0.5),
                },
                ..Description::default()
            },
            random,
            catalog: catalog.clone(),
            hostility,
        }
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.random.random_ratio(1, n)
    }

    fn pick(&mut self, below: usize) -> u32 {
        self.random.random_range(0..below.max(1) as u32)
    }

    /// Batches of pending requests; parked ones go on where they are.
    fn sensible(&mut self, window: &Window, plan: &mut Plan) {
        for i in 0..window.len() {
            let id = RequestId(window.requests.id[i]);
            let app = window.requests.app[i];
            let parked = window
                .requests
                .progress
                .iter()
                .find(|p| p.index as usize == i);
            if let Some(p) = parked {
                let stages = self.catalog.variants[p.variant.index()].stages;
                self.dispatch(plan, id, p.worker, p.variant, p.stages_run, stages);
                continue;
            }
            let with_evidence = window.requests.evidence_index.contains(&(i as u32));
            match self.pick(12) {
                0 => {}
                1 => plan.rejects.push(id),
                2 if with_evidence && app == 0 => plan.answers.push(id),
                _ => {
                    let variant = VariantId(if app == 1 { 2 } else { self.pick(2) });
                    let worker = WorkerId(self.pick(window.workers.up.len()));
                    let stages = self.catalog.variants[variant.index()].stages;
                    self.dispatch(plan, id, worker, variant, 0, stages);
                }
            }
        }
        self.revoke_some(window, plan);
        if self.one_in(4) {
            let route = self.route();
            plan.routes.push(route);
        }
    }

    fn dispatch(
        &mut self,
        plan: &mut Plan,
        id: RequestId,
        worker: WorkerId,
        variant: VariantId,
        from_stage: u32,
        stages: u32,
    ) {
        let to_stage = self.random.random_range(from_stage + 1..=stages);
        let exits = &self.catalog.variants[variant.index()].exits;
        let exit = exits.iter().position(|e| e.after_stage == to_stage);
        plan.dispatch(
            Dispatch {
                worker,
                variant,
                from_stage,
                to_stage,
                exit: exit.map(|e| ExitId(e as u32)),
                place: self.pick(6),
                size: 0,
            },
            [id],
        );
    }

    fn revoke_some(&mut self, window: &Window, plan: &mut Plan) {
        for row in 0..window.placed.id.len() {
            let batch = BatchId(window.placed.batch[row]);
            if window.placed.state[row] == 1 && self.one_in(3) && !plan.revokes.contains(&batch) {
                plan.revokes.push(batch);
            }
        }
    }

    fn route(&mut self) -> Route {
        let app = self.pick(2);
        let lanes = self.pick(4);
        let workers = self.catalog.workers.len() as u32;
        let variant = if app == 1 { 2 } else { self.pick(2) };
        Route {
            app: AppId(app),
            lanes: (0..lanes)
                .map(|lane| Lane {
                    worker: WorkerId(lane % workers),
                    // With three lanes on two workers some routes name a lane twice.
                    variant: VariantId(match app == 0 && lane >= workers {
                        true => self.pick(2),
                        false => variant,
                    }),
                    exit: ExitId(0),
                    weight: 1.0 / f64::from(lanes),
                    min_batch: 1 + self.pick(4),
                    max_batch: 4 + self.pick(4),
                    capacity: 4 + self.pick(8),
                })
                .collect(),
        }
    }

    /// Numbers from anywhere.
    fn nonsense(&mut self, window: &Window, plan: &mut Plan) {
        for _ in 0..self.pick(5) {
            let size = self.pick(3);
            plan.dispatches.push(Dispatch {
                worker: WorkerId(self.pick(4)),
                variant: VariantId(self.pick(5)),
                from_stage: self.pick(4),
                to_stage: self.pick(5),
                exit: self.one_in(2).then(|| ExitId(self.pick(3))),
                place: self.random.random(),
                size,
            });
            for _ in 0..self.pick(4) {
                let id = match window.requests.id.as_slice() {
                    [] => self.random.random_range(0..50),
                    ids => ids[self.random.random_range(0..ids.len())],
                };
                plan.members.push(RequestId(id));
            }
        }
        for list in [&mut plan.rejects, &mut plan.answers] {
            if self.random.random_ratio(1, 3) {
                list.push(RequestId(self.random.random_range(0..60)));
            }
        }
        if self.one_in(3) {
            plan.revokes.push(BatchId(u64::from(self.pick(30))));
        }
        if self.one_in(3) {
            let mut route = self.route();
            route.app = AppId(self.pick(4));
            for lane in &mut route.lanes {
                lane.weight = self.random.random_range(-1.0..2.0);
            }
            plan.routes.push(route);
        }
    }
}

impl Policy for Chaos {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault> {
        self.catalog.clone_from(catalog);
        Ok(())
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        if self.one_in(4) {
            plan.wake = Some(Time(self.random.random_range(0..window.now.0 + 2_000)));
        }
        if !self.random.random_bool(self.hostility) {
            self.sensible(window, plan);
            return Ok(());
        }
        if self.one_in(3) {
            return Err(PolicyFault::new(FaultKind::Trap, "made to"));
        }
        self.nonsense(window, plan);
        Ok(())
    }
}

/// Listens to arrivals and decides nothing: every call is a fault or an empty plan.
pub struct Useless {
    description: Description,
    fault: Option<FaultKind>,
    restored: Arc<Mutex<Vec<u8>>>,
}

impl Useless {
    /// Faults in this way on every window.
    pub fn faulting(kind: FaultKind) -> Self {
        Self {
            fault: Some(kind),
            ..Self::silent()
        }
    }

    /// Returns an empty plan on every window.
    pub fn silent() -> Self {
        Self {
            description: Description {
                name: "useless".to_owned(),
                version: "1".to_owned(),
                on: Triggers {
                    arrival: true,
                    ..Triggers::default()
                },
                ..Description::default()
            },
            fault: None,
            restored: Arc::default(),
        }
    }

    /// Is called periodically, and on no event.
    pub fn every(mut self, period_us: u64) -> Self {
        self.description.every = Some(Micros(period_us));
        self.description.on = Triggers::default();
        self
    }

    /// Writes the state it is handed into this buffer.
    pub fn restoring(mut self, into: Arc<Mutex<Vec<u8>>>) -> Self {
        self.restored = into;
        self
    }
}

impl Policy for Useless {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, _: &Catalog) -> Result<(), PolicyFault> {
        Ok(())
    }

    fn schedule(&mut self, _: &Window, _: &mut Plan) -> Result<(), PolicyFault> {
        match self.fault {
            Some(kind) => Err(PolicyFault::new(kind, "always")),
            None => Ok(()),
        }
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), PolicyFault> {
        self.restored.lock().unwrap().extend_from_slice(state);
        Ok(())
    }
}
