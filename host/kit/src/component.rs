//! Encodes core modules as components, and reads the imports and exports of components.

use anyhow::{Context, Result, bail};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as PREVIEW1,
    WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER as PREVIEW1_ADAPTER,
};
use wasmparser::{Parser, Payload, Validator, WasmFeatures};
use wit_component::{ComponentEncoder, DecodedWasm, metadata};

use wit_parser::{World, WorldItem, WorldKey};

use crate::contract;

type IndexMap = wit_parser::IndexMap<WorldKey, WorldItem>;

/// Encodes a core module with `wit-bindgen` metadata as a component, and validates it.
///
/// # Errors
/// When the bytes are no core module, have no metadata, export nothing, or import functions that
/// the interface does not have.
pub fn encode(module: &[u8]) -> Result<Vec<u8>> {
    let (stripped, bindings) = metadata::decode(module).context("not a WebAssembly core module")?;
    if stripped.is_none() {
        bail!("it describes no interface: call the SDK's export macro in the lib.rs of the policy");
    }
    if bindings.resolve.worlds[bindings.world].exports.is_empty() {
        bail!("its world exports nothing, so a host cannot call it");
    }
    let mut encoder = ComponentEncoder::default();
    encoder.validate(true).module(module)?;
    if imports_preview1(module)? {
        encoder.adapter(PREVIEW1, PREVIEW1_ADAPTER)?;
    }
    encoder
        .encode()
        .context("cannot encode the module as a component")
}

/// Whether a module imports WASI preview 1, as C libraries do for `printf`.
fn imports_preview1(module: &[u8]) -> Result<bool> {
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::ImportSection(imports) = payload? {
            for import in imports.into_imports() {
                if import?.module == PREVIEW1 {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

/// Checks that the bytes are a valid component and export the contract's calls.
///
/// # Errors
/// When they do not validate, with the reason, or do not export the contract's interface, with
/// their exports.
pub fn check(component: &[u8]) -> Result<()> {
    Validator::new_with_features(WasmFeatures::all())
        .validate_all(component)
        .context("the build result is no valid component")?;
    let exports = keys(component, |world| &world.exports)?;
    if !exports
        .iter()
        .any(|name| name.starts_with(contract::EXPORT))
    {
        bail!(
            "the build result is no policy: it exports {}, not `{}...`",
            if exports.is_empty() {
                "nothing".to_owned()
            } else {
                exports.join(", ")
            },
            contract::EXPORT
        );
    }
    Ok(())
}

/// The imports of a component, by interface or function name, in order.
///
/// # Errors
/// When the bytes cannot be decoded as a component.
pub fn imports(component: &[u8]) -> Result<Vec<String>> {
    keys(component, |world| &world.imports)
}

/// Names of one side of a component's world.
fn keys(component: &[u8], side: impl Fn(&World) -> &IndexMap) -> Result<Vec<String>> {
    match wit_component::decode(component).context("not a component")? {
        DecodedWasm::Component(resolve, world) => {
            let keys = side(&resolve.worlds[world]).keys();
            Ok(keys.map(|key| resolve.name_world_key(key)).collect())
        }
        DecodedWasm::WitPackage(..) => bail!("a WIT package, not a component"),
    }
}

#[cfg(test)]
mod tests {
    use wit_component::{StringEncoding, embed_component_metadata};

    use super::*;

    const EMPTY: &[u8] = b"\0asm\x01\0\0\0";
    /// `(module (func (export "f") (result i32) i32.const 7))`
    const ANSWERS: &[u8] = &[
        0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, //
        0x01, 0x05, 0x01, 0x60, 0x00, 0x01, 0x7f, // type
        0x03, 0x02, 0x01, 0x00, // function
        0x07, 0x05, 0x01, 0x01, 0x66, 0x00, 0x00, // export
        0x0a, 0x06, 0x01, 0x04, 0x00, 0x41, 0x07, 0x0b, // code
    ];

    fn with_world(module: &[u8], items: &str) -> Vec<u8> {
        let mut resolve = metadata::Bindgen::default().resolve;
        let wit = format!("package test:test; world guest {{ {items} }}");
        let package = resolve.push_str("test.wit", &wit).unwrap();
        let world = resolve.select_world(&[package], Some("guest")).unwrap();
        let mut bytes = module.to_vec();
        embed_component_metadata(&mut bytes, &resolve, world, StringEncoding::UTF8).unwrap();
        bytes
    }

    #[test]
    fn a_described_module_becomes_a_component() {
        let component = encode(&with_world(ANSWERS, "export f: func() -> u32;")).unwrap();
        assert_eq!(imports(&component).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_module_without_an_interface_is_refused_with_the_macro_to_call() {
        let error = encode(EMPTY).unwrap_err();
        assert!(error.to_string().contains("export macro"), "{error}");
    }

    #[test]
    fn a_world_without_exports_is_refused() {
        let error = encode(&with_world(EMPTY, "import g: func();")).unwrap_err();
        assert!(error.to_string().contains("exports nothing"), "{error}");
    }

    #[test]
    fn a_declared_export_must_exist() {
        let error = encode(&with_world(EMPTY, "export f: func() -> u32;")).unwrap_err();
        assert!(format!("{error:#}").contains('f'), "{error:#}");
    }

    #[test]
    fn a_component_of_another_kind_is_no_policy() {
        let other = encode(&with_world(ANSWERS, "export f: func() -> u32;")).unwrap();
        let error = check(&other).unwrap_err().to_string();
        assert!(
            error.contains("exports f, not `switchyard:policy/"),
            "{error}"
        );
    }

    #[test]
    fn other_bytes_are_refused() {
        assert!(encode(b"#!/bin/sh").is_err());
        assert!(check(b"#!/bin/sh").is_err());
        assert!(imports(b"#!/bin/sh").is_err());
    }
}
