//! An allocator that counts for the thread that runs the test.
#![allow(unsafe_code, dead_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[derive(Clone, Copy, Default)]
pub(crate) struct Count {
    pub(crate) calls: usize,
    /// Bytes asked for, growth of existing blocks included.
    pub(crate) total: usize,
    pub(crate) held: usize,
    pub(crate) peak: usize,
}

thread_local! {
    static COUNT: Cell<Count> = const { Cell::new(Count { calls: 0, total: 0, held: 0, peak: 0 }) };
}

fn note(asked: usize, freed: usize) {
    // Threads that are being torn down are of no interest.
    let _ = COUNT.try_with(|cell| {
        let mut count = cell.get();
        if asked > 0 {
            count.calls += 1;
            count.total += asked;
            count.held += asked;
        }
        count.peak = count.peak.max(count.held);
        count.held = count.held.saturating_sub(freed);
        cell.set(count);
    });
}

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 0);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(0, layout.size());
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size, layout.size());
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `run` allocates; `peak` and `held` are above what was held before.
pub(crate) fn counted<T>(run: impl FnOnce() -> T) -> (T, Count) {
    let before = COUNT.get();
    COUNT.set(Count { held: 0, ..Count::default() });
    let value = run();
    let count = COUNT.get();
    COUNT.set(before);
    (value, count)
}
