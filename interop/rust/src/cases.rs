//! The client on cases: one a line on standard input, what came of it a line on standard output. For
//! `interop/node/differential.mjs`, which runs the published client on the same cases.
//!
//! A case is a thread with one or more exchanges, each with the body of the answer. They go through
//! what an application uses: `Outgoing`, the wire's `Decoder`, `Delivery`, `Conversation`.

use std::io::{BufRead, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use agui_agent::{AgentError, Delivered, Delivery, DeliveryError};
use agui_stream::fold::Applied;
use agui_stream::{Conversation, Fault, Outgoing, Pipeline};
use agui_types::json::Value;
use agui_types::{Event, Interrupt, Json, Message, MessageId, Reading, RunAgentInput, Timestamp};
use agui_wire::{Decoder, Limits, WireForm};
use anyhow::Context;
use futures_util::{FutureExt, StreamExt, stream};
use serde::{Deserialize, Serialize};

pub(crate) fn play() -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for (at, line) in std::io::stdin().lock().lines().enumerate() {
        let case: Case = serde_json::from_str(&line?).with_context(|| format!("case {at}"))?;
        serde_json::to_writer(&mut out, &case.play()?)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

/// A thread and what happens on it.
#[derive(Deserialize)]
struct Case {
    messages: Vec<Message>,
    state: Json,
    exchanges: Vec<Exchange>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Exchange {
    /// What the application adds before it.
    #[serde(default)]
    add_messages: Vec<Message>,
    /// The input but for its messages and its state, which are the thread's.
    input: RunAgentInput,
    /// The body of the answer: server-sent events.
    body: String,
    /// How many bytes of it come at once.
    read: usize,
}

/// What came of an exchange.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    /// What was sent; `null` where the input was refused.
    request: Option<RunAgentInput>,
    failure: Option<Failure>,
    delivered: Vec<Event>,
    messages: Vec<Message>,
    state: Json,
    pending_interrupts: Vec<Interrupt>,
    new_messages: Vec<MessageId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Json>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Failure {
    class: &'static str,
    /// The rule that was broken, where it was one about the order or the shape of events.
    rule: Option<&'static str>,
    /// Which event of the stream, counted from 0.
    event: Option<u64>,
    path: String,
    message: String,
}

impl Case {
    fn play(self) -> anyhow::Result<Vec<Outcome>> {
        let state = Value::try_from(&self.state).context("the state nests too deep")?;
        let mut thread = Conversation::new(self.messages, state);
        Ok(self.exchanges.into_iter().map(|exchange| exchange.play(&mut thread)).collect())
    }
}

impl Exchange {
    fn play(self, thread: &mut Conversation) -> Outcome {
        self.add_messages.into_iter().for_each(|message| thread.push(message));
        let mut input = self.input.state(thread.state().to_json());
        input.messages = thread.messages().to_vec();
        let mut outcome = Outcome::default();
        let mut warnings = Vec::new();
        let prepared =
            Outgoing::new().at(now()).prepare(input, thread.open_interrupts(), &mut warnings);
        outcome.warnings.extend(warnings.iter().map(ToString::to_string));
        let sent = prepared.is_ok();
        match prepared {
            Ok(input) => {
                thread.begin_exchange(&input.run_id, input.resume.as_deref().unwrap_or_default());
                outcome.consume(&self.body, self.read, &input, thread);
                outcome.request = Some(input);
            }
            Err(fault) => outcome.failure = Some(fault.into()),
        }
        outcome.messages = thread.messages().to_vec();
        outcome.state = thread.state().to_json();
        outcome.pending_interrupts = thread.open_interrupts().to_vec();
        if sent {
            outcome.new_messages = thread.new_messages().cloned().collect();
            outcome.result = thread.result().cloned();
        }
        outcome
    }
}

impl Outcome {
    fn consume(
        &mut self,
        body: &str,
        read: usize,
        input: &RunAgentInput,
        thread: &mut Conversation,
    ) {
        let pipeline = Pipeline::for_run(input.thread_id.clone(), input.run_id.clone());
        let events = stream::iter(decode(body.as_bytes(), read));
        let delivery = Delivery::new(Box::pin(events), pipeline);
        let delivered = delivery.collect::<Vec<_>>().now_or_never();
        let mut applied = Applied::default();
        for delivered in delivered.expect("everything is there already") {
            match delivered {
                Ok(Delivered::Event(event)) => {
                    thread.apply(&event, &mut applied);
                    self.warnings.extend(applied.warnings.iter().map(ToString::to_string));
                    self.delivered.push(event);
                }
                Ok(Delivered::Warning(warning)) => self.warnings.push(warning.to_string()),
                Err(error) => self.failure = Some(error.into()),
            }
        }
        thread.end_exchange();
    }
}

/// The events of a body that comes in reads of this many bytes.
fn decode(body: &[u8], read: usize) -> Vec<Result<Reading<Event>, AgentError>> {
    let mut decoder = Decoder::new(WireForm::Sse, Limits::default());
    let mut events = Vec::new();
    let mut take = |mut read: &[u8]| {
        while let Some(decoded) = decoder.decode(&mut read)? {
            events.extend(decoded.event.map(Ok));
        }
        Ok(())
    };
    let mut verdict = body.chunks(read.max(1)).try_for_each(&mut take);
    if verdict.is_ok() {
        match decoder.finish() {
            Ok(ending) => events.extend(ending.last.and_then(|last| last.event).map(Ok)),
            Err(error) => verdict = Err(error),
        }
    }
    events.extend(verdict.err().map(|error| Err(error.into())));
    events
}

fn now() -> Timestamp {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let milliseconds = i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX);
    Timestamp::new(milliseconds).expect("a date before the year 287396")
}

impl Default for Outcome {
    fn default() -> Self {
        Self {
            request: None,
            failure: None,
            delivered: Vec::new(),
            messages: Vec::new(),
            state: Value::Null.to_json(),
            pending_interrupts: Vec::new(),
            new_messages: Vec::new(),
            result: None,
            warnings: Vec::new(),
        }
    }
}

impl From<DeliveryError> for Failure {
    fn from(error: DeliveryError) -> Self {
        let fault = match &error {
            DeliveryError::Fault(fault) => Some(fault),
            DeliveryError::Agent(_) => None,
        };
        let (rule, event) = (fault.map(|it| it.rule), fault.and_then(|it| it.event));
        let (class, path) = (error.class(), error.path().into());
        Self { class, rule, event, path, message: error.to_string() }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        DeliveryError::from(fault).into()
    }
}
