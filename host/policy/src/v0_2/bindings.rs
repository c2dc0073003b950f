//! Generated from `wit/0.2`, where the documentation is.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::use_self,
    clippy::semicolon_if_nothing_returned,
    clippy::redundant_closure_for_method_calls,
    clippy::unwrap_used
)]

wasmtime::component::bindgen!({
    path: "../../wit/0.2",
    world: "policy",
    // Columns go in as slices, so that a window crosses without a copy on this side.
    ownership: Borrowing { duplicate_if_necessary: true },
});

pub(super) use exports::switchyard::policy::scheduling as wit;
