//! An empty world for components that import WASI 0.2, as Python, JavaScript and C libraries do.
//!
//! There are no files, no environment, no arguments and no network. The clock shows the window's
//! time and stands still within a call. Random bytes come from the policy's seeded stream. Printed
//! lines go to the log, under the log's limits. Every pollable is ready, so no call waits. A
//! policy's plan therefore depends on its inputs only, and no host call can outlast a window's
//! budget.
//!
//! Functions are answered by name, for every minor version of 0.2. A function without an answer
//! returns "access denied" if its result type has such a code. Otherwise it ends the call with an
//! error that names the function.

mod answers;
mod call;

use wasmtime::component::types::{ComponentFunc, ComponentItem, Type};
use wasmtime::component::{Component, Linker, ResourceType, Val};
use wasmtime::{Engine, Result, StoreContextMut, bail};

use crate::host_state::HostState;
use answers::WasiAnswer;
use call::{WasiCall, WasiHandle};

/// Error codes for a refusal, in the order of preference.
const REFUSALS: [&str; 4] = ["access-denied", "not-permitted", "access", "not-supported"];

/// Whether an import belongs to the WASI version that this world has.
pub(crate) fn is_wasi(import: &str) -> bool {
    let version = import
        .strip_prefix("wasi:")
        .and_then(|name| name.split_once('@'));
    version.is_some_and(|(_, version)| version == "0.2" || version.starts_with("0.2."))
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
            bail!("`{import}` is imported, and is no interface");
        };
        let mut linked = linker.instance(import)?;
        for (name, item) in instance.exports(engine) {
            match item.ty {
                ComponentItem::Resource(_) => {
                    linked.resource(name, ResourceType::host::<WasiHandle>(), |_, _| Ok(()))?;
                }
                ComponentItem::ComponentFunc(_) => {
                    let full = format!("{import}#{name}");
                    linked.func_new(name, move |store, ty, params, results| {
                        answer(&full, store, &ty, params, results)
                    })?;
                }
                // Types need no definition.
                _ => {}
            }
        }
    }
    Ok(())
}

fn answer(
    full: &str,
    store: StoreContextMut<'_, HostState>,
    ty: &ComponentFunc,
    params: &[Val],
    results: &mut [Val],
) -> Result<()> {
    let call = WasiCall::new(store, params)?;
    let (interface, function) = parts(full);
    let answered = answers::of(interface, function, call)?;
    match (answered.or_else(|| refusal(ty)), results) {
        (Some(WasiAnswer::NoResult), []) => Ok(()),
        (Some(WasiAnswer::Value(value)), [result]) => {
            *result = value;
            Ok(())
        }
        _ => bail!(
            "it called {full}, which a policy does not get: it has no files, no environment and no \
             network"
        ),
    }
}

/// Interface without its version, and function, of
/// `wasi:io/streams@0.2.3#[method]output-stream.write`.
fn parts(full: &str) -> (&str, &str) {
    let (import, function) = full.split_once('#').unwrap_or((full, ""));
    let interface = import.split('@').next().unwrap_or(import);
    (interface, function)
}

/// The answer of a function whose result type has a code for a refusal.
fn refusal(ty: &ComponentFunc) -> Option<WasiAnswer> {
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
    let refused = Val::Result(Err(Some(Box::new(code))));
    Some(WasiAnswer::Value(refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wasi_0_2_is_known() {
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
    fn names_are_split_into_interface_and_function() {
        assert_eq!(
            parts("wasi:io/streams@0.2.3#[method]output-stream.write"),
            ("wasi:io/streams", "[method]output-stream.write")
        );
    }
}
