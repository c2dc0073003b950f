//! An empty world for components that import WASI 0.2, as Python, JavaScript and C libraries do.
//!
//! There are no files, no environment, no arguments and no network. The clock is the window's
//! time, and stands still within a call; random bytes come from the policy's seeded stream; what is
//! printed goes to the log, under the log's own limits. Nothing waits: whatever can be waited for
//! is ready. So a policy's plan stays a function of what came in, and no host call can outlast a
//! window's budget.
//!
//! Functions are answered by name, whatever minor version of 0.2 a component was built for. Those
//! without an answer say "access denied" where they can, and else end the call, naming themselves.

mod answers;
mod output;

use wasmtime::component::types::{ComponentFunc, ComponentItem, Type};
use wasmtime::component::{Component, Linker, Resource, ResourceType, Val};
use wasmtime::{Engine, Result, StoreContextMut, bail};

use crate::host_state::HostState;

pub(crate) use output::Output;

/// Codes that say no, in the interfaces that have them.
const REFUSALS: [&str; 4] = ["access-denied", "not-permitted", "access", "not-supported"];

/// Whether an import is of the WASI that this world has.
pub(crate) fn is_wasi(import: &str) -> bool {
    let version = import
        .strip_prefix("wasi:")
        .and_then(|name| name.split_once('@'));
    version.is_some_and(|(_, version)| version == "0.2" || version.starts_with("0.2."))
}

/// Whatever has a handle: streams and what can be waited for. It has no state, so the number that
/// stands for it says what it is.
struct Handle;

impl Handle {
    const STDIN: u32 = 0;
    const STDOUT: u32 = 1;
    const STDERR: u32 = 2;
    /// Ready, always.
    const POLLABLE: u32 = 3;
}

/// One call of a WASI function.
struct Call<'a> {
    store: StoreContextMut<'a, HostState>,
    /// What the handles among the parameters stand for, in their order.
    handles: Vec<u32>,
    params: &'a [Val],
}

/// Defines every WASI function that a component imports.
pub(crate) fn link(
    linker: &mut Linker<HostState>,
    engine: &Engine,
    component: &Component,
) -> Result<()> {
    let ty = component.component_type();
    for (import, item) in ty.imports(engine).filter(|(import, _)| is_wasi(import)) {
        let ComponentItem::ComponentInstance(instance) = item.ty else {
            bail!("`{import}` is imported as something else than an interface");
        };
        let mut linked = linker.instance(import)?;
        for (name, item) in instance.exports(engine) {
            match item.ty {
                ComponentItem::Resource(_) => {
                    linked.resource(name, ResourceType::host::<Handle>(), |_, _| Ok(()))?;
                }
                ComponentItem::ComponentFunc(_) => {
                    let full = format!("{import}#{name}");
                    linked.func_new(name, move |store, ty, params, results| {
                        answer(&full, store, &ty, params, results)
                    })?;
                }
                // Types are the component's own.
                _ => {}
            }
        }
    }
    Ok(())
}

fn answer(
    full: &str,
    mut store: StoreContextMut<'_, HostState>,
    ty: &ComponentFunc,
    params: &[Val],
    results: &mut [Val],
) -> Result<()> {
    let mut handles = Vec::new();
    for param in params {
        take_handles(&mut store, param, &mut handles)?;
    }
    let call = Call {
        store,
        handles,
        params,
    };
    let (interface, function) = parts(full);
    let answered = answers::of(interface, function, call)?;
    match (answered.or_else(|| refusal(ty)), results) {
        (Some(answers::Answer::Nothing), []) => Ok(()),
        (Some(answers::Answer::Value(value)), [result]) => {
            *result = value;
            Ok(())
        }
        _ => bail!(
            "it called {full}, which is not there: a policy has no files, no environment and no \
             network"
        ),
    }
}

/// `wasi:io/streams@0.2.3#[method]output-stream.write` without what differs between versions.
fn parts(full: &str) -> (&str, &str) {
    let (import, function) = full.split_once('#').unwrap_or((full, ""));
    let interface = import.split('@').next().unwrap_or(import);
    (interface, function)
}

/// Every handle must be taken, or the call would hold it for ever.
fn take_handles(
    store: &mut StoreContextMut<'_, HostState>,
    value: &Val,
    handles: &mut Vec<u32>,
) -> Result<()> {
    match value {
        Val::Resource(resource) => {
            let handle: Resource<Handle> = resource.try_into_resource(&mut *store)?;
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

/// "No", from a function that has a code for it.
fn refusal(ty: &ComponentFunc) -> Option<answers::Answer> {
    let Some(Type::Result(result)) = ty.results().next() else {
        return None;
    };
    let Some(Type::Enum(codes)) = result.err() else {
        return None;
    };
    let code = REFUSALS
        .into_iter()
        .find(|code| codes.names().any(|name| name == *code))?;
    let code = Val::Enum(code.to_owned());
    Some(answers::Answer::Value(Val::Result(Err(Some(Box::new(
        code,
    ))))))
}

// === impl Call ===

impl Call<'_> {
    fn state(&mut self) -> &mut HostState {
        self.store.data_mut()
    }

    /// A new handle to one of the things that have one.
    fn handle(&mut self, what: u32) -> Result<Val> {
        let handle = Resource::<Handle>::new_own(what);
        Ok(Val::Resource(
            handle.try_into_resource_any(&mut self.store)?,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_released_wasi_is_there() {
        for known in ["wasi:io/streams@0.2.0", "wasi:cli/stdout@0.2.11"] {
            assert!(is_wasi(known), "{known}");
        }
        for other in [
            "wasi:cli/run@0.3.0",
            "wasi:cli/run",
            "wasi-x:io/poll@0.2.0",
            "a:b/c@0.2.0",
        ] {
            assert!(!is_wasi(other), "{other}");
        }
    }

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(
            parts("wasi:io/streams@0.2.3#[method]output-stream.write"),
            ("wasi:io/streams", "[method]output-stream.write")
        );
    }
}
