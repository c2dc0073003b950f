//! The rows of a panel in parts, so that a part of the weights stays in a cache while all positions of a block
//! are multiplied by it.

use super::tile::Runs;

/// Values of a part of a panel: this part and the next one fit into the cache of a core, next to a block's input.
const PART_VALUES: usize = 32 << 10;

/// The cut of a panel's rows.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    runs: Runs,
    /// Words of inputs for one row.
    steps: usize,
    /// Lines of windows in a part; fewer in the last one.
    lines: usize,
    /// Parts of one line, where a line is longer than a part.
    pub(super) per_line: usize,
}

/// Some rows of a panel.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// The first one.
    pub(super) row: usize,
    /// Its first word, counted from the window's first.
    pub(super) word: usize,
    /// Memory that a window reads for them.
    pub(super) runs: Runs,
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

// === impl Parts ===

impl Parts {
    /// The cut of rows that hold `width` values each; windows read `runs`, `steps` words for a row.
    pub(super) fn new(runs: Runs, steps: usize, width: usize) -> Self {
        let most = (PART_VALUES / width.max(1)).max(1);
        let rows = (runs.run / steps).max(1);
        Self {
            runs,
            steps,
            lines: (most / rows).clamp(1, runs.lines.max(1)),
            per_line: rows.div_ceil(most),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.runs.lines.div_ceil(self.lines) * self.per_line
    }

    /// Not inlined: its sizes would be computed again in the innermost loop.
    #[inline(never)]
    pub(super) fn part(&self, at: usize) -> Part {
        let Runs { lines, pitch, run } = self.runs;
        let (line, slot) = (at / self.per_line * self.lines, at % self.per_line);
        let rows = run / self.steps;
        let [from, to] = [slot, slot + 1].map(|slot| slot * rows / self.per_line);
        Part {
            row: line * rows + from,
            word: line * pitch + from * self.steps,
            runs: Runs {
                lines: self.lines.min(lines - line),
                pitch,
                run: (to - from) * self.steps,
            },
            is_first: at == 0,
            is_last: at + 1 == self.count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All parts together read each word of a window once, in its order, and no part is too large.
    #[test]
    fn parts_are_the_rows_in_their_order() {
        for (lines, run, steps) in [
            (1, 64, 1),
            (1, 2048, 1),
            (3, 384, 1),
            (3, 1536, 1),
            (7, 22, 2),
            (5, 1030, 2),
        ] {
            let runs = Runs {
                lines,
                pitch: 9000,
                run,
            };
            let parts = Parts::new(runs, steps, 64);
            let mut words = Vec::new();
            for at in 0..parts.count() {
                let Part {
                    row, word, runs, ..
                } = parts.part(at);
                assert_eq!(row, words.len() / steps, "{lines} {run} {steps} {at}");
                assert!(runs.lines * runs.run / steps * 64 <= PART_VALUES);
                let each = (0..runs.lines).flat_map(|line| (0..runs.run).map(move |i| (line, i)));
                words.extend(each.map(|(line, i)| word + line * runs.pitch + i));
            }
            let all = (0..lines).flat_map(|line| (0..run).map(move |i| line * 9000 + i));
            assert_eq!(words, all.collect::<Vec<_>>(), "{lines} {run} {steps}");
        }
    }
}
