//! Reads an artifact in `configure`, where it may, and in `schedule`, where it may not.

use std::cell::{Cell, RefCell};

use guest_base::contract::{Catalog, Plan, Window};
use guest_base::host::{ArtifactError, read_artifact};
use guest_base::{Subject, empty_plan};

thread_local! {
    static NAME: RefCell<String> = const { RefCell::new(String::new()) };
    static LENGTH: Cell<usize> = const { Cell::new(0) };
}

/// The guest.
pub struct AsksAtWrongTime;

impl Subject for AsksAtWrongTime {
    const NAME: &'static str = "asks-at-wrong-time";

    fn configure(_catalog: Catalog, settings: String) -> Result<(), String> {
        // Of `{"artifact":"NAME"}`, the last string.
        let name = settings.rsplit('"').nth(1).unwrap_or("table.bin");
        LENGTH.set(read(name)?.len());
        NAME.set(name.to_owned());
        Ok(())
    }

    fn schedule(_window: Window) -> Result<Plan, String> {
        NAME.with_borrow(|name| read(name))?;
        Ok(empty_plan())
    }

    /// Name and length of the artifact, so that a test can compare the length.
    fn save() -> Vec<u8> {
        NAME.with_borrow(|name| format!("{name} {}", LENGTH.get()).into_bytes())
    }
}

fn read(name: &str) -> Result<Vec<u8>, String> {
    read_artifact(name).map_err(|e| match e {
        ArtifactError::NotFound => format!("artifact {name}: not found"),
        ArtifactError::Forbidden => format!("artifact {name}: forbidden"),
        ArtifactError::TooLarge(bytes) => format!("artifact {name}: too large, {bytes} bytes"),
        ArtifactError::Unreadable(why) => format!("artifact {name}: unreadable, {why}"),
    })
}

guest_base::guest!(AsksAtWrongTime);
