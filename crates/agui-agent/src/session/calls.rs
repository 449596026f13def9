//! Carrying out one call of a front-end tool.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use agui_types::{Json, ToolCallId};
use tokio::time::Sleep;

use super::tools::{Answering, FrontendTool, Handler, ToolCallContext, ToolOutput};
use crate::panic::caught;

/// A call that is being carried out.
pub(super) struct Calling {
    pub(super) tool_call: ToolCallId,
    pub(super) follow_up: bool,
    stage: Stage,
    timeout: Option<(Duration, Pin<Box<Sleep>>)>,
}

enum Stage {
    Ready(Result<Json, String>, Handler, Box<ToolCallContext>),
    Answering(Answering),
    Over,
}

impl Calling {
    /// Nothing happens before it is polled. `None` where the tool has no handler.
    pub(super) fn new(
        tool: &FrontendTool,
        arguments: &str,
        context: ToolCallContext,
    ) -> Option<Self> {
        let handler = tool.handler.clone()?;
        Some(Self {
            tool_call: context.tool_call_id.clone(),
            follow_up: tool.follow_up,
            stage: Stage::Ready(object(arguments), handler, Box::new(context)),
            timeout: tool.timeout.map(|after| (after, Box::pin(tokio::time::sleep(after)))),
        })
    }

    /// What the handler answers, or why there is no answer: its own error, arguments that are no
    /// object, a panic, its time.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<ToolOutput, String>> {
        let polled = match caught(|| self.poll_handler(cx)) {
            Ok(Poll::Ready(answer)) => Poll::Ready(answer),
            Ok(Poll::Pending) => match &mut self.timeout {
                Some((after, sleep)) => sleep.as_mut().poll(cx).map(|()| Err(too_slow(*after))),
                None => Poll::Pending,
            },
            Err(panic) => {
                tracing::error!(panic, tool_call = %self.tool_call, "a tool panicked");
                Poll::Ready(Err("the tool panicked".into()))
            }
        };
        if polled.is_ready() {
            self.drop_handler();
        }
        polled
    }

    fn poll_handler(&mut self, cx: &mut Context<'_>) -> Poll<Result<ToolOutput, String>> {
        if let Stage::Ready(..) = self.stage
            && let Stage::Ready(arguments, handler, context) =
                std::mem::replace(&mut self.stage, Stage::Over)
        {
            match arguments {
                Ok(arguments) => {
                    self.stage = Stage::Answering(handler(arguments, *context));
                }
                Err(why) => return Poll::Ready(Err(why)),
            }
        }
        match &mut self.stage {
            Stage::Answering(answering) => {
                answering.as_mut().poll(cx).map_err(|error| error.to_string())
            }
            // A handler that panicked before it gave a future.
            _ => Poll::Ready(Err("the tool gave no answer".into())),
        }
    }

    /// Drops the handler's future, which may panic as well.
    fn drop_handler(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        if let Err(panic) = caught(|| drop(stage)) {
            tracing::error!(panic, "a tool panicked while it was dropped");
        }
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        self.drop_handler();
    }
}

/// The arguments, which are an object; no text at all, and `null`, are an empty one.
fn object(text: &str) -> Result<Json, String> {
    let text = text.trim();
    let text = if text.is_empty() || text == "null" { "{}" } else { text };
    match Json::parse(text) {
        Ok(json) if json.is_object() => Ok(json),
        Ok(_) => Err("the arguments are no JSON object".into()),
        Err(error) => Err(format!("the arguments are no JSON: {error}")),
    }
}

fn too_slow(after: Duration) -> String {
    format!("the tool did not answer within {after:?}")
}
