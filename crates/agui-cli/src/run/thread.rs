//! Going on with a thread that a runtime keeps.

use agui_agent::runtime::RuntimeAgent;
use agui_agent::{Agent, CancellationToken, Delivered, Delivery, DeliveryError, RunContext};
use agui_stream::Pipeline;
use agui_stream::fold::{Applied, Conversation};
use agui_types::json::Value;
use agui_types::{FromJson, RunAgentInput, ToJson};
use futures_util::StreamExt;

use super::exchange::{Ended, Manner};
use super::input::Asked;

/// Puts what the runtime holds of the thread before what is asked: its messages, its state unless
/// another one is given, and its open interrupts. A run that goes on there is waited for.
pub(super) async fn take_up(
    agent: &RuntimeAgent,
    manner: Manner,
    asked: &mut Asked,
    with_state: bool,
    cancel: CancellationToken,
) -> Result<(), Ended> {
    let Ok(reading) = RunAgentInput::from_json_tolerant(asked.input.to_json().as_str()) else {
        // That it cannot be sent is found out when it is to be.
        return Ok(());
    };
    let mut input = reading.value;
    // Nothing is asked, and what is held is to be told.
    (input.messages, input.resume) = (Vec::new(), None);
    let pipeline = Pipeline::for_run(input.thread_id.clone(), input.run_id.clone());
    let mut conversation = Conversation::new(Vec::new(), Value::Object(Default::default()));
    conversation.begin_exchange(&input.run_id, &[]);
    let context = RunContext::new().with_cancel(cancel);
    let Some(stream) = agent.connect(input, context) else { return Ok(()) };
    let mut delivery = Delivery::new(stream, pipeline.from_peer(manner.peer));
    let (mut applied, mut nothing) = (Applied::default(), true);
    while let Some(delivered) = delivery.next().await {
        match delivered {
            Ok(Delivered::Event(event)) => {
                nothing = false;
                conversation.apply(&event, &mut applied);
            }
            // What was amiss when it was new has been told then.
            Ok(Delivered::Warning(_)) => {}
            // A runtime that has nothing of the thread gives an empty stream.
            Err(DeliveryError::Fault(fault)) if nothing && fault.class.as_str() == "truncated" => {
                break;
            }
            Err(error) => return Err(Ended::without_request(&error)),
        }
    }
    let Value::Object(members) = &mut asked.input else { return Ok(()) };
    if let Some(Value::Array(messages)) = members.get_mut("messages") {
        let held = conversation.messages().iter();
        // Protocol types write JSON.
        let held = held.filter_map(|message| Value::parse(&message.to_json()).ok());
        messages.splice(0..0, held);
    }
    if with_state {
        members.insert("state".into(), conversation.state().clone());
    }
    asked.open_interrupts = Some(conversation.open_interrupts().to_vec());
    Ok(())
}
