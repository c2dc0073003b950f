//! The test bed of a training: instances, service times, capacity; as a catalog of the simulator.

use std::sync::Arc;

use ppo_router_net::{Decision, Kind, Layout};
use serde::{Deserialize, Serialize};
use switchyard_core::catalog::{
    App, Capabilities, Catalog, Exit, Late, Penalty, Task, Variant, WorkerSpec,
};
use switchyard_core::ids::{AppId, ExitId, KindId, VariantId, WorkerId};
use switchyard_core::plan::{Lane, Plan, Route};
use switchyard_core::profile::{Profile, ProfileRow};
use switchyard_core::time::Micros;
use switchyard_sim::{Scenario, ServiceTimes, Workload};
use thiserror::Error;

/// Number of phases that a network may observe.
const PHASES: usize = 2;

/// Time in a phase that maps to 1: the mean length of the paper's normal state.
const PHASE_SCALE_US: u64 = 500_000_000;

/// Instances of several models, each with its own queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestBed {
    /// The models, in the order of their instances.
    pub models: Vec<Model>,
    /// Requests that an instance holds, with those in service, c.
    pub capacity: u32,
    /// Length of a slot in microseconds.
    pub slot_us: u64,
    /// Required latency in microseconds.
    pub deadline_us: u64,
    /// Batch sizes of the bounds, ascending; if empty, batches have one request.
    #[serde(default)]
    pub batches: Vec<u32>,
    /// The distribution of service times.
    #[serde(default)]
    pub service: ServiceTimes,
    /// Requests that wait longer are dropped; for baselines that reject late requests.
    #[serde(default)]
    pub drops_after_us: Option<u64>,
}

/// One model with its instances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The variant's name.
    pub variant: String,
    /// Its accuracy, 0 to 1, g.
    pub accuracy: f64,
    /// Number of instances.
    pub instances: u32,
    /// Service time in microseconds by batch size, ascending from 1.
    pub service_us: Vec<(u32, u64)>,
}

/// An invalid test bed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("test bed: {field}: {reason}")]
pub struct TestBedError {
    /// The field at fault.
    pub field: String,
    /// The allowed range.
    pub reason: String,
}

// === impl TestBed ===

impl TestBed {
    /// The paper's test bed (section 5.1.1): two instances each of PNASNet-5-Large and
    /// EfficientNet-B0, capacity 15, slots of 1 s, 300 ms. Service times are not published: with
    /// 42.8 ms four heavy instances serve 51.9 % of 180 requests per second, and 12 ms fits the
    /// rejections of light ones. Batches grow by 0.9 and 0.25 of that per request (an assumption):
    /// PNASNet saturates a T4, EfficientNet-B0 mostly waits for kernel launches.
    #[must_use]
    pub fn paper() -> Self {
        let model = |variant: &str, accuracy, single_us: u64, percent: u64| Model {
            variant: variant.to_owned(),
            accuracy,
            instances: 2,
            service_us: [1, 3, 5]
                .map(|batch| {
                    let more = u64::from(batch - 1) * percent;
                    (batch, single_us * (100 + more) / 100)
                })
                .to_vec(),
        };
        Self {
            models: vec![
                model("heavy", 0.8278, 42_800, 90),
                model("light", 0.7769, 12_000, 25),
            ],
            capacity: 15,
            slot_us: 1_000_000,
            deadline_us: 300_000,
            batches: Vec::new(),
            service: ServiceTimes::Profiled,
            drops_after_us: None,
        }
    }

    /// With other numbers of instances per model: LW is `[0, 4]`.
    #[must_use]
    pub fn with_instances(mut self, instances: &[u32]) -> Self {
        for (model, &instances) in self.models.iter_mut().zip(instances) {
            model.instances = instances;
        }
        self
    }

    /// With the paper's batch sizes (section 5.2.2).
    #[must_use]
    pub fn with_batches(mut self) -> Self {
        self.batches = vec![1, 3, 5];
        self
    }

    /// Number of instances, n.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.models_of_instances().len()
    }

    /// The model of each instance.
    #[must_use]
    pub fn models_of_instances(&self) -> Vec<u32> {
        let models = (0..).zip(&self.models);
        let all = models.flat_map(|(m, model)| (0..model.instances).map(move |_| m));
        all.collect()
    }

    /// Checks every field.
    ///
    /// # Errors
    /// The first field out of range.
    pub fn validate(&self) -> Result<(), TestBedError> {
        let check = |ok: bool, field: &str, reason: &str| match ok {
            true => Ok(()),
            false => Err(TestBedError {
                field: field.to_owned(),
                reason: reason.to_owned(),
            }),
        };
        check(self.instances() > 0, "models", "must have instances")?;
        check(self.slot_us >= 100, "slot_us", "must be 100 or more")?;
        check(self.deadline_us > 0, "deadline_us", "must be above 0")?;
        let ascends = self.batches.windows(2).all(|pair| pair[0] < pair[1]);
        check(ascends, "batches", "must ascend")?;
        check(
            self.batches.first() != Some(&0),
            "batches",
            "must be above 0",
        )?;
        let largest = self.largest_batch();
        let holds = self.capacity > largest;
        check(holds, "capacity", "must be above the largest batch")?;
        for (m, model) in self.models.iter().enumerate() {
            let at = |field: &str| format!("models[{m}].{field}");
            let accuracy = (0.0..=1.0).contains(&model.accuracy);
            check(accuracy, &at("accuracy"), "must be 0 to 1")?;
            let from_one = model.service_us.first().is_some_and(|point| point.0 == 1);
            let grows = model
                .service_us
                .windows(2)
                .all(|pair| pair[0].0 < pair[1].0);
            let enough = model
                .service_us
                .last()
                .is_some_and(|point| point.0 >= largest);
            let positive = model.service_us.iter().all(|point| point.1 > 0);
            check(
                from_one && grows,
                &at("service_us"),
                "must ascend from batch 1",
            )?;
            check(enough, &at("service_us"), "must reach the largest batch")?;
            check(positive, &at("service_us"), "must be above 0")?;
        }
        Ok(())
    }

    /// The layout of its observations. Ages are shares of the required latency: older requests are
    /// late anyway.
    #[must_use]
    pub fn layout(&self, kind: Kind) -> Layout {
        let largest = self.largest_batch();
        let slowest = self.models.iter().map(|model| model.service(largest));
        let per_slot = self.models.iter().map(|model| {
            f64::from(model.instances) * self.slot_us as f64 / model.service(1) as f64
        });
        Layout {
            kind,
            instances: self.instances(),
            capacity: self.capacity as usize,
            elapsed_scale_us: slowest.max().unwrap_or(1),
            age_scale_us: self.deadline_us,
            rate_scale: per_slot.sum::<f64>() as f32,
            phases: PHASES,
            phase_scale_us: PHASE_SCALE_US,
            largest_batch: self.batches.last().copied().unwrap_or(0),
        }
    }

    /// The scenario of a workload and a duration.
    #[must_use]
    pub fn scenario(&self, workload: Workload, duration: Micros) -> Scenario {
        Scenario {
            duration,
            service: self.service.clone(),
            ..Scenario::new(Arc::new(self.catalog()), workload)
        }
    }

    /// Its catalog: one app, a variant per model, a worker per instance.
    #[must_use]
    pub fn catalog(&self) -> Catalog {
        let variant = |model: &Model| Variant {
            name: model.variant.clone(),
            app: AppId(0),
            stages: 1,
            exits: vec![Exit {
                name: "end".to_owned(),
                after_stage: 1,
                accuracy: model.accuracy,
                recall: vec![model.accuracy],
                confusion: None,
            }],
            memory_bytes: 1,
            max_batch: self.largest_batch(),
            quality_unknown: false,
        };
        let rows = (0..).map(VariantId).zip(&self.models);
        let rows = rows.flat_map(|(variant, model)| {
            model.service_us.iter().map(move |&(batch, us)| ProfileRow {
                kind: KindId(0),
                variant,
                from_stage: 0,
                to_stage: 1,
                exit: Some(ExitId(0)),
                batch,
                latency: Micros(us),
                energy_uj: None,
            })
        });
        let worker = |w: usize| WorkerSpec {
            name: format!("instance-{w}"),
            kind: KindId(0),
            memory_bytes: self.models.len() as u64,
            queue_max: 1,
            parked_max: 0,
            can: Capabilities::ALL,
            transfer: Micros::ZERO,
            outstanding: 1,
        };
        Catalog {
            generation: 1,
            apps: vec![App {
                name: "images".to_owned(),
                task: Task::Classify,
                classes: vec!["image".to_owned()],
                slo: Micros(self.drops_after_us.unwrap_or(self.deadline_us)),
                penalty: Penalty::Step,
                prior: vec![1.0],
                frequencies: vec![1.0],
                sneakpeek: None,
                late: if self.drops_after_us.is_some() {
                    Late::Drop
                } else {
                    Late::Serve
                },
            }],
            variants: self.models.iter().map(variant).collect(),
            kinds: vec!["gpu".to_owned()],
            workers: (0..self.instances()).map(worker).collect(),
            profile: Profile::new(0.5, rows, []),
        }
    }

    /// Writes a decision into a plan. An instance holds at most its capacity: the waiting requests
    /// and the largest batch in service.
    pub fn plan(&self, models: &[u32], decision: &Decision, plan: &mut Plan) {
        let lanes = (0..).zip(models).zip(&decision.shares);
        let lanes = lanes.map(|((worker, &model), &weight)| {
            let bounds = decision.batches.get(model as usize);
            let (min_batch, max_batch) = bounds.copied().unwrap_or((1, 1));
            Lane {
                worker: WorkerId(worker),
                variant: VariantId(model),
                exit: ExitId(0),
                weight,
                min_batch,
                max_batch,
                capacity: self.capacity.saturating_sub(max_batch).max(min_batch),
            }
        });
        plan.routes.push(Route {
            app: AppId(0),
            lanes: lanes.collect(),
        });
    }

    /// Shares in proportion to the service rates, in batches of one.
    #[must_use]
    pub fn proportional(&self) -> Decision {
        let models = self.models_of_instances();
        let rate = |&m: &u32| 1.0 / self.models[m as usize].service(1) as f64;
        let total: f64 = models.iter().map(rate).sum();
        let singles = match self.batches.is_empty() {
            true => Vec::new(),
            false => vec![(1, 1); self.models.len()],
        };
        Decision {
            shares: models.iter().map(|m| rate(m) / total).collect(),
            batches: singles,
        }
    }

    fn largest_batch(&self) -> u32 {
        self.batches.last().copied().unwrap_or(1)
    }
}

// === impl Model ===

impl Model {
    /// Service time of a batch: that of the next larger measured batch; 1 if there is none.
    fn service(&self, batch: u32) -> u64 {
        let found = self.service_us.iter().find(|point| point.0 >= batch);
        found.map_or(1, |point| point.1)
    }
}
