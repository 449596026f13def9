//! A run over a WebSocket.

use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::time::Duration;

use agui_agent::{Agent, RunContext};
use agui_types::{RunAgentInput, ToJson};
use axum::extract::FromRequestParts;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use http::header::{ORIGIN, UPGRADE};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite;
use tracing::Instrument;

use crate::access::{Access, Asked};
use crate::run::GuardedRun;
use crate::{Refusal, ResponseBody, codes, input};

/// Whether pages of an origin may open a WebSocket.
pub(crate) type Origins = Arc<dyn Fn(&HeaderValue) -> bool + Send + Sync>;

/// How long the input of the run is waited for once the connection is open.
const INPUT: Duration = Duration::from_secs(10);

/// How long the other side may take to say goodbye as well.
const GOODBYE: Duration = Duration::from_secs(1);

/// What a conversation needs beside its socket.
pub(crate) struct Conversation {
    pub(crate) access: Access,
    /// Who asks.
    pub(crate) asking: Arc<Parts>,
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) context: RunContext,
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) limit: usize,
}

/// Whether a request is to open a WebSocket.
pub(crate) fn asked_for(head: &Parts) -> bool {
    let upgrade = head.headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    head.method == Method::GET && upgrade.is_some_and(|it| it.eq_ignore_ascii_case("websocket"))
}

/// Opens a WebSocket and has the conversation on it, in a task of its own.
pub(crate) async fn open(
    head: Arc<Parts>,
    origins: &Origins,
    conversation: Conversation,
) -> Result<Response<ResponseBody>, Refusal> {
    // Browsers let any page connect to any server, with the user's cookies, and tell where it is
    // from.
    if let Some(origin) = head.headers.get_all(ORIGIN).iter().find(|origin| !origins(origin)) {
        let message = format!("pages of {origin:?} may not open a WebSocket here");
        return Err(Refusal::new(StatusCode::FORBIDDEN, codes::FORBIDDEN_ORIGIN, message));
    }
    let mut head = Arc::unwrap_or_clone(head);
    let upgrade = WebSocketUpgrade::from_request_parts(&mut head, &()).await;
    let upgrade = upgrade.map_err(|rejection| {
        let (status, text) = (rejection.status(), rejection.body_text());
        Refusal::new(status, codes::NO_WEBSOCKET, text)
    })?;
    let limit = conversation.limit;
    let upgrade = upgrade.max_message_size(limit).max_frame_size(limit);
    let response = upgrade.on_upgrade(move |socket| conversation.hold(socket).in_current_span());
    Ok(response.map(|_| ResponseBody::empty()))
}

impl Conversation {
    async fn hold(self, mut socket: WebSocket) {
        let end = match self.input(&mut socket).await {
            Ok(input) => self.run(&mut socket, input).await,
            Err(end) => end,
        };
        let End::Close(code, reason) = end else {
            return;
        };
        let frame = CloseFrame { code, reason: shortened(&reason).into() };
        let goodbye = async {
            if socket.send(Message::Close(Some(frame))).await.is_err() {
                return;
            }
            if code == close_code::SIZE {
                // The rest of that message cannot be read, and closing now would take the frame
                // back.
                pending::<()>().await;
            }
            while let Some(Ok(_)) = socket.recv().await {}
        };
        drop(timeout(GOODBYE, goodbye).await);
    }

    /// The first message, judged.
    async fn input(&self, socket: &mut WebSocket) -> Result<RunAgentInput, End> {
        let mut too_late = Box::pin(sleep(INPUT));
        loop {
            let message = tokio::select! {
                message = socket.recv() => self.said(message)?,
                () = self.context.cancel.cancelled() => {
                    let reason = format!("{}: the server is shutting down", codes::SHUTTING_DOWN);
                    return Err(End::Close(close_code::AWAY, reason));
                }
                () = &mut too_late => {
                    let reason = format!("{}: no RunAgentInput came", codes::BODY_TOO_SLOW);
                    return Err(End::Close(close_code::POLICY, reason));
                }
            };
            match message {
                Message::Text(text) => {
                    let refused = |code, refusal: Refusal| {
                        End::Close(code, format!("{}: {refusal}", refusal.code()))
                    };
                    let input = input::judge(text.as_bytes())
                        .map_err(|refusal| refused(close_code::INVALID, refusal))?;
                    let permitted = self.access.permit(&self.asking, Asked::Run(&input)).await;
                    return permitted
                        .map(|()| input)
                        .map_err(|refusal| refused(close_code::POLICY, refusal));
                }
                Message::Binary(_) => {
                    let (code, text) =
                        (codes::UNSUPPORTED_MEDIA_TYPE, "a text message is expected");
                    return Err(End::Close(close_code::UNSUPPORTED, format!("{code}: {text}")));
                }
                _ => {}
            }
        }
    }

    /// Sends the events of a run, one a message.
    async fn run(&self, socket: &mut WebSocket, input: RunAgentInput) -> End {
        let mut run = GuardedRun::start(&*self.agent, input, self.context.clone());
        loop {
            let event = poll_fn(|cx| {
                run.poll_patience(cx);
                run.poll_event(cx)
            });
            let answer = tokio::select! {
                biased;
                message = socket.recv() => match self.said(message) {
                    Ok(Message::Text(_) | Message::Binary(_)) => {
                        // P-15: nothing is said to a run that goes on.
                        let reason = "a run takes one message, its input";
                        return End::Close(close_code::POLICY, reason.into());
                    }
                    Ok(_) => continue,
                    Err(end) => return end,
                },
                event = event => match event {
                    Some(event) => Message::Text(event.to_json().into()),
                    None => return End::Close(close_code::NORMAL, "the run has ended".into()),
                },
                () = silence(self.keep_alive) => Message::Ping(Vec::new().into()),
            };
            if socket.send(answer).await.is_err() {
                return End::Gone;
            }
        }
    }

    /// What came, or how the conversation ends with it.
    fn said(&self, message: Option<Result<Message, axum::Error>>) -> Result<Message, End> {
        match message {
            None | Some(Ok(Message::Close(_))) => Err(End::Gone),
            Some(Ok(message)) => Ok(message),
            Some(Err(error)) => match error.into_inner().downcast_ref() {
                Some(tungstenite::Error::Capacity(_)) => {
                    let reason = format!("a message is larger than {} bytes", self.limit);
                    let reason = format!("{}: {reason}", codes::BODY_TOO_LARGE);
                    Err(End::Close(close_code::SIZE, reason))
                }
                _ => Err(End::Gone),
            },
        }
    }
}

/// How a conversation ends.
enum End {
    /// The other side left, or cannot be told.
    Gone,
    /// It is told so, with a code and a reason.
    Close(u16, String),
}

async fn silence(after: Option<Duration>) {
    match after {
        Some(after) => sleep(after).await,
        None => pending().await,
    }
}

/// As much of a reason as a close frame holds.
fn shortened(reason: &str) -> &str {
    /// A control frame has 125 bytes, two of which are the code.
    const MOST: usize = 123;
    let ends = reason.char_indices().map(|(at, char)| at + char.len_utf8());
    &reason[..ends.take_while(|end| *end <= MOST).last().unwrap_or(0)]
}
