//! Runs and their results.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyList;
use rayon::{ThreadPool, ThreadPoolBuilder};
use switchyard_sim::report::{self, ReportData};
use switchyard_simulate::bundle::Bundle;
use switchyard_simulate::observed::RowKind;
use switchyard_simulate::tables::ColumnTable;
use switchyard_simulate::{Prepared, figure};

use crate::buffers;
use crate::error::{refused, wrong};
use crate::interrupt::{Cancelled, Progress, cancellable, detached};
use crate::options::Options;
use crate::policy::FirstException;

/// Fewest runs from which a difference can be told from noise.
const SEEDS_MIN: usize = 3;

/// Results, and the inputs that give them again.
#[pyclass(frozen, module = "switchyard._native")]
pub(crate) struct Simulation {
    prepared: Prepared,
    data: ReportData,
    /// Tables of the runs that made the data, until they are asked for.
    kept: Mutex<Vec<(RowKind, ColumnTable)>>,
    failed: FirstException,
    cancelled: Cancelled,
    threads: usize,
}

/// Runs a simulation in parallel, without the interpreter's lock.
#[pyfunction]
pub(crate) fn simulate(py: Python<'_>, options: Options) -> PyResult<Simulation> {
    let request = options.request()?;
    let kinds = options.keep.iter().map(|kind| row_kind("keep", kind));
    let kinds: Vec<RowKind> = kinds.collect::<PyResult<_>>()?;
    let (command, threads) = (options.command, options.threads);
    let (cancelled, failed) = (Cancelled::default(), FirstException::default());
    let compiled = options.compiled.as_ref().map(|compiled| &compiled.get().0);
    let own = options.python_policies.into_iter();
    let own = own.map(|policy| Ok((policy.position, policy.contender(&failed)?)));
    let own: Vec<_> = own.collect::<PyResult<_>>()?;
    let progress = Progress::new(options.progress);
    let (prepared, data, tables) = detached(py, &cancelled, &progress, || {
        let prepared = match compiled {
            Some(loader) => Prepared::with_loader(request, loader),
            None => Prepared::try_new(request),
        };
        let mut prepared = prepared.map_err(refused)?;
        for (position, (contender, record)) in own {
            let added = prepared.contenders.insert(position, contender, record);
            added.map_err(|error| wrong("policies", error))?;
        }
        for contender in &mut prepared.contenders.list {
            *contender = cancellable(contender, &cancelled);
        }
        progress.begin(prepared.runs());
        let advance = || progress.advance();
        let ran = pool(threads)?.install(|| prepared.run_with_rows(command, &advance, &kinds));
        raised(&failed)?;
        let (data, tables) = ran.map_err(refused)?;
        Ok((prepared, data, tables))
    })?;
    Ok(Simulation {
        prepared,
        data,
        kept: Mutex::new(kinds.into_iter().zip(tables).collect()),
        failed,
        cancelled,
        threads,
    })
}

/// The profile that comes with the package of this file.
#[pyfunction]
pub(crate) fn reference_profile(package: PathBuf) -> PyResult<PathBuf> {
    let bundle = Bundle::above(&package);
    let bundle = bundle.ok_or_else(|| {
        let place = package.display();
        refused(format!(
            "{place}: neither its environment nor a repository has profiles"
        ))
    })?;
    Ok(bundle.reference_profile())
}

/// The exception that a policy raised.
fn raised(failed: &FirstException) -> PyResult<()> {
    let mut first = failed.lock().unwrap_or_else(PoisonError::into_inner);
    first.take().map_or(Ok(()), Err)
}

/// Its own, so that the process may fork between two simulations.
fn pool(threads: usize) -> PyResult<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| wrong("threads", error))
}

#[pymethods]
impl Simulation {
    /// The results as `switchyard simulate --json` writes them.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| serde_json::to_string_pretty(&self.data).map_err(refused))
    }

    /// The differences of all other policies from a baseline, as JSON.
    fn differences(&self, baseline: &str) -> PyResult<String> {
        let names = self.prepared.contenders.list.iter();
        let names: Vec<&str> = names.map(|policy| policy.name.as_str()).collect();
        if !names.contains(&baseline) || names.len() < 2 {
            let names = names.join(", ");
            let reason =
                format!("`{baseline}`, must be one of several policies, which are: {names}");
            return Err(wrong("baseline", reason));
        }
        let seeds = self.prepared.request.seeds.len();
        if seeds < SEEDS_MIN {
            let reason = format!("{seeds}, must be at least {SEEDS_MIN} for a difference");
            return Err(wrong("seeds", reason));
        }
        let compared = self.data.clone().compared_with(baseline);
        serde_json::to_string(&compared.comparisons).map_err(refused)
    }

    /// A page of plots, as HTML.
    fn html(&self, py: Python<'_>) -> String {
        py.detach(|| report::html(&self.data))
    }

    /// Late requests and accuracy of each policy, as SVG.
    fn svg(&self, py: Python<'_>) -> String {
        py.detach(|| figure::figure(&self.data))
    }

    /// A row per request, batch or window: those that were kept, otherwise from the same runs once more.
    fn rows<'py>(&self, py: Python<'py>, kind: &str) -> PyResult<Bound<'py, PyList>> {
        let kind = row_kind("rows", kind)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|(known, _)| *known == kind) {
            let (_, table) = kept.swap_remove(at);
            return buffers::columns(py, table);
        }
        drop(kept);
        let table = detached(py, &self.cancelled, &Progress::default(), || {
            let rows = pool(self.threads)?.install(|| self.prepared.rows(kind));
            raised(&self.failed)?;
            rows.map_err(refused)
        })?;
        buffers::columns(py, table)
    }
}

fn row_kind(field: &str, name: &str) -> PyResult<RowKind> {
    match name {
        "requests" => Ok(RowKind::Requests),
        "batches" => Ok(RowKind::Batches),
        "windows" => Ok(RowKind::Windows),
        other => {
            let reason = format!("`{other}`, must be requests, batches or windows");
            Err(wrong(field, reason))
        }
    }
}
