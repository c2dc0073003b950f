//! A policy that passes every check, with one mistake, chosen by the setting `mistake`.
//!
//! - `way`: how an app's requests are run on a worker
//! - `plan`: the plan without a mistake
//! - `spoil`: what each mistake makes of it

mod mistake;
mod plan;
mod spoil;
mod way;

use std::cell::{Cell, RefCell};

use guest_base::Subject;
use guest_base::contract::{Catalog, Plan, Window};

use mistake::Mistake;
use way::Yard;

thread_local! {
    static YARD: RefCell<Yard> = const { RefCell::new(Yard::new()) };
    static MISTAKE: Cell<Option<Mistake>> = const { Cell::new(None) };
    /// Windows so far: state, for the mistakes that are about state.
    static WINDOWS: Cell<u64> = const { Cell::new(0) };
    /// The plan of the window before.
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
            // The catalog that came first is kept.
            Some(Mistake::KeepsTheFirstCatalog) if YARD.with_borrow(|yard| !yard.is_empty()) => {
                return Ok(());
            }
            _ => {}
        }
        YARD.set(Yard::of(&catalog));
        Ok(())
    }

    fn schedule(window: Window) -> Result<Plan, String> {
        WINDOWS.set(WINDOWS.get() + 1);
        YARD.with_borrow(|yard| {
            let plan = plan::of(yard, &window);
            match MISTAKE.get() {
                None => Ok(plan),
                Some(Mistake::KeepsItsPlan) => {
                    // Decided now, handed over one window later.
                    let late = BEFORE.replace(Some(plan));
                    Ok(late.unwrap_or_else(guest_base::empty_plan))
                }
                Some(mistake) => spoil::spoil(mistake, plan, yard, &window, WINDOWS.get()),
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
