//! What the input brings, found by id.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use agui_types::message::ToolMessage;
use agui_types::{
    InterruptId, Json, Message, ResumeEntry, ResumeStatus, RunAgentInput, ToolCallId,
};
use serde::de::DeserializeOwned;

use super::EmitError;
use crate::reading::{self, Misfit};

/// How an interrupt was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// With this.
    Resolved(T),
    /// It was given up: what it was about is not to be done.
    Cancelled,
}

impl<T> Answer<T> {
    /// What it was answered with; `None` where it was given up.
    #[must_use]
    pub fn resolved(self) -> Option<T> {
        match self {
            Self::Resolved(answer) => Some(answer),
            Self::Cancelled => None,
        }
    }
}

impl<T: DeserializeOwned> Answer<T> {
    /// Reads an entry of the input's `resume`, the one at this index.
    pub(super) fn read((at, entry): (usize, &ResumeEntry)) -> Result<Self, EmitError> {
        let what = || format!("the answer to the interrupt {:?}", entry.interrupt_id.as_str());
        match &entry.status {
            ResumeStatus::Cancelled => Ok(Self::Cancelled),
            ResumeStatus::Resolved => {
                let payload =
                    entry.payload.clone().unwrap_or_else(|| serde_json::Value::Null.into());
                read(&payload, what, &format!("/resume/{at}/payload")).map(Self::Resolved)
            }
            // Nobody has said yes.
            other => Err(EmitError::Read {
                what: what(),
                path: format!("/resume/{at}/status"),
                wanted: std::any::type_name::<T>(),
                problem: format!(
                    "expected \"resolved\" or \"cancelled\", found {:?}",
                    other.as_str()
                ),
            }),
        }
    }
}

/// Reads a value as a type; `at` is where the value stands.
pub(super) fn read<T: DeserializeOwned>(
    json: &Json,
    what: impl FnOnce() -> String,
    at: &str,
) -> Result<T, EmitError> {
    reading::read(json).map_err(|Misfit { path, problem }| EmitError::Read {
        what: what(),
        path: format!("{at}{path}"),
        wanted: std::any::type_name::<T>(),
        problem,
    })
}

/// The input, with an index to what is looked up in it. An index is made when it is first used.
pub(super) struct Request {
    input: Arc<RunAgentInput>,
    answers: OnceLock<HashMap<InterruptId, usize>>,
    /// Which entries of `resume` somebody asked for.
    asked: Box<[AtomicBool]>,
    results: OnceLock<HashMap<ToolCallId, usize>>,
}

impl Request {
    pub(super) fn new(input: Arc<RunAgentInput>) -> Self {
        let asked = input.resume.iter().flatten().map(|_| AtomicBool::new(false)).collect();
        Self { input, answers: OnceLock::new(), asked, results: OnceLock::new() }
    }

    pub(super) fn input(&self) -> &RunAgentInput {
        &self.input
    }

    /// The entry that answers an interrupt, and its index.
    pub(super) fn answer(&self, interrupt: &str) -> Option<(usize, &ResumeEntry)> {
        let resume = self.input.resume.as_deref().unwrap_or_default();
        let answers = self.answers.get_or_init(|| {
            let mut answers = HashMap::with_capacity(resume.len());
            for (at, entry) in resume.iter().enumerate() {
                answers.entry(entry.interrupt_id.clone()).or_insert(at);
            }
            answers
        });
        let at = *answers.get(interrupt)?;
        self.asked.get(at)?.store(true, Ordering::Relaxed);
        Some((at, resume.get(at)?))
    }

    pub(super) fn answers(&self) -> impl Iterator<Item = &ResumeEntry> {
        self.asked.iter().for_each(|asked| asked.store(true, Ordering::Relaxed));
        self.input.resume.iter().flatten()
    }

    pub(super) fn tool_message(&self, call: &str) -> Option<&ToolMessage> {
        let messages = &self.input.messages;
        let results = self.results.get_or_init(|| {
            let mut results = HashMap::new();
            for (at, message) in messages.iter().enumerate() {
                if let Message::Tool(message) = message {
                    results.insert(message.tool_call_id.clone(), at);
                }
            }
            results
        });
        match messages.get(*results.get(call)?)? {
            Message::Tool(message) => Some(message),
            _ => None,
        }
    }

    /// P-70: answers to interrupts that the agent does not know are warned of.
    pub(super) fn warn_of_unknown_answers(&self) {
        /// How many are named.
        const MOST: usize = 10;
        let resume = self.input.resume.iter().flatten();
        let mut unknown = resume.zip(&self.asked).filter_map(|(entry, asked)| {
            (!asked.load(Ordering::Relaxed)).then_some(entry.interrupt_id.as_str())
        });
        let named: Vec<&str> = unknown.by_ref().take(MOST).collect();
        if named.is_empty() {
            return;
        }
        let more = unknown.count();
        let (thread, run) = (self.input.thread_id.as_str(), self.input.run_id.as_str());
        tracing::warn!(
            thread,
            run,
            interrupts = ?named,
            more,
            "the input answers interrupts that the agent did not ask about"
        );
    }
}
