//! The tables, in Markdown: they go into `docs/performance.md`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::load::{Arrived, Busy};
use super::model::Model;

/// All loads on one server, once, by model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn {
    /// 16 and 64 connections.
    pub(crate) busy: BTreeMap<Model, [Busy; 2]>,
    /// ResNet-50 and MiniLM at 1 and 2 times the capacity.
    pub(crate) alone: BTreeMap<Model, [Rate; 2]>,
    /// Both and the perceptron together, at 1 and 2 times.
    pub(crate) all: BTreeMap<Model, [Rate; 2]>,
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
    for model in Model::ALL {
        let of = |turns: &[Turn], load: usize, value: fn(&Busy) -> f64| {
            let each = turns.iter().filter_map(|turn| turn.busy.get(&model));
            median(each.map(|loads| value(&loads[load])))
        };
        for (name, turns) in contenders {
            let cells = [0, 1].map(|load| {
                let per_s = of(turns, load, |busy| busy.per_s)?;
                let p99 = of(turns, load, |busy| busy.p99_ms)?;
                let bound = of(&contenders[0].1, load, |busy| busy.per_s);
                Some(format!("{per_s:.1} | {} | {p99:.1}", ratio(per_s, bound)))
            });
            if let [Some(few), Some(many)] = cells {
                println!("| {} | {name} | {few} | {many} |", model.name());
            }
        }
    }
    println!();
    println!("| load | server | in time at 1x | per s | at 2x | per s | ratio |");
    println!("|---|---|---:|---:|---:|---:|---:|");
    for model in Model::ALL {
        rows(contenders, model.name(), |turn| turn.alone.get(&model));
    }
    for model in Model::ALL {
        let label = format!("all: {}", model.name());
        rows(contenders, &label, |turn| turn.all.get(&model));
    }
}

fn rows(contenders: &[(&str, Vec<Turn>)], label: &str, of: impl Fn(&Turn) -> Option<&[Rate; 2]>) {
    let at = |turns: &[Turn], load: usize, value: fn(Rate) -> f64| {
        let each = turns.iter().filter_map(&of);
        median(each.map(|rates| value(rates[load])))
    };
    for (name, turns) in contenders {
        let cells = [0, 1].map(|load| {
            let share = at(turns, load, |rate| rate.share)? * 100.0;
            let per_s = at(turns, load, |rate| rate.per_s)?;
            Some((format!("{share:.1} % | {per_s:.1}"), per_s))
        });
        if let [Some((once, _)), Some((twice, per_s))] = cells {
            let bound = at(&contenders[0].1, 1, |rate| rate.per_s);
            println!(
                "| {label} | {name} | {once} | {twice} | {} |",
                ratio(per_s, bound)
            );
        }
    }
}

/// `-` where the bound has nothing in time, or does not serve the model.
fn ratio(value: f64, bound: Option<f64>) -> String {
    match bound {
        Some(bound) if bound > 0.0 => format!("{:.2}", value / bound),
        _ => "-".to_owned(),
    }
}

/// None of no values.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
