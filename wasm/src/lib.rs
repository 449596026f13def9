//! The crates without I/O as a WebAssembly module that any host can load: it imports nothing.
//!
//! It folds one body of server-sent events after another into one conversation. The host asks for
//! room, writes what it read there, and has it folded; then it reads what is there now:
//!
//! ```text
//! pointer = agui_room(length)     write `length` bytes at `pointer`
//! agui_feed()                     1 where the body broke a rule, else 0
//! agui_finish()                   the body has ended: the same
//! pointer = agui_messages()       or agui_state(), agui_failure(), agui_warnings(): UTF-8 text,
//! agui_length()                   and how many bytes of it; until the next call of any function
//! ```
//!
//! `interop/node/wasm.test.mjs` shows how. There is no thread and one conversation a module; a host
//! that wants several makes several instances.
// For the names of what is exported; there is no unsafe block.
#![allow(unsafe_code)]

use std::cell::RefCell;

use agui_stream::fold::Applied;
use agui_stream::{Conversation, Pipeline};
use agui_types::json::Value;
use agui_types::{Event, ToJson};
use agui_wire::{Decoded, Decoder, Limits, WireForm};

thread_local! {
    static MODULE: RefCell<Module> = RefCell::new(Module::new());
}

/// Makes room for the next piece of the body and says where.
#[unsafe(no_mangle)]
pub extern "C" fn agui_room(bytes: usize) -> *mut u8 {
    MODULE.with_borrow_mut(|module| {
        module.read.clear();
        module.read.resize(bytes, 0);
        module.read.as_mut_ptr()
    })
}

/// Folds the piece that was written. 1 where it broke a rule, or one before did; else 0.
#[unsafe(no_mangle)]
pub extern "C" fn agui_feed() -> u32 {
    MODULE.with_borrow_mut(|module| {
        let read = std::mem::take(&mut module.read);
        module.attempt(|module| module.feed(&read))
    })
}

/// Says that the body has ended; another one may follow. 1 where it broke a rule, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn agui_finish() -> u32 {
    MODULE.with_borrow_mut(|module| {
        let failed = module.attempt(Module::finish);
        module.decoder = Decoder::new(WireForm::Sse, Limits::default());
        module.pipeline = Pipeline::new();
        failed
    })
}

/// The messages, as a JSON array.
#[unsafe(no_mangle)]
pub extern "C" fn agui_messages() -> *const u8 {
    show(|module| {
        let messages = module.conversation.messages().iter().map(ToJson::to_json);
        format!("[{}]", messages.collect::<Vec<_>>().join(","))
    })
}

/// The state, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn agui_state() -> *const u8 {
    show(|module| module.conversation.state().to_string())
}

/// What broke a rule last; nothing where nothing has.
#[unsafe(no_mangle)]
pub extern "C" fn agui_failure() -> *const u8 {
    show(|module| module.failure.clone().unwrap_or_default())
}

/// What was dropped, stripped or translated so far, a line each.
#[unsafe(no_mangle)]
pub extern "C" fn agui_warnings() -> *const u8 {
    show(|module| module.warnings.clone())
}

/// How many bytes the text has that was asked for last.
#[unsafe(no_mangle)]
pub extern "C" fn agui_length() -> usize {
    MODULE.with_borrow(|module| module.shown.len())
}

fn show(text: impl FnOnce(&Module) -> String) -> *const u8 {
    MODULE.with_borrow_mut(|module| {
        module.shown = text(module);
        module.shown.as_ptr()
    })
}

struct Module {
    read: Vec<u8>,
    shown: String,
    decoder: Decoder,
    pipeline: Pipeline,
    conversation: Conversation,
    applied: Applied,
    events: Vec<Event>,
    warnings: String,
    failure: Option<String>,
}

impl Module {
    fn new() -> Self {
        Self {
            read: Vec::new(),
            shown: String::new(),
            decoder: Decoder::new(WireForm::Sse, Limits::default()),
            pipeline: Pipeline::new(),
            conversation: Conversation::new(Vec::new(), Value::Object(Default::default())),
            applied: Applied::default(),
            events: Vec::new(),
            warnings: String::new(),
            failure: None,
        }
    }

    fn attempt(&mut self, step: impl FnOnce(&mut Self) -> Result<(), String>) -> u32 {
        match step(self) {
            Ok(()) => 0,
            Err(failure) => {
                self.failure = Some(failure);
                1
            }
        }
    }

    fn feed(&mut self, mut read: &[u8]) -> Result<(), String> {
        let Self { decoder, pipeline, conversation, applied, events, warnings, .. } = self;
        let mut fold = Fold { pipeline, conversation, applied, events, warnings };
        while let Some(decoded) = decoder.decode(&mut read).map_err(|error| error.to_string())? {
            fold.take(decoded)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        let Self { decoder, pipeline, conversation, applied, events, warnings, .. } = self;
        let mut fold = Fold { pipeline, conversation, applied, events, warnings };
        let ending = decoder.finish().map_err(|error| error.to_string())?;
        ending.last.map_or(Ok(()), |last| fold.take(last))?;
        self.pipeline.finish().map_err(|fault| fault.to_string())
    }
}

/// Everything behind the decoder, which lends out its frames.
struct Fold<'m> {
    pipeline: &'m mut Pipeline,
    conversation: &'m mut Conversation,
    applied: &'m mut Applied,
    events: &'m mut Vec<Event>,
    warnings: &'m mut String,
}

impl Fold<'_> {
    fn take(&mut self, decoded: Decoded<'_>) -> Result<(), String> {
        decoded.warnings.iter().for_each(|warning| self.warn(warning));
        let Some(reading) = decoded.event else { return Ok(()) };
        let mut warnings = Vec::new();
        let verdict = self.pipeline.push(reading, self.events, &mut warnings);
        for event in self.events.drain(..) {
            self.conversation.apply(&event, self.applied);
            warnings.append(&mut self.applied.warnings);
        }
        warnings.iter().for_each(|warning| self.warn(warning));
        verdict.map_err(|fault| fault.to_string())
    }

    fn warn(&mut self, warning: &impl ToString) {
        self.warnings.push_str(&warning.to_string());
        self.warnings.push('\n');
    }
}
