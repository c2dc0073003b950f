//! A policy's description in the core's types.

use switchyard_core::policy::{Description, Triggers, WindowFields};
use switchyard_core::time::Micros;

use super::bindings::wit;

impl From<wit::Description> for Description {
    fn from(from: wit::Description) -> Self {
        let on = |event| from.on.contains(event);
        let wants = |field| from.wants.contains(field);
        Self {
            on: Triggers {
                arrival: on(wit::Events::ARRIVAL),
                worker_idle: on(wit::Events::WORKER_IDLE),
                completion: on(wit::Events::COMPLETION),
                evidence: on(wit::Events::EVIDENCE),
            },
            wants: WindowFields {
                evidence: wants(wit::Sights::EVIDENCE),
                completions: wants(wit::Sights::COMPLETIONS),
                placed: wants(wit::Sights::PLACED),
                residents: wants(wit::Sights::RESIDENTS),
            },
            changed_workers: false,
            every: from.every.map(Micros),
            when_empty: from.when_empty,
            name: from.name,
            version: from.version,
            summary: from.summary,
        }
    }
}
