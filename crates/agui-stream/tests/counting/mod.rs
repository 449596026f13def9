//! What the thread that runs a test allocates.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Count {
    pub(crate) calls: usize,
    /// Bytes asked for, growth of existing blocks included.
    pub(crate) bytes: usize,
}

thread_local! {
    static COUNT: Cell<Count> = const { Cell::new(Count { calls: 0, bytes: 0 }) };
}

fn note(asked: usize) {
    // Threads that are being torn down are of no interest.
    let _ = COUNT.try_with(|cell| {
        let count = cell.get();
        cell.set(Count { calls: count.calls + 1, bytes: count.bytes + asked });
    });
}

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `run` gives, and what it allocates.
pub(crate) fn counted<T>(run: impl FnOnce() -> T) -> (T, Count) {
    COUNT.set(Count::default());
    let value = run();
    (value, COUNT.get())
}
