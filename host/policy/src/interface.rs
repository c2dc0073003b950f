//! What a component asks of its host, and what it offers: read from its type, before any of
//! its code runs.

use serde::Serialize;
use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

/// Names of what a component imports and exports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// Functions it may call, as `package:name/interface@version#function`; an import of
    /// another shape by its bare name.
    pub imports: Vec<String>,
    /// Interfaces it offers.
    pub exports: Vec<String>,
}

// === impl Interface ===

impl Interface {
    pub(crate) fn of(engine: &Engine, component: &Component) -> Self {
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

/// The functions of an imported interface; types alone give nothing to call.
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
