//! Classes of workers: those of one class are alike.

use switchyard_sdk::Catalog;
use switchyard_sdk::catalog::WorkerSpec;

use crate::menu::Menu;

/// The classes of a catalog's workers: those of one class are alike.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    /// By worker.
    pub(crate) of: Vec<usize>,
    /// By class: work per microsecond, 1 for the class that is fastest with every app.
    pub(crate) speeds: Vec<f64>,
}

/// The menus of all apps and the classes of workers.
///
/// # Errors
/// An app has more exits than a set holds.
pub(crate) fn of_catalog(catalog: &Catalog) -> Result<(Vec<Menu>, Classes), String> {
    let mut samples: Vec<WorkerSpec<'_>> = Vec::new();
    let mut of = Vec::new();
    for worker in catalog.workers() {
        let is_alike = |other: &WorkerSpec<'_>| {
            (other.kind(), other.memory_bytes, other.can)
                == (worker.kind(), worker.memory_bytes, worker.can)
        };
        of.push(samples.iter().position(is_alike).unwrap_or_else(|| {
            samples.push(worker);
            samples.len() - 1
        }));
    }
    let menus: Vec<Menu> = catalog
        .apps()
        .map(|app| Menu::new(catalog, app, &samples))
        .collect::<Result<_, _>>()?;
    let speeds = (0..samples.len()).map(|class| speed(&menus, class));
    let classes = Classes {
        speeds: speeds.collect(),
        of,
    };
    Ok((menus, classes))
}

/// Mean over the apps of the least latency on any class over that on this class; at least a thousandth.
fn speed(menus: &[Menu], class: usize) -> f64 {
    let least = |menu: &Menu, of: &dyn Fn(usize) -> bool| {
        let costs = menu.choices.iter().flat_map(|choice| {
            let costs = choice.costs.iter().enumerate();
            costs.filter(|(at, _)| of(*at)).map(|(_, cost)| cost)
        });
        costs
            .filter_map(|cost| cost.latencies_us.first().copied())
            .fold(f64::INFINITY, f64::min)
    };
    let ratios = menus.iter().filter_map(|menu| {
        let best_us = least(menu, &|_| true);
        best_us
            .is_finite()
            .then(|| best_us / least(menu, &|at| at == class))
    });
    let (sum, count) = ratios.fold((0.0, 0.0), |(sum, count), ratio| (sum + ratio, count + 1.0));
    if count > 0.0 {
        (sum / count).max(1e-3)
    } else {
        1.0
    }
}
