//! Versions that latencies depend on.

use std::collections::BTreeMap;

/// The versions of `switchyard`, `candle` and `rustc` that this program was built with, for
/// [`Provenance::versions`](switchyard_profile::Provenance::versions).
pub fn versions() -> BTreeMap<String, String> {
    [
        ("switchyard", env!("CARGO_PKG_VERSION")),
        ("candle", env!("SWITCHYARD_CANDLE")),
        ("rustc", env!("SWITCHYARD_RUSTC")),
    ]
    .map(|(name, version)| (name.to_owned(), version.to_owned()))
    .into()
}
