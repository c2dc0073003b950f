//! The calls that a policy answers, independent of the contract version.

use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Description, WindowFields};
use switchyard_core::window::Window;
use wasmtime::{Engine, Store};

use crate::host_state::HostState;
use crate::plan_bounds::PlanBounds;

/// Why a call of `schedule` gave no plan.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoPlan {
    /// The policy's own reason.
    Failed(String),
    /// The plan is larger than any plan for the window: the list, its length and the bound.
    TooLarge(String),
}

/// The parts of a window that cross to a policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentParts {
    /// The optional fields. A window can have others, because a shadow asked for them.
    pub(crate) fields: WindowFields,
    /// Of the workers only those that changed.
    pub(crate) changed_workers: bool,
}

/// The calls of one contract version on an instance, in the core's types. The outer error is a
/// trap or a broken contract, the inner one the policy's own answer.
pub(crate) trait Contract: Send + 'static {
    /// The exported functions of one instance, looked up once.
    type Exports: Send;

    /// The engine that compiled the component.
    fn engine(&self) -> &Engine;

    fn instantiate(&self, store: &mut Store<HostState>) -> wasmtime::Result<Self::Exports>;

    fn describe(
        &self,
        exports: &Self::Exports,
        store: &mut Store<HostState>,
    ) -> wasmtime::Result<Description>;

    fn configure(
        &self,
        exports: &Self::Exports,
        store: &mut Store<HostState>,
        catalog: &Catalog,
        settings: &str,
    ) -> wasmtime::Result<Result<(), String>>;

    fn schedule(
        &mut self,
        exports: &Self::Exports,
        store: &mut Store<HostState>,
        window: &Window,
        sent: SentParts,
        bounds: &PlanBounds,
        plan: &mut Plan,
    ) -> wasmtime::Result<Result<(), NoPlan>>;

    /// The state of the instance is unknown: its next window is sent whole.
    fn forget(&mut self) {}

    fn save(
        &self,
        exports: &Self::Exports,
        store: &mut Store<HostState>,
    ) -> wasmtime::Result<Vec<u8>>;

    fn restore(
        &self,
        exports: &Self::Exports,
        store: &mut Store<HostState>,
        state: &[u8],
    ) -> wasmtime::Result<Result<(), String>>;
}
