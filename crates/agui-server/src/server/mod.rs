//! The accept loop: a service on a socket, with limits on what any client may hold.

mod body;
mod connections;
mod limits;
mod socket;

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use agui_agent::{BoxError, CancellationToken};
use http::header::RETRY_AFTER;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower_service::Service;

pub use body::RequestBody;
pub use limits::ServerLimits;

use crate::{Refusal, codes};
use connections::{Connection, Connections, Slot};
use socket::Socket;

/// Serves a `tower` service, such as an [`AgentService`](crate::AgentService) or an `axum` router,
/// on a TCP socket, within [limits](ServerLimits).
///
/// ```no_run
/// # async fn greeter(run: agui_agent::Run) -> agui_agent::AgentResult { Ok(()) }
/// # async fn run() -> std::io::Result<()> {
/// use agui_agent::CancellationToken;
/// use agui_server::{AgentService, Server};
///
/// let shutdown = CancellationToken::new();
/// let service = AgentService::new(greeter).cancel_with(shutdown.clone());
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
/// // Someone else calls `shutdown.cancel()`.
/// Server::new(listener).shutdown_with(shutdown).serve(service).await;
/// # Ok(())
/// # }
/// ```
///
/// It speaks HTTP/1.1, and 1.0, without TLS; what has to be HTTP/2 or encrypted is taken by a proxy
/// in front. Each request has the address of its client among its extensions, as a [`PeerAddr`].
///
/// # A client that leaves
///
/// A client that closes its side of the connection has left, also where it only closes the half it
/// sends on: its run ends and it is answered nothing more. The two look the same from here, and
/// waiting for the next write to fail would leave a run without a reader going on.
///
/// # Stopping
///
/// Once the token of [`shutdown_with`](Self::shutdown_with) is cancelled no connection is accepted.
/// Those without a request in hand, a half-sent head included, are closed at once; a body that is
/// still being sent ends with [`BodyError::Closing`](crate::BodyError::Closing). Answers that are
/// going on have [`shutdown_grace`](ServerLimits::shutdown_grace): give the same token to
/// [`AgentService::cancel_with`](crate::AgentService::cancel_with), and every run ends with its
/// terminal event within half of that by default. Then what is left is cut off.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    limits: ServerLimits,
    shutdown: CancellationToken,
}

/// The address of the client at the other end of the connection, which may be a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddr(pub SocketAddr);

impl Server {
    /// A server on a listening socket, with the default limits.
    #[must_use]
    pub fn new(listener: TcpListener) -> Self {
        let (limits, shutdown) = (ServerLimits::default(), CancellationToken::new());
        Self { listener, limits, shutdown }
    }

    /// The server with these limits.
    #[must_use]
    pub fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Stops the server once this token is cancelled. Default: it never stops.
    #[must_use]
    pub fn shutdown_with(mut self, shutdown: CancellationToken) -> Self {
        self.shutdown = shutdown;
        self
    }

    /// Serves until it is to stop, and gives the number of connections that had to be cut off then.
    /// Needs a `tokio` runtime with its timer and its I/O enabled.
    ///
    /// A socket that cannot accept, such as for want of open files, closes the connection that has
    /// waited longest and goes on. A service that panics loses its connection and no other. Dropping
    /// the future drops every connection.
    pub async fn serve<S, B>(self, service: S) -> usize
    where
        S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>,
        S: Clone + Send + 'static,
        S::Future: Send,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let Self { listener, limits, shutdown } = self;
        let connections = Connections::new(limits.connections);
        let (mut tasks, mut refusals) = (JoinSet::new(), JoinSet::new());
        loop {
            let accepted = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                Some(_) = tasks.join_next() => continue,
                Some(()) = async { refusals.join_next().await.map(drop) } => continue,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => match connections.admit() {
                    Some(slot) => {
                        let (service, closing) = (service.clone(), shutdown.clone());
                        let connection = Arc::clone(&slot.0);
                        let serving = Serving { peer, limits, closing, connection };
                        tasks.spawn(serving.run(service, stream, slot));
                    }
                    // Beyond that many they are only closed.
                    None if refusals.len() < MOST_REFUSALS => drop(refusals.spawn(refuse(stream))),
                    None => {}
                },
                Err(error) => cannot_accept(&error, &connections).await,
            }
        }
        drop(listener);
        tokio::select! {
            () = connections.none_left() => 0,
            () = sleep(limits.shutdown_grace) => connections.open(),
        }
    }
}

/// How many clients are told at once that there is no place for them.
const MOST_REFUSALS: usize = 32;

/// Tells a client that there is no place for it.
async fn refuse(mut stream: TcpStream) {
    const PATIENCE: Duration = Duration::from_secs(1);
    let body = Refusal::too_many_connections().to_json();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let told = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        // Closing a socket that holds something unread would take the answer back.
        let mut unread = [0; 4096];
        while stream.read(&mut unread).await? > 0 {}
        io::Result::Ok(())
    };
    drop(timeout(PATIENCE, told).await);
}

impl Refusal {
    fn too_many_connections() -> Self {
        let message = "the server has as many connections as it takes";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, codes::TOO_MANY_CONNECTIONS, message)
            .hint("try again in a second")
            .header(RETRY_AFTER, HeaderValue::from_static("1"))
    }
}

async fn cannot_accept(error: &io::Error, connections: &Connections) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    // A client that was gone before it was accepted.
    let gone = [ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted];
    if gone.contains(&error.kind()) {
        return;
    }
    let closed_another = connections.evict();
    tracing::warn!(%error, closed_another, "a connection cannot be accepted");
    sleep(Duration::from_millis(50)).await;
}

/// What surrounds one connection.
struct Serving {
    peer: SocketAddr,
    limits: ServerLimits,
    closing: CancellationToken,
    connection: Arc<Connection>,
}

impl Serving {
    async fn run<S, B>(self, service: S, stream: TcpStream, slot: Slot)
    where
        S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible> + Clone,
        B: Body + 'static,
        B::Error: Into<BoxError>,
    {
        // Small events are not held back to be sent together.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY cannot be set");
        }
        let here = &self;
        let Self { limits, closing, connection, .. } = here;
        let socket = TokioIo::new(Socket::new(stream, slot, limits.write_timeout));
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).max_headers(limits.headers);
        http.max_header_size(limits.head_bytes).max_buf_size(limits.head_bytes.max(8192));
        // The deadline below covers the head, and the time before it.
        http.header_read_timeout(None);
        let exchanges = service_fn(move |request| here.exchange(service.clone(), request));
        let mut exchanges = pin!(http.serve_connection(socket, exchanges).with_upgrades());

        let mut closes = pin!(closing.cancelled());
        let mut evicted = pin!(connection.evicted.notified());
        let mut too_late = pin!(sleep(limits.idle_timeout));
        let mut stopping = false;
        poll_fn(|cx| {
            if exchanges.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            connection.rest();
            if evicted.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            if !stopping && closes.as_mut().poll(cx).is_ready() {
                stopping = true;
                exchanges.as_mut().graceful_shutdown();
                if connection.waits() || exchanges.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(());
                }
            }
            let Some(deadline) = connection.deadline(limits) else {
                return Poll::Pending;
            };
            if too_late.deadline() != deadline {
                too_late.as_mut().reset(deadline);
            }
            too_late.as_mut().poll(cx)
        })
        .await;
    }

    async fn exchange<S, B>(
        &self,
        mut service: S,
        request: Request<Incoming>,
    ) -> Result<Response<Answer<B>>, BoxError>
    where
        S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>,
    {
        if !self.connection.begin() {
            return Err("the connection was closed to make room for another".into());
        }
        let closing = self.closing.clone();
        let mut request = request.map(|body| RequestBody::new(body, self.limits, closing));
        request.extensions_mut().insert(PeerAddr(self.peer));
        let Ok(()) = poll_fn(|cx| service.poll_ready(cx)).await;
        let Ok(response) = service.call(request).await;
        // What is upgraded is never through with its answer.
        let upgraded = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        let connection = (!upgraded).then(|| Arc::clone(&self.connection));
        Ok(response.map(|body| Answer { body: Box::pin(body), connection }))
    }
}

/// The body of an answer, which tells when it is whole.
struct Answer<B> {
    body: Pin<Box<B>>,
    connection: Option<Arc<Connection>>,
}

impl<B: Body> Body for Answer<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.body.as_mut().poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for Answer<B> {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection {
            connection.answered();
        }
    }
}
