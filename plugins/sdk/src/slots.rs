//! Slots of fixed length; a policy decides anew at the start of each.

use crate::plan::PlanBuilder;

/// The position of a policy in its slots.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    length_us: u64,
    /// When the next one begins, on the host's clock; 0 before the first.
    next_us: u64,
}

// === impl Slots ===

impl Slots {
    /// Slots of this length, at least 1 us. The first begins with the first window.
    pub fn new(length_us: u64) -> Self {
        Self {
            length_us: length_us.max(1),
            next_us: 0,
        }
    }

    /// Whether a slot begins with this window. Call it once in every window: it asks for a window
    /// at the start of the next slot.
    pub fn begin(&mut self, now_us: u64, plan: &mut PlanBuilder<'_>) -> bool {
        let begins = now_us >= self.next_us;
        if begins {
            // A late window does not move the later slots.
            let late_us = match self.next_us {
                0 => 0,
                due_us => (now_us - due_us) % self.length_us,
            };
            self.next_us = now_us - late_us + self.length_us;
        }
        plan.wake_at(self.next_us);
        begins
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::{CatalogBuilder, WindowBuilder};
    use crate::window::{Index, Window};

    fn at(slots: &mut Slots, now_us: u64) -> (bool, Option<u64>) {
        let catalog = CatalogBuilder::new().worker("w").build();
        let window = WindowBuilder::new(&catalog).now_us(now_us).build();
        let mut index = Index::default();
        index.fill(&catalog, &window).unwrap();
        let mut plan = PlanBuilder::new(Window::new(&catalog, &window, &index));
        let begins = slots.begin(now_us, &mut plan);
        (begins, plan.finish().wake)
    }

    #[test]
    fn a_late_window_does_not_move_the_slots() {
        let mut slots = Slots::new(100);
        assert_eq!(at(&mut slots, 30), (true, Some(130)));
        assert_eq!(at(&mut slots, 90), (false, Some(130)), "in between");
        assert_eq!(at(&mut slots, 130), (true, Some(230)));
        assert_eq!(at(&mut slots, 245), (true, Some(330)), "15 us late");
        assert_eq!(at(&mut slots, 600), (true, Some(630)), "two were missed");
    }
}
