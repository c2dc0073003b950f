//! The imports and exports of a component, read from its type before any of its code runs.

use serde::Serialize;
use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

/// The names that a component imports and exports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ComponentInterface {
    /// Functions that it may call, as `package:name/interface@version#function`. Imports other
    /// than interfaces have their bare name.
    pub imports: Vec<String>,
    /// Interfaces that it exports.
    pub exports: Vec<String>,
}

// === impl ComponentInterface ===

impl ComponentInterface {
    pub(crate) fn of(component: &Component) -> Self {
        let engine = component.engine();
        let ty = component.component_type();
        let imports = ty
            .imports(engine)
            .flat_map(|(name, import)| match import.ty {
                ComponentItem::ComponentInstance(instance) => functions(engine, name, &instance),
                _ => vec![name.to_owned()],
            });
        Self {
            imports: imports.collect(),
            exports: ty
                .exports(engine)
                .map(|(name, _)| name.to_owned())
                .collect(),
        }
    }
}

/// The functions of an imported interface, without its types.
fn functions(
    engine: &Engine,
    name: &str,
    instance: &wasmtime::component::types::ComponentInstance,
) -> Vec<String> {
    let functions = instance
        .exports(engine)
        .filter(|(_, item)| matches!(item.ty, ComponentItem::ComponentFunc(_)));
    functions
        .map(|(function, _)| format!("{name}#{function}"))
        .collect()
}
