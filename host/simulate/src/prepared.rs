//! A checked request and its runs.

use std::borrow::Cow;

use switchyard_core::time::Micros;
use switchyard_sim::overhead::Overhead;
use switchyard_sim::report::ReportData;
use switchyard_sim::{LinkTimes, PolicyOutcome, Scenario, SweepPoint, sweep_observed};

use crate::axis::Parameter;
use crate::contenders::{self, Contenders, PolicyLoader};
use crate::error::InputError;
use crate::meta::meta;
use crate::observed::{RowCollectors, RowKind};
use crate::request::SimulationRequest;
use crate::shipped::read_exactly;
use crate::tables::ColumnTable;
use crate::test_bed::TestBed;
use crate::votes;

/// A request whose files are read, whose policies are loaded and whose numbers are in range.
pub struct Prepared {
    /// The inputs.
    pub request: SimulationRequest,
    /// The pool that is simulated.
    pub test_bed: TestBed,
    /// The policies, loaded.
    pub contenders: Contenders,
    /// One scenario per value of the sweep, or one.
    pub points: Vec<SweepPoint>,
    /// The arrivals of traces that `seconds` cuts off, a sentence per point.
    pub left_out: Vec<String>,
}

// === impl Prepared ===

impl Prepared {
    /// Reads and checks everything, so that a mistake is named before the first run.
    ///
    /// # Errors
    /// Names the input that cannot be used.
    pub fn try_new(request: SimulationRequest) -> Result<Self, InputError> {
        Self::with_loader(request, &PolicyLoader::try_new()?)
    }

    /// As [`try_new`](Self::try_new), without compiling the components that the loader has compiled.
    ///
    /// # Errors
    /// As of [`try_new`](Self::try_new).
    pub fn with_loader(
        request: SimulationRequest,
        loader: &PolicyLoader,
    ) -> Result<Self, InputError> {
        let test_bed = TestBed::read(&request)?;
        Self::on(test_bed, request, loader)
    }

    /// As [`try_new`](Self::try_new); a request without a configuration gets the shipped one, whether or
    /// not another is found.
    ///
    /// # Errors
    /// As of [`try_new`](Self::try_new).
    pub fn on_shipped(request: SimulationRequest) -> Result<Self, InputError> {
        let config = read_exactly(request.config.as_deref(), request.bundle.clone())?;
        let test_bed = TestBed::of(config, &request)?;
        Self::on(test_bed, request, &PolicyLoader::try_new()?)
    }

    fn on(
        test_bed: TestBed,
        request: SimulationRequest,
        loader: &PolicyLoader,
    ) -> Result<Self, InputError> {
        let contenders = Contenders::load(&request.policies, &test_bed, loader)?;
        let points = points(&request, &test_bed)?;
        let left_out = left_out(&request, &points)?;
        Ok(Self {
            request,
            test_bed,
            contenders,
            points,
            left_out,
        })
    }

    /// Number of runs: points times policies times seeds.
    pub fn runs(&self) -> usize {
        self.points.len() * self.contenders.list.len() * self.request.seeds.len()
    }

    /// Runs everything, in parallel over the cores; `progress` is called after each run, from any
    /// thread. `command` makes the same results.
    ///
    /// # Errors
    /// A policy, workload or profile does not fit the others.
    pub fn run(
        &self,
        command: String,
        progress: &(dyn Fn() + Sync),
    ) -> Result<ReportData, InputError> {
        let (data, _) = self.run_with_rows(command, progress, &[])?;
        Ok(data)
    }

    /// As [`run`](Self::run), with a table of each of these kinds.
    ///
    /// # Errors
    /// As of [`run`](Self::run).
    pub fn run_with_rows(
        &self,
        command: String,
        progress: &(dyn Fn() + Sync),
        kinds: &[RowKind],
    ) -> Result<(ReportData, Vec<ColumnTable>), InputError> {
        let (mut outcomes, mut overheads) = (Vec::new(), Vec::new());
        let mut tables = vec![ColumnTable::default(); kinds.len()];
        for point in &self.points {
            let of_point = self.run_point(point, progress, kinds)?;
            outcomes.extend(of_point.outcomes);
            overheads.push(of_point.overheads);
            for (table, rows) in tables.iter_mut().zip(of_point.tables) {
                table.append(rows);
            }
        }
        // The points of a sweep of apps or workers share their first ones.
        let catalogs = self.points.iter().map(|point| &point.scenario.catalog);
        let catalog = catalogs.max_by_key(|catalog| (catalog.apps.len(), catalog.workers.len()));
        let catalog = catalog.unwrap_or(&self.test_bed.catalog);
        let bed = &self.test_bed.catalog;
        let mut meta = meta(&self.request, bed, &self.contenders, &self.points, command);
        meta.left_out.clone_from(&self.left_out);
        let mut data = ReportData::new(meta, catalog, outcomes);
        for (point, overheads) in self.points.iter().zip(&overheads) {
            for (contender, overhead) in self.contenders.list.iter().zip(overheads) {
                data = data.with_scheduling(&point.name, &contender.name, overhead.times());
            }
        }
        Ok((data, tables))
    }

    /// Runs everything again and keeps a row per request, batch or window; in parallel over the cores.
    ///
    /// # Errors
    /// As of [`run`](Self::run).
    pub fn rows(&self, kind: RowKind) -> Result<ColumnTable, InputError> {
        let mut all = ColumnTable::default();
        for point in &self.points {
            let of_point = self.run_point(point, &|| (), &[kind])?;
            for rows in of_point.tables {
                all.append(rows);
            }
        }
        Ok(all)
    }

    /// Timed per point: the time of a window depends on the load.
    fn run_point(
        &self,
        point: &SweepPoint,
        progress: &(dyn Fn() + Sync),
        kinds: &[RowKind],
    ) -> Result<PointRuns, InputError> {
        let timed = self.contenders.list.iter().map(contenders::timed);
        let (timed, overheads): (Vec<_>, Vec<_>) = timed.unzip();
        let mut point = Cow::Borrowed(point);
        if kinds.contains(&RowKind::Windows) {
            point.to_mut().scenario.scheduler.tells_decisions = true;
        }
        let collector = |point: &SweepPoint| RowCollectors::new(kinds, &point.scenario.catalog);
        let (at, seeds) = (std::slice::from_ref(point.as_ref()), &self.request.seeds);
        let ran = sweep_observed(at, &timed, seeds, progress, collector);
        let (outcomes, collected) = ran.map_err(InputError::new)?;
        let policies = self.contenders.list.iter();
        let runs = policies.flat_map(|policy| seeds.iter().map(|&seed| (&policy.name, seed)));
        let mut tables = vec![ColumnTable::default(); kinds.len()];
        for ((policy, seed), rows) in runs.zip(collected) {
            let rows = rows.finish(&point.name, policy, seed);
            for (table, rows) in tables.iter_mut().zip(rows) {
                table.append(rows);
            }
        }
        Ok(PointRuns {
            outcomes,
            overheads,
            tables,
        })
    }
}

/// The runs of one point.
struct PointRuns {
    outcomes: Vec<PolicyOutcome>,
    /// By policy.
    overheads: Vec<Overhead>,
    /// By kind of rows.
    tables: Vec<ColumnTable>,
}

/// One scenario per value of the sweep, or one.
fn points(request: &SimulationRequest, test_bed: &TestBed) -> Result<Vec<SweepPoint>, InputError> {
    let votes = request.votes.as_deref();
    if let Some(axis) = request.sweep.as_ref().filter(|_| votes.is_some())
        && matches!(axis.name, Parameter::Neighbours | Parameter::Evidence)
    {
        let name = axis.name.label();
        let reason = format!("--sweep {name}: recorded votes have their own; leave out --votes");
        return Err(InputError::new(reason));
    }
    let votes = votes.map(|file| votes::read(file, &test_bed.catalog));
    let base = Scenario {
        votes: votes.transpose()?.unwrap_or_default(),
        skip_first: request.skip_first,
        class_mixes: test_bed.class_mixes.clone(),
        service: test_bed.service(&request.service)?,
        links: (request.link > Micros::ZERO).then_some(LinkTimes {
            delay_us: request.link,
            jitter_us: Micros::ZERO,
            loss: 0.0,
            resend_us: Micros::ZERO,
        }),
        wire: request.wire,
        preload: !request.cold,
        scheduler: test_bed.scheduler.clone(),
        ..Scenario::new(test_bed.catalog.clone(), request.workload.clone())
    };
    let mut points = match &request.sweep {
        None => {
            base.validate().map_err(InputError::new)?;
            vec![SweepPoint {
                name: String::new(),
                scenario: base,
            }]
        }
        Some(axis) => axis.points(&base)?,
    };
    for point in &mut points {
        match request.seconds {
            Some(seconds) => point.scenario.duration = Micros((seconds * 1e6) as u64),
            // Per point: recorded arrivals are stretched at a lower load.
            None => point.scenario.until_trace_ends().map_err(InputError::new)?,
        }
    }
    Ok(points)
}

fn left_out(request: &SimulationRequest, points: &[SweepPoint]) -> Result<Vec<String>, InputError> {
    let mut cuts = Vec::new();
    if request.seconds.is_none() {
        return Ok(cuts);
    }
    for SweepPoint { name, scenario } in points {
        let apps = scenario.catalog.apps.len();
        let cut = scenario.workload.cut_at(scenario.duration, apps);
        if let Some(cut) = cut.map_err(InputError::new)? {
            cuts.push(match name.as_str() {
                "" => cut.to_string(),
                name => format!("{name}: {cut}"),
            });
        }
    }
    Ok(cuts)
}
