//! The costs of requests by their length, for the core.

use std::collections::BTreeMap;

use switchyard_core::cost::{Cost, CostCurve, CostPoint};
use switchyard_core::ids::{AppId, KindId, VariantId};
use switchyard_core::profile::Profile;
use switchyard_core::time::Micros;

use crate::schema::{LengthCell, ProfileFile};
use crate::table::CatalogNames;

impl ProfileFile {
    /// The cost curve of each app whose requests differ in length. An app has one, although its
    /// variants may differ a little: that of its first variant on the first kind that was measured.
    pub(crate) fn cost_curves(
        &self,
        names: CatalogNames<'_>,
        medians: &Profile,
    ) -> Vec<(AppId, CostCurve)> {
        let mut series: BTreeMap<(VariantId, KindId), Vec<&LengthCell>> = BTreeMap::new();
        for cell in &self.lengths {
            if let (Some((variant, _)), Some(kind)) = (
                names.variant(&cell.app, &cell.variant),
                names.kind(&cell.kind),
            ) {
                series.entry((variant, kind)).or_default().push(cell);
            }
        }
        let mut curves: Vec<(AppId, CostCurve)> = Vec::new();
        for ((id, kind), cells) in series {
            let variant = &names.variants[id.index()];
            if curves.iter().any(|(app, _)| *app == variant.app) {
                continue;
            }
            let cost = |us: u64| {
                let (stages, exit) = (variant.stages, variant.last_exit());
                medians.cost_of_latency(kind, id, stages, exit, Micros(us))
            };
            if let Some(curve) = curve(&cells, cost) {
                curves.push((variant.app, curve));
            }
        }
        curves
    }
}

/// None without a latency of the typical length. It costs 1; the others are seen from there, because
/// the machine may have been slower when the batches were measured.
fn curve(cells: &[&LengthCell], cost: impl Fn(u64) -> Option<Cost>) -> Option<CostCurve> {
    let typical = cells.iter().find(|cell| cell.is_typical)?;
    let scale = cost(typical.p50_us)?.as_f64();
    let points = cells.iter().map(|cell| {
        let rows = match cell.is_typical {
            true => 1.0,
            false => cost(cell.p50_us)?.as_f64() / scale,
        };
        Some(CostPoint {
            length: cell.length,
            cost: Cost::from_f64(rows),
        })
    });
    Some(CostCurve::new(points.collect::<Option<Vec<_>>>()?))
}
