//! A run input on its way out of a client, and into an agent.

mod date;
mod outgoing;

use std::collections::HashSet;

use agui_types::message::{ToolMessage, UserMessage};
use agui_types::read::{Finding, FindingKind};
use agui_types::{ContentPart, JsonObject, Message, MessageContent, Reading, RunAgentInput};

use crate::compat::{Binary, retired_null, upgrade};
use crate::enforce::{enforce_input, strip_input};
use crate::{Class, Fault, Warning};
pub use outgoing::Outgoing;

/// What an agent makes of the input it was sent, before its run starts: retired shapes are
/// translated (C-84), what the protocol does not describe is stripped (P-74), both with a warning.
///
/// Fails where a member that may be left out is `null` instead (P-17), a message, part or other
/// member of a union does not say what it is, or a retired `binary` part names no media (P-73). Input
/// that is malformed otherwise does not get this far: reading it fails.
pub fn accept_input(
    reading: impl Into<Reading<RunAgentInput>>,
    warnings: &mut Vec<Warning>,
) -> Result<RunAgentInput, Fault> {
    let Reading { value: mut input, findings } = reading.into();
    untagged(&findings)?;
    empty_binary(&input.messages)?;
    let omitted = findings.omitted();
    let mut findings: Vec<_> = findings.into_iter().collect();
    // Each shape is told of once, where it was met first.
    let mut told = HashSet::new();
    let mut tell = |shape: &'static str, path: &str, message: String| {
        if told.insert(shape) {
            warnings.push(Warning::new("C-84", path, message));
        }
    };
    findings.retain(|finding| {
        let retired = match finding.kind {
            FindingKind::Null => retired_null(&input.messages, &finding.path),
            _ => None,
        };
        if let Some(shape) = retired {
            tell(shape, &finding.path, format!("{shape}: null is retired and read as absent"));
        }
        retired.is_none()
    });
    upgrade(&mut input.messages, |message, part, binary| {
        if binary == Binary::Upgraded {
            let path = format!("/messages/{message}/content/{part}");
            let message = "binary content parts are retired and read as media parts";
            tell("binary", &path, message.into());
        }
    });
    enforce_input(&mut input, findings, omitted, warnings)?;
    Ok(input)
}

/// A stream's reader lets pass what has no discriminator, and strips it. Whoever sends an input is
/// told: nothing was asked for yet, and a message would be lost.
fn untagged(findings: &[Finding]) -> Result<(), Fault> {
    let is_untagged = |finding: &&Finding| matches!(&finding.kind, FindingKind::UnknownVariant(tag) if tag.is_empty());
    let Some(finding) = findings.iter().find(is_untagged) else {
        return Ok(());
    };
    let expected = "a string that says what this is: a role or type";
    let fix = "send the role of each message and the type of each part, source and outcome";
    let fault = Fault::new("P-73", Class::Schema, expected, "none", fix);
    Err(fault.at(finding.path.as_str()))
}

/// A retired part that names no media was malformed already when it was current.
fn empty_binary(messages: &[Message]) -> Result<(), Fault> {
    let is_empty = |part: &ContentPart| {
        let ContentPart::Unknown(part) = part else {
            return false;
        };
        let object = JsonObject::try_from(part.json().clone());
        let names = |member| {
            let value = object.as_ref().ok().and_then(|object| object.get(member));
            value.is_some_and(|value| !matches!(value, "null" | "\"\""))
        };
        part.tag() == "binary" && !["id", "url", "data"].into_iter().any(names)
    };
    for (at, message) in messages.iter().enumerate() {
        let (Message::User(UserMessage { content, .. })
        | Message::Tool(ToolMessage { content, .. })) = message
        else {
            continue;
        };
        let MessageContent::Parts(parts) = content else {
            continue;
        };
        if let Some(part) = parts.iter().position(is_empty) {
            let expected = "a binary part with an id, a url or data";
            let fix = "send an image, audio, video or document part with a source";
            let fault = Fault::new("P-73", Class::Schema, expected, "one with none of them", fix);
            return Err(fault.at(format!("/messages/{at}/content/{part}")));
        }
    }
    Ok(())
}

/// The last step of [`Outgoing::prepare`] by itself: what the protocol does not describe is removed
/// with a warning (C-37), and `null` for absent is left out (P-17).
///
/// What is malformed was refused when the input was read.
pub fn enforce_outgoing(
    reading: impl Into<Reading<RunAgentInput>>,
    warnings: &mut Vec<Warning>,
) -> RunAgentInput {
    let Reading { value: mut input, findings } = reading.into();
    let omitted = findings.omitted();
    let mut findings: Vec<_> = findings.into_iter().collect();
    findings.retain(|finding| finding.kind != FindingKind::Null);
    leave_nulls_out(&mut input);
    strip_input(&mut input, findings, omitted, warnings);
    input
}

/// Members that hold any JSON but `null`: a `null` in them means nothing was there.
fn leave_nulls_out(input: &mut RunAgentInput) {
    input.state.take_if(|json| json.is_null());
    input.forwarded_props.take_if(|json| json.is_null());
    for entry in input.resume.iter_mut().flatten() {
        entry.payload.take_if(|json| json.is_null());
    }
    for tool in input.tools.iter_mut().flatten() {
        tool.parameters.take_if(|json| json.is_null());
    }
    for message in &mut input.messages {
        let content = match message {
            Message::User(message) => &mut message.content,
            Message::Tool(message) => &mut message.content,
            _ => continue,
        };
        let MessageContent::Parts(parts) = content else {
            continue;
        };
        for metadata in parts.iter_mut().filter_map(ContentPart::metadata_mut) {
            metadata.take_if(|json| json.is_null());
        }
    }
}

#[cfg(test)]
mod tests {
    use agui_types::read::Findings;
    use agui_types::{FromJson, ToJson};

    use super::*;

    fn accept(text: &str) -> (Result<String, Fault>, Vec<Warning>) {
        let text = format!(r#"{{"threadId":"t","runId":"r",{text}}}"#);
        let mut warnings = Vec::new();
        let reading = RunAgentInput::from_json_tolerant(&text).unwrap();
        (accept_input(reading, &mut warnings).map(|input| input.to_json()), warnings)
    }

    #[test]
    fn an_agent_strips_what_it_does_not_know() {
        // P-74, P-75
        let (input, warnings) = accept(r#""messages":[{"role":"robot"}],"mood":"good""#);
        let expected = r#"{"threadId":"t","runId":"r","messages":[],"tools":[],"context":[]}"#;
        assert_eq!(input.unwrap(), expected);
        let found: Vec<_> = warnings.iter().map(|it| (it.rule, it.path.as_str())).collect();
        assert_eq!(found, [("C-26", "/messages/0"), ("C-23", "/mood")]);
    }

    #[test]
    fn an_agent_reads_retired_shapes() {
        // C-84
        let (input, warnings) = accept(
            r#""state":null,"tools":[{"name":"n","description":"d","parameters":null}],"messages":[{"role":"user","id":"u","content":[{"type":"binary","mimeType":"image/png","data":"AA"}]}]"#,
        );
        let input = input.unwrap();
        assert!(!input.contains("null") && input.contains(r#""type":"image""#), "{input}");
        let rules: Vec<_> = warnings.iter().map(|it| it.rule).collect();
        assert_eq!(rules, ["C-84"; 3]);
    }

    #[test]
    fn an_agent_refuses_what_does_not_say_what_it_is() {
        // P-73
        for (messages, path) in [
            (r#"[{"id":"a","content":"x"}]"#, "/messages/0"),
            (r#"[{"id":"a","role":null,"content":"x"}]"#, "/messages/0"),
            (r#"[{"id":"a","role":"user","content":[{"text":"x"}]}]"#, "/messages/0/content/0"),
            (
                r#"[{"id":"a","role":"user","content":[{"type":"binary","mimeType":"image/png"}]}]"#,
                "/messages/0/content/0",
            ),
        ] {
            let fault = accept(&format!("\"messages\":{messages}")).0.unwrap_err();
            assert_eq!((fault.rule, &*fault.path), ("P-73", path), "{messages}");
        }
        // Behind more that is unknown than is told of, too.
        let oracles = r#"{"role":"oracle"},"#.repeat(2 * Findings::MOST);
        let fault = accept(&format!("\"messages\":[{oracles}{{}},{{}}]")).0.unwrap_err();
        assert_eq!((fault.rule, &*fault.path), ("P-73", "/messages/2000"));
    }

    #[test]
    fn an_agent_refuses_other_nulls() {
        // P-73
        let (verdict, _) = accept(r#""messages":[],"tools":null"#);
        let fault = verdict.unwrap_err();
        assert_eq!(
            (fault.class, &*fault.path, fault.event),
            (crate::Class::Schema, "/tools", None)
        );
    }
}
