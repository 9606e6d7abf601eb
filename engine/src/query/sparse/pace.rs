//! May the work go on? A request's budget of time, looked at between windows.

use chronolith_vfs::Clock;

/// A deadline on a clock.
#[derive(Clone, Copy)]
pub(crate) struct Pace<'a> {
    clock: &'a dyn Clock,
    /// On the clock's monotonic time; `None` = take all the time it needs.
    deadline_ns: Option<u64>,
    is_over: bool,
}

impl<'a> Pace<'a> {
    /// Work that began at `start_ns` and may take `budget_us`.
    pub(crate) fn new(clock: &'a dyn Clock, start_ns: u64, budget_us: Option<u64>) -> Self {
        let deadline = |us: u64| start_ns.saturating_add(us.saturating_mul(1000));
        Self {
            clock,
            deadline_ns: budget_us.map(deadline),
            is_over: false,
        }
    }

    /// True once the deadline has passed; stays true.
    pub(crate) fn is_over(&mut self) -> bool {
        if let Some(deadline_ns) = self.deadline_ns
            && !self.is_over
        {
            self.is_over = self.clock.monotonic_ns() >= deadline_ns;
        }
        self.is_over
    }

    /// True if any question was answered with "over": work was left undone.
    pub(crate) fn was_cut(&self) -> bool {
        self.is_over
    }
}
