//! What ran where: a line per worker, a bar per batch, coloured by who answers.

use switchyard_core::ids::ExitId;

use super::data::TimelineData;
use super::figure::Figure;
use super::frame::Frame;
use super::scale::Scale;
use super::svg::{Anchor, Svg, text_width};
use super::text::{number, plural, shortened};
use super::view::View;
use crate::timeline::{Bar, Ends};

/// Width of the drawing, which is scrolled on narrow screens.
const WIDTH: f64 = 1_160.0;

/// Bars drawn at most: the interval is shortened to hold no more.
const BARS_MAX: usize = 3_000;

/// Workers drawn at most, the first ones.
const WORKERS_MAX: usize = 64;

/// Height of the columns of ends.
const ENDS: f64 = 46.0;

/// A timeline as it is drawn.
struct Gantt<'a> {
    view: &'a View<'a>,
    data: &'a TimelineData,
    bars: &'a [Bar],
    /// End of what is drawn, in microseconds.
    to_us: u64,
    workers: usize,
    /// Height of a worker's line.
    row: f64,
    frame: Frame,
    /// Milliseconds or seconds of time, and the factor from microseconds.
    unit: (&'static str, f64),
}

/// The plot of one timeline.
pub(super) fn plot(view: &View<'_>, data: &TimelineData) -> Figure {
    let gantt = Gantt::new(view, data);
    let mut svg = Svg::new(WIDTH, gantt.frame.bottom() + ENDS + 70.0);
    gantt.draw_axis(&mut svg);
    gantt.draw_rows(&mut svg);
    for bar in gantt.bars {
        gantt.draw_bar(&mut svg, bar);
    }
    // Over the bars beside them.
    for bar in gantt.bars.iter().filter(|bar| bar.late > 0) {
        gantt.draw_late(&mut svg, bar);
    }
    gantt.draw_ends(&mut svg);
    let title = match data.point.as_str() {
        "" => data.policy.clone(),
        point => format!("{}, {point}", data.policy),
    };
    let figure = Figure::new(&title, &gantt.note(), svg.finish(&gantt.in_words()));
    Figure {
        is_wide: true,
        policy: view.policies.iter().position(|name| *name == data.policy),
        ..figure
    }
}

// === impl Gantt ===

impl<'a> Gantt<'a> {
    fn new(view: &'a View<'a>, data: &'a TimelineData) -> Self {
        let all = view.data.catalog.workers.len();
        let seen = data.bars.iter().map(|bar| bar.worker.index() + 1).max();
        let workers = all.max(seen.unwrap_or(0));
        let bars = &data.bars[..data.bars.len().min(BARS_MAX)];
        let last_us = bars
            .iter()
            .map(|bar| bar.end.0)
            .max()
            .unwrap_or(data.from_us + 1);
        let is_whole = bars.len() == data.bars.len();
        let to_us = match data.bars.get(BARS_MAX) {
            // What starts later is not drawn, and nothing may look idle for that.
            Some(first_left_out) => first_left_out.start.0,
            None if is_whole && data.bars_dropped == 0 => data.to_us.min(last_us),
            None => data.bars.last().map_or(data.to_us, |bar| bar.start.0),
        };
        let to_us = to_us.max(data.from_us + 1);
        let unit = match to_us - data.from_us > 5_000_000 {
            true => ("s", 1e6),
            false => ("ms", 1e3),
        };
        let drawn = workers.min(WORKERS_MAX);
        let row = match drawn {
            0..=12 => 24.0,
            13..=30 => 16.0,
            _ => 11.0,
        };
        Self {
            frame: Self::frame(
                view,
                drawn,
                row,
                [data.from_us, to_us].map(|us| us as f64 / unit.1),
            ),
            view,
            data,
            bars,
            to_us,
            workers,
            row,
            unit,
        }
    }

    fn frame(view: &View<'_>, drawn: usize, row: f64, [from, to]: [f64; 2]) -> Frame {
        let names = view.data.catalog.workers.iter().take(drawn);
        let widest = names
            .map(|worker| text_width(&shortened(&worker.name, 14)))
            .fold(0.0, f64::max);
        let left = 14.0 + widest.max(text_width("ends of"));
        Frame {
            left,
            top: 10.0,
            width: WIDTH - left - 26.0,
            height: row * drawn as f64,
            x: Scale::linear(from, to),
            y: Scale::linear(0.0, 1.0),
        }
    }

    fn x(&self, us: u64) -> f64 {
        let us = us.clamp(self.data.from_us, self.to_us);
        self.frame.x(us as f64 / self.unit.1)
    }

    fn top(&self, worker: usize) -> f64 {
        self.frame.top + self.row * worker as f64
    }

    fn draw_axis(&self, svg: &mut Svg) {
        let bottom = self.frame.bottom() + ENDS + 18.0;
        for tick in self.frame.x.ticks(12) {
            let x = self.frame.x(tick.value);
            svg.line("rule", (x, self.frame.top), (x, bottom));
            svg.text("tick", (x, bottom + 16.0), Anchor::Middle, &tick.label);
        }
        let title = format!("time since the start of the run, {}", self.unit.0);
        let middle = self.frame.left + self.frame.width / 2.0;
        svg.text("title", (middle, bottom + 34.0), Anchor::Middle, &title);
    }

    fn draw_rows(&self, svg: &mut Svg) {
        let every = if self.row < 14.0 { 2 } else { 1 };
        let workers = self.view.data.catalog.workers.iter().take(WORKERS_MAX);
        for (at, worker) in workers.enumerate() {
            let y = self.top(at) + self.row / 2.0;
            svg.line("rule", (self.frame.left, y), (self.frame.right(), y));
            if at % every == 0 {
                let name = shortened(&worker.name, 14);
                svg.text("tick", (self.frame.left - 8.0, y + 4.0), Anchor::End, &name);
            }
        }
    }

    fn draw_bar(&self, svg: &mut Svg, bar: &Bar) {
        let Some((left, right, top, height)) = self.bounds(bar) else {
            return;
        };
        let exit = bar.exit.map(ExitId::index);
        let kind = self.view.kind_of(bar.variant.index(), exit).unwrap_or(0);
        svg.open(&format!("k{kind}"));
        let begin = self.x(bar.start.0 + bar.load.0).min(right);
        if begin > left {
            svg.rect("load", [left, top, begin - left, height], "");
        }
        let class = if bar.exit.is_some() {
            "fill bar"
        } else {
            "fill bar parked"
        };
        svg.rect(
            class,
            [begin, top, (right - begin).max(0.6), height],
            &self.told(bar, kind),
        );
        let size = bar.size.to_string();
        if bar.size > 1 && self.row >= 14.0 && right - begin > text_width(&size) + 7.0 {
            let place = ((begin + right) / 2.0, top + height / 2.0 + 4.0);
            svg.text("on", place, Anchor::Middle, &size);
        }
        svg.close();
    }

    /// Left, right, top and height of what is seen of a bar.
    fn bounds(&self, bar: &Bar) -> Option<(f64, f64, f64, f64)> {
        let is_seen = bar.worker.index() < WORKERS_MAX && bar.start.0 < self.to_us;
        let margin = self.row * 0.14;
        is_seen.then(|| {
            let top = self.top(bar.worker.index()) + margin;
            (
                self.x(bar.start.0),
                self.x(bar.end.0),
                top,
                self.row - 2.0 * margin,
            )
        })
    }

    /// The end of a batch that answered too late.
    fn draw_late(&self, svg: &mut Svg, bar: &Bar) {
        if bar.end.0 > self.to_us {
            return;
        }
        if let Some((_, right, top, height)) = self.bounds(bar) {
            svg.rect("late", [right - 2.6, top - 1.5, 2.6, height + 3.0], "");
        }
    }

    fn told(&self, bar: &Bar, kind: usize) -> String {
        let name = match self.view.kinds.get(kind) {
            Some(kind) if bar.exit.is_some() => kind.label(),
            Some(kind) => format!("{}, parked", kind.variant),
            None => String::new(),
        };
        let late = match bar.late {
            0 => String::new(),
            late => format!(", {late} late"),
        };
        let (size, load) = (bar.size, bar.load.0 as f64 / 1e3);
        let ran = (bar.end.0 - bar.start.0 - bar.load.0) as f64 / 1e3;
        let load = if load > 0.0 {
            format!(", {load} ms load")
        } else {
            String::new()
        };
        format!("{name}: {size} in {ran} ms{load}{late}")
    }

    /// How requests ended, in columns under the bars.
    fn draw_ends(&self, svg: &mut Svg) {
        let base = self.frame.bottom() + ENDS + 14.0;
        let sum = |ends: &Ends| ends.in_time + ends.late + ends.unanswered;
        let parts = self.ends();
        let most = parts
            .iter()
            .map(|(_, ends)| sum(ends))
            .max()
            .unwrap_or(0)
            .max(1);
        svg.line("axis", (self.frame.left, base), (self.frame.right(), base));
        let x = self.frame.left - 8.0;
        svg.text("tick", (x, base - ENDS / 2.0 - 3.0), Anchor::End, "ends of");
        svg.text(
            "tick",
            (x, base - ENDS / 2.0 + 10.0),
            Anchor::End,
            "requests",
        );
        for ([from_us, to_us], ends) in parts {
            let (left, right) = (self.x(from_us), self.x(to_us));
            let mut y = base;
            let counts = [
                ("ontime", ends.in_time),
                ("late", ends.late),
                ("gone", ends.unanswered),
            ];
            for (class, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
                let height = ENDS * count as f64 / most as f64;
                y -= height;
                svg.rect(class, [left + 0.4, y, right - left - 0.8, height], "");
            }
        }
    }

    /// The counted parts of the interval that are drawn.
    fn ends(&self) -> Vec<([u64; 2], Ends)> {
        let (from, parts) = (self.data.from_us, self.data.ends.len().max(1) as u128);
        let length = u128::from(self.data.to_us.saturating_sub(from));
        let edge = |part: usize| from + (length * part as u128 / parts) as u64;
        let all = self.data.ends.iter().enumerate();
        all.map(|(part, &ends)| ([edge(part), edge(part + 1)], ends))
            .filter(|([from_us, _], _)| *from_us < self.to_us)
            .collect()
    }

    fn late(&self) -> u64 {
        self.ends().iter().map(|(_, ends)| ends.late).sum()
    }

    fn note(&self) -> String {
        let mut note = format!(
            "{}, {} late",
            plural(self.bars.len(), "batch", "batches"),
            number(self.late() as f64, 0)
        );
        let left_out = self.data.bars.len() - self.bars.len() + self.data.bars_dropped as usize;
        if left_out > 0 {
            let left_out = number(left_out as f64, 0);
            note += &format!("; the interval was shortened, {left_out} batches are not shown");
        }
        if self.workers > WORKERS_MAX {
            note += &format!("; {} of {} workers are shown", WORKERS_MAX, self.workers);
        }
        note
    }

    fn in_words(&self) -> String {
        let (from, to) = (self.data.from_us as f64 / 1e6, self.to_us as f64 / 1e6);
        let (policy, workers) = (&self.data.policy, self.workers);
        let (bars, late) = (self.bars.len(), self.late());
        format!(
            "What {workers} workers ran under {policy} from second {from} to {to}: {bars} \
             batches; {late} requests were answered late."
        )
    }
}
