//! Contract version 0.1 (`wit/0.1`): its bindings and the way between its types and the
//! core's. Frozen with the version; the next one is a module beside it.

mod catalog;
mod host;
mod plan;
mod window;

use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Description, Sights, Triggers};
use switchyard_core::time::Micros;
use switchyard_core::window::Window;
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Engine, Store};

use crate::contract::Contract;
use crate::host_state::HostState;
use crate::wasi;

#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::use_self,
    clippy::semicolon_if_nothing_returned,
    clippy::redundant_closure_for_method_calls,
    clippy::unwrap_used
)] // Generated; the documentation is in the WIT.
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/0.1",
        world: "policy",
        // Columns go in as slices, so that a window crosses without a copy on this side.
        ownership: Borrowing { duplicate_if_necessary: true },
    });
}

use bindings::exports::switchyard::policy::scheduling as wit;

/// Major and minor of this contract.
pub(crate) const VERSION: (u64, u64) = (0, 1);

/// A component that exports this version, linked once; instances are made from it.
pub(crate) struct V0_1 {
    pre: bindings::PolicyPre<HostState>,
    /// Row buffers, kept from window to window.
    rows: window::Rows,
}

impl V0_1 {
    pub(crate) fn link(engine: &Engine, component: &Component) -> wasmtime::Result<Self> {
        let mut linker = Linker::new(engine);
        bindings::Policy::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
        wasi::link(&mut linker, engine, component)?;
        let pre = bindings::PolicyPre::new(linker.instantiate_pre(component)?)?;
        Ok(Self {
            pre,
            rows: window::Rows::default(),
        })
    }
}

impl Contract for V0_1 {
    type Exports = bindings::Policy;

    fn instantiate(&self, store: &mut Store<HostState>) -> wasmtime::Result<Self::Exports> {
        self.pre.instantiate(store)
    }

    fn describe(
        &self,
        exports: &Self::Exports,
        store: &mut Store<HostState>,
    ) -> wasmtime::Result<Description> {
        let description = exports
            .switchyard_policy_scheduling()
            .call_describe(store)?;
        Ok(description.into())
    }

    fn configure(
        &self,
        exports: &Self::Exports,
        store: &mut Store<HostState>,
        catalog: &Catalog,
        settings: &str,
    ) -> wasmtime::Result<Result<(), String>> {
        catalog::lend(catalog, |catalog| {
            exports
                .switchyard_policy_scheduling()
                .call_configure(store, catalog, settings)
        })
    }

    fn schedule(
        &mut self,
        exports: &Self::Exports,
        store: &mut Store<HostState>,
        window: &Window,
        wants: Sights,
        plan: &mut Plan,
    ) -> wasmtime::Result<Result<(), String>> {
        self.rows.fill(window, wants);
        let answer = exports
            .switchyard_policy_scheduling()
            .call_schedule(store, self.rows.lend(window, wants))?;
        Ok(answer.map(|answer| plan::take(answer, plan)))
    }

    fn save(
        &self,
        exports: &Self::Exports,
        store: &mut Store<HostState>,
    ) -> wasmtime::Result<Vec<u8>> {
        exports.switchyard_policy_scheduling().call_save(store)
    }

    fn restore(
        &self,
        exports: &Self::Exports,
        store: &mut Store<HostState>,
        state: &[u8],
    ) -> wasmtime::Result<Result<(), String>> {
        exports
            .switchyard_policy_scheduling()
            .call_restore(store, state)
    }
}

impl From<wit::Description> for Description {
    fn from(from: wit::Description) -> Self {
        let on = |event| from.on.contains(event);
        let wants = |sight| from.wants.contains(sight);
        Self {
            on: Triggers {
                arrival: on(wit::Events::ARRIVAL),
                worker_idle: on(wit::Events::WORKER_IDLE),
                completion: on(wit::Events::COMPLETION),
                evidence: on(wit::Events::EVIDENCE),
            },
            wants: Sights {
                evidence: wants(wit::Sights::EVIDENCE),
                completions: wants(wit::Sights::COMPLETIONS),
                placed: wants(wit::Sights::PLACED),
                residents: wants(wit::Sights::RESIDENTS),
            },
            every: from.every.map(Micros),
            when_empty: from.when_empty,
            name: from.name,
            version: from.version,
            summary: from.summary,
        }
    }
}
