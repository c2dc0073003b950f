//! The tables, in Markdown: they go into `docs/performance.md`.

use std::time::Duration;

use super::load::{Arrived, Busy};
use super::model::Model;

/// All loads on one server, once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn {
    /// By model: 16 and 64 connections.
    pub(crate) busy: Vec<[Busy; 2]>,
    /// ResNet-50 and MiniLM at 1 and 2 times the capacity.
    pub(crate) alone: Vec<[Rate; 2]>,
    /// Both and the perceptron together, at 1 and 2 times.
    pub(crate) all: [Vec<Rate>; 2],
}

/// Answers within the deadline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) per_s: f64,
    /// Of the requests, 0 to 1.
    pub(crate) share: f64,
}

// === impl Arrived ===

impl Arrived {
    pub(crate) fn of(&self, time: Duration) -> Rate {
        Rate {
            per_s: self.in_time as f64 / time.as_secs_f64(),
            share: self.in_time as f64 / self.sent.max(1) as f64,
        }
    }
}

/// Ratios are to the first contender.
pub(crate) fn print(contenders: &[(&str, Vec<Turn>)]) {
    println!(
        "| model | server | 16: requests/s | ratio | p99 ms | 64: requests/s | ratio | p99 ms |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|");
    for (at, model) in Model::ALL.iter().enumerate() {
        for (name, turns) in contenders {
            let cells = [0, 1].map(|load| {
                let of = |turns: &[Turn], value: fn(&Busy) -> f64| {
                    median(turns.iter().map(|turn| value(&turn.busy[at][load])))
                };
                let per_s = of(turns, |busy| busy.per_s);
                let bound = of(&contenders[0].1, |busy| busy.per_s);
                let p99 = of(turns, |busy| busy.p99_ms);
                format!("{per_s:.1} | {:.2} | {p99:.1}", per_s / bound)
            });
            println!("| {} | {name} | {} |", model.name(), cells.join(" | "));
        }
    }
    println!();
    println!("| load | server | in time at 1x | per s | at 2x | per s | ratio |");
    println!("|---|---|---:|---:|---:|---:|---:|");
    for (at, model) in Model::ALL[..2].iter().enumerate() {
        rows(contenders, model.name(), |turn| turn.alone[at]);
    }
    for (at, model) in Model::ALL.iter().enumerate() {
        let label = format!("all: {}", model.name());
        rows(contenders, &label, |turn| {
            [turn.all[0][at], turn.all[1][at]]
        });
    }
}

fn rows(contenders: &[(&str, Vec<Turn>)], label: &str, of: impl Fn(&Turn) -> [Rate; 2]) {
    let at = |turns: &[Turn], load: usize, value: fn(Rate) -> f64| {
        median(turns.iter().map(|turn| value(of(turn)[load])))
    };
    for (name, turns) in contenders {
        let cells = [0, 1].map(|load| {
            let share = at(turns, load, |rate| rate.share) * 100.0;
            format!("{share:.1} % | {:.1}", at(turns, load, |rate| rate.per_s))
        });
        let bound = at(&contenders[0].1, 1, |rate| rate.per_s);
        let per_s = at(turns, 1, |rate| rate.per_s);
        // Nothing of the bound's may be in time.
        let ratio = match bound > 0.0 {
            true => format!("{:.2}", per_s / bound),
            false => "-".to_owned(),
        };
        println!("| {label} | {name} | {} | {ratio} |", cells.join(" | "));
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
