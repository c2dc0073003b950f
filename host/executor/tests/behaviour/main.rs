//! What the executor promises to the rest of the host, shown on tiny hand-made models.
#![allow(clippy::unwrap_used)]

mod cache;
mod faults;
mod import;
mod manifest;
mod measure;
mod profile;
mod reload;
mod staged;
mod synthetic;
mod text;
#[path = "../../../../models/tests/common/text.rs"]
mod text_zoo;
mod toy;
mod worker;
