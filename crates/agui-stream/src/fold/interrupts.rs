//! The interrupts that nobody has answered.

use std::sync::OnceLock;

use agui_types::{Interrupt, InterruptId};

use super::ordered::Ordered;

/// Open interrupts, in the order they were raised. A run that raises or answers one costs what it
/// says, however many are open; the list is made again when someone reads it.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenInterrupts {
    open: Ordered<InterruptId, Interrupt>,
    /// Empty when something changed since it was last read.
    list: OnceLock<Vec<Interrupt>>,
}

impl OpenInterrupts {
    pub(super) fn list(&self) -> &[Interrupt] {
        self.list.get_or_init(|| self.open.iter().map(|(_, open)| open.clone()).collect())
    }

    /// Opens one, or puts it in the place of the one with its id.
    pub(super) fn open(&mut self, interrupt: &Interrupt) {
        self.list.take();
        self.open.set(&interrupt.id, interrupt.clone());
    }

    /// Closes one. `false` where none with this id is open.
    pub(super) fn close(&mut self, id: &InterruptId) -> bool {
        let closed = self.open.remove(id);
        if closed {
            self.list.take();
        }
        closed
    }

    /// Closes them all. `false` where none was open.
    pub(super) fn close_all(&mut self) -> bool {
        std::mem::take(self).open.len() > 0
    }
}

impl FromIterator<Interrupt> for OpenInterrupts {
    fn from_iter<T: IntoIterator<Item = Interrupt>>(interrupts: T) -> Self {
        let mut all = Self::default();
        for interrupt in interrupts {
            all.open(&interrupt);
        }
        all
    }
}
