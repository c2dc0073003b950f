//! Routes every app into one lane of worker 0 that waits for a full batch of its first variant.

use std::cell::RefCell;

use guest_base::contract::{Catalog, Lane, Plan, Route, Window};
use guest_base::{Subject, empty_plan};

thread_local! {
    static ROUTES: RefCell<Vec<Route>> = const { RefCell::new(Vec::new()) };
}

/// The guest.
pub struct Lanes;

impl Subject for Lanes {
    const NAME: &'static str = "lanes";

    fn configure(catalog: Catalog, _settings: String) -> Result<(), String> {
        let routes = (0u32..).zip(&catalog.apps).map(|(app, _)| {
            let at = catalog.variants.iter().position(|v| v.app == app)?;
            let variant = &catalog.variants[at];
            let lane = Lane {
                worker: 0,
                variant: at as u32,
                exit: variant.exits.len().checked_sub(1)? as u32,
                weight: 1.0,
                min_batch: variant.max_batch,
                max_batch: variant.max_batch,
                capacity: 4 * variant.max_batch,
            };
            Some(Route {
                app,
                lanes: vec![lane],
            })
        });
        let routes: Option<Vec<Route>> = routes.collect();
        ROUTES.set(routes.ok_or("catalog.variants: an app has none")?);
        Ok(())
    }

    fn schedule(_window: Window) -> Result<Plan, String> {
        let mut plan = empty_plan();
        plan.routes = ROUTES.take();
        Ok(plan)
    }
}

guest_base::guest!(Lanes);
