//! The `THINKING_*` events of 0.x.

use agui_types::event::RunStarted;
use agui_types::read::Reading;
use agui_types::{Event, FromJson, Json, JsonObject, MessageId, ReadError, Unknown};

use crate::Warning;

/// Translates `THINKING_*` events, which have no ids, into reasoning events, which need them.
#[derive(Clone, Debug, Default)]
pub(super) struct Thinking {
    /// What the ids of this run are derived from.
    seed: [u64; 2],
    minted: u64,
    span: Option<MessageId>,
    message: Option<MessageId>,
}

impl Thinking {
    pub(super) fn start_run(&mut self, event: &RunStarted) {
        let (thread, run) = (event.thread_id.as_str(), event.run_id.as_str());
        *self = Self { seed: [1, 2].map(|basis| hash(basis, [thread, run])), ..Self::default() };
    }

    /// The reasoning event that a retired one stands for; `None` where it is none.
    pub(super) fn translate(
        &mut self,
        retired: &Unknown,
        warnings: &mut Vec<Warning>,
    ) -> Option<Result<Reading<Event>, ReadError>> {
        let (current, opens, is_span) = match retired.tag() {
            "THINKING_START" => ("REASONING_START", true, true),
            "THINKING_END" => ("REASONING_END", false, true),
            "THINKING_TEXT_MESSAGE_START" => ("REASONING_MESSAGE_START", true, false),
            "THINKING_TEXT_MESSAGE_CONTENT" => ("REASONING_MESSAGE_CONTENT", false, false),
            "THINKING_TEXT_MESSAGE_END" => ("REASONING_MESSAGE_END", false, false),
            _ => return None,
        };
        let slot = if is_span { &mut self.span } else { &mut self.message };
        let open = if opens { None } else { slot.clone() };
        let id = match &open {
            Some(id) => id.clone(),
            None => {
                self.minted += 1;
                mint(self.seed, self.minted)
            }
        };
        if opens {
            *slot = Some(id.clone());
        } else if current.ends_with("_END") {
            *slot = None;
        }
        if !opens && open.is_none() {
            let message = format!(
                "invented the id {id} for {}: nothing it could close is open",
                retired.tag()
            );
            warnings.push(Warning::new("C-84", "", message));
        }

        let mut text = format!("{{\"type\":\"{current}\",\"messageId\":\"{id}\"");
        if current == "REASONING_MESSAGE_START" {
            text.push_str(",\"role\":\"reasoning\"");
        }
        // What came as an event is an object.
        let members = JsonObject::try_from(retired.json().clone()).unwrap_or(JsonObject::empty());
        for (name, value) in members.members() {
            match &*name {
                "type" => {}
                "messageId" | "role" | "title" => {
                    let message = format!(
                        "dropped {name} of {}: {current} has no place for it",
                        retired.tag()
                    );
                    warnings.push(Warning::new("C-84", format!("/{name}"), message));
                }
                _ => {
                    let name =
                        Json::encode(&*name).map_or_else(|_| "\"\"".into(), |it| it.to_string());
                    text.push_str(&format!(",{name}:{value}"));
                }
            }
        }
        text.push('}');
        Some(Event::from_json_tolerant(&text))
    }
}

/// An id in the shape of a version 8 UUID: 122 bits of a hash.
fn mint(seed: [u64; 2], count: u64) -> MessageId {
    let [high, low] = seed.map(|seed| mix(seed ^ mix(count)));
    let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0x0fff);
    let (d, e) = ((low >> 48) & 0x3fff | 0x8000, low & 0xffff_ffff_ffff);
    MessageId::from(format!("{a:08x}-{b:04x}-8{c:03x}-{d:04x}-{e:012x}"))
}

/// FNV-1a over texts and their ends.
fn hash(basis: u64, texts: [&str; 2]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().map(u64::from).chain([0x100]));
    mix(bytes.fold(0xcbf2_9ce4_8422_2325 ^ mix(basis), |hash, byte| {
        (hash ^ byte).wrapping_mul(0x0100_0000_01b3)
    }))
}

/// The finaliser of SplitMix64.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
