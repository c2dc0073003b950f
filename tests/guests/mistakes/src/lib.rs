//! A policy that passes every check, or makes the mistake that its setting `mistake` names.
//!
//! - `facts`: the variant for an app's requests on a worker
//! - `plan`: the plan without a mistake
//! - `apply`: changes the plan by the mistake

mod apply;
mod facts;
mod mistake;
mod plan;

use std::cell::{Cell, RefCell};

use guest_base::Subject;
use guest_base::contract::{Catalog, Plan, Window};

use facts::CatalogFacts;
use mistake::Mistake;

thread_local! {
    static FACTS: RefCell<CatalogFacts> = const { RefCell::new(CatalogFacts::new()) };
    static MISTAKE: Cell<Option<Mistake>> = const { Cell::new(None) };
    /// Windows so far: the state, for mistakes with state.
    static WINDOWS: Cell<u64> = const { Cell::new(0) };
    /// The plan of the previous window.
    static BEFORE: RefCell<Option<Plan>> = const { RefCell::new(None) };
}

/// The guest.
pub struct Mistakes;

impl Subject for Mistakes {
    const NAME: &'static str = "mistakes";

    fn configure(catalog: Catalog, settings: String) -> Result<(), String> {
        let chosen = Mistake::of(&settings)?;
        MISTAKE.set(chosen);
        match chosen {
            Some(Mistake::RefusesItsSettings) if settings.contains("\"tau\"") => {
                return Err("settings: tau: must be above 8".to_owned());
            }
            Some(Mistake::NeedsASetting) if !settings.contains("\"tau\"") => {
                return Err("settings: tau: is missing".to_owned());
            }
            Some(Mistake::KeepsTheFirstCatalog) if !FACTS.with_borrow(CatalogFacts::is_empty) => {
                return Ok(());
            }
            _ => {}
        }
        FACTS.set(CatalogFacts::of(&catalog));
        Ok(())
    }

    fn schedule(window: Window) -> Result<Plan, String> {
        WINDOWS.set(WINDOWS.get() + 1);
        FACTS.with_borrow(|facts| {
            let plan = plan::of(facts, &window);
            match MISTAKE.get() {
                None => Ok(plan),
                Some(Mistake::KeepsItsPlan) => {
                    // Decided now, returned one window later.
                    let late = BEFORE.replace(Some(plan));
                    Ok(late.unwrap_or_else(guest_base::empty_plan))
                }
                Some(mistake) => apply::apply(mistake, plan, facts, &window, WINDOWS.get()),
            }
        })
    }

    fn save() -> Vec<u8> {
        match MISTAKE.get() {
            Some(Mistake::RefusesItsState) => b"windows".to_vec(),
            Some(Mistake::SavesHalfItsState) => b"half".to_vec(),
            _ => Vec::new(),
        }
    }

    fn restore(state: Vec<u8>) -> Result<(), String> {
        match MISTAKE.get() {
            Some(Mistake::SavesHalfItsState) if state == b"half" => Ok(()),
            _ => Err(format!("state: {} bytes, not 8", state.len())),
        }
    }
}

guest_base::guest!(Mistakes);
