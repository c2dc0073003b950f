//! Environments of Gymnasium with the slots of the PPO router: the shares of an app's arrivals, instance by
//! instance. Observations are those of the policy `ppo-router`, and their networks its weights.

use std::sync::Arc;

use ppo_router_net::meta::FORMAT;
use ppo_router_net::{InstanceState, Kind, Layout, Meta, Network, Observer, SlotState};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use switchyard_core::catalog::Catalog;
use switchyard_core::event::Reply;
use switchyard_core::ids::{AppId, VariantId, WorkerId};
use switchyard_core::plan::{Lane, Plan, Route};
use switchyard_core::policy::WindowFields;
use switchyard_core::request::Outcome;
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::{IDLE, PlacedState, Window};
use switchyard_sim::Scenario;
use switchyard_sim::stepped::Stepped;

use crate::catalog::CatalogView;
use crate::error::{refused, wrong};
use crate::options::Options;
use crate::slots::{self, Slot, SlotRuns, Slots};
use crate::stepped::scenario;

/// Runs of one scenario, each at the start of a slot.
#[pyclass(frozen, module = "switchyard._native")]
pub(crate) struct Routers(Slots<Routed>);

/// The shares of an app's arrivals are chosen.
struct Routed {
    scenario: Scenario,
    slot: Micros,
    routing: Routing,
}

/// The routed app and its instances.
struct Routing {
    app: AppId,
    instances: Vec<(WorkerId, VariantId)>,
    layout: Layout,
    batch_max: u32,
}

/// One run.
struct RouterRun {
    run: Stepped<RouteCounter>,
    observer: Observer,
    plan: Plan,
}

/// Counts the requests that end.
struct RouteCounter {
    catalog: Arc<Catalog>,
    in_time: u64,
    late: u64,
    unanswered: u64,
    /// Accuracies of the answers in time.
    worth: f64,
}

/// The parts of the environment, next to a simulation's options.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct RouterOptions {
    app: String,
    /// Names of workers and variants.
    instances: Vec<(String, String)>,
    extended: bool,
    capacity: usize,
    batch_max: u32,
    rate_scale: f32,
}

#[pymethods]
impl Routers {
    /// `count` runs, which a reset begins.
    #[new]
    fn new(
        py: Python<'_>,
        options: Options,
        slot_us: u64,
        count: usize,
        router: RouterOptions,
    ) -> PyResult<Self> {
        py.detach(|| {
            let scenario = scenario(&options)?;
            let routed = Routed {
                routing: Routing::try_new(&scenario.catalog, &router)?,
                scenario,
                slot: Micros(slot_us),
            };
            Ok(Self(Slots::new(routed, count)))
        })
    }

    #[getter]
    fn catalog(&self) -> CatalogView {
        CatalogView::of(Arc::clone(&self.0.of.scenario.catalog))
    }

    #[getter]
    fn duration_us(&self) -> u64 {
        self.0.of.scenario.duration.0
    }

    /// Numbers of an observation.
    #[getter]
    fn observation_size(&self) -> usize {
        self.0.of.observation_size()
    }

    /// As [`Slots::step`]; `actions` are 32-bit floats, one per instance of each run, whose softmax are the shares.
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: &[u8],
        resets: Vec<(usize, u64)>,
    ) -> PyResult<slots::Stepped<'py>> {
        self.0.step(py, actions, &resets)
    }

    /// The file of a network for `ppo-router`: per layer the weights, input by input, and the biases.
    fn weights<'py>(
        &self,
        py: Python<'py>,
        layers: Vec<(Vec<f32>, Vec<f32>)>,
        workload: String,
        seed: u64,
        command: String,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let meta = self.0.of.meta(&layers, workload, seed, command);
        let network = Network::try_new(meta, layers).map_err(refused)?;
        Ok(PyBytes::new(py, &network.to_bytes().map_err(refused)?))
    }
}

// === impl Routed ===

impl SlotRuns for Routed {
    type Run = RouterRun;
    type Number = f32;

    fn action_size(&self) -> usize {
        self.routing.instances.len()
    }

    fn observation_size(&self) -> usize {
        self.routing.layout.width()
    }

    fn begin(&self, seed: u64) -> PyResult<RouterRun> {
        let wants = WindowFields {
            placed: true,
            ..WindowFields::default()
        };
        let counter = RouteCounter::new(Arc::clone(&self.scenario.catalog));
        let run = Stepped::try_new(&self.scenario, self.slot, wants, seed, counter);
        Ok(RouterRun {
            run: run.map_err(refused)?,
            observer: Observer::new(self.routing.layout.clone()),
            plan: Plan::default(),
        })
    }

    fn step(&self, run: &mut RouterRun, action: &[f32]) -> PyResult<()> {
        if let Some(at) = action.iter().position(|number| !number.is_finite()) {
            let reason = format!("{}, must be a finite number", action[at]);
            return Err(wrong(&format!("action: instance {at}"), reason));
        }
        let catalog = &self.scenario.catalog;
        self.routing.route(catalog, action, &mut run.plan);
        run.run.step(&mut run.plan).map_err(refused)
    }

    fn observe(&self, run: &mut RouterRun, observations: &mut Vec<f32>) -> Slot {
        let ended = run.run.observer_mut().take();
        let window = run.run.window();
        let count = ended.in_time + ended.late + ended.unanswered;
        let numbers = self.routing.observe(window, count, &mut run.observer);
        observations.extend_from_slice(numbers);
        Slot {
            in_time: ended.in_time,
            late: ended.late,
            unanswered: ended.unanswered,
            now_us: window.now.0,
            reward: ended.reward(),
        }
    }
}

impl Routed {
    fn meta(
        &self,
        layers: &[(Vec<f32>, Vec<f32>)],
        workload: String,
        seed: u64,
        command: String,
    ) -> Meta {
        let (catalog, routing) = (&self.scenario.catalog, &self.routing);
        let mut variants = Vec::<VariantId>::new();
        let models = routing.instances.iter().map(|(_, variant)| {
            let known = variants.iter().position(|other| other == variant);
            known.unwrap_or_else(|| {
                variants.push(*variant);
                variants.len() - 1
            }) as u32
        });
        let models = models.collect();
        let widths = layers.iter().map(|(_, biases)| biases.len());
        Meta {
            format: FORMAT,
            layout: routing.layout.clone(),
            models,
            variants: variants
                .iter()
                .map(|variant| catalog.variants[variant.index()].name.clone())
                .collect(),
            batches: Vec::new(),
            layers: std::iter::once(routing.layout.width())
                .chain(widths)
                .collect(),
            slot_us: self.slot.0,
            deadline_us: catalog.apps[routing.app.index()].slo.0,
            workload,
            seed,
            command,
        }
    }
}

// === impl Routing ===

impl Routing {
    fn try_new(catalog: &Catalog, options: &RouterOptions) -> PyResult<Self> {
        let names = |names: Vec<&str>| names.join(", ");
        let app = catalog.apps.iter().position(|app| app.name == options.app);
        let Some(app) = app.map(|at| AppId(at as u32)) else {
            let known = names(catalog.apps.iter().map(|app| app.name.as_str()).collect());
            return Err(wrong(
                "app",
                format!("`{}`, must be one of {known}", options.app),
            ));
        };
        if options.instances.is_empty() {
            return Err(wrong("instances", "empty, must have at least one"));
        }
        let mut instances = Vec::new();
        let mut slowest_us = 1;
        for (worker, variant) in &options.instances {
            let found = catalog
                .workers
                .iter()
                .position(|known| known.name == *worker);
            let Some(found) = found.map(|at| WorkerId(at as u32)) else {
                let known = names(catalog.workers.iter().map(|of| of.name.as_str()).collect());
                return Err(wrong(
                    "instances",
                    format!("`{worker}`, must be one of {known}"),
                ));
            };
            let mut own = catalog.variants_of(app);
            let Some((id, chosen)) = own.find(|(_, known)| known.name == *variant) else {
                let known = names(
                    catalog
                        .variants_of(app)
                        .map(|(_, of)| of.name.as_str())
                        .collect(),
                );
                return Err(wrong(
                    "instances",
                    format!("`{variant}`, must be one of {known}"),
                ));
            };
            let latency = catalog.latency(found, id, chosen.last_exit(), options.batch_max);
            let Some(latency) = latency else {
                let reason = format!(
                    "{}, {variant} has no latency of such a batch",
                    options.batch_max
                );
                return Err(wrong("batch_max", reason));
            };
            slowest_us = slowest_us.max(latency.0);
            instances.push((found, id));
        }
        Ok(Self {
            layout: Layout {
                kind: if options.extended {
                    Kind::Extended
                } else {
                    Kind::Paper
                },
                instances: instances.len(),
                capacity: options.capacity,
                elapsed_scale_us: slowest_us,
                age_scale_us: catalog.apps[app.index()].slo.0.max(1),
                rate_scale: options.rate_scale,
                phases: 0,
                phase_scale_us: 1,
                largest_batch: 0,
            },
            app,
            instances,
            batch_max: options.batch_max,
        })
    }

    /// The route with the softmax of the action as shares. Requests in service do not count as waiting.
    fn route(&self, catalog: &Catalog, action: &[f32], plan: &mut Plan) {
        let most = action.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let shares: Vec<f64> = action.iter().map(|&x| f64::from(x - most).exp()).collect();
        let sum: f64 = shares.iter().sum();
        let waiting = (self.layout.capacity as u32).saturating_sub(self.batch_max);
        let lanes = self.instances.iter().zip(shares);
        let lanes = lanes.map(|(&(worker, variant), share)| Lane {
            worker,
            variant,
            exit: catalog.variants[variant.index()].last_exit(),
            weight: share / sum,
            min_batch: 1,
            max_batch: self.batch_max,
            capacity: waiting.max(1),
        });
        plan.routes.push(Route {
            app: self.app,
            lanes: lanes.collect(),
        });
    }

    fn observe<'a>(&self, window: &Window, ended: u64, observer: &'a mut Observer) -> &'a [f32] {
        let placed = &window.placed;
        let mut arrivals: Vec<Vec<u64>> = vec![Vec::new(); self.instances.len()];
        let mut running = vec![0; self.instances.len()];
        // Per worker, running requests come first, then queued ones, then those in lanes.
        for (row, &worker) in placed.worker.iter().enumerate() {
            let at = self.instances.iter().position(|(own, _)| own.0 == worker);
            if let Some(at) = at {
                arrivals[at].push(placed.arrival[row]);
                running[at] += usize::from(placed.state[row] == PlacedState::Running as u8);
            }
        }
        let instances = self.instances.iter().zip(&arrivals).zip(&running);
        let instances: Vec<_> = instances
            .map(|(((worker, _), arrivals_us), &running)| InstanceState {
                arrivals_us,
                running_since_us: Some(window.workers.running_since[worker.index()])
                    .filter(|_| window.workers.running_variant[worker.index()] != IDLE),
                running,
            })
            .collect();
        let rate = window.arrival_rate.get(self.app.index());
        observer.observe(&SlotState {
            now_us: window.now.0,
            instances: &instances,
            ended,
            rate: rate.copied().unwrap_or_default(),
            phase: Default::default(),
        })
    }
}

// === impl RouteCounter ===

impl RouteCounter {
    fn new(catalog: Arc<Catalog>) -> Self {
        Self {
            catalog,
            in_time: 0,
            late: 0,
            unanswered: 0,
            worth: 0.0,
        }
    }

    /// The counts since the last call.
    fn take(&mut self) -> Self {
        let next = Self::new(Arc::clone(&self.catalog));
        std::mem::replace(self, next)
    }

    /// Accuracies of the answers in time, less late answers and requests without one.
    fn reward(&self) -> f64 {
        self.worth - self.late as f64 - self.unanswered as f64
    }
}

impl switchyard_sim::Observer for RouteCounter {
    fn ended(&mut self, _: Time, reply: &Reply) {
        match reply.outcome {
            Outcome::Answered {
                variant,
                exit,
                in_time: true,
            } => {
                self.in_time += 1;
                let variant = self.catalog.variant(variant);
                self.worth += variant.and_then(|of| of.quality(exit)).unwrap_or(1.0);
            }
            Outcome::ShortCircuited { in_time: true } => self.in_time += 1,
            Outcome::Answered { .. } | Outcome::ShortCircuited { .. } => self.late += 1,
            _ => self.unanswered += 1,
        }
    }
}
