//! The value that a claim measures: `utility(sneakpeek) / utility(lo-edf)`.
//!
//! ```text
//! FORMULA = CHANGE | "mean(" CHANGE ")" | ("mean" | "max") "(saved(" METRIC "," POLICY "," POLICY "))"
//! CHANGE  = TERM {("/" | "-" | "+") TERM}, from left to right
//! TERM    = METRIC "(" POLICY ["@" POINT] ")"
//! ```
//!
//! Without a point, the formula is taken at every point of the sweep and the worst value counts;
//! in `mean(...)` the mean of all points does. `saved` is the share of the workers that the first
//! policy saves (see [`saved`](super::saved)).

use std::str::FromStr;

use super::results::Results;
use super::sample::Sample;
use super::saved::savings;

/// The value that a claim measures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Formula {
    Change(Change),
    Saved(Saved),
}

/// The workers that the first policy saves, over all points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Saved {
    metric: String,
    policies: [String; 2],
    /// The mean over the points, otherwise the most.
    is_mean: bool,
}

/// One term, or several with operators.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    first: Term,
    others: Vec<(Operator, Term)>,
    /// Take the mean over the points.
    is_mean: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Over,
    Minus,
    Plus,
}

/// A metric of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    metric: String,
    policy: String,
    point: Option<String>,
}

// === impl Formula ===

impl FromStr for Formula {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match Saved::parse(text.trim())? {
            Some(saved) => Self::Saved(saved),
            None => Self::Change(text.parse()?),
        })
    }
}

impl Formula {
    /// Its value at each point that it does not name itself, or one value over all points.
    ///
    /// # Errors
    /// A metric, policy or point that the results do not have.
    pub(crate) fn values(&self, results: &Results) -> Result<Vec<Sample>, String> {
        match self {
            Self::Change(change) => change.values(results),
            Self::Saved(saved) => Ok(vec![saved.value(results)?]),
        }
    }
}

// === impl Saved ===

impl Saved {
    /// None if the text is no such formula.
    fn parse(text: &str) -> Result<Option<Self>, String> {
        let (is_mean, inside) = if let Some(inside) = text.strip_prefix("mean(saved(") {
            (true, inside)
        } else if let Some(inside) = text.strip_prefix("max(saved(") {
            (false, inside)
        } else {
            return Ok(None);
        };
        let wrong = || format!("`{text}`: must be mean(saved(METRIC, POLICY, POLICY)), or max");
        let inside = inside.strip_suffix("))").ok_or_else(wrong)?;
        let parts: Vec<&str> = inside.split(',').map(str::trim).collect();
        let &[metric, one, other] = parts.as_slice() else {
            return Err(wrong());
        };
        Ok(Some(Self {
            metric: metric.to_owned(),
            policies: [one.to_owned(), other.to_owned()],
            is_mean,
        }))
    }

    fn value(&self, results: &Results) -> Result<Sample, String> {
        let [one, other] = self.policies.each_ref().map(String::as_str);
        let of_seed = |seed: usize| {
            let savings = savings(results, &self.metric, [one, other], seed)?;
            Ok(match self.is_mean {
                true => savings.iter().sum::<f64>() / savings.len() as f64,
                false => savings.into_iter().fold(f64::NEG_INFINITY, f64::max),
            })
        };
        let values: Vec<f64> = (0..results.seeds())
            .map(of_seed)
            .collect::<Result<_, String>>()?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let values: Vec<Option<f64>> = values.into_iter().map(Some).collect();
        Ok(Sample::new(mean, &values))
    }
}

// === impl Change ===

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (text, is_mean) = match text.trim().strip_prefix("mean(") {
            None => (text, false),
            // `mean(a)` alone is a metric of that name.
            Some(inside) if !inside.contains('(') => (text, false),
            Some(inside) => match inside.strip_suffix(')') {
                Some(inside) => (inside, true),
                None => return Err(format!("`{text}`: must end with )")),
            },
        };
        let (first, rest) = Term::take(text.trim())?;
        let (mut rest, mut others) = (rest.trim(), Vec::new());
        while let Some(sign) = rest.chars().next() {
            let operator = match sign {
                '/' => Operator::Over,
                '-' => Operator::Minus,
                '+' => Operator::Plus,
                _ => return Err(format!("`{rest}` is left over: must begin with /, - or +")),
            };
            let (term, after) = Term::take(rest[1..].trim())?;
            others.push((operator, term));
            rest = after.trim();
        }
        Ok(Self {
            first,
            others,
            is_mean,
        })
    }
}

impl Change {
    fn values(&self, results: &Results) -> Result<Vec<Sample>, String> {
        let others = self.others.iter().map(|(_, term)| term);
        let is_fixed = others.chain([&self.first]).all(|term| term.point.is_some());
        let points: Vec<&str> = match is_fixed {
            true => vec![""],
            false => results.points().collect(),
        };
        let values: Vec<Sample> = points
            .into_iter()
            .map(|point| {
                let first = self.first.value(results, point)?;
                self.others
                    .iter()
                    .try_fold(first, |left, (operator, term)| {
                        let right = term.value(results, point)?;
                        Ok(match operator {
                            Operator::Over => left.over(&right),
                            Operator::Minus => left.minus(&right),
                            Operator::Plus => left.plus(&right),
                        })
                    })
            })
            .collect::<Result<_, String>>()?;
        Ok(match self.is_mean {
            true => vec![Sample::mean_of(&values)],
            false => values,
        })
    }
}

// === impl Term ===

impl Term {
    /// The term at the start of a text, and the rest of the text.
    fn take(text: &str) -> Result<(Self, &str), String> {
        let wrong = || format!("`{text}`: must be METRIC(POLICY) or METRIC(POLICY@POINT)");
        let (metric, rest) = text.split_once('(').ok_or_else(wrong)?;
        let (inside, rest) = rest.split_once(')').ok_or_else(wrong)?;
        let (policy, point) = match inside.split_once('@') {
            Some((policy, point)) => (policy, Some(point.trim().to_owned())),
            None => (inside, None),
        };
        let (metric, policy) = (metric.trim(), policy.trim());
        if metric.is_empty() || policy.is_empty() {
            return Err(wrong());
        }
        let (metric, policy) = (metric.to_owned(), policy.to_owned());
        let term = Self {
            metric,
            policy,
            point,
        };
        Ok((term, rest))
    }

    fn value(&self, results: &Results, point: &str) -> Result<Sample, String> {
        let point = self.point.as_deref().unwrap_or(point);
        results.sample(point, &self.policy, &self.metric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        let run = |point: &str, policy: &str, utility: f64| {
            format!(
                r#"{{"point": "{point}", "policy": "{policy}",
                    "estimates": {{"utility": {{"mean": {utility}}}}}}}"#
            )
        };
        let runs = [
            run("load=1", "a", 0.8),
            run("load=1", "b-c", 0.4),
            run("load=2", "a", 0.6),
            run("load=2", "b-c", 0.5),
        ];
        Results::parse(&format!(r#"{{"runs": [{}]}}"#, runs.join(","))).unwrap()
    }

    fn values(text: &str) -> Result<Vec<f64>, String> {
        let values = text.parse::<Formula>()?.values(&results())?;
        Ok(values.into_iter().map(|value| value.mean).collect())
    }

    #[test]
    fn formulas_by_hand() {
        assert_eq!(values("utility(a)").unwrap(), [0.8, 0.6]);
        assert_eq!(values("utility(a@load=2)").unwrap(), [0.6]);
        assert_eq!(values("utility(a) / utility(b-c)").unwrap(), [2.0, 1.2]);
        let fall = values("utility(a@load=1) - utility(a@load=2)").unwrap();
        assert!(fall.len() == 1 && (fall[0] - 0.2).abs() < 1e-12);
        let gain = values("mean(utility(a) / utility(b-c))").unwrap();
        assert!(gain.len() == 1 && (gain[0] - 1.6).abs() < 1e-12);
        assert_eq!(values("mean(utility(a@load=2))").unwrap(), [0.6]);
        // From left to right: 0.8 - 0.4 - 0.6 + 0.5.
        let change =
            "utility(a@load=1) - utility(b-c@load=1) - utility(a@load=2) + utility(b-c@load=2)";
        let change = values(change).unwrap();
        assert!(
            change.len() == 1 && (change[0] - 0.3).abs() < 1e-12,
            "{change:?}"
        );
    }

    #[test]
    fn saved_workers_are_a_formula() {
        let run = |workers: u32, policy: &str, accuracies: [f64; 2]| {
            let [one, other] = accuracies;
            format!(
                r#"{{"point": "workers={workers}", "policy": "{policy}",
                    "estimates": {{"a": {{"mean": 0}}, "violation_ratio": {{"mean": 0}}}},
                    "by_seed": {{"a": [{one}, {other}]}}}}"#
            )
        };
        let runs = [
            run(50, "own", [0.8, 0.6]),
            run(100, "own", [0.9, 0.9]),
            run(50, "other", [0.6, 0.6]),
            run(100, "other", [0.7, 0.7]),
        ];
        let results = Results::parse(&format!(r#"{{"runs": [{}]}}"#, runs.join(","))).unwrap();
        let mean = |text: &str| text.parse::<Formula>().unwrap().values(&results).unwrap()[0].mean;
        // Seed 1 saves 0 and 0.5, seed 2 saves 0 and 0.
        assert!((mean("mean(saved(a, own, other))") - 0.125).abs() < 1e-12);
        assert!((mean("max(saved(a, own, other))") - 0.25).abs() < 1e-12);
        assert!("max(saved(a, own))".parse::<Formula>().is_err());
    }

    #[test]
    fn errors_name_the_wrong_part() {
        for (text, word) in [
            ("utility", "METRIC(POLICY)"),
            ("utility()", "METRIC(POLICY)"),
            ("utility(a) * utility(b-c)", "/, - or +"),
            ("utility(a) / utility(b-c) x", "left over"),
            ("utility(d)", "d"),
            ("goodput(a)", "goodput"),
            ("utility(a@load=3)", "load=3"),
            ("mean(utility(a) / utility(b-c)", "METRIC(POLICY)"),
            ("mean(utility(a)) / 2", "end with )"),
        ] {
            let error = values(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
