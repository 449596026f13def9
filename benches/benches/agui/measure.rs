//! How long something takes.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// What is measured: how many events there are in how many bytes, and one pass over all of them.
pub(crate) struct Case {
    pub(crate) events: usize,
    /// Bytes of the body; 0 where there is none.
    pub(crate) bytes: usize,
    pass: Box<dyn FnMut() -> Duration>,
}

impl Case {
    /// A pass that counts from its beginning to its end.
    pub(crate) fn new(events: usize, bytes: usize, mut pass: impl FnMut() + 'static) -> Self {
        Self::timed(events, bytes, move || timed(&mut pass))
    }

    /// A pass that says itself how long the part of it took that counts.
    pub(crate) fn timed(
        events: usize,
        bytes: usize,
        pass: impl FnMut() -> Duration + 'static,
    ) -> Self {
        Self { events, bytes, pass: Box::new(pass) }
    }

    /// One pass, and the nanoseconds it took for each event.
    pub(crate) fn pass(&mut self) -> f64 {
        (self.pass)().as_secs_f64() * 1e9 / self.events as f64
    }
}

/// How long the processor works on this. The clock of the thread, not the one on the wall: what
/// other processes take away in between does not count.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = clock_gettime(ClockId::ThreadCPUTime);
    let value = counted(work);
    let end = clock_gettime(ClockId::ThreadCPUTime);
    drop(value);
    let nanos = (end.tv_sec - start.tv_sec) * 1_000_000_000 + (end.tv_nsec - start.tv_nsec);
    Duration::from_nanos(nanos.cast_unsigned())
}

/// What counts has a function of its own, so that a profiler can be told to look at nothing else.
#[inline(never)]
fn counted<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// The best pass of each, in nanoseconds for an event. They take turns, so that a noisy moment hits
/// both.
pub(crate) fn best<const N: usize>(mut cases: [&mut Case; N]) -> [f64; N] {
    const ENOUGH: Duration = Duration::from_millis(1500);
    const ROUNDS: std::ops::RangeInclusive<usize> = 5..=100;
    let mut best = [f64::MAX; N];
    let start = Instant::now();
    for round in 0..*ROUNDS.end() {
        if round >= *ROUNDS.start() && start.elapsed() > ENOUGH {
            break;
        }
        for (best, case) in best.iter_mut().zip(&mut cases) {
            *best = best.min(case.pass());
        }
    }
    best
}
