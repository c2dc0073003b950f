//! Outlooks worked out by hand, on the made catalog.

use switchyard_core::policy::WindowFields;
use switchyard_policy::trial;

use super::*;

/// One request of the app `three`, whose smallest variant knows its first class best, and
/// one of `two`.
fn test_bed() -> (Catalog, Window) {
    let mut catalog = trial::catalog();
    catalog.variants[0].exits[0].recall = vec![1.0, 0.5, 0.0];
    let sights = WindowFields {
        evidence: true,
        ..WindowFields::default()
    };
    let mut window = trial::window_of(&catalog, sights, 2);
    window.requests.evidence_index = vec![0];
    window.requests.evidence_counts = vec![4, 1, 0];
    (catalog, window)
}

/// The smallest variant alone on the second worker: 1.25 ms.
fn small(place: u32) -> Dispatch {
    Dispatch {
        worker: WorkerId(1),
        variant: VariantId(0),
        from_stage: 0,
        to_stage: 1,
        exit: Some(ExitId(0)),
        place,
        size: 0,
    }
}

fn plan(window: &Window, dispatch: Dispatch) -> Plan {
    let mut plan = Plan::default();
    plan.dispatch(dispatch, [RequestId(window.requests.id[0])]);
    plan
}

fn first(catalog: &Catalog, window: &Window, plan: &Plan, residents: bool) -> (u64, f64) {
    let outlooks = Judge::new(catalog, window, residents).outlooks(plan);
    assert_eq!(outlooks[1].fate, Fate::Waits);
    assert_eq!(outlooks[1].utility, None);
    let end = outlooks[0].end.map(|end| end.since(window.now).0);
    let utility = outlooks[0].utility.unwrap_or(f64::NAN);
    (end.unwrap_or(u64::MAX), (utility * 1e6).round() / 1e6)
}

/// Jeffreys and counts of (4, 1, 0): theta = (4.5, 1.5, 0.5) / 6.5, and with recalls of
/// (1, 0.5, 0) an accuracy of 5.25 / 6.5.
const EXPECTED: f64 = 0.807692;

#[test]
fn a_run_is_worth_its_expected_accuracy_given_the_evidence() {
    let (catalog, mut window) = test_bed();
    let planned = plan(&window, small(0));
    let seen = first(&catalog, &window, &planned, false);
    assert_eq!(seen, (1_250, EXPECTED));
    // Without evidence the prior decides: a third of each class.
    window.requests.evidence_index.clear();
    window.requests.evidence_counts.clear();
    let seen = first(&catalog, &window, &planned, false);
    assert_eq!(seen, (1_250, 0.5));
}

#[test]
fn lateness_takes_its_share() {
    let (catalog, mut window) = test_bed();
    window.requests.arrival[0] = window.now.0;
    window.requests.deadline[0] = window.now.0 + 1_000;
    let planned = plan(&window, small(0));
    let (end, utility) = first(&catalog, &window, &planned, false);
    // Sigmoid at x = 0.25: 1 / 28 is lost.
    assert_eq!(end, 1_250);
    assert!(
        (utility - 5.25 / 6.5 * 27.0 / 28.0).abs() < 1e-6,
        "{utility}"
    );
}

#[test]
fn a_batch_ends_after_the_batches_before_its_place() {
    let (catalog, mut window) = test_bed();
    window.workers.queued[1] = 2;
    window.workers.busy_until[1] = window.now.0 + 1_000;
    window.workers.free_at[1] = window.now.0 + 5_000;
    let ends = |place| {
        let planned = plan(&window, small(place));
        first(&catalog, &window, &planned, false).0
    };
    // Two wait, for 2 ms each.
    assert_eq!([0, 1, 2, u32::MAX].map(ends), [2_250, 4_250, 6_250, 6_250]);
}

#[test]
fn a_variant_that_is_not_resident_is_loaded_once() {
    let (catalog, mut window) = test_bed();
    window.residents.clear();
    let planned = plan(&window, small(0));
    // 2 MiB take 2 ms.
    let (end, _) = first(&catalog, &window, &planned, true);
    assert_eq!(end, 3_250);
    let mut twice = planned.clone();
    twice.dispatch(small(u32::MAX), [RequestId(window.requests.id[1])]);
    let outlooks = Judge::new(&catalog, &window, true).outlooks(&twice);
    assert_eq!(outlooks[1].end, Some(window.now + Micros(4_500)));
}

#[test]
fn rejected_answered_and_parked_requests_have_their_worth() {
    let (catalog, window) = test_bed();
    let id = RequestId(window.requests.id[0]);
    let mut planned = Plan::default();
    planned.rejects.push(id);
    assert_eq!(first(&catalog, &window, &planned, false), (0, 0.0));
    planned.clear();
    planned.answers.push(id);
    assert_eq!(first(&catalog, &window, &planned, false), (0, 0.6));
    // Parked behind its first stage, it has no answer yet.
    let part = Dispatch {
        variant: VariantId(1),
        exit: None,
        ..small(0)
    };
    let planned = plan(&window, part);
    let outlooks = Judge::new(&catalog, &window, false).outlooks(&planned);
    assert_eq!(outlooks[0].utility, None);
    assert_eq!(Worth::of(&outlooks), Worth::default());
}
