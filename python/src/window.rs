//! A window, as Python reads it: the columns of the contract, with the values that a component is shown.
//!
//! All columns of a window are in one buffer, of which numpy's arrays are views. Filling it is the only copy:
//! the scheduler fills its own columns again for the next window, and a policy may keep arrays longer. `cost` alone
//! has a buffer of its own: few policies read it, and the scheduler has no such column.
//! `python -m switchyard._window_speed` measures it.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use switchyard_core::window::{Causes, Completion, End, Window};

use crate::error::wrong;

/// No variant or exit.
const NONE: u32 = u32::MAX;

/// Every column begins at a multiple of this, the size of the largest number.
const ALIGNMENT: usize = 8;

/// The window of one call of a policy.
#[pyclass(frozen, name = "Window", module = "switchyard._native")]
pub(crate) struct WindowView {
    id: u64,
    now_us: u64,
    because: Causes,
    /// All columns but `cost`.
    buffer: Py<PyBytes>,
    places: Vec<Place>,
    /// Rows of the requests.
    requests: usize,
    /// One per row; empty while every request costs 1.
    costs: Vec<f32>,
}

/// Where a column is in the buffer.
struct Place {
    table: &'static str,
    name: &'static str,
    /// The type for numpy.
    kind: &'static str,
    rows: usize,
    /// In bytes.
    offset: usize,
}

/// The arguments of `numpy.frombuffer`: buffer, type, rows, first byte.
type View<'py> = (Bound<'py, PyBytes>, &'static str, usize, usize);

/// Places columns, and keeps them until the buffer is filled.
#[derive(Default)]
struct Columns<'a> {
    places: Vec<Place>,
    values: Vec<Cow<'a, [u8]>>,
    bytes: usize,
}

#[pymethods]
impl WindowView {
    /// Counts up from 1.
    #[getter]
    fn id(&self) -> u64 {
        self.id
    }

    /// When it was opened.
    #[getter]
    fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Its causes.
    #[getter]
    fn because(&self) -> Vec<&'static str> {
        self.because.names().collect()
    }

    /// A column, as `numpy.frombuffer` takes it.
    fn column<'py>(&self, py: Python<'py>, table: &str, name: &str) -> PyResult<View<'py>> {
        if (table, name) == ("requests", "cost") {
            return Ok(self.cost(py));
        }
        let mut places = self.places.iter();
        let place = places.find(|place| place.name == name && place.table == table);
        let place =
            place.ok_or_else(|| wrong("window", format!("has no column {table}.{name}")))?;
        let buffer = self.buffer.bind(py).clone();
        Ok((buffer, place.kind, place.rows, place.offset))
    }
}

// === impl WindowView ===

impl WindowView {
    pub(crate) fn new(py: Python<'_>, window: &Window) -> PyResult<Self> {
        let columns = Columns::of(window);
        let costs = window.requests.costs_of_all();
        let buffer = PyBytes::new_with(py, columns.bytes, |buffer| {
            columns.fill(buffer);
            Ok(())
        })?;
        Ok(Self {
            id: window.id,
            now_us: window.now.0,
            because: window.because,
            buffer: buffer.unbind(),
            places: columns.places,
            requests: window.len(),
            costs: match window.requests.costs.is_empty() {
                true => Vec::new(),
                false => costs.map(|cost| cost.as_f64() as f32).collect(),
            },
        })
    }

    fn cost<'py>(&self, py: Python<'py>) -> View<'py> {
        let bytes = match self.costs.is_empty() {
            true => PyBytes::new(py, bytemuck::cast_slice(&vec![1_f32; self.requests])),
            false => PyBytes::new(py, bytemuck::cast_slice(&self.costs)),
        };
        (bytes, f32::KIND, self.requests, 0)
    }
}

// === impl Columns ===

impl<'a> Columns<'a> {
    fn of(window: &'a Window) -> Self {
        let mut to = Self::default();
        to.add_requests(window);
        to.add_workers(window);
        to.add_placed(window);
        to.add_completions(&window.completions);
        let held = &window.residents;
        to.derived("residents", "worker", held.iter().map(|of| of.worker.0));
        to.derived("residents", "variant", held.iter().map(|of| of.variant.0));
        to.lent("apps", "arrival_rate", &window.arrival_rate);
        let ratios = window.slowdown.iter().map(|slowdown| slowdown.ratio());
        to.derived("kinds", "slowdown", ratios);
        to
    }

    fn add_requests(&mut self, window: &'a Window) {
        let (table, requests) = ("requests", &window.requests);
        self.lent(table, "id", &requests.id);
        self.lent(table, "app", &requests.app);
        self.lent(table, "arrival_us", &requests.arrival);
        self.lent(table, "deadline_us", &requests.deadline);
        self.lent(table, "priority", &requests.priority);
        self.lent(table, "min_accuracy", &requests.min_accuracy);
        self.lent("evidence", "index", &requests.evidence_index);
        self.lent("evidence", "counts", &requests.evidence_counts);
        let (table, progress) = ("progress", &requests.progress);
        self.derived(table, "index", progress.iter().map(|of| of.index));
        self.derived(table, "worker", progress.iter().map(|of| of.worker.0));
        self.derived(table, "variant", progress.iter().map(|of| of.variant.0));
        self.derived(table, "stages_run", progress.iter().map(|of| of.stages_run));
    }

    fn add_workers(&mut self, window: &'a Window) {
        let (table, workers, now) = ("workers", &window.workers, window.now.0);
        // Components are shown `now` where a time has passed.
        let from_now = |times: &'a [u64]| times.iter().map(move |&at| at.max(now));
        self.derived(table, "busy_until_us", from_now(&workers.busy_until));
        self.derived(table, "free_at_us", from_now(&workers.free_at));
        self.lent(table, "running_since_us", &workers.running_since);
        self.lent(table, "running_variant", &workers.running_variant);
        self.lent(table, "queued", &workers.queued);
        self.lent(table, "parked", &workers.parked);
        self.lent(table, "free_memory", &workers.free_memory);
        self.lent(table, "up", &workers.up);
        let lives = workers.up.iter().zip(&workers.incarnation);
        let lives = lives.map(|(&up, &life)| if up == 0 { 0 } else { life });
        self.derived(table, "incarnation", lives);
    }

    fn add_placed(&mut self, window: &'a Window) {
        let (table, placed) = ("placed", &window.placed);
        self.lent(table, "id", &placed.id);
        self.lent(table, "app", &placed.app);
        self.lent(table, "arrival_us", &placed.arrival);
        self.lent(table, "deadline_us", &placed.deadline);
        self.lent(table, "worker", &placed.worker);
        self.lent(table, "variant", &placed.variant);
        self.lent(table, "batch", &placed.batch);
        self.lent(table, "state", &placed.state);
    }

    fn add_completions(&mut self, ended: &[Completion]) {
        let table = "completions";
        self.derived(table, "id", ended.iter().map(|of| of.id.0));
        self.derived(table, "app", ended.iter().map(|of| of.app.0));
        self.derived(table, "outcome", ended.iter().map(|of| outcome(of.end)));
        let variants = ended.iter().map(|of| of.variant.map_or(NONE, |id| id.0));
        self.derived(table, "variant", variants);
        let exits = ended.iter().map(|of| of.exit.map_or(NONE, |id| id.0));
        self.derived(table, "exit", exits);
        self.derived(table, "latency_us", ended.iter().map(|of| of.latency.0));
    }

    /// A column of the scheduler.
    fn lent<T: Number>(&mut self, table: &'static str, name: &'static str, values: &'a [T]) {
        let bytes = Cow::Borrowed(bytemuck::cast_slice(values));
        self.place(table, name, T::KIND, values.len(), bytes);
    }

    /// A column that the scheduler has in another shape.
    fn derived<T: Number>(
        &mut self,
        table: &'static str,
        name: &'static str,
        values: impl Iterator<Item = T>,
    ) {
        let values: Vec<T> = values.collect();
        let bytes = bytemuck::cast_slice::<T, u8>(&values).to_vec();
        self.place(table, name, T::KIND, values.len(), Cow::Owned(bytes));
    }

    fn place(
        &mut self,
        table: &'static str,
        name: &'static str,
        kind: &'static str,
        rows: usize,
        bytes: Cow<'a, [u8]>,
    ) {
        self.places.push(Place {
            table,
            name,
            kind,
            rows,
            offset: self.bytes,
        });
        self.bytes += bytes.len().next_multiple_of(ALIGNMENT);
        self.values.push(bytes);
    }

    fn fill(&self, buffer: &mut [u8]) {
        for (place, bytes) in self.places.iter().zip(&self.values) {
            buffer[place.offset..][..bytes.len()].copy_from_slice(bytes);
        }
    }
}

/// A number, with its type for numpy.
trait Number: bytemuck::NoUninit {
    const KIND: &'static str;
}

impl Number for u8 {
    const KIND: &'static str = "u1";
}

impl Number for u32 {
    const KIND: &'static str = "u4";
}

impl Number for u64 {
    const KIND: &'static str = "u8";
}

impl Number for f32 {
    const KIND: &'static str = "f4";
}

impl Number for f64 {
    const KIND: &'static str = "f8";
}

/// The position in `switchyard.policy.OUTCOMES`, as the contract lists them.
fn outcome(end: End) -> u8 {
    match end {
        End::InTime => 0,
        End::Late => 1,
        End::Rejected => 2,
        End::Dropped => 3,
        End::Failed => 4,
        End::Cancelled => 5,
    }
}
