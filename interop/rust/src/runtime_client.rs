//! A client of a runtime behind a URL: one order a line on standard input, what came of it a line on
//! standard output. For `interop/node/copilotkit-client.test.mjs`.

use std::io::{BufRead, Write};

use agui_agent::RunContext;
use agui_agent::runtime::{ListThreads, RuntimeAgent, RuntimeClient, RuntimeError, Transport};
use agui_agent::session::{Finished, Session, SessionError, Update};
use agui_stream::fold::Change;
use agui_types::message::UserMessage;
use agui_types::{JsonObject, RunAgentInput};
use anyhow::{Context, bail};
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::{Value, json};

/// Reaches the runtime by `rest`, `single` or `auto`.
pub(crate) async fn play(url: &str, transport: &str) -> anyhow::Result<()> {
    let transport = match transport {
        "rest" => Transport::Rest,
        "single" => Transport::Single,
        "auto" => Transport::Auto,
        other => bail!("there is no transport {other}"),
    };
    let client = RuntimeClient::new(url)?.with_transport(transport);
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let order: Order = serde_json::from_str(&line).with_context(|| format!("order {line}"))?;
        let came = order.carry_out(&client).await?;
        serde_json::to_writer(&mut out, &came)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "camelCase")]
enum Order {
    Info,
    /// Takes over the thread, and says each of these in turn.
    Converse {
        agent: String,
        thread: String,
        says: Vec<String>,
    },
    /// Says something, and stops the run once something comes of it.
    Stop {
        agent: String,
        thread: String,
        says: String,
    },
    /// Stops what goes on, which is nothing.
    StopNothing {
        agent: String,
        thread: String,
    },
    Suggest {
        agent: String,
        thread: String,
        says: String,
    },
    Threads {
        agent: String,
    },
    Messages {
        thread: String,
    },
    Events {
        thread: String,
    },
    State {
        thread: String,
    },
    /// Names, archives and deletes a thread.
    Change {
        agent: String,
        thread: String,
    },
}

impl Order {
    async fn carry_out(self, client: &RuntimeClient) -> anyhow::Result<Value> {
        Ok(match self {
            Self::Info => {
                let info = client.info().await?;
                let agents = info.agents.iter().map(|(id, agent)| {
                    let about = json!({
                        "description": agent.description,
                        "capabilities": agent.capabilities,
                    });
                    (id.clone(), about)
                });
                json!({
                    "agents": agents.collect::<serde_json::Map<_, _>>(),
                    "transport": format!("{:?}", client.transport()),
                    "status": format!("{:?}", *client.status().borrow()),
                    "suggestions": info.suggestions,
                    "list": info.threads.list,
                    "mutations": info.threads.mutations,
                })
            }
            Self::Converse { agent, thread, says } => {
                let mut session = Session::new(client.agent(agent)).with_thread_id(thread);
                let connected = session.connect().finish().await;
                let mut came = vec![told(&connected, &session)];
                for text in says {
                    let finished = session.send(text).finish().await;
                    came.push(told(&finished, &session));
                }
                came.into()
            }
            Self::Stop { agent, thread, says } => stop(&client.agent(agent), &thread, says).await?,
            Self::StopNothing { agent, thread } => {
                said(client.agent(agent).stop(&thread, None).await.map(Value::from))
            }
            Self::Suggest { agent, thread, says } => {
                let message = UserMessage::new("asked", says).into();
                let mut input = RunAgentInput::new(thread, "proposals", vec![message]);
                (input.tools, input.context) = (Some(Vec::new()), Some(Vec::new()));
                input.state = Some(JsonObject::empty().into());
                let stream = client.agent(agent).suggest(&input, RunContext::new());
                let types = stream.map(|item| match item {
                    Ok(event) => event.value.type_name().to_owned(),
                    Err(error) => error.to_string(),
                });
                types.collect::<Vec<_>>().await.into()
            }
            Self::Threads { agent } => {
                let page = client.threads(&ListThreads::new().agent(agent)).await;
                said(
                    page.map(|page| {
                        page.threads.into_iter().map(|it| Value::from(it.id)).collect()
                    }),
                )
            }
            Self::Messages { thread } => {
                let rows = client.thread_messages(&thread).await;
                said(rows.map(|rows| {
                    rows.into_iter().map(|row| json!([row.role, row.content])).collect()
                }))
            }
            Self::Events { thread } => {
                let events = client.thread_events(&thread).await;
                said(events.map(|events| {
                    events.iter().map(|event| Value::from(event.value.type_name())).collect()
                }))
            }
            Self::State { thread } => {
                said(client.thread_state(&thread).await.map(|state| json!(state)))
            }
            Self::Change { agent, thread } => said(change(client, &agent, &thread).await),
        })
    }
}

/// What each change came to: the names, and how many threads are listed.
async fn change(client: &RuntimeClient, agent: &str, thread: &str) -> Result<Value, RuntimeError> {
    let named = async || {
        let page = client.threads(&ListThreads::new()).await?;
        let named = page.threads.into_iter().map(|row| (row.id, row.name.into()));
        Ok::<_, RuntimeError>(Value::Object(named.collect()))
    };
    client.rename_thread(thread, agent, "Renamed").await?;
    let renamed = named().await?;
    client.archive_thread(thread, agent).await?;
    let archived = named().await?;
    client.unarchive_thread(thread, agent).await?;
    let unarchived = named().await?;
    client.delete_thread(thread, agent).await?;
    let deleted = named().await?;
    let missing = match client.delete_thread(thread, agent).await {
        Err(RuntimeError::UnknownThread { .. }) => "unknown thread".into(),
        other => format!("{other:?}"),
    };
    Ok(json!([renamed, archived, unarchived, deleted, missing]))
}

async fn stop(agent: &RuntimeAgent, thread: &str, says: String) -> anyhow::Result<Value> {
    let mut session = Session::new(agent.clone()).with_thread_id(thread);
    let mut turn = session.send(says);
    let mut answers = Vec::new();
    while let Some(update) = turn.next().await {
        if let Update::Change(Change::TextAppended { .. }) = update
            && answers.is_empty()
        {
            // Another one is refused meanwhile, or hears nothing.
            let mut rival = Session::new(agent.clone()).with_thread_id(thread);
            let rival = rival.send("meanwhile").finish().await;
            answers.push(match rival {
                Err(SessionError::NoStream(error)) => error.to_string(),
                Ok(finished) => finished.ending.to_string(),
                Err(error) => error.to_string(),
            });
            answers.push(agent.stop(thread, None).await?.to_string());
        }
    }
    let finished = turn.finish().await;
    let told = told(&finished, &session);
    // The thread as somebody else sees it.
    let mut twin = Session::new(agent.clone()).with_thread_id(thread);
    let connected = twin.connect().finish().await;
    Ok(json!({ "answers": answers, "told": told, "twin": self::told(&connected, &twin) }))
}

/// How a turn ended, and what the conversation is then.
fn told(finished: &Result<Finished, SessionError>, session: &Session) -> Value {
    let ended = match finished {
        Ok(finished) => finished.to_string(),
        Err(error) => {
            let source = std::error::Error::source(error).map(ToString::to_string);
            format!("{error}: {}", source.unwrap_or_default())
        }
    };
    json!({
        "ended": ended,
        "busy": session.is_busy(),
        "messages": session.messages().to_vec(),
        "state": session.state().to_json(),
    })
}

fn said(answer: Result<Value, RuntimeError>) -> Value {
    answer.unwrap_or_else(|error| json!({ "error": error.to_string() }))
}
