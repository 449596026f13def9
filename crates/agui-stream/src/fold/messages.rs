//! The messages of a conversation, in order, and found by their ids.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops;

use agui_types::message::{ActivityMessage, AssistantMessage};
use agui_types::{JsonError, Message, MessageId, ToolCall, ToolCallId};

use super::activity::LiveActivity;
use super::change::{Applied, Change};
use super::index::{Index, Place};
use super::sequence::{Key, Kinds, Sequence};

/// The messages of a conversation, in order.
///
/// A list, read like a slice: [`len`](Self::len), [`get`](Self::get), [`iter`](Self::iter), an
/// index. And an index: a message is found by its id, and a tool call by its own, in the same time
/// however many there are.
#[derive(Clone, Default)]
pub struct Messages {
    slots: Sequence<Slot>,
    ids: Index<MessageId>,
    calls: Index<ToolCallId>,
    /// How many tool messages answer a call.
    answers: HashMap<ToolCallId, usize>,
    /// How many exchanges began.
    exchange: u64,
    /// Ids that were there when the exchange began and are gone since: should one come back, it is
    /// not new.
    gone: HashSet<MessageId>,
}

#[derive(Clone)]
struct Slot {
    id: Option<MessageId>,
    /// The exchange that brought it; `None` where it came back, having been there before.
    brought: Option<u64>,
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
        self.slots.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The message at a place, counted from 0.
    #[must_use]
    pub fn get(&self, position: usize) -> Option<&Message> {
        self.slots.at(position).map(|key| self.at(key))
    }

    /// The last message.
    #[must_use]
    pub fn last(&self) -> Option<&Message> {
        self.iter().next_back()
    }

    /// All messages, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Message> + ExactSizeIterator + Clone {
        self.slots.keys().map(|key| self.at(key))
    }

    /// A copy of all messages, as the next input wants them.
    #[must_use]
    pub fn to_vec(&self) -> Vec<Message> {
        self.iter().cloned().collect()
    }

    /// The message with an id; the first one, should a producer have used the id again.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&Message> {
        self.ids.first(id).map(|(key, _)| self.at(key))
    }

    /// The tool call with an id, and the message that holds it.
    #[must_use]
    pub fn find_call(&self, id: &str) -> Option<(&AssistantMessage, &ToolCall)> {
        let (key, at) = self.calls.first(id)?;
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
        self.ids.first(id).map(|(key, _)| key)
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
        self.answers.contains_key(call)
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

    pub(super) fn call_key(&self, id: &ToolCallId) -> Option<Place> {
        self.calls.first(id)
    }

    /// The call at a key, with the id of the message that holds it.
    pub(super) fn call_mut(&mut self, key: Place) -> Option<(&MessageId, &mut ToolCall)> {
        match &mut self.slots[key.0].held {
            Held::Plain(Message::Assistant(message)) => {
                Some((&message.id, message.tool_calls.as_mut()?.get_mut(key.1)?))
            }
            _ => None,
        }
    }

    /// Adds a call to an assistant message.
    pub(super) fn add_call(&mut self, key: Key, call: ToolCall) -> Place {
        let mut at = 0;
        if let Held::Plain(Message::Assistant(message)) = &mut self.slots[key].held {
            let calls = message.tool_calls.get_or_insert_default();
            at = calls.len();
            let id = call.id.clone();
            calls.push(call);
            self.calls.enter(id, (key, at), in_order(&self.slots));
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
        let known =
            |id| self.gone.contains(id) || self.key(id).is_some_and(|key| !self.is_new(key));
        let brought = (!id.as_ref().is_some_and(known)).then_some(self.exchange);
        let held = Held::Plain(message);
        let kind = held.kind();
        let key = self.slots.insert(position, Slot { id, brought, held }, kind);
        self.enter(key);
        key
    }

    /// Puts an activity in the place of a message with the same id. Gives back the calls that are
    /// no longer held.
    pub(super) fn replace(&mut self, key: Key, activity: ActivityMessage) -> Vec<ToolCallId> {
        let mut calls = self.set_message(key, activity.into());
        calls.retain(|call| self.call_key(call).is_none());
        calls
    }

    /// Where a tool result goes: right behind the message that holds the call and the results that
    /// are there already.
    pub(super) fn behind(&self, key: Key) -> usize {
        let others = Kinds::ALL.without(TOOL);
        let next = self.slots.next_of(others, self.slots.position(key) + 1);
        next.map_or(self.len(), |(_, position)| position)
    }

    /// Makes these the messages the producer owns (C-71, section 11): each held one that is among
    /// them is replaced where it stands, others are dropped, new ones come to the end. Activity and
    /// reasoning messages stay where the snapshot has none of their kind, and cost nothing.
    ///
    /// Of several held ones with one id, the first is replaced and the others are dropped.
    pub(super) fn reconcile(&mut self, snapshot: &[Message], applied: &mut Applied) {
        let ids: Vec<_> = snapshot.iter().map(Message::id).collect();
        let with_id = ids.iter().zip(snapshot);
        let restated: HashMap<&MessageId, &Message> =
            with_id.filter_map(|(id, message)| Some((id.as_ref()?, message))).collect();
        let mut owned = Kinds::ALL;
        for kind in [ACTIVITY, REASONING] {
            if !snapshot.iter().any(|message| kind_of(message) == kind) {
                owned = owned.without(kind);
            }
        }

        // What becomes of each message that does not stay as it is.
        let mut held = HashSet::new();
        let mut fates = Vec::new();
        for (id, message) in &restated {
            for (at, (key, _)) in self.ids.all(id).into_iter().enumerate() {
                held.insert(*id);
                fates.push((self.slots.position(key), key, (at == 0).then_some(*message)));
            }
        }
        let mut next = self.slots.next_of(owned, 0);
        while let Some((key, position)) = next {
            if !self.slots[key].id.as_ref().is_some_and(|id| restated.contains_key(id)) {
                fates.push((position, key, None));
            }
            next = self.slots.next_of(owned, position + 1);
        }
        fates.sort_unstable_by_key(|(position, ..)| *position);

        for (_, key, fate) in fates {
            match fate {
                Some(message) if self.at(key) == message => {}
                Some(message) => {
                    self.set_message(key, message.clone());
                    if let Some(message) = self.slots[key].id.clone() {
                        applied.change(Change::MessageReplaced { message });
                    }
                }
                None => {
                    let new = self.is_new(key);
                    self.leave(key);
                    let removed = self.slots.remove(key);
                    if let Some(id) = removed.and_then(|slot| slot.id) {
                        applied.change(Change::MessageRemoved { message: id.clone() });
                        if !new {
                            self.gone.insert(id);
                        }
                    }
                }
            }
        }
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
        let exchange = self.exchange;
        let old = self.slots.drain().filter(|slot| slot.brought != Some(exchange));
        self.gone.extend(old.filter_map(|slot| slot.id));
        self.ids.clear();
        self.calls.clear();
        self.answers.clear();
        for message in messages {
            self.push(message);
        }
    }

    /// Calls what is there now old.
    pub(super) fn begin_exchange(&mut self) {
        self.exchange += 1;
        self.gone.clear();
    }

    /// The ids of the messages that were not there when the exchange began, in order.
    pub(super) fn new_ids(&self) -> impl Iterator<Item = &MessageId> {
        let new = self.slots.keys().filter(|key| self.is_new(*key));
        new.filter_map(|key| self.slots[key].id.as_ref())
    }

    fn is_new(&self, key: Key) -> bool {
        self.slots[key].brought == Some(self.exchange)
    }

    /// Puts a message in the place of one with the same id. Gives back the calls that were there.
    fn set_message(&mut self, key: Key, message: Message) -> Vec<ToolCallId> {
        let calls = self.leave(key);
        self.slots.set_kind(key, kind_of(&message));
        self.slots[key].held = Held::Plain(message);
        self.enter(key);
        calls
    }

    /// Enters a message and its calls into the indexes.
    fn enter(&mut self, key: Key) {
        let slot = &self.slots[key];
        if let Some(id) = &slot.id {
            self.ids.enter(id.clone(), (key, 0), in_order(&self.slots));
        }
        for (at, call) in slot.calls().iter().enumerate() {
            self.calls.enter(call.id.clone(), (key, at), in_order(&self.slots));
        }
        if let Some(call) = slot.answers() {
            *self.answers.entry(call.clone()).or_default() += 1;
        }
    }

    /// Takes a message and its calls out of the indexes. Gives back the calls.
    fn leave(&mut self, key: Key) -> Vec<ToolCallId> {
        let slot = &self.slots[key];
        if let Some(id) = &slot.id {
            self.ids.leave(id, (key, 0), in_order(&self.slots));
        }
        for (at, call) in slot.calls().iter().enumerate() {
            self.calls.leave(&call.id, (key, at), in_order(&self.slots));
        }
        if let Some(call) = slot.answers()
            && let Some(count) = self.answers.get_mut(call)
        {
            *count -= 1;
            if *count == 0 {
                self.answers.remove(call);
            }
        }
        slot.calls().iter().map(|call| call.id.clone()).collect()
    }
}

/// How two places stand to each other.
fn in_order(slots: &Sequence<Slot>) -> impl Fn(Place) -> Place {
    move |(key, at)| (slots.position(key), at)
}

// The kinds of messages that a tool result or a snapshot tells apart.
const TOOL: usize = 0;
const ACTIVITY: usize = 1;
const REASONING: usize = 2;
const OTHER: usize = 3;

fn kind_of(message: &Message) -> usize {
    match message {
        Message::Tool(_) => TOOL,
        Message::Activity(_) => ACTIVITY,
        Message::Reasoning(_) => REASONING,
        _ => OTHER,
    }
}

impl Held {
    fn kind(&self) -> usize {
        match self {
            Self::Plain(message) => kind_of(message),
            Self::Live(_) => ACTIVITY,
        }
    }
}

impl Slot {
    fn calls(&self) -> &[ToolCall] {
        match &self.held {
            Held::Plain(Message::Assistant(message)) => {
                message.tool_calls.as_deref().unwrap_or_default()
            }
            _ => &[],
        }
    }

    /// The call it answers.
    fn answers(&self) -> Option<&ToolCallId> {
        match &self.held {
            Held::Plain(Message::Tool(message)) => Some(&message.tool_call_id),
            _ => None,
        }
    }

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

impl ops::Index<usize> for Messages {
    type Output = Message;

    /// The message at a place. Panics where there is none, like a slice.
    fn index(&self, position: usize) -> &Message {
        self.get(position).expect("a place among the messages")
    }
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
