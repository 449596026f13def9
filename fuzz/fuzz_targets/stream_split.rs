//! A body of server-sent events and cuts: from bytes to the conversation, the cuts change nothing.
//!
//! Here and not in a crate, since none below the client knows both bytes and rules.
#![no_main]

use agui_stream::fold::Applied;
use agui_stream::{Conversation, Pipeline};
use agui_types::ToJson;
use agui_types::json::Value;
use agui_wire::{Decoder, Limits, WireForm};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    // How long the reads are, up to the first line end; then the body.
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return };
    let (lengths, body) = (&input[..end], &input[end + 1..]);
    let mut rest = body;
    let mut reads: Vec<&[u8]> = Vec::new();
    for length in lengths {
        let (read, after) = rest.split_at(usize::from(*length).min(rest.len()));
        reads.push(read);
        rest = after;
    }
    reads.push(rest);

    let whole = consume([body]);
    assert_eq!(consume(reads), whole);
    assert_eq!(consume(body.chunks(1)), whole);
});

/// What came of a body, as text: events, warnings, the failure, messages, state.
#[derive(Debug, Default, PartialEq)]
struct Consumed {
    delivered: Vec<String>,
    warnings: Vec<String>,
    failure: Option<String>,
    messages: Vec<String>,
    state: String,
}

fn consume<'a>(reads: impl IntoIterator<Item = &'a [u8]>) -> Consumed {
    let mut decoder = Decoder::new(WireForm::Sse, Limits::default());
    let mut client = Client::default();
    let mut verdict = Ok(());
    for read in reads {
        verdict = verdict.and_then(|()| client.take(&mut decoder, read));
    }
    let verdict = verdict.and_then(|()| client.end(&mut decoder));
    let state = client.conversation.state().to_string();
    let messages = client.conversation.messages().iter().map(ToJson::to_json).collect();
    Consumed { failure: verdict.err(), messages, state, ..client.consumed }
}

struct Client {
    pipeline: Pipeline,
    conversation: Conversation,
    applied: Applied,
    consumed: Consumed,
}

impl Default for Client {
    fn default() -> Self {
        Self {
            pipeline: Pipeline::new(),
            conversation: Conversation::new(Vec::new(), Value::Object(Default::default())),
            applied: Applied::default(),
            consumed: Consumed::default(),
        }
    }
}

impl Client {
    fn take(&mut self, decoder: &mut Decoder, mut read: &[u8]) -> Result<(), String> {
        while let Some(decoded) = decoder.decode(&mut read).map_err(|error| error.to_string())? {
            self.deliver(decoded)?;
        }
        assert!(read.is_empty());
        Ok(())
    }

    fn end(&mut self, decoder: &mut Decoder) -> Result<(), String> {
        let ending = decoder.finish().map_err(|error| error.to_string())?;
        ending.last.map_or(Ok(()), |last| self.deliver(last))?;
        self.pipeline.finish().map_err(|fault| fault.to_string())
    }

    fn deliver(&mut self, decoded: agui_wire::Decoded<'_>) -> Result<(), String> {
        let consumed = &mut self.consumed;
        consumed.warnings.extend(decoded.warnings.iter().map(ToString::to_string));
        let Some(reading) = decoded.event else { return Ok(()) };
        let (mut events, mut warnings) = (Vec::new(), Vec::new());
        let verdict = self.pipeline.push(reading, &mut events, &mut warnings);
        for event in events {
            self.conversation.apply(&event, &mut self.applied);
            warnings.append(&mut self.applied.warnings);
            consumed.delivered.push(event.to_json());
        }
        consumed.warnings.extend(warnings.iter().map(ToString::to_string));
        verdict.map_err(|fault| fault.to_string())
    }
}
