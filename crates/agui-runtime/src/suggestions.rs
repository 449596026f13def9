//! Suggestions, asked for where there is no route for them.

use agui_types::{Message, RunAgentInput};

/// The tool by whose call an agent suggests.
const TOOL: &str = "copilotkitSuggest";

/// Whether this run is a front end's way to ask for suggestions. On the single route it has no other,
/// and takes a thread for each time that nobody ever comes back to: the tool is the only one, and the
/// last message, the request, bears the thread's own id.
pub(crate) fn wanted(input: &RunAgentInput) -> bool {
    let tools = input.tools.as_deref().unwrap_or_default();
    let last = input.messages.last();
    matches!(tools, [tool] if tool.name == TOOL)
        && matches!(last, Some(Message::User(asked)) if asked.id.as_str() == input.thread_id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_types::{Tool, message::UserMessage};

    #[test]
    fn suggestions_are_told_from_a_conversation() {
        let asked = |id: &str| vec![UserMessage::new(id, "Suggest").into()];
        let input = |id: &str| RunAgentInput::new("thread", "run", asked(id));
        let tool = |name: &str| Tool::new(name, "");
        assert!(wanted(&input("thread").tools(vec![tool(TOOL)])));
        for other in [
            input("thread"),
            input("message").tools(vec![tool(TOOL)]),
            input("thread").tools(vec![tool("pick_colour")]),
            input("thread").tools(vec![tool(TOOL), tool("pick_colour")]),
            RunAgentInput::new("thread", "run", Vec::new()).tools(vec![tool(TOOL)]),
        ] {
            assert!(!wanted(&other), "{other:?}");
        }
    }
}
