//! One call of a WASI function, and the handles that it may pass.

use wasmtime::component::{Resource, Val};
use wasmtime::{Result, StoreContextMut};

use crate::host_state::HostState;

/// A resource of this world: a stream or a pollable, by its number. Resources have no state.
pub(super) struct WasiHandle;

/// One call of a WASI function.
pub(super) struct WasiCall<'a> {
    pub(super) store: StoreContextMut<'a, HostState>,
    /// The numbers of the handles among the parameters, in their order.
    pub(super) handles: Vec<u32>,
    pub(super) params: &'a [Val],
}

// === impl WasiHandle ===

impl WasiHandle {
    pub(super) const STDIN: u32 = 0;
    pub(super) const STDOUT: u32 = 1;
    pub(super) const STDERR: u32 = 2;
    /// Always ready.
    pub(super) const POLLABLE: u32 = 3;
}

// === impl WasiCall ===

impl<'a> WasiCall<'a> {
    /// Takes the handles out of the parameters: each must be taken, or the call would borrow it for
    /// ever.
    pub(super) fn new(
        mut store: StoreContextMut<'a, HostState>,
        params: &'a [Val],
    ) -> Result<Self> {
        let mut handles = Vec::new();
        for param in params {
            take_handles(&mut store, param, &mut handles)?;
        }
        Ok(Self {
            store,
            handles,
            params,
        })
    }

    pub(super) fn state(&mut self) -> &mut HostState {
        self.store.data_mut()
    }

    /// A new handle of the given number.
    pub(super) fn handle(&mut self, number: u32) -> Result<Val> {
        let handle = Resource::<WasiHandle>::new_own(number);
        Ok(Val::Resource(
            handle.try_into_resource_any(&mut self.store)?,
        ))
    }
}

fn take_handles(
    store: &mut StoreContextMut<'_, HostState>,
    value: &Val,
    handles: &mut Vec<u32>,
) -> Result<()> {
    match value {
        Val::Resource(resource) => {
            let handle: Resource<WasiHandle> = resource.try_into_resource(&mut *store)?;
            handles.push(handle.rep());
        }
        Val::List(values) | Val::Tuple(values) => {
            for value in values {
                take_handles(store, value, handles)?;
            }
        }
        Val::Option(Some(value)) => take_handles(store, value, handles)?,
        _ => {}
    }
    Ok(())
}
