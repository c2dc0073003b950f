//! What `wit-bindgen` makes of the contract: the types as they cross. Policies seldom need
//! them; the views in [`crate::catalog`], [`crate::window`] and [`crate::plan`] read and
//! write them.

wit_bindgen::generate!({
    path: "../../wit/0.1",
    world: "policy",
    pub_export_macro: true,
    default_bindings_module: "switchyard_sdk::bindings",
    generate_unused_types: true,
    additional_derives: [Clone, PartialEq],
});
