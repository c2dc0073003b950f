//! The mistakes and their names.

/// One mistake of policy authors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    AnswersWithoutEvidence,
    BatchTooLarge,
    CountsWorkersFromOne,
    FillsOneQueue,
    FirstVariantForAll,
    ForgetsRequests,
    Grows,
    HidesState,
    IndexesEmptyWindow,
    KeepsItsPlan,
    KeepsTheFirstCatalog,
    LogsEveryRequest,
    Loops,
    MembersWithoutDispatch,
    NeedsASetting,
    PlansARequestTwice,
    PlansAnUnknownRequest,
    RefusesItsSettings,
    RefusesItsState,
    RestartsHalfRun,
    SavesHalfItsState,
    SubtractsTimes,
    UnknownExit,
    UnknownVariant,
    WeightsAreShares,
}

const NAMES: [(&str, Mistake); 25] = [
    ("answers-without-evidence", Mistake::AnswersWithoutEvidence),
    ("batch-too-large", Mistake::BatchTooLarge),
    ("counts-workers-from-one", Mistake::CountsWorkersFromOne),
    ("fills-one-queue", Mistake::FillsOneQueue),
    ("first-variant-for-all", Mistake::FirstVariantForAll),
    ("forgets-requests", Mistake::ForgetsRequests),
    ("grows", Mistake::Grows),
    ("hides-state", Mistake::HidesState),
    ("indexes-empty-window", Mistake::IndexesEmptyWindow),
    ("keeps-its-plan", Mistake::KeepsItsPlan),
    ("keeps-the-first-catalog", Mistake::KeepsTheFirstCatalog),
    ("logs-every-request", Mistake::LogsEveryRequest),
    ("loops", Mistake::Loops),
    ("members-without-dispatch", Mistake::MembersWithoutDispatch),
    ("needs-a-setting", Mistake::NeedsASetting),
    ("plans-a-request-twice", Mistake::PlansARequestTwice),
    ("plans-an-unknown-request", Mistake::PlansAnUnknownRequest),
    ("refuses-its-settings", Mistake::RefusesItsSettings),
    ("refuses-its-state", Mistake::RefusesItsState),
    ("restarts-half-run", Mistake::RestartsHalfRun),
    ("saves-half-its-state", Mistake::SavesHalfItsState),
    ("subtracts-times", Mistake::SubtractsTimes),
    ("unknown-exit", Mistake::UnknownExit),
    ("unknown-variant", Mistake::UnknownVariant),
    ("weights-are-shares", Mistake::WeightsAreShares),
];

impl Mistake {
    /// The mistake that the settings name: `{"mistake":"NAME"}`, JSON without spaces.
    pub(crate) fn of(settings: &str) -> Result<Option<Self>, String> {
        let Some((_, rest)) = settings.split_once("\"mistake\":\"") else {
            return Ok(None);
        };
        let name = rest.split('"').next().unwrap_or_default();
        let found = NAMES.iter().find(|(known, _)| *known == name);
        let (_, mistake) = found.ok_or_else(|| format!("settings: mistake: no {name}"))?;
        Ok(Some(*mistake))
    }
}
