//! A core module becomes a component, in this process.

use anyhow::{Context, Result, bail};
use wit_component::{ComponentEncoder, DecodedWasm, metadata};

/// Encodes a core module that `wit-bindgen` prepared as a validated component.
///
/// # Errors
/// When the bytes are no core module, describe no interface, export nothing, or import
/// something that the interface does not have.
pub(crate) fn encode(module: &[u8]) -> Result<Vec<u8>> {
    let (stripped, bindings) = metadata::decode(module).context("not a WebAssembly core module")?;
    if stripped.is_none() {
        bail!("it describes no interface: a policy calls the SDK's export macro in its lib.rs");
    }
    if bindings.resolve.worlds[bindings.world].exports.is_empty() {
        bail!("its world exports nothing, so a host could not call it");
    }
    ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(ComponentEncoder::encode)
        .context("cannot be made a component")
}

/// What a component asks of its host, by interface or function name, in order.
///
/// # Errors
/// When the bytes cannot be decoded as a component.
pub(crate) fn imports(component: &[u8]) -> Result<Vec<String>> {
    match wit_component::decode(component).context("not a component")? {
        DecodedWasm::Component(resolve, world) => {
            let keys = resolve.worlds[world].imports.keys();
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
    fn a_module_without_an_interface_is_told_about_the_macro() {
        let error = encode(EMPTY).unwrap_err();
        assert!(error.to_string().contains("export macro"), "{error}");
    }

    #[test]
    fn a_world_without_exports_is_refused() {
        let error = encode(&with_world(EMPTY, "import g: func();")).unwrap_err();
        assert!(error.to_string().contains("exports nothing"), "{error}");
    }

    #[test]
    fn a_promised_export_must_be_there() {
        let error = encode(&with_world(EMPTY, "export f: func() -> u32;")).unwrap_err();
        assert!(format!("{error:#}").contains('f'), "{error:#}");
    }

    #[test]
    fn other_bytes_are_refused() {
        assert!(encode(b"#!/bin/sh").is_err());
        assert!(imports(b"#!/bin/sh").is_err());
    }
}
