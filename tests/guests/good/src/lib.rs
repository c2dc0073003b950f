//! Dispatches each request alone to worker 0, first come first served.

use std::cell::{Cell, RefCell};

use guest_base::contract::{Catalog, Dispatch, Plan, Window};
use guest_base::{Subject, alone, empty_plan};

/// The first variant of an app, to its last exit.
#[derive(Clone, Copy)]
struct FirstVariant {
    variant: u32,
    to_stage: u32,
    exit: u32,
}

thread_local! {
    /// By app.
    static VARIANTS: RefCell<Vec<FirstVariant>> = const { RefCell::new(Vec::new()) };
    static WINDOWS: Cell<u64> = const { Cell::new(0) };
}

/// The guest.
pub struct Good;

impl Subject for Good {
    const NAME: &'static str = "good";

    fn configure(catalog: Catalog, settings: String) -> Result<(), String> {
        if settings.contains("\"refuse\"") {
            return Err("settings.refuse: asked to refuse".to_owned());
        }
        let variants = (0u32..).zip(&catalog.apps).map(|(app, _)| {
            let variant = catalog.variants.iter().position(|v| v.app == app)?;
            let stages = catalog.variants[variant].stages;
            let exit = catalog.variants[variant].exits.len().checked_sub(1)?;
            Some(FirstVariant {
                variant: variant as u32,
                to_stage: stages,
                exit: exit as u32,
            })
        });
        let variants: Option<Vec<FirstVariant>> = variants.collect();
        VARIANTS.set(variants.ok_or("catalog.variants: an app has none")?);
        Ok(())
    }

    fn schedule(window: Window) -> Result<Plan, String> {
        WINDOWS.set(WINDOWS.get() + 1);
        let mut plan = empty_plan();
        VARIANTS.with_borrow(|variants| {
            plan.dispatches
                .extend(window.requests.app.iter().map(|app| {
                    let first = variants[*app as usize];
                    Dispatch {
                        variant: first.variant,
                        to_stage: first.to_stage,
                        exit: Some(first.exit),
                        ..alone(0)
                    }
                }));
        });
        plan.members = window.requests.id;
        Ok(plan)
    }

    fn save() -> Vec<u8> {
        WINDOWS.get().to_le_bytes().to_vec()
    }

    fn restore(state: Vec<u8>) -> Result<(), String> {
        let bytes = state
            .try_into()
            .map_err(|state: Vec<u8>| format!("state: {} bytes, not 8", state.len()))?;
        WINDOWS.set(u64::from_le_bytes(bytes));
        Ok(())
    }
}

guest_base::guest!(Good);
