//! Futures of other people, which may panic.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use agui_agent::panic::caught as caught_now;

/// What a future gives, or the text of its panic, of which nothing gets out.
pub async fn caught<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = Some(Box::pin(future));
    let polled = poll_fn(|cx| match &mut future {
        Some(future) => match caught_now(|| future.as_mut().poll(cx)) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        },
        None => Poll::Pending,
    });
    let output = pin!(polled).await;
    let dropped = caught_now(|| drop(future));
    output.and_then(|output| dropped.map(|()| output))
}
