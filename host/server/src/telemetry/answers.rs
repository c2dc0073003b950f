//! Answers by policy, variant and exit. Handles are made with the first answer of each kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::event::Reply;
use switchyard_core::guard::HOST_LABEL;
use switchyard_core::ids::{ExitId, VariantId};
use switchyard_core::policy::FALLBACK_NAME;

use super::meters::{Counter, Gauge, Histogram};
use super::names;
use super::registry::Registry;

/// The variant of answers from evidence alone.
const SHORT_CIRCUIT: &str = "sneakpeek";

/// Meters of answers, by the policy that decided.
pub(super) struct AnswerMeters {
    registry: Registry,
    /// Names of the exits, and of their variants and apps.
    exits: BTreeMap<(VariantId, ExitId), ExitNames>,
    apps: Vec<String>,
    policies: Vec<PolicyMeters>,
    host: Arc<str>,
}

struct ExitNames {
    app: String,
    variant: String,
    exit: String,
    /// None if its quality is unknown.
    _quality: Option<Gauge>,
}

/// One policy's answers. All versions of a policy share its series.
struct PolicyMeters {
    /// The newest label, by which it is found again.
    label: Arc<str>,
    name: String,
    exits: BTreeMap<(VariantId, ExitId), ExitMeters>,
    /// By app.
    short_circuits: BTreeMap<usize, Histogram>,
}

struct ExitMeters {
    in_time: Counter,
    late: Counter,
    latency: Histogram,
}

// === impl AnswerMeters ===

impl AnswerMeters {
    pub(super) fn new(registry: &Registry, catalog: &Catalog) -> Self {
        let mut exits = BTreeMap::new();
        for (v, variant) in (0..).map(VariantId).zip(&catalog.variants) {
            let app = catalog.app(variant.app).map_or("", |app| app.name.as_str());
            for (e, exit) in (0..).map(ExitId).zip(&variant.exits) {
                let quality = variant.quality(e).map(|quality| {
                    let labels = [
                        ("app", app),
                        ("variant", &*variant.name),
                        ("exit", &*exit.name),
                    ];
                    let gauge = registry.gauge(names::VARIANT_QUALITY, labels);
                    gauge.set(quality);
                    gauge
                });
                let names = ExitNames {
                    app: app.to_owned(),
                    variant: variant.name.clone(),
                    exit: exit.name.clone(),
                    _quality: quality,
                };
                exits.insert((v, e), names);
            }
        }
        Self {
            registry: registry.clone(),
            exits,
            apps: catalog.apps.iter().map(|app| app.name.clone()).collect(),
            policies: Vec::new(),
            host: HOST_LABEL.into(),
        }
    }

    /// An exit answered.
    pub(super) fn exit(&mut self, reply: &Reply, exit: (VariantId, ExitId), in_time: bool) {
        let at = self.policy(reply);
        let Some(names) = self.exits.get(&exit) else {
            return;
        };
        let policy = &mut self.policies[at];
        let (registry, name) = (&self.registry, &policy.name);
        let meters = policy
            .exits
            .entry(exit)
            .or_insert_with(|| ExitMeters::new(registry, name, names));
        meters.latency.record(reply.latency.as_secs_f64());
        match in_time {
            true => meters.in_time.increment(1),
            false => meters.late.increment(1),
        }
    }

    /// Evidence alone answered.
    pub(super) fn short_circuit(&mut self, reply: &Reply) {
        let at = self.policy(reply);
        let app = reply.app.index();
        let Some(name) = self.apps.get(app) else {
            return;
        };
        let policy = &mut self.policies[at];
        let labels = [
            ("app", name.as_str()),
            ("policy", &*policy.name),
            ("variant", SHORT_CIRCUIT),
        ];
        let registry = &self.registry;
        let latency = policy.short_circuits.entry(app);
        let latency = latency.or_insert_with(|| registry.histogram(names::REQUEST_LATENCY, labels));
        latency.record(reply.latency.as_secs_f64());
    }

    /// Forgets the policies that are not held. The host and its fallback never leave.
    pub(super) fn retain(&mut self, held: impl Fn(&str) -> bool) {
        let stays = |name: &str| [HOST_LABEL, FALLBACK_NAME].contains(&name) || held(name);
        self.policies.retain(|policy| stays(&policy.name));
    }

    /// The position of the policy that decided about a request.
    fn policy(&mut self, reply: &Reply) -> usize {
        let label = reply
            .decided
            .as_ref()
            .map_or(&self.host, |decided| &decided.by);
        let known = self.policies.iter();
        if let Some(at) = known
            .clone()
            .position(|policy| Arc::ptr_eq(&policy.label, label))
        {
            return at;
        }
        let name = names::policy_of(label);
        if let Some(at) = known.clone().position(|policy| policy.name == name) {
            self.policies[at].label = Arc::clone(label);
            return at;
        }
        self.policies.push(PolicyMeters {
            label: Arc::clone(label),
            name: name.to_owned(),
            exits: BTreeMap::new(),
            short_circuits: BTreeMap::new(),
        });
        self.policies.len() - 1
    }
}

// === impl ExitMeters ===

impl ExitMeters {
    fn new(registry: &Registry, policy: &str, names: &ExitNames) -> Self {
        let ExitNames {
            app, variant, exit, ..
        } = names;
        let counter = |in_time| {
            let labels = [
                ("app", app.as_str()),
                ("policy", policy),
                ("variant", variant),
                ("exit", exit),
                ("in_time", in_time),
            ];
            registry.counter(names::VARIANT_REQUESTS, labels)
        };
        let labels = [
            ("app", app.as_str()),
            ("policy", policy),
            ("variant", variant),
        ];
        Self {
            in_time: counter("true"),
            late: counter("false"),
            latency: registry.histogram(names::REQUEST_LATENCY, labels),
        }
    }
}
