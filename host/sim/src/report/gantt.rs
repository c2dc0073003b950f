//! Batches over time: a row per worker, a bar per batch in the colour of the exit that answers.

use switchyard_core::ids::WorkerId;

use super::data::TimelineData;
use super::figure::ReportFigure;
use super::view::ReportView;
use crate::plot::{Anchor, Area, Axes, Drawing, Scale, text_width};
use crate::text::{number, plural, shortened};
use crate::timeline::{BatchBar, RequestEnds};

/// Width of the drawing, which scrolls on narrow screens.
const WIDTH: f64 = 1_160.0;

/// Most bars; the interval is shortened until it holds no more.
const BARS_MAX: usize = 3_000;

/// Most workers; the first ones are drawn.
const WORKERS_MAX: usize = 64;

/// Height of the columns of request ends, and of the space above them.
const ENDS: f64 = 46.0;
const ENDS_GAP: f64 = 14.0;

/// Space above the first row, and below the columns of ends.
const HEAD: f64 = 10.0;
const FOOT: f64 = 46.0;

/// Most characters of a worker's name.
const NAME_MAX: usize = 14;

/// A timeline as it is drawn.
struct Gantt<'a> {
    view: &'a ReportView<'a>,
    data: &'a TimelineData,
    bars: &'a [BatchBar],
    /// End of the drawn interval, in microseconds.
    to_us: u64,
    workers: usize,
    /// Height of a worker's row.
    row: f64,
    axes: Axes,
    /// Milliseconds or seconds, and the length of that unit in microseconds.
    unit: (&'static str, f64),
}

/// The plot of one timeline.
pub(super) fn plot(view: &ReportView<'_>, data: &TimelineData) -> ReportFigure {
    let gantt = Gantt::new(view, data);
    let mut drawing = Drawing::new(WIDTH, gantt.axes.area.bottom() + FOOT);
    gantt.draw_axis(&mut drawing);
    gantt.draw_rows(&mut drawing);
    for bar in gantt.bars {
        gantt.draw_bar(&mut drawing, bar);
    }
    // After all bars, because the next bar would cover them.
    for bar in gantt.bars.iter().filter(|bar| bar.late > 0) {
        gantt.draw_late(&mut drawing, bar);
    }
    gantt.draw_ends(&mut drawing);
    let title = match data.point.as_str() {
        "" => data.policy.clone(),
        point => format!("{}, {point}", data.policy),
    };
    let svg = drawing.inline(&gantt.in_words());
    ReportFigure {
        is_wide: true,
        policy: view.policy(&data.policy).map(|policy| policy.id),
        ..ReportFigure::new(&title, &gantt.note(), svg)
    }
}

// === impl Gantt ===

impl<'a> Gantt<'a> {
    fn new(view: &'a ReportView<'a>, data: &'a TimelineData) -> Self {
        let all = view.data.catalog.workers.len();
        let seen = data.bars.iter().map(|bar| bar.worker.index() + 1).max();
        let workers = all.max(seen.unwrap_or(0));
        let bars = &data.bars[..data.bars.len().min(BARS_MAX)];
        let to_us = end_us(data, bars);
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
        let names = view.data.catalog.workers.iter().take(drawn);
        let names = names.map(|worker| text_width(&shortened(&worker.name, NAME_MAX)));
        let left = 14.0 + names.fold(text_width("requests"), f64::max);
        let [low, high] = [data.from_us, to_us].map(|us| us as f64 / unit.1);
        let height = row * drawn as f64 + ENDS_GAP + ENDS;
        Self {
            axes: Axes {
                area: Area::new(left, HEAD, WIDTH - left - 26.0, height),
                x: Scale::linear(low, high),
                y: Scale::default(),
            },
            view,
            data,
            bars,
            to_us,
            workers,
            row,
            unit,
        }
    }

    fn x(&self, us: u64) -> f64 {
        let us = us.clamp(self.data.from_us, self.to_us);
        self.axes.x(us as f64 / self.unit.1)
    }

    fn top(&self, worker: WorkerId) -> f64 {
        self.axes.area.top + self.row * worker.index() as f64
    }

    fn draw_axis(&self, drawing: &mut Drawing) {
        let ticks = self.axes.x.ticks(12);
        for tick in &ticks {
            let x = self.axes.x(tick.value);
            let (top, bottom) = (self.axes.area.top, self.axes.area.bottom());
            drawing.line("rule", (x, top), (x, bottom));
        }
        let title = format!("time since the start of the run, {}", self.unit.0);
        self.axes.draw_x(drawing, &ticks, &title);
    }

    fn draw_rows(&self, drawing: &mut Drawing) {
        let every = if self.row < 14.0 { 2 } else { 1 };
        let (left, right) = (self.axes.area.left, self.axes.area.right());
        let workers = (0..).map(WorkerId).zip(&self.view.data.catalog.workers);
        for (id, worker) in workers.take(WORKERS_MAX) {
            let y = self.top(id) + self.row / 2.0;
            drawing.line("rule", (left, y), (right, y));
            if id.index() % every == 0 {
                let name = shortened(&worker.name, NAME_MAX);
                drawing.text("tick", (left - 8.0, y + 4.0), Anchor::End, &name);
            }
        }
    }

    fn draw_bar(&self, drawing: &mut Drawing, bar: &BatchBar) {
        let Some(area) = self.area(bar) else {
            return;
        };
        let kind = self.view.kind_of(bar.variant, bar.exit);
        let class = kind.map_or("none".to_owned(), |kind| format!("k{kind}"));
        let begin = self.x(bar.start.0 + bar.load.0).min(area.right());
        let load = Area {
            width: begin - area.left,
            ..area
        };
        let ran = Area {
            left: begin,
            width: (area.right() - begin).max(0.6),
            ..area
        };
        drawing.group(&class, |drawing| {
            if load.width > 0.0 {
                drawing.rect("load", load, "");
            }
            let class = match bar.exit {
                Some(_) => "fill bar",
                None => "fill bar parked",
            };
            drawing.rect(class, ran, &self.tip(bar, kind));
            let size = bar.size.to_string();
            if bar.size > 1 && self.row >= 14.0 && ran.width > text_width(&size) + 7.0 {
                let middle = (ran.left + ran.width / 2.0, ran.top + ran.height / 2.0 + 4.0);
                drawing.text("on", middle, Anchor::Middle, &size);
            }
        });
    }

    /// The visible part of a bar; absent if it is not drawn.
    fn area(&self, bar: &BatchBar) -> Option<Area> {
        let is_drawn = bar.worker.index() < WORKERS_MAX && bar.start.0 < self.to_us;
        let margin = self.row * 0.14;
        is_drawn.then(|| {
            let (left, right) = (self.x(bar.start.0), self.x(bar.end.0));
            let top = self.top(bar.worker) + margin;
            Area::new(left, top, right - left, self.row - 2.0 * margin)
        })
    }

    /// Marks the end of a batch that answered requests late.
    fn draw_late(&self, drawing: &mut Drawing, bar: &BatchBar) {
        let is_inside = bar.end.0 <= self.to_us;
        if let Some(area) = self.area(bar).filter(|_| is_inside) {
            let (left, top) = (area.right() - 2.6, area.top - 1.5);
            let mark = Area::new(left, top, 2.6, area.height + 3.0);
            drawing.rect("late", mark, "");
        }
    }

    fn tip(&self, bar: &BatchBar, kind: Option<usize>) -> String {
        let name = match kind.map(|kind| &self.view.kinds[kind]) {
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
        let load = match load > 0.0 {
            true => format!(", {load} ms load"),
            false => String::new(),
        };
        format!("{name}: {size} in {ran} ms{load}{late}")
    }

    /// Stacked columns below the rows: ends of requests by their outcome.
    fn draw_ends(&self, drawing: &mut Drawing) {
        let base = self.axes.area.bottom();
        let sum = |ends: &RequestEnds| ends.in_time + ends.late + ends.unanswered;
        let parts = self.ends();
        let most = parts.iter().map(|(_, ends)| sum(ends)).max();
        let most = most.unwrap_or(0).max(1);
        let x = self.axes.area.left - 8.0;
        for (text, above) in [("requests", 14.0), ("ended", 1.0)] {
            let y = base - ENDS / 2.0 + 11.0 - above;
            drawing.text("tick", (x, y), Anchor::End, text);
        }
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
                let column = Area::new(left + 0.4, y, right - left - 0.8, height);
                drawing.rect(class, column, "");
            }
        }
    }

    /// The counted parts of the interval that are drawn.
    fn ends(&self) -> Vec<([u64; 2], RequestEnds)> {
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
            "Batches of {workers} workers under {policy} from second {from} to {to}: {bars} \
             batches; {late} requests were answered late."
        )
    }
}

/// The end of the drawn interval: nothing may look idle because its batches are left out.
fn end_us(data: &TimelineData, bars: &[BatchBar]) -> u64 {
    let last_us = bars.iter().map(|bar| bar.end.0).max();
    let to_us = match data.bars.get(BARS_MAX) {
        Some(first_left_out) => first_left_out.start.0,
        None if data.bars_dropped == 0 => data.to_us.min(last_us.unwrap_or(data.from_us + 1)),
        None => data.bars.last().map_or(data.to_us, |bar| bar.start.0),
    };
    to_us.max(data.from_us + 1)
}
