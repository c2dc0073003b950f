//! Contract version 0.1 (`wit/0.1`): its bindings, and the conversions between its types and the
//! core's. Frozen with the version. The next version is another module next to this one.

mod bindings;
mod catalog;
mod description;
mod host;
mod plan;
mod window;

use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::Description;
use switchyard_core::window::Window;
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Engine, Store};

use crate::contract::{Contract, NoPlan, SentParts};
use crate::host_state::HostState;
use crate::plan_bounds::PlanBounds;
use crate::wasi;
use bindings::{Policy, PolicyPre};
use window::WindowRows;

/// Major and minor number of this contract.
pub(crate) const VERSION: (u64, u64) = (0, 1);

/// A component that exports this version, linked once. Instances are made from it.
pub(crate) struct V0_1 {
    pre: PolicyPre<HostState>,
    /// Row buffers, kept from window to window.
    rows: WindowRows,
}

// === impl V0_1 ===

impl V0_1 {
    pub(crate) fn link(engine: &Engine, component: &Component) -> wasmtime::Result<Self> {
        let mut linker = Linker::new(engine);
        Policy::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
        wasi::link(&mut linker, engine, component)?;
        let pre = PolicyPre::new(linker.instantiate_pre(component)?)?;
        Ok(Self {
            pre,
            rows: WindowRows::default(),
        })
    }
}

impl Contract for V0_1 {
    type Exports = Policy;

    fn engine(&self) -> &Engine {
        self.pre.engine()
    }

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
        sent: SentParts,
        bounds: &PlanBounds,
        plan: &mut Plan,
    ) -> wasmtime::Result<Result<(), NoPlan>> {
        self.rows.fill(window, sent.fields);
        let answer = exports
            .switchyard_policy_scheduling()
            .call_schedule(store, self.rows.lend(window, sent.fields))?;
        Ok(match answer {
            Ok(answer) => plan::copy(answer, bounds, plan).map_err(NoPlan::TooLarge),
            Err(reason) => Err(NoPlan::Failed(reason)),
        })
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
