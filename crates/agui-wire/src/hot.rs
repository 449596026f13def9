//! The frame that most of a stream consists of: one more piece of a text.
//!
//! `data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"…","delta":"…"}`, a line feed and a blank line
//! is how every known producer writes it. Taken for what it is, it costs half of what it costs to
//! find the frame's end, check its encoding and read JSON member by member; and writing it likewise.
//! What differs in any byte is left to that: these paths are taken only where both give the same,
//! which the tests hold them to.

use agui_types::event::{ReasoningMessageContent, TextMessageContent, ToolCallArgs};
use agui_types::json::{plain_end, put_plain, read_string, write_string_content};
use agui_types::{Event, EventReader, MessageId, ToolCallId};

use crate::Limits;

/// What comes before the id.
const TEXT: &[u8] = br#"data: {"type":"TEXT_MESSAGE_CONTENT","messageId":""#;
const ARGS: &[u8] = br#"data: {"type":"TOOL_CALL_ARGS","toolCallId":""#;
const REASONING: &[u8] = br#"data: {"type":"REASONING_MESSAGE_CONTENT","messageId":""#;
/// What comes between the id and the delta.
const MIDDLE: &[u8; 11] = br#"","delta":""#;
/// What comes behind the delta.
const END: &[u8; 4] = b"\"}\n\n";

/// Such a frame.
#[derive(Clone, Copy)]
pub(crate) struct Piece<'i> {
    kind: Kind,
    id: &'i [u8],
    /// In its quotes.
    delta: &'i [u8],
    /// What the input has from the delta on, whether or not that is longer.
    ahead: Option<&'i [u8; SHORT]>,
    escaped: bool,
    /// Of the frame, blank line included.
    pub(crate) len: usize,
}

/// What it is a piece of.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Args,
    Reasoning,
}

impl<'i> Piece<'i> {
    /// The frame, if the input begins with a whole one.
    #[inline]
    pub(crate) fn read(input: &'i [u8], limits: &Limits) -> Option<Self> {
        let (kind, id_at) = if input.starts_with(TEXT) {
            (Kind::Text, TEXT.len())
        } else if input.starts_with(ARGS) {
            (Kind::Args, ARGS.len())
        } else if input.starts_with(REASONING) {
            (Kind::Reasoning, REASONING.len())
        } else {
            return None;
        };
        let id_end = plain_end(input, id_at);
        let delta_at = id_end + MIDDLE.len();
        if input.get(id_end..delta_at)? != MIDDLE {
            return None;
        }
        let mut delta_end = plain_end(input, delta_at);
        let mut escaped = false;
        while input.get(delta_end) == Some(&b'\\') {
            // Whatever is escaped, it is not the end.
            delta_end = plain_end(input, delta_end + 2);
            escaped = true;
        }
        let len = delta_end + END.len();
        let line = len - "\n\n".len();
        if input.get(delta_end..len)? != END
            || line > limits.line_bytes
            || line > limits.frame_bytes
        {
            return None;
        }
        let id = input.get(id_at..id_end)?;
        let delta = input.get(delta_at - 1..=delta_end)?;
        let ahead = input.get(delta_at..)?.first_chunk();
        Some(Self { kind, id, delta, ahead, escaped, len })
    }

    /// The event in it; `None` where a string is not UTF-8, or has an escape that is none.
    #[inline]
    pub(crate) fn event(self, ids: &mut EventReader) -> Option<Event> {
        let Self { kind, id, delta, ahead, escaped, .. } = self;
        let delta = if escaped {
            read_string(str::from_utf8(delta).ok()?)?.into_owned()
        } else {
            let delta = delta.get(1..delta.len() - 1)?;
            match ahead.and_then(|ahead| short(ahead, delta.len())) {
                Some(delta) => delta,
                None => str::from_utf8(delta).ok()?.to_owned(),
            }
        };
        let id = ids.intern_bytes(id)?;
        Some(match kind {
            Kind::Text => TextMessageContent::new(MessageId::new(id), delta).into(),
            Kind::Args => ToolCallArgs::new(ToolCallId::new(id), delta).into(),
            Kind::Reasoning => ReasoningMessageContent::new(MessageId::new(id), delta).into(),
        })
    }
}

/// How long a short text is at most, and the room it gets.
const SHORT: usize = 16;

/// The first bytes of these as a text, if they are so few and all are UTF-8. The check and the copy
/// of a size that is known take a fraction of what they take for as few bytes as it happens to be.
#[inline]
fn short(bytes: &[u8; SHORT], len: usize) -> Option<String> {
    #[repr(align(16))]
    struct Aligned([u8; SHORT]);

    let block = Aligned(*bytes);
    let text = str::from_utf8(&block.0).ok().filter(|text| text.is_char_boundary(len))?;
    let mut short = String::with_capacity(SHORT);
    short.push_str(text);
    short.truncate(len);
    Some(short)
}

/// Appends the event as such a frame; `false`, and nothing appended, where it is none.
#[inline]
pub(crate) fn write(event: &Event, out: &mut Vec<u8>) -> bool {
    let (head, room, id, delta, owner, base) = match event {
        Event::TextMessageContent(it) => {
            (TEXT, &TEXT_ROOM, it.message_id.as_str(), &it.delta, &it.subagent_run_id, &it.base)
        }
        Event::ToolCallArgs(it) => {
            (ARGS, &ARGS_ROOM, it.tool_call_id.as_str(), &it.delta, &it.subagent_run_id, &it.base)
        }
        Event::ReasoningMessageContent(it) => (
            REASONING,
            &REASONING_ROOM,
            it.message_id.as_str(),
            &it.delta,
            &it.subagent_run_id,
            &it.base,
        ),
        _ => return false,
    };
    if owner.is_some() || !base.is_empty() {
        return false;
    }
    if id.len() + delta.len() <= SHORT_STRINGS {
        let start = out.len();
        out.extend_from_slice(room);
        if let Some(room) = out.last_chunk_mut()
            && let Some(len) = fill(room, head.len(), id, delta)
        {
            out.truncate(start + len);
            return true;
        }
        out.truncate(start);
    }
    out.reserve(head.len() + id.len() + MIDDLE.len() + delta.len() + END.len());
    out.extend_from_slice(head);
    // No line end that would end the frame is left in a string.
    write_string_content(out, id);
    out.extend_from_slice(MIDDLE);
    write_string_content(out, delta);
    out.extend_from_slice(END);
    true
}

/// How much room a frame with short strings gets, before it is known how long it is.
const ROOM: usize = 128;
/// How long the strings of a frame are together that fits into its room with any head, and with a
/// word behind them.
const SHORT_STRINGS: usize = ROOM - REASONING.len() - MIDDLE.len() - 8;

const TEXT_ROOM: [u8; ROOM] = room(TEXT);
const ARGS_ROOM: [u8; ROOM] = room(ARGS);
const REASONING_ROOM: [u8; ROOM] = room(REASONING);

/// A room that begins with a head.
const fn room(head: &[u8]) -> [u8; ROOM] {
    let mut room = [0; ROOM];
    let (begin, _) = room.split_at_mut(head.len());
    begin.copy_from_slice(head);
    room
}

/// Puts the rest of a frame behind its head, and returns how long it came to be; `None` where a
/// string needs an escape.
#[inline]
fn fill(room: &mut [u8; ROOM], head: usize, id: &str, delta: &str) -> Option<usize> {
    let mut at = head;
    at += put_plain(room.get_mut(at..)?, id.as_bytes())?;
    *room.get_mut(at..)?.first_chunk_mut()? = *MIDDLE;
    at += MIDDLE.len();
    at += put_plain(room.get_mut(at..)?, delta.as_bytes())?;
    *room.get_mut(at..)?.first_chunk_mut()? = *END;
    Some(at + END.len())
}
