//! Policies in Python. A plan passes the same checks as that of a component.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{
    Description, FaultKind, Policy, PolicyFault, Triggers, WindowFields,
};
use switchyard_core::time::Micros;
use switchyard_core::window::Window;
use switchyard_policy::recording::PolicyRecord;
use switchyard_sim::Contender;

use crate::catalog::CatalogView;
use crate::error::wrong;
use crate::plan::RawPlan;
use crate::window::WindowView;

/// The first exception of a policy, which ends the simulation.
pub(crate) type FirstException = Arc<Mutex<Option<PyErr>>>;

/// A policy of a request, with its position among the others.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PythonPolicy {
    pub(crate) position: usize,
    name: String,
    /// Called with the catalog, at the begin of each run; returns a callable that takes windows.
    make: Py<PyAny>,
    every_us: Option<u64>,
    when_empty: bool,
    on: Vec<String>,
    /// Names of the optional fields of its windows.
    wants: Vec<String>,
}

/// An instance of one run.
struct Instance {
    description: Description,
    make: Arc<Py<PyAny>>,
    failed: FirstException,
    catalog: Arc<Catalog>,
    /// None before the first catalog.
    schedule: Option<Py<PyAny>>,
}

// === impl PythonPolicy ===

impl PythonPolicy {
    /// The policy as one of a simulation.
    ///
    /// # Errors
    /// An event or a field is unknown.
    pub(crate) fn contender(self, failed: &FirstException) -> PyResult<(Contender, PolicyRecord)> {
        let description = Description {
            name: self.name.clone(),
            version: "python".to_owned(),
            every: self.every_us.map(Micros),
            when_empty: self.when_empty,
            on: triggers(&self.name, &self.on)?,
            wants: fields(&self.name, &self.wants)?,
            ..Description::default()
        };
        let record = PolicyRecord::native(&description);
        let (make, failed) = (Arc::new(self.make), Arc::clone(failed));
        let contender = Contender {
            name: self.name,
            make: Arc::new(move |_| {
                Ok(Box::new(Instance {
                    description: description.clone(),
                    make: Arc::clone(&make),
                    failed: Arc::clone(&failed),
                    catalog: Arc::default(),
                    schedule: None,
                }))
            }),
            foresight: None,
        };
        Ok((contender, record))
    }
}

// === impl Instance ===

impl Instance {
    /// Keeps the first exception; the simulation ends with it.
    fn failed(&self, error: PyErr) -> PolicyFault {
        let reason = error.to_string();
        let mut first = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        PolicyFault::new(FaultKind::Failed, reason)
    }

    /// After an exception no further call is made: the results are not wanted.
    fn has_failed(&self) -> bool {
        let first = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        first.is_some()
    }
}

impl Policy for Instance {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault> {
        self.catalog = Arc::new(catalog.clone());
        let view = CatalogView::of(Arc::clone(&self.catalog));
        let made = Python::attach(|py| self.make.call1(py, (view,)));
        self.schedule = Some(made.map_err(|error| self.failed(error))?);
        Ok(())
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        if self.has_failed() {
            return Err(PolicyFault::new(FaultKind::Failed, "has failed before"));
        }
        let Some(schedule) = &self.schedule else {
            return Err(PolicyFault::new(FaultKind::Failed, "has no catalog"));
        };
        let raw = Python::attach(|py| {
            let made = schedule.call1(py, (WindowView::new(py, window)?,))?;
            made.extract::<Option<RawPlan>>(py)
        });
        if let Some(raw) = raw.map_err(|error| self.failed(error))? {
            raw.fill(&self.catalog, plan);
        }
        Ok(())
    }
}

fn triggers(name: &str, words: &[String]) -> PyResult<Triggers> {
    let mut on = Triggers::default();
    let known = [
        ("arrival", &mut on.arrival),
        ("worker-idle", &mut on.worker_idle),
        ("completion", &mut on.completion),
        ("evidence", &mut on.evidence),
    ];
    set(&format!("policies: {name}: on"), words, known)?;
    Ok(on)
}

fn fields(name: &str, words: &[String]) -> PyResult<WindowFields> {
    let mut wants = WindowFields::default();
    let known = [
        ("evidence", &mut wants.evidence),
        ("completions", &mut wants.completions),
        ("placed", &mut wants.placed),
        ("residents", &mut wants.residents),
    ];
    set(&format!("policies: {name}: wants"), words, known)?;
    Ok(wants)
}

/// Sets the flags of these words.
fn set<const N: usize>(
    field: &str,
    words: &[String],
    mut known: [(&str, &mut bool); N],
) -> PyResult<()> {
    for word in words {
        match known.iter_mut().find(|(name, _)| name == word) {
            Some((_, flag)) => **flag = true,
            None => {
                let names = known.each_ref().map(|(name, _)| *name).join(", ");
                return Err(wrong(field, format!("`{word}`, must be one of {names}")));
            }
        }
    }
    Ok(())
}
