//! The messages of a conversation, in order, and found by their ids.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Index;

use agui_types::message::{ActivityMessage, AssistantMessage};
use agui_types::{JsonError, Message, MessageId, ToolCall, ToolCallId};

use super::activity::LiveActivity;
use super::change::{Applied, Change};

/// The messages of a conversation, in order.
///
/// A list, read like a slice: [`len`](Self::len), [`get`](Self::get), [`iter`](Self::iter), an
/// index. And an index: a message is found by its id, and a tool call by its own, in the same time
/// however many there are.
#[derive(Clone, Default)]
pub struct Messages {
    /// A message keeps its slot for as long as it is held.
    slots: Vec<Slot>,
    /// The slots in the order of the messages.
    order: Vec<Key>,
    ids: HashMap<MessageId, Key>,
    calls: HashMap<ToolCallId, CallKey>,
    /// The calls that a tool message answers.
    answered: HashSet<ToolCallId>,
    /// Ids that were there when the exchange began and are gone since: should one come back, it is
    /// not new.
    gone: HashSet<MessageId>,
}

/// A message's slot.
pub(super) type Key = usize;

/// Which message holds a call, and which of its calls it is.
pub(super) type CallKey = (Key, usize);

#[derive(Clone)]
struct Slot {
    id: Option<MessageId>,
    /// Not there when the exchange began.
    new: bool,
    held: Held,
}

#[derive(Clone)]
enum Held {
    Plain(Message),
    Live(Box<LiveActivity>),
}

impl Messages {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The message at a place, counted from 0.
    #[must_use]
    pub fn get(&self, position: usize) -> Option<&Message> {
        self.order.get(position).map(|key| self.at(*key))
    }

    /// The last message.
    #[must_use]
    pub fn last(&self) -> Option<&Message> {
        self.order.last().map(|key| self.at(*key))
    }

    /// All messages, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Message> + ExactSizeIterator + Clone {
        self.order.iter().map(|key| self.at(*key))
    }

    /// A copy of all messages, as the next input wants them.
    #[must_use]
    pub fn to_vec(&self) -> Vec<Message> {
        self.iter().cloned().collect()
    }

    /// The message with an id; the first one, should a producer have used the id again.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&Message> {
        self.ids.get(id).map(|key| self.at(*key))
    }

    /// The tool call with an id, and the message that holds it.
    #[must_use]
    pub fn find_call(&self, id: &str) -> Option<(&AssistantMessage, &ToolCall)> {
        let (key, at) = *self.calls.get(id)?;
        match self.at(key) {
            Message::Assistant(message) => Some((message, message.tool_calls.as_ref()?.get(at)?)),
            _ => None,
        }
    }

    /// Whether the message with an id is an activity. Does not make its text.
    pub(crate) fn is_activity(&self, id: &MessageId) -> bool {
        let slot = self.key(id).map(|key| &self.slots[key]);
        slot.is_some_and(|slot| matches!(slot.plain(), None | Some(Message::Activity(_))))
    }

    pub(super) fn key(&self, id: &MessageId) -> Option<Key> {
        self.ids.get(id).copied()
    }

    fn at(&self, key: Key) -> &Message {
        self.slots[key].message()
    }

    /// A message to look at; `None` for an activity that is being patched, whose text is not made
    /// for a mere look.
    pub(super) fn plain(&self, key: Key) -> Option<&Message> {
        self.slots[key].plain()
    }

    /// A message's role.
    pub(super) fn role(&self, key: Key) -> &str {
        self.plain(key).map_or("activity", Message::tag)
    }

    /// Whether a tool message answers a call.
    pub(super) fn is_answered(&self, call: &ToolCallId) -> bool {
        self.answered.contains(call)
    }

    /// A message to change, but not its id, its role or its list of calls. `None` for an activity
    /// that is being patched: see [`Messages::activity_mut`].
    pub(super) fn at_mut(&mut self, key: Key) -> Option<&mut Message> {
        match &mut self.slots[key].held {
            Held::Plain(message) => Some(message),
            Held::Live(_) => None,
        }
    }

    /// An activity message without its content, to change it.
    pub(super) fn activity_mut(&mut self, key: Key) -> Option<&mut ActivityMessage> {
        match &mut self.slots[key].held {
            Held::Plain(Message::Activity(message)) => Some(message),
            Held::Plain(_) => None,
            Held::Live(activity) => Some(activity.message_mut()),
        }
    }

    /// An activity, to patch it; `None` where the message is none.
    ///
    /// Fails where its content cannot be taken apart.
    pub(super) fn live_mut(&mut self, key: Key) -> Option<Result<&mut LiveActivity, JsonError>> {
        let held = &mut self.slots[key].held;
        if let Held::Plain(Message::Activity(message)) = held {
            match LiveActivity::new(message) {
                Ok(activity) => *held = Held::Live(Box::new(activity)),
                Err(error) => return Some(Err(error)),
            }
        }
        match held {
            Held::Live(activity) => Some(Ok(activity)),
            Held::Plain(_) => None,
        }
    }

    pub(super) fn call_key(&self, id: &ToolCallId) -> Option<CallKey> {
        self.calls.get(id).copied()
    }

    /// The call at a key, with the id of the message that holds it.
    pub(super) fn call_mut(&mut self, key: CallKey) -> Option<(&MessageId, &mut ToolCall)> {
        match &mut self.slots[key.0].held {
            Held::Plain(Message::Assistant(message)) => {
                Some((&message.id, message.tool_calls.as_mut()?.get_mut(key.1)?))
            }
            _ => None,
        }
    }

    /// Adds a call to an assistant message.
    pub(super) fn add_call(&mut self, key: Key, call: ToolCall) -> CallKey {
        let mut at = 0;
        if let Held::Plain(Message::Assistant(message)) = &mut self.slots[key].held {
            let calls = message.tool_calls.get_or_insert_default();
            at = calls.len();
            self.calls.entry(call.id.clone()).or_insert((key, at));
            calls.push(call);
        }
        (key, at)
    }

    /// Adds a message at the end.
    pub(super) fn push(&mut self, message: Message) -> Key {
        self.insert(self.len(), message)
    }

    /// Adds a message at a place, which must not lie behind the end.
    pub(super) fn insert(&mut self, position: usize, message: Message) -> Key {
        let id = message.id();
        let known = |id| {
            self.gone.contains(id) || self.ids.get(id).is_some_and(|key| !self.slots[*key].new)
        };
        let new = !id.as_ref().is_some_and(known);
        // Of two messages with one id, the first in order is the one that is found.
        let behind = |other| self.order[position..].contains(other);
        if let Some(id) = id.as_ref().filter(|id| self.ids.get(*id).is_some_and(behind)) {
            self.ids.remove(id);
        }
        let key = self.slots.len();
        self.slots.push(Slot { id, new, held: Held::Plain(message) });
        self.order.insert(position, key);
        self.enter(key);
        key
    }

    /// Puts an activity in the place of a message with the same id.
    pub(super) fn replace(&mut self, key: Key, activity: ActivityMessage) {
        let indexed = matches!(self.plain(key), Some(Message::Assistant(_) | Message::Tool(_)));
        self.slots[key].held = Held::Plain(activity.into());
        if indexed {
            self.enter_all();
        }
    }

    /// Where a tool result goes: right behind the message that holds the call and the results that
    /// are there already.
    pub(super) fn behind(&self, key: Key) -> usize {
        // Calls are answered soon, so their messages are near the end.
        let holder = self.order.iter().rposition(|other| *other == key);
        let behind = holder.map_or(self.len(), |position| position + 1);
        let results = self.order[behind..].iter();
        behind
            + results.take_while(|key| matches!(self.plain(**key), Some(Message::Tool(_)))).count()
    }

    /// Makes these the messages the producer owns (C-71, section 11): each held one that is among
    /// them is replaced where it stands, others are dropped, new ones come to the end. Activity and
    /// reasoning messages stay where the snapshot has none of their kind.
    pub(super) fn reconcile(&mut self, snapshot: &[Message], applied: &mut Applied) {
        let has = |kind: fn(&Message) -> bool| snapshot.iter().any(kind);
        let has_activity = has(|message| matches!(message, Message::Activity(_)));
        let has_reasoning = has(|message| matches!(message, Message::Reasoning(_)));
        let ids: Vec<_> = snapshot.iter().map(Message::id).collect();
        let with_id = ids.iter().zip(snapshot);
        let restated: HashMap<&MessageId, &Message> =
            with_id.filter_map(|(id, message)| Some((id.as_ref()?, message))).collect();

        let mut held = HashSet::new();
        let mut slots: Vec<Option<Slot>> =
            std::mem::take(&mut self.slots).into_iter().map(Some).collect();
        let order = std::mem::take(&mut self.order);
        for mut slot in order.into_iter().filter_map(|key| slots[key].take()) {
            let restated = slot.id.as_ref().and_then(|id| restated.get_key_value(id));
            let stays = match (restated, slot.plain()) {
                (Some((id, message)), _) => {
                    held.insert(*id);
                    if slot.message() != *message {
                        slot.held = Held::Plain((*message).clone());
                        applied.change(Change::MessageReplaced { message: (*id).clone() });
                    }
                    true
                }
                (None, None | Some(Message::Activity(_))) => !has_activity,
                (None, Some(Message::Reasoning(_))) => !has_reasoning,
                (None, Some(_)) => false,
            };
            if stays {
                self.order.push(self.slots.len());
                self.slots.push(slot);
            } else if let Some(id) = slot.id {
                applied.change(Change::MessageRemoved { message: id.clone() });
                if !slot.new {
                    self.gone.insert(id);
                }
            }
        }
        self.enter_all();
        for (id, message) in ids.iter().zip(snapshot) {
            if id.as_ref().is_some_and(|id| held.contains(id)) {
                continue;
            }
            self.push(message.clone());
            if let Some(id) = id {
                let position = self.len() - 1;
                applied.change(Change::MessageCreated { message: id.clone(), position });
            }
        }
    }

    /// Replaces them all.
    pub(super) fn set(&mut self, messages: Vec<Message>) {
        let before = self.slots.drain(..).filter(|slot| !slot.new).filter_map(|slot| slot.id);
        self.gone.extend(before);
        self.order.clear();
        self.ids.clear();
        self.calls.clear();
        self.answered.clear();
        for message in messages {
            self.push(message);
        }
    }

    /// Calls what is there now old.
    pub(super) fn begin_exchange(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.new = false);
        self.gone.clear();
    }

    /// The ids of the messages that were not there when the exchange began, in order.
    pub(super) fn new_ids(&self) -> impl Iterator<Item = &MessageId> {
        let slots = self.order.iter().map(|key| &self.slots[*key]);
        slots.filter(|slot| slot.new).filter_map(|slot| slot.id.as_ref())
    }

    /// Makes the indexes again.
    fn enter_all(&mut self) {
        self.ids.clear();
        self.calls.clear();
        self.answered.clear();
        for at in 0..self.order.len() {
            self.enter(self.order[at]);
        }
    }

    /// Enters a slot's message and its calls into the indexes. What has an id already, keeps it.
    fn enter(&mut self, key: Key) {
        let slot = &self.slots[key];
        if let Some(id) = &slot.id {
            self.ids.entry(id.clone()).or_insert(key);
        }
        match &slot.held {
            Held::Plain(Message::Assistant(message)) => {
                for (at, call) in message.tool_calls.iter().flatten().enumerate() {
                    self.calls.entry(call.id.clone()).or_insert((key, at));
                }
            }
            Held::Plain(Message::Tool(message)) => {
                self.answered.insert(message.tool_call_id.clone());
            }
            _ => {}
        }
    }
}

impl Slot {
    fn plain(&self) -> Option<&Message> {
        match &self.held {
            Held::Plain(message) => Some(message),
            Held::Live(_) => None,
        }
    }

    fn message(&self) -> &Message {
        match &self.held {
            Held::Plain(message) => message,
            Held::Live(activity) => activity.view(),
        }
    }
}

impl FromIterator<Message> for Messages {
    fn from_iter<T: IntoIterator<Item = Message>>(messages: T) -> Self {
        let mut all = Self::default();
        for message in messages {
            all.push(message);
        }
        all
    }
}

impl Index<usize> for Messages {
    type Output = Message;

    /// The message at a place. Panics where there is none, like a slice.
    fn index(&self, position: usize) -> &Message {
        self.at(self.order[position])
    }
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
