//! Differences as JSON. `sides` are the names of the plan that was carried out and of the other one.

use serde_json::{Map, Value, json};
use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Dispatch;

use super::difference::Difference;
use super::outlook::{Fate, Outlook, Worth};
use crate::reasons::Why;

/// Names of a dispatch's variant, exit and worker.
pub struct Names<'a> {
    /// The variant.
    pub variant: &'a str,
    /// The exit whose head answers; none parks the requests.
    pub exit: Option<&'a str>,
    /// The worker.
    pub worker: &'a str,
}

// === impl Names ===

impl<'a> Names<'a> {
    /// Looks the names up; `?` for an id that the catalog does not have.
    pub fn of(catalog: &'a Catalog, dispatch: &Dispatch) -> Self {
        let variant = catalog.variant(dispatch.variant);
        let exit = dispatch.exit.and_then(|exit| variant?.exit(exit));
        let worker = catalog.worker(dispatch.worker);
        Self {
            variant: variant.map_or("?", |variant| &variant.name),
            exit: exit.map(|exit| exit.name.as_str()),
            worker: worker.map_or("?", |worker| &worker.name),
        }
    }
}

// === impl Difference ===

impl Difference {
    /// As JSON; `sides` names the plan carried out and the policy's.
    pub fn to_json(&self, catalog: &Catalog, sides: [&str; 2]) -> Value {
        let requests = self.requests.iter().map(|request| {
            let mut fields = both(
                sides,
                outlook(catalog, &request.done, request.done_why.as_deref()),
                outlook(catalog, &request.proposed, request.proposed_why.as_deref()),
            );
            let app = catalog.app(request.app).map(|app| &app.name);
            fields.insert("id".to_owned(), json!(request.id.0));
            fields.insert("app".to_owned(), json!(app));
            Value::Object(fields)
        });
        json!({
            "window": self.window,
            "now_us": self.now.0,
            "pending": self.pending,
            "by": self.by,
            "failure": self.failure,
            "requests": requests.collect::<Vec<_>>(),
            "besides": self.besides,
            "utility": worths(sides, self.done, self.proposed),
        })
    }
}

pub(super) fn worths(sides: [&str; 2], done: Worth, proposed: Worth) -> Value {
    let worth = |worth: Worth| json!({"sum": worth.utility, "requests": worth.requests});
    Value::Object(both(sides, worth(done), worth(proposed)))
}

fn both(sides: [&str; 2], done: Value, proposed: Value) -> Map<String, Value> {
    let sides = sides.map(str::to_owned);
    sides.into_iter().zip([done, proposed]).collect()
}

fn outlook(catalog: &Catalog, outlook: &Outlook, why: Option<&str>) -> Value {
    let mut value = json!({
        "fate": match outlook.fate {
            Fate::Waits => "waits",
            Fate::Runs(_) => "runs",
            Fate::Rejected => "rejected",
            Fate::Answered => "answered",
        },
        "end_us": outlook.end.map(|end| end.0),
        "utility": outlook.utility,
        "reason": why.map(|text| Why::of(text).json()),
    });
    if let (Fate::Runs(dispatch), Value::Object(fields)) = (outlook.fate, &mut value) {
        let Names {
            variant,
            exit,
            worker,
        } = Names::of(catalog, &dispatch);
        for (name, field) in [
            ("variant", json!(variant)),
            ("exit", json!(exit)),
            ("worker", json!(worker)),
            ("from_stage", json!(dispatch.from_stage)),
            ("to_stage", json!(dispatch.to_stage)),
            ("batch", json!(dispatch.size)),
        ] {
            fields.insert(name.to_owned(), field);
        }
    }
    value
}
