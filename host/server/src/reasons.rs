//! The reasons that policies give: a code and numbers, read from the contract's text.

use serde_json::{Map, Value, json};
use switchyard_core::ids::RequestId;
use switchyard_core::plan::Plan;

/// A reason as its policy wrote it, parsed if it is a code with numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Why<'a> {
    text: &'a str,
    /// Code and numbers; `None` if the text is free.
    parts: Option<(&'a str, Vec<(&'a str, f64)>)>,
}

// === impl Why ===

impl<'a> Why<'a> {
    /// Parses `code name=number name=number`, or takes any words.
    pub fn of(text: &'a str) -> Self {
        let mut words = text.split_ascii_whitespace();
        let code = words.next().filter(|code| is_name(code));
        let numbers: Option<Vec<_>> = words.map(number).collect();
        Self {
            text,
            parts: code.zip(numbers),
        }
    }

    /// Text for people: `code, name number, name number`, or the words.
    pub fn words(&self) -> String {
        let Some((code, numbers)) = &self.parts else {
            return self.text.to_owned();
        };
        let numbers = numbers
            .iter()
            .map(|(name, value)| format!(", {name} {value}"));
        numbers.fold((*code).to_owned(), |text, number| text + &number)
    }

    /// JSON for programs. NaN and infinity become null.
    pub fn json(&self) -> Value {
        let (code, numbers) = self.parts.clone().unzip();
        let numbers = numbers.into_iter().flatten();
        let numbers: Map<String, Value> = numbers
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        json!({"code": code, "numbers": numbers, "text": self.text})
    }
}

fn is_name(word: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().all(fits)
}

fn number(word: &str) -> Option<(&str, f64)> {
    let (name, value) = word.split_once('=')?;
    Some((name, value.parse().ok()?)).filter(|_| is_name(name))
}

/// The reason that a plan gives for its dispatch at this position.
pub fn of_dispatch(plan: &Plan, at: usize) -> Option<&str> {
    let found = plan.reasons.iter().find(|(about, _)| *about as usize == at);
    found.map(|(_, text)| text.as_str())
}

/// The reason that a plan gives for its decision on a request.
pub fn of_request(plan: &Plan, id: RequestId) -> Option<&str> {
    let dispatched = plan
        .batches()
        .position(|(_, members)| members.contains(&id));
    let at = dispatched.or_else(|| {
        let refused = plan.rejects.iter().chain(&plan.answers);
        let at = refused.clone().position(|other| *other == id)?;
        Some(plan.dispatches.len() + at)
    })?;
    of_dispatch(plan, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_and_numbers_are_taken_apart() {
        let why = Why::of("due-first slack_us=1200 accuracy=0.93");
        assert_eq!(why.words(), "due-first, slack_us 1200, accuracy 0.93");
        let expected = json!({
            "code": "due-first",
            "numbers": {"slack_us": 1200.0, "accuracy": 0.93},
            "text": "due-first slack_us=1200 accuracy=0.93",
        });
        assert_eq!(why.json(), expected);
        assert_eq!(Why::of("lost").json()["code"], "lost");
    }

    #[test]
    fn anything_else_is_words() {
        for text in ["", "longest queue", "a=1", "due-first slack=soon", "1 a=2"] {
            let why = Why::of(text);
            assert_eq!(why.words(), text);
            assert_eq!(why.json()["code"], Value::Null, "{text}");
        }
        assert_eq!(
            Why::of("late by_us=NaN").json()["numbers"]["by_us"],
            Value::Null
        );
    }

    #[test]
    fn positions_go_on_from_dispatches_to_rejects_to_answers() {
        let mut plan = Plan {
            rejects: vec![RequestId(3)],
            answers: vec![RequestId(4), RequestId(5)],
            ..Plan::default()
        };
        plan.dispatch(
            switchyard_core::plan::Dispatch {
                worker: switchyard_core::ids::WorkerId(0),
                variant: switchyard_core::ids::VariantId(0),
                from_stage: 0,
                to_stage: 1,
                exit: None,
                place: 0,
                size: 0,
            },
            [RequestId(1), RequestId(2)],
        );
        let said = [(0, "run"), (1, "reject"), (3, "answer")];
        plan.reasons = said.map(|(at, text)| (at, text.to_owned())).to_vec();
        let of = |id| of_request(&plan, RequestId(id));
        assert_eq!(
            [of(1), of(2), of(3)],
            [Some("run"), Some("run"), Some("reject")]
        );
        assert_eq!([of(4), of(5), of(9)], [None, Some("answer"), None]);
    }
}
