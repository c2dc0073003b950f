//! The ways to answer each app's requests, with their latencies by class of workers. Computed once
//! per catalog.

use switchyard_sdk::accuracy::{expected, posterior};
use switchyard_sdk::catalog::{App, WorkerSpec};
use switchyard_sdk::{AppId, Catalog, ExitId, Penalty, VariantId};

/// Largest number of choices of an app: a set of them is a `u64`.
const CHOICES_MAX: usize = 64;

/// The choices of one app.
#[derive(Clone, Debug)]
pub(crate) struct Menu {
    pub(crate) app: AppId,
    pub(crate) penalty: Penalty,
    pub(crate) slo_us: f64,
    /// Dirichlet parameters; empty unless the app classifies.
    pub(crate) prior: Vec<f64>,
    pub(crate) choices: Vec<Choice>,
    /// The least latency of one request on any class of workers.
    pub(crate) fastest_us: f64,
    /// By class of workers and largest batch, from 1: choice and size with the least time per request.
    quick: Vec<Vec<(usize, usize)>>,
    /// Accuracy of each choice for a request without evidence.
    pub(crate) unseen: Vec<f64>,
    /// Accuracy of an answer from evidence for a request whose evidence is not known, if the app allows such answers.
    pub(crate) from_evidence: Option<f64>,
    /// Recall of answers from evidence.
    evidence_recall: Vec<f64>,
}

/// An exit of a variant.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) variant: VariantId,
    pub(crate) exit: ExitId,
    pub(crate) quality: f64,
    recall: Vec<f64>,
    pub(crate) memory_bytes: u64,
    /// One per class of workers.
    pub(crate) costs: Vec<Cost>,
}

/// The cost of a choice on one class of workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    /// By batch, from 1; empty if it cannot run there.
    pub(crate) latencies_us: Vec<f64>,
    /// Load time of the variant.
    pub(crate) load_us: f64,
}

// === impl Menu ===

impl Menu {
    pub(crate) fn new(
        catalog: &Catalog,
        app: App<'_>,
        samples: &[WorkerSpec<'_>],
    ) -> Result<Self, String> {
        let mut choices = Vec::new();
        for variant in catalog.variants_of(app.id) {
            for exit in variant.exit_ids() {
                let cost = |worker: &WorkerSpec<'_>| {
                    let runs = catalog.can_run(worker.id, variant.id);
                    let latencies_us = catalog.latencies_us(worker.id, variant.id, exit);
                    let latencies_us = latencies_us.iter().map(|&us| us as f64);
                    Cost {
                        latencies_us: if runs {
                            latencies_us.collect()
                        } else {
                            Vec::new()
                        },
                        load_us: catalog.load_us(worker.id, variant.id) as f64,
                    }
                };
                choices.push(Choice {
                    variant: variant.id,
                    exit,
                    quality: variant.quality_of(exit),
                    recall: variant.exit(exit).recall.clone(),
                    memory_bytes: variant.memory_bytes,
                    costs: samples.iter().map(cost).collect(),
                });
            }
        }
        if choices.len() > CHOICES_MAX {
            return Err(format!(
                "catalog: app {} has {} exits; yardmaster takes at most {CHOICES_MAX}",
                app.name,
                choices.len()
            ));
        }
        let prior = if app.classifies() {
            app.prior.clone()
        } else {
            Vec::new()
        };
        let model = app.sneakpeek.as_ref();
        let mut menu = Self {
            app: app.id,
            penalty: app.penalty,
            slo_us: app.slo.max(1) as f64,
            prior: Vec::new(),
            fastest_us: fastest_us(&choices),
            quick: (0..samples.len())
                .map(|class| quick(&choices, class))
                .collect(),
            choices,
            unseen: Vec::new(),
            from_evidence: model.map(|model| model.accuracy),
            evidence_recall: model.map_or_else(Vec::new, |model| model.recall.clone()),
        };
        menu.expect(prior.into_iter());
        Ok(menu)
    }

    /// Sets the latencies to those of `profiled` for requests of this cost.
    pub(crate) fn rescale(&mut self, profiled: &Self, cost: f64) {
        for (choice, of) in self.choices.iter_mut().zip(&profiled.choices) {
            for (to, of) in choice.costs.iter_mut().zip(&of.costs) {
                let sizes = 1..=of.latencies_us.len();
                let times = sizes.map(|size| at_rows(&of.latencies_us, size as f64 * cost));
                to.latencies_us = times.collect();
            }
        }
        self.fastest_us = fastest_us(&self.choices);
        self.quick = (0..self.quick.len())
            .map(|class| quick(&self.choices, class))
            .collect();
    }

    /// Replaces the prior, and with it the accuracy for requests without evidence.
    pub(crate) fn expect(&mut self, prior: impl Iterator<Item = f64>) {
        self.prior.clear();
        self.prior.extend(prior);
        let theta = posterior(&self.prior, None);
        self.unseen.clear();
        let each = self.choices.iter().map(|choice| choice.accuracy(&theta));
        self.unseen.extend(each);
        self.from_evidence = self.answered(&theta);
    }

    /// Accuracy of an answer from evidence for class probabilities, if the app allows it.
    pub(crate) fn answered(&self, theta: &[f64]) -> Option<f64> {
        let profiled = self.from_evidence?;
        let known = self.evidence_recall.len() == theta.len() && !theta.is_empty();
        Some(if known {
            expected(theta, &self.evidence_recall)
        } else {
            profiled
        })
    }

    /// Choice and size of a batch of at most `most` requests with the least time per request on a class, if
    /// every variant is resident.
    pub(crate) fn quickest(&self, class: usize, most: usize) -> Option<(usize, usize)> {
        let quick = &self.quick[class];
        quick.get(most.min(quick.len()).checked_sub(1)?).copied()
    }

    /// Share of the time to the deadline by which an answer may be late at a loss below a hundredth.
    pub(crate) fn grace(&self) -> f64 {
        match self.penalty {
            Penalty::Step | Penalty::Linear => 0.0,
            Penalty::Sigmoid => 0.15,
        }
    }

    /// Share of the time to the deadline after which a late answer earns nothing.
    pub(crate) fn late_max(&self) -> f64 {
        match self.penalty {
            Penalty::Step => 0.0,
            Penalty::Linear | Penalty::Sigmoid => 1.0,
        }
    }

    /// The choices whose quality reaches `min_quality`, as bits; all if none does.
    pub(crate) fn reaching(&self, min_quality: f64) -> u64 {
        // The client's value was rounded to f32.
        let reaches = |choice: &Choice| choice.quality >= min_quality - 1e-6;
        let all = self.choices.iter().enumerate();
        let set = all
            .filter(|(_, choice)| reaches(choice))
            .fold(0, |set, (at, _)| set | 1 << at);
        if set == 0 { u64::MAX } else { set }
    }
}

/// The latency of a batch that costs as many rows, by the host's rules: between batches along a line, beyond the
/// largest along that through the last two, and no less than that of one row. Infinite without latencies.
pub(crate) fn at_rows(latencies_us: &[f64], rows: f64) -> f64 {
    let whole = (rows as usize).max(1);
    match latencies_us {
        [.., low, high] if whole > latencies_us.len() - 1 => {
            high + (high - low) * (rows - latencies_us.len() as f64)
        }
        [only] => only * rows.max(1.0),
        [] => f64::INFINITY,
        _ => {
            let [low, high] = [latencies_us[whole - 1], latencies_us[whole]];
            low + (high - low) * (rows - whole as f64).max(0.0)
        }
    }
}

fn quick(choices: &[Choice], class: usize) -> Vec<(usize, usize)> {
    let costs = || {
        choices
            .iter()
            .map(|choice| &choice.costs[class].latencies_us)
    };
    let largest = costs().map(Vec::len).max().unwrap_or(0);
    let best = |most: usize| {
        let sizes = costs()
            .enumerate()
            .filter(|(_, us)| !us.is_empty())
            .map(|(at, us)| {
                let size = us.len().min(most);
                (us[size - 1] / size as f64, at, size)
            });
        let best = sizes.min_by(|a, b| a.0.total_cmp(&b.0));
        best.map(|(_, at, size)| (at, size))
    };
    (1..=largest).filter_map(best).collect()
}

fn fastest_us(choices: &[Choice]) -> f64 {
    let costs = choices.iter().flat_map(|choice| &choice.costs);
    let firsts = costs.filter_map(|cost| cost.latencies_us.first());
    firsts.copied().fold(f64::INFINITY, f64::min)
}

// === impl Choice ===

impl Choice {
    /// Expected accuracy for class probabilities (SneakPeek eq. 9); profiled without.
    pub(crate) fn accuracy(&self, theta: &[f64]) -> f64 {
        match theta {
            [] => self.quality,
            theta => expected(theta, &self.recall),
        }
    }
}

// === impl Cost ===

impl Cost {
    /// Least time per request in batches of at most `batch_max` that take at most `within_us`; of one
    /// request if it takes longer. Infinite if it cannot run.
    pub(crate) fn per_request_us(&self, batch_max: usize, within_us: f64) -> f64 {
        let each = self.latencies_us.iter().zip(1..=batch_max.max(1));
        let fits = each.filter(|&(&us, size)| size == 1 || us <= within_us);
        fits.map(|(&us, size)| us / size as f64)
            .fold(f64::INFINITY, f64::min)
    }
}
