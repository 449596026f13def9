//! The kinds of events and what they are called back with.

/// Lists the kinds of events with their callbacks, once, for whoever needs them all. Chunks are not
/// among them: they are expanded before (C-43).
macro_rules! kinds {
    ($list:ident $($with:tt)*) => {
        $list! {
            ($($with)*)
            "A run starts." RunStarted on_run_started,
            "A run finishes." RunFinished on_run_finished,
            "A run says that it failed." RunError on_run_error,
            "A step starts." StepStarted on_step_started,
            "A step finishes." StepFinished on_step_finished,
            "A text message opens." TextMessageStart on_text_message_start,
            "A text message grows; [`Scene::text`] is what it holds before."
                TextMessageContent on_text_message_content,
            "A text message ends; [`Scene::text`] is all it holds."
                TextMessageEnd on_text_message_end,
            "A tool call opens." ToolCallStart on_tool_call_start,
            "A call's arguments grow; [`Scene::arguments`] is what they are before."
                ToolCallArgs on_tool_call_args,
            "A call's arguments end; [`Scene::arguments`] is all of them."
                ToolCallEnd on_tool_call_end,
            "A tool call is answered." ToolCallResult on_tool_call_result,
            "The state is replaced." StateSnapshot on_state_snapshot,
            "The state is patched." StateDelta on_state_delta,
            "The messages are restated." MessagesSnapshot on_messages_snapshot,
            "An activity appears or is replaced; [`Scene::message`] is what has its id before."
                ActivitySnapshot on_activity_snapshot,
            "An activity is patched; [`Scene::message`] is the activity before."
                ActivityDelta on_activity_delta,
            "A provider's own event." Raw on_raw,
            "An application's own event." Custom on_custom,
            "A span of reasoning opens." ReasoningStart on_reasoning_start,
            "A reasoning message opens." ReasoningMessageStart on_reasoning_message_start,
            "A reasoning message grows; [`Scene::text`] is what it holds before."
                ReasoningMessageContent on_reasoning_message_content,
            "A reasoning message ends; [`Scene::text`] is all it holds."
                ReasoningMessageEnd on_reasoning_message_end,
            "A span of reasoning ends." ReasoningEnd on_reasoning_end,
            "An encrypted value comes for a message or a call."
                ReasoningEncryptedValue on_reasoning_encrypted_value,
            "A subagent is announced." SubagentStarted on_subagent_started,
            "A subagent finishes." SubagentFinished on_subagent_finished,
            "A subagent says that it failed." SubagentError on_subagent_error,
        }
    };
}
/// The callbacks of the kinds, as the trait declares them.
macro_rules! callbacks {
    (() $($doc:literal $kind:ident $callback:ident,)*) => {
        $(
            #[doc = $doc]
            fn $callback(&mut self, event: &$kind, scene: &Scene<'_>) -> Reaction {
                let _ = (event, scene);
                Ok(Mutation::new())
            }
        )*
    };
}

/// Calls an observer's callback for an event: its name and what it answers, or `None` where there is
/// no such callback.
macro_rules! call {
    (($observer:ident $event:ident $scene:ident) $($doc:literal $kind:ident $callback:ident,)*) => {
        match $event {
            $(Event::$kind(event) => {
                Some((stringify!($callback), caught(|| $observer.$callback(event, $scene))))
            })*
            _ => None,
        }
    };
}
