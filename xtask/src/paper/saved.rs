//! The workers that a policy saves: the share of them without which it is as good as another policy.
//!
//! At each number of workers N of the sweep `workers=N`, the other policy reaches a value of the
//! metric. The saving is `1 - n / N`, where n is the least number in the sweep with which the policy
//! reaches that value. As in RAMSIS section 7.1, only numbers count with which at most 5 % of the
//! requests violate their deadline.

use std::collections::BTreeMap;

use super::results::Results;

/// Highest share of violations of a number that counts.
const VIOLATIONS_MAX: f64 = 0.05;

/// By number of workers: the metric, none if too many requests are late.
type ByWorkers = BTreeMap<u64, Option<f64>>;

/// The saving at each number of workers of the other policy, for one seed; the groups are the points
/// without their `workers=N`.
pub(super) fn savings(
    results: &Results,
    metric: &str,
    [policy, other]: [&str; 2],
    seed: usize,
) -> Result<Vec<f64>, String> {
    let own = by_group(results, metric, policy, seed)?;
    let other = by_group(results, metric, other, seed)?;
    let mut savings = Vec::new();
    for (group, other) in &other {
        let own = own.get(group).ok_or("both policies need the same points")?;
        for (&workers, &reached) in other {
            let Some(reached) = reached else { continue };
            let enough = own
                .iter()
                .find(|(_, value)| value.is_some_and(|v| v >= reached));
            // Not reached with any number: nothing is saved.
            let least = enough.map_or(workers, |(&least, _)| least);
            savings.push(1.0 - least as f64 / workers as f64);
        }
    }
    match savings.is_empty() {
        true => Err(format!(
            "no point of a sweep over workers has at most {} % of violations",
            VIOLATIONS_MAX * 100.0
        )),
        false => Ok(savings),
    }
}

fn by_group(
    results: &Results,
    metric: &str,
    policy: &str,
    seed: usize,
) -> Result<BTreeMap<String, ByWorkers>, String> {
    let mut groups: BTreeMap<String, ByWorkers> = BTreeMap::new();
    for point in results.points() {
        let (group, workers) = split(point)?;
        let value = results.of_seed(point, policy, metric, seed)?;
        let late = results.of_seed(point, policy, "violation_ratio", seed)?;
        let counts = late.is_some_and(|late| late <= VIOLATIONS_MAX);
        let group = groups.entry(group.to_owned()).or_default();
        group.insert(workers, value.filter(|_| counts));
    }
    Ok(groups)
}

/// `slo=150` and 60 of `slo=150,workers=60`.
fn split(point: &str) -> Result<(&str, u64), String> {
    let (group, last) = point.rsplit_once(',').unwrap_or(("", point));
    let workers = last.strip_prefix("workers=");
    let workers = workers.and_then(|number| number.parse().ok());
    let wrong = || format!("saved(...): point `{point}` must end with workers=N");
    Ok((group, workers.ok_or_else(wrong)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(rows: &[(&str, &str, f64, f64)]) -> Results {
        let run = |(point, policy, accuracy, late): &(&str, &str, f64, f64)| {
            format!(
                r#"{{"point": "{point}", "policy": "{policy}", "estimates":
                    {{"a": {{"mean": {accuracy}}}, "violation_ratio": {{"mean": {late}}}}}}}"#
            )
        };
        let runs: Vec<String> = rows.iter().map(run).collect();
        Results::parse(&format!(r#"{{"runs": [{}]}}"#, runs.join(","))).unwrap()
    }

    /// The other policy reaches 0.7 with 40 workers and 0.8 with 80; with 20 too many are late. The
    /// policy reaches 0.7 with 40, and 0.8 with 60; with 20 too many are late.
    #[test]
    fn savings_by_hand() {
        let rows = [
            ("workers=20", "own", 0.9, 0.2),
            ("workers=40", "own", 0.7, 0.0),
            ("workers=60", "own", 0.85, 0.0),
            ("workers=80", "own", 0.9, 0.0),
            ("workers=20", "other", 0.6, 0.1),
            ("workers=40", "other", 0.7, 0.0),
            ("workers=60", "other", 0.7, 0.05),
            ("workers=80", "other", 0.8, 0.0),
        ];
        let saved = savings(&results(&rows), "a", ["own", "other"], 0).unwrap();
        let expected = [0.0, 1.0 - 40.0 / 60.0, 0.25];
        assert_eq!(saved, expected);
    }

    #[test]
    fn groups_are_apart() {
        let rows = [
            ("slo=150,workers=20", "own", 0.9, 0.0),
            ("slo=150,workers=40", "own", 0.9, 0.0),
            ("slo=300,workers=40", "own", 0.9, 0.0),
            ("slo=150,workers=20", "other", 0.9, 0.0),
            ("slo=150,workers=40", "other", 0.9, 0.0),
            ("slo=300,workers=40", "other", 0.9, 0.0),
        ];
        let saved = savings(&results(&rows), "a", ["own", "other"], 0).unwrap();
        assert_eq!(saved, [0.0, 0.5, 0.0]);
        let error = savings(&results(&[("load=1", "own", 0.9, 0.0)]), "a", ["own"; 2], 0);
        assert!(error.unwrap_err().contains("workers=N"));
    }
}
