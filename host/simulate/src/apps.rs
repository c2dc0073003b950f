//! A test bed with more or fewer apps than the pool has.

use std::sync::Arc;

use switchyard_core::catalog::{App, Catalog, Variant};
use switchyard_core::ids::{AppId, VariantId};
use switchyard_core::profile::{LoadRow, Profile, ProfileRow};
use switchyard_sim::{Scenario, ServiceTimes};

/// Most apps of one point.
const APPS_MAX: usize = 1_000;

/// Positions of the chosen apps in the catalog.
struct Choice<'a> {
    catalog: &'a Catalog,
    apps: Vec<usize>,
}

/// The first `count` apps; beyond the last one, copies of them round-robin: `heart-2` has the
/// variants and latencies of `heart`, but its own requests, queues and models.
///
/// # Errors
/// `count` is out of range, or the name of a copy is taken.
pub(crate) fn with_apps(base: &Scenario, count: usize) -> Result<Scenario, String> {
    let known = base.catalog.apps.len();
    if !(1..=APPS_MAX).contains(&count) {
        return Err(format!("must be 1 to {APPS_MAX} apps"));
    }
    if known == 0 {
        return Err("the pool has no app to repeat".to_owned());
    }
    let choice = Choice {
        catalog: &base.catalog,
        apps: (0..count).map(|at| at % known).collect(),
    };
    let mut scenario = base.clone();
    scenario.catalog = Arc::new(choice.catalog()?);
    if !base.class_mixes.is_empty() {
        let mixes = choice.apps.iter().map(|&app| base.class_mixes.get(app));
        scenario.class_mixes = mixes.map(|mix| mix.cloned().unwrap_or_default()).collect();
    }
    if !base.votes.is_empty() {
        let votes = choice.apps.iter().map(|&app| base.votes.get(app));
        scenario.votes = votes.map(|votes| votes.cloned().flatten()).collect();
    }
    if let ServiceTimes::Percentiles(quantiles) = &mut scenario.service {
        for quantile in quantiles {
            quantile.profile = choice.profile(&quantile.profile);
        }
    }
    Ok(scenario)
}

// === impl Choice ===

impl Choice<'_> {
    fn catalog(&self) -> Result<Catalog, String> {
        let mut apps: Vec<App> = Vec::new();
        for (at, &of) in self.apps.iter().enumerate() {
            let original = &self.catalog.apps[of];
            let name = match at / self.catalog.apps.len() {
                0 => original.name.clone(),
                copy => format!("{}-{}", original.name, copy + 1),
            };
            if apps.iter().any(|app| app.name == name) {
                return Err(format!(
                    "a copy would be named {name}, but an app has that name"
                ));
            }
            apps.push(App {
                name,
                ..original.clone()
            });
        }
        let variants = self.variants().map(|(app, id)| Variant {
            app,
            ..self.catalog.variants[id.index()].clone()
        });
        Ok(Catalog {
            variants: variants.collect(),
            profile: self.profile(&self.catalog.profile),
            generation: self.catalog.generation,
            kinds: self.catalog.kinds.clone(),
            workers: self.catalog.workers.clone(),
            apps,
        })
    }

    /// The variants of the chosen apps, app by app: the app's new id, the variant's old one.
    fn variants(&self) -> impl Iterator<Item = (AppId, VariantId)> + '_ {
        (0..).map(AppId).zip(&self.apps).flat_map(|(app, &of)| {
            let originals = self.catalog.variants_of(AppId(of as u32));
            originals.map(move |(id, _)| (app, id))
        })
    }

    fn profile(&self, from: &Profile) -> Profile {
        let (rows, loads): (Vec<ProfileRow>, Vec<LoadRow>) =
            (from.rows().collect(), from.loads().collect());
        let ids = || (0..).map(VariantId).zip(self.variants().map(|(_, id)| id));
        let all_rows = ids().flat_map(|(variant, of)| {
            let own = rows.iter().filter(move |row| row.variant == of);
            own.map(move |&row| ProfileRow { variant, ..row })
        });
        let all_loads = ids().flat_map(|(variant, of)| {
            let own = loads.iter().filter(move |row| row.variant == of);
            own.map(move |&row| LoadRow { variant, ..row })
        });
        Profile::new(from.percentile(), all_rows, all_loads)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use switchyard_core::catalog::{Capabilities, Exit, Late, Penalty, Task, WorkerSpec};
    use switchyard_core::ids::{ExitId, KindId, WorkerId};
    use switchyard_core::policy::EarliestDeadlineFirst;
    use switchyard_core::time::Micros;
    use switchyard_sim::{Contender, Quantile, run};

    use super::*;

    /// `heart` has variants that take 1 and 3 ms, `fall` one between them that takes 2.
    fn scenario(names: [&str; 2]) -> Scenario {
        let row = |v: u32| ProfileRow {
            kind: KindId(0),
            variant: VariantId(v),
            from_stage: 0,
            to_stage: 1,
            exit: Some(ExitId(0)),
            batch: 1,
            latency: Micros(1_000 * u64::from(v + 1)),
            energy_uj: None,
        };
        let load = |v: u32| LoadRow {
            kind: KindId(0),
            variant: VariantId(v),
            latency: Micros(u64::from(v)),
        };
        let app = |name: &str| App {
            name: name.to_owned(),
            task: Task::Classify,
            classes: vec!["a".to_owned()],
            slo: Micros(50_000),
            penalty: Penalty::Step,
            prior: vec![0.5],
            frequencies: vec![1.0],
            sneakpeek: None,
            late: Late::Serve,
        };
        let variant = |v: u32| Variant {
            name: format!("v{v}"),
            app: AppId(v % 2),
            stages: 1,
            exits: vec![Exit {
                name: "final".to_owned(),
                after_stage: 1,
                accuracy: 0.9,
                recall: vec![0.9],
                confusion: None,
            }],
            memory_bytes: 10,
            max_batch: 1,
            quality_unknown: false,
        };
        let profile = Profile::new(0.95, (0..3).map(row), (0..3).map(load));
        let catalog = Catalog {
            generation: 1,
            apps: names.map(app).to_vec(),
            variants: (0..3).map(variant).collect(),
            kinds: vec!["cpu-1t".to_owned()],
            workers: vec![WorkerSpec {
                name: "w".to_owned(),
                kind: KindId(0),
                memory_bytes: 100,
                queue_max: 4,
                parked_max: 0,
                can: Capabilities::ALL,
                transfer: Micros::ZERO,
                outstanding: 1,
            }],
            profile: profile.clone(),
        };
        Scenario {
            class_mixes: vec![vec![1.0], vec![2.0]],
            service: ServiceTimes::Percentiles(vec![Quantile {
                quantile: 0.5,
                profile,
            }]),
            duration: Micros::from_millis(2_000),
            ..Scenario::new(Arc::new(catalog), "poisson:50".parse().unwrap())
        }
    }

    fn names(scenario: &Scenario) -> Vec<&str> {
        let apps = scenario.catalog.apps.iter();
        apps.map(|app| app.name.as_str()).collect()
    }

    #[test]
    fn copies_are_separate_apps() {
        let five = with_apps(&scenario(["heart", "fall"]), 5).unwrap();
        assert_eq!(
            names(&five),
            ["heart", "fall", "heart-2", "fall-2", "heart-3"]
        );
        assert_eq!(five.catalog.validate(), Ok(()));
        let latency = |v: u32| {
            five.catalog
                .latency(WorkerId(0), VariantId(v), ExitId(0), 1)
        };
        let (heart, fall) = ([1_000, 3_000], [2_000]);
        let all = [&heart[..], &fall, &heart, &fall, &heart].concat();
        for (v, us) in (0..).zip(&all) {
            assert_eq!(latency(v), Some(Micros(*us)), "variant {v}");
        }
        assert_eq!(five.catalog.variants.len(), all.len());
        let load = five.catalog.profile.load_time(KindId(0), VariantId(4));
        assert_eq!(load, Micros(2), "as `heart`'s second variant");
        assert_eq!(five.class_mixes.concat(), [1.0, 2.0, 1.0, 2.0, 1.0]);
        let ServiceTimes::Percentiles(quantiles) = &five.service else {
            panic!("{:?}", five.service);
        };
        assert_eq!(quantiles[0].profile, five.catalog.profile);
        let edf = Contender::new("edf", EarliestDeadlineFirst::default);
        let report = run(&five, &edf, 1).unwrap();
        assert!(report.apps.iter().all(|app| app.summary.arrivals > 0));
    }

    #[test]
    fn fewer_apps_leave_the_others_out() {
        let one = with_apps(&scenario(["heart", "fall"]), 1).unwrap();
        assert_eq!(names(&one), ["heart"]);
        let variants = one.catalog.variants.iter().map(|v| v.name.as_str());
        assert_eq!(variants.collect::<Vec<_>>(), ["v0", "v2"]);
        assert_eq!(one.validate(), Ok(()));
        let mut named = one.clone();
        named.workload = "fall=poisson:5".parse().unwrap();
        assert_eq!(
            named.validate().unwrap_err().to_string(),
            "workload: unknown app `fall`; the catalog has heart"
        );
    }

    #[test]
    fn wrong_counts_are_refused() {
        let refused = |names, count| with_apps(&scenario(names), count).unwrap_err();
        assert!(refused(["heart", "fall"], 0).contains("1 to 1000"));
        assert!(refused(["heart", "heart-2"], 3).contains("named heart-2"));
    }
}
