//! A run input on its way out of a client, and into an agent.

mod date;
mod outgoing;

use agui_types::read::FindingKind;
use agui_types::{ContentPart, Message, MessageContent, Reading, RunAgentInput};

use crate::compat::{Binary, retired_null, upgrade};
use crate::enforce::enforce_input;
use crate::{Fault, Warning};
pub use outgoing::Outgoing;

/// What an agent makes of the input it was sent, before its run starts: retired shapes are
/// translated (C-84), what the protocol does not describe is stripped (P-74), both with a warning.
///
/// Fails where a member that may be left out is `null` instead (P-73, P-17). A malformed input does
/// not get this far: reading it fails.
pub fn accept_input(
    reading: impl Into<Reading<RunAgentInput>>,
    warnings: &mut Vec<Warning>,
) -> Result<RunAgentInput, Fault> {
    let Reading {
        value: mut input,
        findings,
    } = reading.into();
    let omitted = findings.omitted();
    let mut findings: Vec<_> = findings.into_iter().collect();
    findings.retain(|finding| {
        let retired = match finding.kind {
            FindingKind::Null => retired_null(&input.messages, &finding.path),
            _ => None,
        };
        if let Some(shape) = retired {
            let message = format!("{shape}: null is retired and read as absent");
            warnings.push(Warning::new("C-84", finding.path.as_str(), message));
        }
        retired.is_none()
    });
    let mut upgraded = Vec::new();
    upgrade(&mut input.messages, |message, part, binary| {
        if binary == Binary::Upgraded {
            let path = format!("/messages/{message}/content/{part}");
            let message = "binary content parts are retired and read as media parts";
            warnings.push(Warning::new("C-84", path.as_str(), message));
            upgraded.push(path);
        }
    });
    enforce_input(input, findings, omitted, warnings)
}

/// The last step of [`Outgoing::prepare`] by itself: what the protocol does not describe is removed
/// with a warning (C-37), and `null` for absent is left out (P-17).
///
/// Never fails today: what could is in the reading of the input.
pub fn enforce_outgoing(
    reading: impl Into<Reading<RunAgentInput>>,
    warnings: &mut Vec<Warning>,
) -> Result<RunAgentInput, Fault> {
    let Reading {
        value: mut input,
        findings,
    } = reading.into();
    let omitted = findings.omitted();
    let findings = findings
        .into_iter()
        .filter(|finding| finding.kind != FindingKind::Null)
        .collect();
    leave_nulls_out(&mut input);
    enforce_input(input, findings, omitted, warnings)
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
        for part in parts {
            let metadata = match part {
                ContentPart::Text(part) => &mut part.metadata,
                ContentPart::Image(part) => &mut part.metadata,
                ContentPart::Audio(part) => &mut part.metadata,
                ContentPart::Video(part) => &mut part.metadata,
                ContentPart::Document(part) => &mut part.metadata,
                _ => continue,
            };
            metadata.take_if(|json| json.is_null());
        }
    }
}
