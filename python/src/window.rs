//! A window, as Python reads it: the columns of the contract, with the values that a component is shown.

use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use switchyard_core::cost::Cost;
use switchyard_core::window::{Completion, End, Requests, Window};

use crate::error::wrong;

/// No variant or exit.
const NONE: u32 = u32::MAX;

/// The window of one call of a policy.
#[pyclass(frozen, name = "Window", module = "switchyard._native")]
pub(crate) struct WindowView(Window);

/// The type for numpy, and the values.
type Column<'py> = (&'static str, Bound<'py, PyByteArray>);

/// Makes columns.
struct Columns<'py>(Python<'py>);

impl WindowView {
    pub(crate) fn new(window: &Window) -> Self {
        Self(window.clone())
    }
}

#[pymethods]
impl WindowView {
    /// Counts up from 1.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id
    }

    /// When it was opened.
    #[getter]
    fn now_us(&self) -> u64 {
        self.0.now.0
    }

    /// Its causes.
    #[getter]
    fn because(&self) -> Vec<&'static str> {
        let causes = self.0.because;
        let named = [
            (causes.periodic, "periodic"),
            (causes.arrival, "arrival"),
            (causes.worker_idle, "worker-idle"),
            (causes.completion, "completion"),
            (causes.evidence, "evidence"),
            (causes.wake, "wake"),
            (causes.changed, "changed"),
            (causes.workers, "workers"),
        ];
        let held = named.into_iter().filter(|(holds, _)| *holds);
        held.map(|(_, name)| name).collect()
    }

    /// A column.
    fn column<'py>(&self, py: Python<'py>, table: &str, name: &str) -> PyResult<Column<'py>> {
        let (to, window) = (Columns(py), &self.0);
        let made = match table {
            "requests" => self.of_requests(&to, name),
            "workers" => self.of_workers(&to, name),
            "progress" => self.of_progress(&to, name),
            "placed" => self.of_placed(&to, name),
            "completions" => of_completions(&to, &window.completions, name),
            "residents" => {
                let held = window.residents.iter();
                match name {
                    "worker" => Some(to.u32s(held.map(|held| held.worker.0))),
                    "variant" => Some(to.u32s(held.map(|held| held.variant.0))),
                    _ => None,
                }
            }
            "evidence" => match name {
                "index" => Some(to.cast("u4", &window.requests.evidence_index)),
                "counts" => Some(to.cast("u4", &window.requests.evidence_counts)),
                _ => None,
            },
            "apps" if name == "arrival_rate" => Some(to.cast("f8", &window.arrival_rate)),
            "kinds" if name == "slowdown" => {
                let ratios = window.slowdown.iter().map(|slowdown| slowdown.ratio());
                Some(to.cast("f8", &ratios.collect::<Vec<_>>()))
            }
            _ => None,
        };
        made.ok_or_else(|| wrong("window", format!("has no column {table}.{name}")))
    }
}

impl WindowView {
    fn of_requests<'py>(&self, to: &Columns<'py>, name: &str) -> Option<Column<'py>> {
        let requests = &self.0.requests;
        Some(match name {
            "id" => to.cast("u8", &requests.id),
            "app" => to.cast("u4", &requests.app),
            "arrival_us" => to.cast("u8", &requests.arrival),
            "deadline_us" => to.cast("u8", &requests.deadline),
            "priority" => to.cast("u4", &requests.priority),
            "min_accuracy" => to.cast("f4", &requests.min_accuracy),
            "cost" => to.cast("f4", &costs(requests)),
            _ => return None,
        })
    }

    fn of_workers<'py>(&self, to: &Columns<'py>, name: &str) -> Option<Column<'py>> {
        let workers = &self.0.workers;
        // Components are shown `now` where a time has passed.
        let from_now = |times: &[u64]| -> Vec<u64> {
            let now = self.0.now.0;
            times.iter().map(|&at| at.max(now)).collect()
        };
        Some(match name {
            "busy_until_us" => to.cast("u8", &from_now(&workers.busy_until)),
            "free_at_us" => to.cast("u8", &from_now(&workers.free_at)),
            "running_since_us" => to.cast("u8", &workers.running_since),
            "running_variant" => to.cast("u4", &workers.running_variant),
            "queued" => to.cast("u4", &workers.queued),
            "parked" => to.cast("u4", &workers.parked),
            "free_memory" => to.cast("u8", &workers.free_memory),
            "up" => to.cast("u1", &workers.up),
            "incarnation" => {
                let lives = workers.up.iter().zip(&workers.incarnation);
                to.u32s(lives.map(|(&up, &life)| if up == 0 { 0 } else { life }))
            }
            _ => return None,
        })
    }

    fn of_progress<'py>(&self, to: &Columns<'py>, name: &str) -> Option<Column<'py>> {
        let progress = self.0.requests.progress.iter();
        Some(match name {
            "index" => to.u32s(progress.map(|of| of.index)),
            "worker" => to.u32s(progress.map(|of| of.worker.0)),
            "variant" => to.u32s(progress.map(|of| of.variant.0)),
            "stages_run" => to.u32s(progress.map(|of| of.stages_run)),
            _ => return None,
        })
    }

    fn of_placed<'py>(&self, to: &Columns<'py>, name: &str) -> Option<Column<'py>> {
        let placed = &self.0.placed;
        Some(match name {
            "id" => to.cast("u8", &placed.id),
            "app" => to.cast("u4", &placed.app),
            "arrival_us" => to.cast("u8", &placed.arrival),
            "deadline_us" => to.cast("u8", &placed.deadline),
            "worker" => to.cast("u4", &placed.worker),
            "variant" => to.cast("u4", &placed.variant),
            "batch" => to.cast("u8", &placed.batch),
            "state" => to.cast("u1", &placed.state),
            _ => return None,
        })
    }
}

fn of_completions<'py>(to: &Columns<'py>, ended: &[Completion], name: &str) -> Option<Column<'py>> {
    let ended = ended.iter();
    Some(match name {
        "id" => to.cast("u8", &ended.map(|end| end.id.0).collect::<Vec<_>>()),
        "app" => to.u32s(ended.map(|end| end.app.0)),
        "outcome" => to.cast("u1", &ended.map(|end| outcome(end.end)).collect::<Vec<_>>()),
        "variant" => to.u32s(ended.map(|end| end.variant.map_or(NONE, |variant| variant.0))),
        "exit" => to.u32s(ended.map(|end| end.exit.map_or(NONE, |exit| exit.0))),
        "latency_us" => to.cast("u8", &ended.map(|end| end.latency.0).collect::<Vec<_>>()),
        _ => return None,
    })
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

fn costs(requests: &Requests) -> Vec<f32> {
    let mut costs = vec![Cost::ONE.as_f64() as f32; requests.id.len()];
    for cost in &requests.costs {
        if let Some(at) = costs.get_mut(cost.index as usize) {
            *at = cost.cost.as_f64() as f32;
        }
    }
    costs
}

// === impl Columns ===

impl<'py> Columns<'py> {
    fn cast<T: bytemuck::NoUninit>(&self, kind: &'static str, values: &[T]) -> Column<'py> {
        (kind, PyByteArray::new(self.0, bytemuck::cast_slice(values)))
    }

    fn u32s(&self, values: impl Iterator<Item = u32>) -> Column<'py> {
        self.cast("u4", &values.collect::<Vec<_>>())
    }
}
