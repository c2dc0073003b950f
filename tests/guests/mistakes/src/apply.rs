//! Changes a good plan by a mistake.

use std::hint::black_box;

use guest_base::contract::{Dispatch, Lane, Plan, Route, Window};
use guest_base::host::{Level, log};
use guest_base::{alone, empty_plan};

use crate::facts::CatalogFacts;
use crate::mistake::Mistake;

/// The plan with the mistake. `windows` is the number of windows so far.
pub(crate) fn apply(
    mistake: Mistake,
    mut plan: Plan,
    facts: &CatalogFacts,
    window: &Window,
    windows: u64,
) -> Result<Plan, String> {
    let requests = &window.requests;
    match mistake {
        Mistake::PlansAnUnknownRequest => {
            if let Some(member) = plan.members.first_mut() {
                // A position instead of an id.
                *member = 0;
            }
        }
        Mistake::PlansARequestTwice => plan.rejects.extend(plan.members.first()),
        Mistake::MembersWithoutDispatch => plan.members.extend(requests.id.last()),
        Mistake::FirstVariantForAll => each(&mut plan, |dispatch| {
            (dispatch.variant, dispatch.exit) = (0, Some(0));
            dispatch.to_stage = 1;
        }),
        Mistake::UnknownVariant => each(&mut plan, |d| d.variant = facts.variants() as u32),
        // Counts exits from 1.
        Mistake::UnknownExit => each(&mut plan, |d| d.exit = d.exit.map(|exit| exit + 1)),
        Mistake::CountsWorkersFromOne => each(&mut plan, |dispatch| dispatch.worker += 1),
        Mistake::FillsOneQueue => return Ok(all_on_one(facts, window)),
        Mistake::BatchTooLarge => return Ok(all_in_one(facts, window)),
        Mistake::RestartsHalfRun => each(&mut plan, |dispatch| dispatch.from_stage = 0),
        Mistake::AnswersWithoutEvidence => {
            let answers = requests.id.iter().filter(|id| !plan.members.contains(id));
            plan.answers = answers.copied().collect();
        }
        Mistake::WeightsAreShares => {
            let lane = |worker: u32| Lane {
                worker,
                variant: 0,
                exit: 0,
                weight: 50.0,
                min_batch: 1,
                max_batch: 1,
                capacity: 8,
            };
            let lanes = vec![lane(0), lane(1)];
            plan.routes.push(Route { app: 0, lanes });
        }
        Mistake::ForgetsRequests => return Ok(empty_plan()),
        Mistake::IndexesEmptyWindow => {
            // The most urgent request: an empty window has none.
            black_box(requests.deadline[0]);
        }
        Mistake::SubtractsTimes => {
            for deadline in &requests.deadline {
                let slack = deadline.checked_sub(window.now);
                black_box(slack.unwrap_or_else(|| panic!("subtraction overflows")));
            }
        }
        Mistake::Loops => {
            // Waits until every request has a place, which a large window never reaches.
            while plan.members.len() < requests.id.len() {
                black_box(&plan);
            }
        }
        Mistake::Grows => {
            // Keeps a list of all pairs of requests.
            let pairs = requests.id.len() * requests.id.len() * 16;
            Vec::leak(vec![1u8; pairs * 8]);
        }
        Mistake::LogsEveryRequest => {
            for id in &requests.id {
                log(Level::Info, &format!("looking at {id}"));
            }
        }
        // Depends on the number of windows so far, which no window contains.
        Mistake::HidesState | Mistake::SavesHalfItsState if windows.is_multiple_of(2) => {
            each(&mut plan, |dispatch| dispatch.place = 0);
        }
        Mistake::HidesState
        | Mistake::SavesHalfItsState
        | Mistake::KeepsItsPlan
        | Mistake::KeepsTheFirstCatalog
        | Mistake::NeedsASetting
        | Mistake::RefusesItsSettings
        | Mistake::RefusesItsState => {}
    }
    Ok(plan)
}

fn each(plan: &mut Plan, change: impl Fn(&mut Dispatch)) {
    plan.dispatches.iter_mut().for_each(change);
}

/// Each request alone to the first worker, without regard to its queue.
fn all_on_one(facts: &CatalogFacts, window: &Window) -> Plan {
    let mut plan = empty_plan();
    for (&id, &app) in window.requests.id.iter().zip(&window.requests.app) {
        if let Some(end) = facts.variant_for(0, app) {
            plan.members.push(id);
            plan.dispatches.push(Dispatch {
                variant: end.variant,
                to_stage: end.stages,
                exit: Some(end.exit),
                ..alone(0)
            });
        }
    }
    plan
}

/// All requests of the first request's app in one batch.
fn all_in_one(facts: &CatalogFacts, window: &Window) -> Plan {
    let mut plan = empty_plan();
    let requests = &window.requests;
    let idle = (0..facts.workers().min(window.workers.up.len()))
        .find(|&w| window.workers.up[w] == 1 && window.workers.running_variant[w] == u32::MAX);
    let fresh: Vec<usize> = (0..requests.id.len())
        .filter(|&i| requests.progress.iter().all(|p| p.index as usize != i))
        .collect();
    let (Some(worker), Some(&first)) = (idle, fresh.first()) else {
        return plan;
    };
    let app = requests.app[first];
    let Some(end) = facts.variant_for(worker, app) else {
        return plan;
    };
    let members = fresh.iter().filter(|&&i| requests.app[i] == app);
    plan.members = members.map(|&i| requests.id[i]).collect();
    plan.dispatches.push(Dispatch {
        worker: worker as u32,
        variant: end.variant,
        to_stage: end.stages,
        exit: Some(end.exit),
        size: plan.members.len() as u32,
        ..alone(0)
    });
    plan
}
