//! The parts of which hostile policies make their plans.

use rand::Rng;
use rand_pcg::Pcg64;
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Lane, Plan, Route};
use switchyard_core::window::{PlacedState, Window};

fn below(random: &mut Pcg64, end: usize) -> u32 {
    random.random_range(0..end.max(1) as u32)
}

/// Batches of one for pending requests, anywhere; parked requests go on where they are.
pub(super) fn sensible(random: &mut Pcg64, catalog: &Catalog, window: &Window, plan: &mut Plan) {
    for index in 0..window.len() {
        let id = RequestId(window.requests.id[index]);
        let mut parked = window.requests.progress.iter();
        if let Some(at) = parked.find(|progress| progress.index as usize == index) {
            dispatch(
                random,
                catalog,
                plan,
                id,
                (at.worker, at.variant, at.stages_run),
            );
            continue;
        }
        let app = AppId(window.requests.app[index]);
        let has_evidence = window.requests.evidence_index.contains(&(index as u32));
        match below(random, 12) {
            0 => {}
            1 => plan.rejects.push(id),
            2 if has_evidence && app == AppId(0) => plan.answers.push(id),
            _ => {
                let variant = variant_of(random, catalog, app);
                let worker = WorkerId(below(random, window.workers.up.len()));
                dispatch(random, catalog, plan, id, (worker, variant, 0));
            }
        }
    }
}

fn variant_of(random: &mut Pcg64, catalog: &Catalog, app: AppId) -> VariantId {
    let variants: Vec<_> = catalog.variants_of(app).map(|(id, _)| id).collect();
    let at = below(random, variants.len()) as usize;
    variants.get(at).copied().unwrap_or(VariantId(0))
}

fn dispatch(
    random: &mut Pcg64,
    catalog: &Catalog,
    plan: &mut Plan,
    id: RequestId,
    (worker, variant, from_stage): (WorkerId, VariantId, u32),
) {
    let Some(of) = catalog.variant(variant) else {
        return;
    };
    let (mut from, mut to) = (from_stage, random.random_range(from_stage + 1..=of.stages));
    if catalog
        .worker(worker)
        .is_some_and(|spec| !spec.can.stage_ranges)
    {
        (from, to) = (0, of.stages);
    }
    let exit = of.exits.iter().position(|exit| exit.after_stage == to);
    let batch = Dispatch {
        worker,
        variant,
        from_stage: from,
        to_stage: to,
        exit: exit.map(|exit| ExitId(exit as u32)),
        place: below(random, 6),
        size: 0,
    };
    plan.dispatch(batch, [id]);
}

/// Each request runs the first stage of the large variant and is parked for ever.
pub(super) fn park(catalog: &Catalog, window: &Window, plan: &mut Plan) {
    let (variant, worker) = (VariantId(1), WorkerId(0));
    let spec = catalog.worker(worker);
    let room = spec.map_or(0, |spec| spec.parked_max.min(spec.queue_max));
    let is_up = window.workers.up.first() == Some(&1);
    let taken = window.workers.parked.first().copied().unwrap_or_default()
        + window.workers.queued.first().copied().unwrap_or_default();
    if !is_up {
        return;
    }
    let progress = &window.requests.progress;
    let fresh = (0..window.len()).filter(|&index| {
        let is_fresh = !progress.iter().any(|at| at.index as usize == index);
        is_fresh && window.requests.app[index] == 0
    });
    for index in fresh.take(room.saturating_sub(taken) as usize) {
        let batch = Dispatch {
            worker,
            variant,
            from_stage: 0,
            to_stage: 2,
            exit: None,
            place: u32::MAX,
            size: 0,
        };
        plan.dispatch(batch, [RequestId(window.requests.id[index])]);
    }
}

/// Takes queued batches back, about one in `n`.
pub(super) fn revoke(random: &mut Pcg64, window: &Window, plan: &mut Plan, n: u32) {
    for row in 0..window.placed.id.len() {
        let batch = BatchId(window.placed.batch[row]);
        let is_queued = window.placed.state[row] == PlacedState::Queued as u8;
        if is_queued && random.random_ratio(1, n) && !plan.revokes.contains(&batch) {
            plan.revokes.push(batch);
        }
    }
}

/// A route over up to three lanes; now and then one with a lane twice, which is refused.
pub(super) fn route(random: &mut Pcg64, catalog: &Catalog, min_batch: u32) -> Route {
    let app = AppId(below(random, catalog.apps.len()));
    let lanes = below(random, 4);
    let workers = catalog.workers.len() as u32;
    let variant = variant_of(random, catalog, app);
    let mut lane = |lane: u32| Lane {
        worker: WorkerId(lane % workers),
        variant: match lane >= workers {
            true => variant_of(random, catalog, app),
            false => variant,
        },
        exit: ExitId(0),
        weight: 1.0 / f64::from(lanes),
        min_batch,
        max_batch: min_batch.max(4),
        capacity: min_batch.max(4) + random.random_range(0..8),
    };
    Route {
        app,
        lanes: (0..lanes).map(&mut lane).collect(),
    }
}

/// Numbers from anywhere: unknown ids, ended requests, one request twice, impossible stages.
pub(super) fn nonsense(random: &mut Pcg64, catalog: &Catalog, window: &Window, plan: &mut Plan) {
    let ids = &window.requests.id;
    for _ in 0..random.random_range(0..5) {
        let size = below(random, 3);
        plan.dispatches.push(Dispatch {
            worker: WorkerId(below(random, 8)),
            variant: VariantId(below(random, 8)),
            from_stage: below(random, 4),
            to_stage: below(random, 5),
            exit: random.random_bool(0.5).then(|| ExitId(below(random, 3))),
            place: random.random(),
            size,
        });
        for _ in 0..below(random, 4) {
            let id = match ids.is_empty() {
                true => random.random_range(0..500),
                false => ids[random.random_range(0..ids.len())],
            };
            plan.members.push(RequestId(id));
        }
    }
    let newest = ids.last().copied().unwrap_or(50);
    for list in [&mut plan.rejects, &mut plan.answers] {
        if random.random_ratio(1, 3) {
            list.push(RequestId(random.random_range(0..newest + 10)));
        }
    }
    if random.random_ratio(1, 3) {
        plan.revokes.push(BatchId(random.random_range(0..200)));
    }
    if random.random_ratio(1, 3) {
        let mut route = route(random, catalog, 1);
        route.app = AppId(below(random, 4));
        for lane in &mut route.lanes {
            lane.weight = random.random_range(-1.0..2.0);
        }
        plan.routes.push(route);
    }
}
