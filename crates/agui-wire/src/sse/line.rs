//! The lines of an event stream, and the one that a read ended inside.

/// The line that the last read ended inside, if `len` is not 0.
#[derive(Default)]
pub(super) struct Line {
    /// `None` as long as the first bytes, which are in `head`, allow for several.
    pub(super) kind: Option<Kind>,
    pub(super) value_at: usize,
    pub(super) offset: u64,
    pub(super) len: usize,
    pub(super) head: [u8; 7],
}

impl Line {
    /// The first bytes of the line; only while the kind is open, or just settled.
    pub(super) fn head(&self) -> &[u8] {
        &self.head[..self.len.min(self.head.len())]
    }

    /// Adds one of the first bytes. Returns whether that settled the kind.
    pub(super) fn push(&mut self, byte: u8) -> bool {
        self.head[self.len] = byte;
        self.len += 1;
        // A known name, a colon, and the byte that may be the space.
        let name = Kind::by_first_byte(self.head[0]).name();
        let head = self.head();
        let open = !name.is_empty()
            && head.len() <= name.len() + 1
            && head.starts_with(&name[..head.len().min(name.len())])
            && head.get(name.len()).is_none_or(|byte| *byte == b':');
        if !open {
            let (kind, value_at) = Kind::of(head);
            self.kind = Some(kind);
            self.value_at = value_at;
        }
        !open
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Comment,
    Data,
    Id,
    Event,
    Retry,
    Unknown,
}

impl Kind {
    /// What kind of line it is, and where its value starts. `line` must not be empty.
    #[inline]
    pub(super) fn of(line: &[u8]) -> (Self, usize) {
        let kind = Self::by_first_byte(line[0]);
        let name = kind.name();
        match line.strip_prefix(name) {
            _ if name.is_empty() => (kind, 0),
            Some([]) => (kind, name.len()),
            Some([b':', b' ', ..]) => (kind, name.len() + 2),
            Some([b':', ..]) => (kind, name.len() + 1),
            _ => (Self::Unknown, 0),
        }
    }

    /// The only kind that a line with this first byte can be, other than `Unknown`.
    pub(super) fn by_first_byte(byte: u8) -> Self {
        match byte {
            b':' => Self::Comment,
            b'd' => Self::Data,
            b'i' => Self::Id,
            b'e' => Self::Event,
            b'r' => Self::Retry,
            _ => Self::Unknown,
        }
    }

    pub(super) fn name(self) -> &'static [u8] {
        match self {
            Self::Data => b"data",
            Self::Id => b"id",
            Self::Event => b"event",
            Self::Retry => b"retry",
            Self::Comment | Self::Unknown => b"",
        }
    }
}
