//! The rules that hold after every event.

use switchyard_core::cost::Cost;
use switchyard_core::event::Launch;
use switchyard_core::time::{Micros, Time};

use super::bench::Bench;
use super::pool::BATCH_MAX;
use super::violation::{Rule, Violation, require};
use super::world::World;

/// Time that a request may wait beyond deadline and patience while a worker is idle: a few calls of a
/// policy that are cut at the end of their budget.
pub(super) const SLACK: Micros = Micros::from_millis(100);

/// A request that costs more is a long one.
const LONG: Cost = Cost::whole(4);

/// Most requests in the lanes of a worker: three lanes of one plan, and as many of another app.
const LANES_MAX: usize = 6 * 16;

/// Checks everything but launches.
pub(super) fn check(world: &World<'_>) -> Result<(), Violation> {
    conservation(world)?;
    bounds(world)?;
    release(world)?;
    check_waiting(world)?;
    fallback(world)?;
    if let Some(detail) = world.mischief.accused() {
        return Err(Violation::new(Rule::Window, world.now, detail));
    }
    let (wakeup, now) = (world.scheduler.next_wakeup(), world.now);
    require(wakeup.is_none_or(|at| at > now), Rule::Wakeup, now, || {
        let at = wakeup.unwrap_or(Time::NEVER).0;
        format!("nothing is left to do, and the next wake-up is at {at} us")
    })
}

fn conservation(world: &World<'_>) -> Result<(), Violation> {
    let (scheduler, books) = (&world.scheduler, &world.books);
    let ledger = scheduler.ledger();
    let (live, open) = (scheduler.live(), books.open.len());
    let holds = scheduler.imbalance() == 0
        && live == open
        && ledger.accepted() == books.newest
        && ledger.ended() == books.answers;
    require(holds, Rule::Conservation, world.now, || {
        format!(
            "accepted {} of {}, ended {}, answered {}, live {live}, without answer {open}",
            ledger.accepted(),
            books.newest,
            ledger.ended(),
            books.answers
        )
    })
}

fn bounds(world: &World<'_>) -> Result<(), Violation> {
    let (pool, now) = (&world.pool, world.now);
    // Requests of lost or revoked batches are pending again, also beyond `pending_max`.
    let batches = (pool.queue_max + pool.outstanding + 2) * BATCH_MAX + pool.parked_max;
    let elsewhere = world.benches.len() * (batches as usize + LANES_MAX);
    let (live, most) = (world.scheduler.live(), pool.pending_max + elsewhere);
    require(live <= most, Rule::Bounds, now, || {
        format!("{live} requests are live, at most {most} have a place")
    })?;
    let kept = world.scheduler.history().iter().count();
    require(kept <= pool.config().history, Rule::Bounds, now, || {
        format!("{kept} decisions are kept")
    })?;
    for (worker, bench) in world.worker_ids().zip(&world.benches) {
        let parked = bench.parked.len();
        let most = (world.scheduler.catalog().worker(worker)).map_or(0, |spec| spec.parked_max);
        require(parked <= most as usize, Rule::Bounds, now, || {
            format!(
                "{parked} requests are parked on worker {}, at most {most} may be",
                worker.0
            )
        })?;
    }
    Ok(())
}

fn release(world: &World<'_>) -> Result<(), Violation> {
    let open = &world.books.open;
    for (worker, bench) in world.worker_ids().zip(&world.benches) {
        let ended = bench.parked.iter().find(|id| !open.contains_key(id));
        if let Some(id) = ended {
            let detail = format!("worker {} still holds request {}", worker.0, id.0);
            return Err(Violation::new(Rule::Release, world.now, detail));
        }
    }
    Ok(())
}

/// Requests wait no longer than they may. Holds at any time, also between events.
pub(super) fn check_waiting(world: &World<'_>) -> Result<(), Violation> {
    let most = world.pool.patience() + SLACK;
    let is_long = |since: Time| since + most < world.now;
    if !world.idle_since.is_some_and(is_long) {
        return Ok(());
    }
    let waiting = world
        .books
        .due(world.now)
        .find(|&(_, deadline)| is_long(deadline));
    match waiting {
        None => Ok(()),
        Some((id, deadline)) => Err(Violation::new(
            Rule::Progress,
            world.now,
            format!(
                "request {} was due at {} us and waits, while all workers are idle",
                id.0, deadline.0
            ),
        )),
    }
}

/// Under the native fallback a request starts at once, unless its variant or activations need a certain
/// worker, or it is a long one, whose stages the fallback spreads over the time to its deadline.
fn fallback(world: &World<'_>) -> Result<(), Violation> {
    let (scheduler, now) = (&world.scheduler, world.now);
    let is_plain = !world.pool.second_is_small && !world.pool.second_is_whole;
    let is_idle = world.idle_since.is_some_and(|since| since < now);
    let pending = scheduler.pending();
    let is_native = *scheduler.policy_label() == *world.native;
    let has_long = world.books.open.values().any(|open| open.cost > LONG);
    let is_left = is_plain && !has_long && is_idle && pending > 0 && is_native;
    require(!is_left, Rule::Fallback, now, || {
        format!(
            "{pending} requests are pending, while the fallback serves and all workers are idle"
        )
    })
}

/// A batch may start on its worker.
pub(super) fn check_launch(world: &World<'_>, launch: &Launch) -> Result<(), Violation> {
    let (worker, now) = (launch.worker, world.now);
    let batch = launch.batch.0;
    let holds = |holds: bool, what: &str| {
        require(holds, Rule::OneBatch, now, || {
            format!("batch {batch} on worker {}: {what}", worker.0)
        })
    };
    let bench = &world.benches[worker.index()];
    let has = bench.has().count() + bench.hung.len();
    let spec = world.scheduler.catalog().worker(worker);
    let most = spec.map_or(1, |spec| spec.outstanding as usize);
    holds(has < most, "the worker has as many as it may have")?;
    holds(world.scheduler.is_up(worker), "the worker is not up")?;
    let size = launch.requests.len();
    holds(
        (1..=BATCH_MAX as usize).contains(&size),
        "its size is out of range",
    )?;
    let catalog = world.scheduler.catalog();
    let known = catalog.variant(launch.variant).zip(catalog.worker(worker));
    let Some((variant, spec)) = known else {
        return holds(false, "its variant or worker is unknown");
    };
    let is_range = launch.from_stage > 0 || launch.exit.is_none();
    let is_early = launch.exit.is_some_and(|exit| exit != variant.last_exit());
    let can_run = variant.memory_bytes <= spec.memory_bytes
        && (spec.can.stage_ranges || !is_range)
        && (spec.can.exits || !is_early)
        && (spec.can.parking || launch.exit.is_some());
    holds(can_run, "the worker cannot run it")?;
    let ends = launch.exit.and_then(|exit| variant.exit(exit));
    let is_whole = launch.from_stage < launch.to_stage
        && launch.to_stage <= variant.stages
        && launch.exit.is_none() == ends.is_none()
        && ends.is_none_or(|exit| exit.after_stage == launch.to_stage);
    holds(is_whole, "its stages and its exit do not fit")?;
    for id in &launch.requests {
        let is_of_app = world.books.open.get(id).is_none_or(|open| {
            let is_its = open.pinned.is_none_or(|pinned| pinned == launch.variant);
            open.app == variant.app && is_its
        });
        holds(
            is_of_app,
            "a request is of another app or pinned to another variant",
        )?;
        holds(world.books.open.contains_key(id), "a request has ended")?;
        let mut elsewhere = world.benches.iter().flat_map(Bench::has);
        let is_elsewhere = elsewhere.any(|other| other.requests.contains(id));
        holds(!is_elsewhere, "a request runs twice at once")?;
        let holders = world.worker_ids().zip(&world.benches);
        let holders = holders.filter(|(_, bench)| bench.parked.contains(id));
        let needed = (launch.from_stage > 0).then_some(worker);
        let is_there = holders.map(|(holder, _)| holder).eq(needed);
        holds(is_there, "activations are not where it needs them")?;
    }
    Ok(())
}
