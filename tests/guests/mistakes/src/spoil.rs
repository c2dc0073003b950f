//! What each mistake makes of a good plan.

use std::hint::black_box;

use guest_base::contract::{Dispatch, Lane, Plan, Route, Window};
use guest_base::host::{Level, log};
use guest_base::{alone, empty_plan};

use crate::mistake::Mistake;
use crate::way::Yard;

pub(crate) fn spoil(
    mistake: Mistake,
    mut plan: Plan,
    yard: &Yard,
    window: &Window,
    windows: u64,
) -> Result<Plan, String> {
    let requests = &window.requests;
    match mistake {
        Mistake::PlansAnUnknownRequest => {
            if let Some(member) = plan.members.first_mut() {
                // A position where an id is meant.
                *member = 0;
            }
        }
        Mistake::PlansARequestTwice => plan.rejects.extend(plan.members.first()),
        Mistake::MembersWithoutDispatch => plan.members.extend(requests.id.last()),
        Mistake::FirstVariantForAll => each(&mut plan, |dispatch| {
            (dispatch.variant, dispatch.exit) = (0, Some(0));
            dispatch.to_stage = 1;
        }),
        Mistake::UnknownVariant => each(&mut plan, |d| d.variant = yard.variants() as u32),
        // Counted from 1.
        Mistake::UnknownExit => each(&mut plan, |d| d.exit = d.exit.map(|exit| exit + 1)),
        Mistake::CountsWorkersFromOne => each(&mut plan, |dispatch| dispatch.worker += 1),
        Mistake::FillsOneQueue => return Ok(all_on_one(yard, window)),
        Mistake::BatchTooLarge => return Ok(all_in_one(yard, window)),
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
            // The most urgent request, which is not there when nothing waits.
            black_box(requests.deadline[0]);
        }
        Mistake::SubtractsTimes => {
            for deadline in &requests.deadline {
                let slack = deadline.checked_sub(window.now);
                black_box(slack.unwrap_or_else(|| panic!("subtraction overflows")));
            }
        }
        Mistake::Loops => {
            // Until every request is placed, which never comes where there are too many.
            while plan.members.len() < requests.id.len() {
                black_box(&plan);
            }
        }
        Mistake::Grows => {
            // A list of every pair of requests, kept.
            let pairs = requests.id.len() * requests.id.len() * 16;
            Vec::leak(vec![1u8; pairs * 8]);
        }
        Mistake::LogsEveryRequest => {
            for id in &requests.id {
                log(Level::Info, &format!("looking at {id}"));
            }
        }
        // Whether a window is the second, the fourth: nowhere in its input.
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

/// One by one to the first worker, whatever waits there already.
fn all_on_one(yard: &Yard, window: &Window) -> Plan {
    let mut plan = empty_plan();
    for (&id, &app) in window.requests.id.iter().zip(&window.requests.app) {
        if let Some(way) = yard.way(0, app) {
            plan.members.push(id);
            plan.dispatches.push(Dispatch {
                variant: way.variant,
                to_stage: way.stages,
                exit: Some(way.exit),
                ..alone(0)
            });
        }
    }
    plan
}

/// All requests of the first one's app in one batch.
fn all_in_one(yard: &Yard, window: &Window) -> Plan {
    let mut plan = empty_plan();
    let requests = &window.requests;
    let idle = (0..yard.workers().min(window.workers.up.len()))
        .find(|&w| window.workers.up[w] == 1 && window.workers.running_variant[w] == u32::MAX);
    let fresh: Vec<usize> = (0..requests.id.len())
        .filter(|&i| requests.progress.iter().all(|p| p.index as usize != i))
        .collect();
    let (Some(worker), Some(&first)) = (idle, fresh.first()) else {
        return plan;
    };
    let app = requests.app[first];
    let Some(way) = yard.way(worker, app) else {
        return plan;
    };
    let members = fresh.iter().filter(|&&i| requests.app[i] == app);
    plan.members = members.map(|&i| requests.id[i]).collect();
    plan.dispatches.push(Dispatch {
        worker: worker as u32,
        variant: way.variant,
        to_stage: way.stages,
        exit: Some(way.exit),
        size: plan.members.len() as u32,
        ..alone(0)
    });
    plan
}
