//! The value of the requests that a batch leaves waiting: the earnings of a quick schedule of them.

use crate::slot::Slot;
use crate::yard::Yard;

/// How a quick schedule chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// The choice with the most utility less the price of its time.
    Priced,
    /// The least time: as many in time as possible.
    Frugal,
}

// === impl Yard ===

impl Yard<'_> {
    /// What the jobs that are not taken earn, less the price of their time, in the better of two quick
    /// schedules.
    pub(crate) fn rest(&self) -> f64 {
        let priced = self.pass(Style::Priced);
        let frugal = self.pass(Style::Frugal);
        priced.max(frugal)
    }

    /// Earliest deadline first, each batch on the worker that ends it first. Batches that cost more than
    /// they earn are left out. The next arrival of each lane takes its turn as if it came now.
    fn pass(&self, style: Style) -> f64 {
        let mut slots = self.slots.clone();
        let mut members: Vec<usize> = Vec::new();
        let mut cursors = vec![0_usize; self.menus.len()];
        let mut value = 0.0;
        let mut arriving = self.arriving.iter().copied().peekable();
        while let Some((left_us, lane)) = self.most_urgent(&mut cursors) {
            let is_before = |next: &usize| self.arrivals[*next].allowed_us < left_us;
            while let Some(next) = arriving.next_if(is_before) {
                value -= self.late_arrivals(next, &mut slots);
            }
            if self.nodes_left.get() == 0 {
                break;
            }
            self.spend(self.menus.len() + slots.len() / 4 + 8);
            let queue = &self.queue(lane)[cursors[lane]..];
            members.clear();
            members.extend(queue.iter().filter(|&&at| !self.taken[at]));
            match self.batch(style, lane, &members, &slots) {
                Some((slot, choice, size, net)) if net > 0.0 => {
                    let rows = self.rows(&members[..size]);
                    slots[slot].place(&self.menus[lane].choices[choice], size, rows);
                    value += net;
                    let last = members[size - 1];
                    let at = queue.iter().position(|&at| at == last);
                    cursors[lane] += at.map_or(queue.len(), |at| at + 1);
                }
                _ => cursors[lane] += 1,
            }
        }
        let later = arriving.map(|next| self.late_arrivals(next, &mut slots));
        value - later.sum::<f64>()
    }

    /// The utility that arrivals of a lane lose because all workers are busy for too long: those of the first
    /// moments from now, whose deadlines are over when a worker has answered the requests before them and
    /// theirs. Of the batch's time the worker loses the share that arrives before it is free.
    fn late_arrivals(&self, lane: usize, slots: &mut [Slot]) -> f64 {
        let arrivals = &self.arrivals[lane];
        let most = |slot: &Slot| (arrivals.per_us * slot.free_us).ceil().max(1.0) as usize;
        let first = self.first_end(&self.menus[lane], slots, most, u64::MAX);
        let Some((end_us, slot, _, size)) = first else {
            return 0.0;
        };
        let free_us = slots[slot].free_us;
        let arrived = (arrivals.per_us * free_us / size as f64).min(1.0);
        slots[slot].free_us += arrived * (end_us - free_us);
        arrivals.worth * arrivals.per_us * (end_us - arrivals.allowed_us).max(0.0)
    }

    /// The time left to the first job that is not taken and due first, and its lane. Moves cursors past taken jobs.
    fn most_urgent(&self, cursors: &mut [usize]) -> Option<(f64, usize)> {
        let mut best: Option<(f64, usize)> = None;
        for (lane, cursor) in cursors.iter_mut().enumerate() {
            let queue = self.queue(lane);
            while queue.get(*cursor).is_some_and(|&at| self.taken[at]) {
                *cursor += 1;
            }
            if let Some(&at) = queue.get(*cursor) {
                let left_us = self.jobs.list[at].left_us;
                if best.is_none_or(|(least_us, _)| left_us < least_us) {
                    best = Some((left_us, lane));
                }
            }
        }
        best
    }

    /// Slot, choice, size and net value of a batch of the first members.
    fn batch(
        &self,
        style: Style,
        lane: usize,
        members: &[usize],
        slots: &[Slot],
    ) -> Option<(usize, usize, usize, f64)> {
        let menu = &self.menus[lane];
        let allows = self.jobs.list[members[0]].allows;
        let first = self.first_end(menu, slots, |_| members.len(), allows);
        let (_, slot, fastest, most) = first?;
        let (choice, size) = match style {
            Style::Frugal => (fastest, most),
            Style::Priced => self
                .priced(&slots[slot], lane, members)
                .unwrap_or((fastest, most)),
        };
        let net = self.net(&slots[slot], lane, choice, &members[..size]);
        Some((slot, choice, size, net))
    }

    /// Choice and size with the most utility per request less the price of its time, of those that answer
    /// the first member in time.
    fn priced(&self, slot: &Slot, lane: usize, members: &[usize]) -> Option<(usize, usize)> {
        let menu = &self.menus[lane];
        let first = &self.jobs.list[members[0]];
        let left_us = first.left_us + menu.grace() * first.allowed_us as f64 - slot.free_us;
        let mut best: Option<(f64, usize, usize)> = None;
        for (at, choice) in menu.choices.iter().enumerate() {
            if first.allows & (1 << at) == 0 {
                continue;
            }
            let mut size = slot.batch_max(choice).min(members.len());
            while size > 0 {
                let time_us = slot.time_us(choice, size);
                let each = menu.unseen[at] - slot.price * time_us / size as f64;
                if time_us <= left_us && best.is_none_or(|(most, ..)| each > most) {
                    best = Some((each, at, size));
                }
                size /= 2;
            }
        }
        self.spend(3 * menu.choices.len());
        if menu.from_evidence.is_some() {
            // Accuracies differ from request to request.
            let alone = |at: &usize| self.net(slot, lane, *at, &members[..1]);
            let allowed = (0..menu.choices.len()).filter(|at| first.allows & (1 << at) != 0);
            let nets = allowed.map(|at| (alone(&at), at));
            let single = nets.max_by(|a, b| a.0.total_cmp(&b.0));
            let together = |(_, choice, size): (f64, usize, usize)| {
                self.net(slot, lane, choice, &members[..size]) / size as f64
            };
            if let Some((net, at)) = single
                && best.map(together).is_none_or(|other| net > other)
            {
                return Some((at, 1));
            }
        }
        best.map(|(_, choice, size)| (choice, size))
    }
}
