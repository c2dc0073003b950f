//! Each request alone, first come first served, to worker 0.

use std::cell::{Cell, RefCell};

use guest_base::contract::{Catalog, Dispatch, Plan, Window};
use guest_base::{Subject, alone, empty_plan};

/// How an app's requests are run: to the end of its first variant.
#[derive(Clone, Copy)]
struct Way {
    variant: u32,
    to_stage: u32,
    exit: u32,
}

thread_local! {
    static WAYS: RefCell<Vec<Way>> = const { RefCell::new(Vec::new()) };
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
        let ways = (0u32..).zip(&catalog.apps).map(|(app, _)| {
            let variant = catalog.variants.iter().position(|v| v.app == app)?;
            let stages = catalog.variants[variant].stages;
            let exit = catalog.variants[variant].exits.len().checked_sub(1)?;
            Some(Way {
                variant: variant as u32,
                to_stage: stages,
                exit: exit as u32,
            })
        });
        let ways: Option<Vec<Way>> = ways.collect();
        WAYS.set(ways.ok_or("catalog.variants: an app has none")?);
        Ok(())
    }

    fn schedule(window: Window) -> Result<Plan, String> {
        WINDOWS.set(WINDOWS.get() + 1);
        let mut plan = empty_plan();
        WAYS.with_borrow(|ways| {
            plan.dispatches
                .extend(window.requests.app.iter().map(|app| {
                    let way = ways[*app as usize];
                    Dispatch {
                        variant: way.variant,
                        to_stage: way.to_stage,
                        exit: Some(way.exit),
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
