//! What surrounds the stream of an `HttpAgent`: retries, timeouts, headers, proxies, TLS, positions.
#![cfg(feature = "http")]

mod support;

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agui_agent::{
    Agent, AgentError, BuildError, CancellationToken, EventStream, HeaderRequest, HttpAgent,
    HttpAgentBuilder, Position, RetryPolicy, RunContext,
};
use agui_types::{Event, RunAgentInput};
use futures_util::StreamExt;
use support::{FINISHED, OK, STARTED, header, peer, read_request, silent_peer, soon};
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

fn input() -> RunAgentInput {
    RunAgentInput::new("t", "r", Vec::new())
}

fn run(builder: HttpAgentBuilder) -> EventStream {
    builder.build().unwrap().run(input(), RunContext::new())
}

/// The types of the events that came, and the error that ended them, if one did.
async fn outcome(stream: EventStream) -> (Vec<String>, Option<AgentError>) {
    let (mut types, mut failed) = (Vec::new(), None);
    for item in stream.collect::<Vec<_>>().await {
        match item {
            Ok(event) => types.push(event.value.type_name().to_owned()),
            Err(error) => failed = Some(error),
        }
    }
    (types, failed)
}

fn chain(error: &dyn Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(" {error} {error:?}"));
        source = error.source();
    }
    text
}

fn quick(retries: u32) -> RetryPolicy {
    RetryPolicy::new(retries).first_delay(Duration::from_millis(1))
}

/// Counts the attempts by the headers that are made for them.
fn counted(builder: HttpAgentBuilder) -> (HttpAgentBuilder, Arc<Mutex<Vec<HeaderRequest>>>) {
    let seen: Arc<Mutex<Vec<HeaderRequest>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let builder = builder.headers_from(move |request| {
        noted.lock().unwrap().push(request.clone());
        Ok(vec![("x-attempt".into(), request.failed_attempts.to_string())])
    });
    (builder, seen)
}

fn status(line: &str) -> String {
    format!("HTTP/1.1 {line}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

#[tokio::test]
async fn what_was_not_taken_up_is_asked_again() {
    let answers = vec![
        status("503 Busy"),
        status("429 Slow\r\nretry-after: 0"),
        status("408 Late"),
        status("425 Early"),
        format!("{OK}{STARTED}{FINISHED}"),
    ];
    let (url, served) = peer(answers).await;
    let (builder, seen) = counted(HttpAgent::builder(&url).retry(quick(4)));
    let (types, error) = outcome(run(builder)).await;
    assert_eq!((types.len(), error.is_none()), (2, true));
    let requests = soon(served).await;
    let bodies: Vec<_> = requests.iter().map(|it| it.split_once("\r\n\r\n").unwrap().1).collect();
    assert!(bodies.iter().all(|body| *body == bodies[0] && body.contains("\"runId\":\"r\"")));
    let attempts: Vec<_> = requests.iter().map(|it| header(it, "x-attempt").unwrap()).collect();
    assert_eq!(attempts, ["0", "1", "2", "3", "4"]);
    let seen = seen.lock().unwrap();
    assert_eq!((seen[0].thread_id.as_str(), seen[0].run_id.as_str()), ("t", "r"));
}

#[tokio::test]
async fn a_connection_that_was_never_made_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let (builder, seen) = counted(HttpAgent::builder(&url).retry(quick(2)));
    let (_, error) = outcome(run(builder)).await;
    assert!(matches!(error, Some(AgentError::Connect { .. })), "{error:?}");
    assert_eq!(seen.lock().unwrap().len(), 3);
    // Unless retries are asked for there are none.
    let (builder, seen) = counted(HttpAgent::builder(&url));
    outcome(run(builder)).await;
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn what_may_have_begun_a_run_is_asked_once() {
    for answer in [
        status("500 Broken"),
        status("502 Bad gateway"),
        status("504 Gateway timeout"),
        status("401 No"),
        // It died before the answer, and within it.
        String::new(),
        format!("{OK}{STARTED}data: {{\"ty"),
    ] {
        let (url, served) = peer(vec![answer.clone()]).await;
        let (builder, seen) = counted(HttpAgent::builder(&url).retry(quick(3)));
        let (_, error) = outcome(run(builder)).await;
        assert!(error.is_some(), "{answer}");
        assert_eq!(soon(served).await.len(), 1);
        assert_eq!(seen.lock().unwrap().len(), 1, "{answer}");
    }
}

#[tokio::test]
async fn a_delay_that_is_asked_for_and_too_long_is_not_waited_for() {
    let (url, served) = peer(vec![status("503 Busy\r\nretry-after: 3600")]).await;
    let (_, error) = outcome(run(HttpAgent::builder(&url).retry(quick(3)))).await;
    assert!(matches!(error, Some(AgentError::Status { status: 503, .. })), "{error:?}");
    soon(served).await;
}

#[tokio::test]
async fn silence_ends_a_run_and_keep_alives_do_not() {
    let idle = Duration::from_millis(50);
    for before in [String::new(), format!("{OK}{STARTED}")] {
        let (url, closed) = silent_peer(before.clone()).await;
        let (types, error) = outcome(run(HttpAgent::builder(&url).idle_timeout(idle))).await;
        assert_eq!(types.len(), usize::from(!before.is_empty()));
        let error = error.unwrap();
        assert!(matches!(error, AgentError::Idle { after } if after == idle), "{error:?}");
        assert_eq!((error.class(), error.is_cut_off()), ("transport", true));
        soon(closed).await;
    }

    // Three times as long as silence may last.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        socket.write_all(format!("{OK}{STARTED}").as_bytes()).await.unwrap();
        for _ in 0..12 {
            tokio::time::sleep(Duration::from_millis(250)).await;
            socket.write_all(b": still here\n\n").await.unwrap();
        }
        socket.write_all(FINISHED.as_bytes()).await.unwrap();
    });
    let agent = HttpAgent::builder(&url).idle_timeout(Duration::from_secs(1));
    let (types, error) = outcome(run(agent)).await;
    assert_eq!((types.len(), error.is_none()), (2, true));
    soon(served).await;
}

#[tokio::test]
async fn headers_are_made_for_each_request_over_fixed_ones() {
    let answer = format!("{OK}{STARTED}{FINISHED}");
    let (url, served) = peer(vec![answer.clone(), answer]).await;
    let agent = HttpAgent::builder(&url)
        .header("x-fixed", "f")
        .header("authorization", "fixed")
        .headers_from_async(|request| async move {
            tokio::task::yield_now().await;
            let token = format!("Bearer {}-{}", request.thread_id, request.run_id);
            Ok(vec![("Authorization".into(), token)])
        })
        .build()
        .unwrap();
    outcome(agent.run(input(), RunContext::new())).await;
    let other = agent.with_header("x-fixed", "other").unwrap();
    outcome(other.run(RunAgentInput::new("t", "r2", Vec::new()), RunContext::new())).await;
    let requests = soon(served).await;
    let seen: Vec<_> = requests
        .iter()
        .map(|it| (header(it, "authorization").unwrap(), header(it, "x-fixed").unwrap()))
        .collect();
    assert_eq!(seen, [("Bearer t-r", "f"), ("Bearer t-r2", "other")]);
    assert_eq!(header(&requests[0], "accept-encoding"), Some("identity"));
}

#[tokio::test]
async fn headers_that_cannot_be_made_fail_the_run_and_nothing_is_sent() {
    let failing = HttpAgent::builder("http://127.0.0.1:1/").headers_from(|_| Err("no key".into()));
    let (_, error) = outcome(run(failing.retry(quick(3)))).await;
    let error = error.unwrap();
    assert!(matches!(error, AgentError::Headers { .. }), "{error:?}");
    assert!(chain(&error).contains("no key"));

    let bad = HttpAgent::builder("http://127.0.0.1:1/")
        .headers_from(|_| Ok(vec![("x-key".into(), "s3cret\n".into())]));
    let (_, error) = outcome(run(bad)).await;
    let shown = chain(&error.unwrap());
    assert!(shown.contains("x-key") && !shown.contains("s3cret"), "{shown}");
}

#[tokio::test]
async fn a_compressed_answer_is_named() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\
                  connection: close\r\n\r\n\x1f";
    let (url, served) = peer(vec![answer]).await;
    let error = outcome(run(HttpAgent::builder(&url))).await.1.unwrap();
    assert!(matches!(&error, AgentError::Compressed { encoding } if encoding == "gzip"));
    assert!(error.to_string().contains("gzip"), "{error}");
    soon(served).await;

    let refused = "HTTP/1.1 401 No\r\ncontent-encoding: br\r\nconnection: close\r\n\r\n\x1f";
    let (url, served) = peer(vec![refused]).await;
    let error = outcome(run(HttpAgent::builder(&url))).await.1.unwrap();
    assert_eq!(error.to_string(), "HTTP 401: (a body in br)");
    soon(served).await;
}

#[tokio::test]
async fn a_clean_close_inside_a_frame_is_a_stream_cut_off() {
    // T-9, T-22, C-12
    let (url, served) = peer(vec![format!("{OK}{STARTED}data: {{\"type\":\"RUN_FI")]).await;
    let (types, error) = outcome(run(HttpAgent::builder(&url))).await;
    assert_eq!(types, ["RUN_STARTED"]);
    let error = error.unwrap();
    assert_eq!((error.class(), error.is_cut_off()), ("sse-json", true), "{error:?}");
    soon(served).await;
}

#[tokio::test]
async fn cancelling_drops_the_request_at_once() {
    // Before there is an answer.
    let (url, closed) = silent_peer(String::new()).await;
    let cancel = CancellationToken::new();
    let context = RunContext::new().with_cancel(cancel.clone());
    let mut stream = HttpAgent::new(&url).unwrap().run(input(), context);
    let (first, ()) = tokio::join!(stream.next(), async { cancel.cancel() });
    assert!(matches!(first, Some(Err(AgentError::Cancelled))));
    drop(stream);
    // The peer may never have been connected to: it is not waited for.
    closed.abort();

    // While more has come than was handed out.
    let (url, closed) = silent_peer(format!("{OK}{STARTED}{FINISHED}")).await;
    let cancel = CancellationToken::new();
    let context = RunContext::new().with_cancel(cancel.clone());
    let mut stream = HttpAgent::new(&url).unwrap().run(input(), context);
    assert!(matches!(stream.next().await.unwrap().unwrap().value, Event::RunStarted(_)));
    cancel.cancel();
    assert!(matches!(stream.next().await, Some(Err(AgentError::Cancelled))));
    // The connection is closed already; the stream is still there.
    soon(closed).await;
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_proxy_gets_the_request_and_its_own_credentials() {
    let (url, served) = peer(vec![format!("{OK}{STARTED}{FINISHED}")]).await;
    let proxy = url.replace("http://", "http://me:pr0xy@");
    let agent = HttpAgent::builder("http://user:s3cret@agents.example/chat?key=s3cret");
    let (types, error) = outcome(run(agent.proxy(&proxy))).await;
    assert_eq!((types.len(), error.is_none()), (2, true));
    let request = &soon(served).await[0];
    assert!(
        request.starts_with("POST http://agents.example/chat?key=s3cret HTTP/1.1"),
        "{request}"
    );
    assert_eq!(header(request, "proxy-authorization"), Some("Basic bWU6cHIweHk="));
    assert_eq!(header(request, "authorization"), Some("Basic dXNlcjpzM2NyZXQ="));

    // Not this time.
    let (url, served) = peer(vec![format!("{OK}{STARTED}{FINISHED}")]).await;
    let direct = HttpAgent::builder(&url).proxy("http://me:pr0xy@127.0.0.1:1/").no_proxy();
    assert!(outcome(run(direct)).await.1.is_none());
    assert_eq!(header(&soon(served).await[0], "proxy-authorization"), None);
}

#[tokio::test]
async fn no_secret_is_shown() {
    let url = "http://user:s3cret@127.0.0.1:1/agent?key=s3cret#s3cret";
    let builder = || {
        HttpAgent::builder(url)
            .header("authorization", "s3cret")
            .connect_url("http://user:s3cret@127.0.0.1:1/connect?key=s3cret")
            .proxy("http://me:s3cret@127.0.0.1:1/s3cret")
    };
    let agent = builder().build().unwrap();
    let (_, error) = outcome(agent.run(input(), RunContext::new())).await;
    let error = chain(&error.unwrap());
    let shown = format!("{:?} {agent:?} {} {error}", builder(), agent.display_url());
    assert!(!shown.contains("s3cret"), "{shown}");
    let unusable: [BuildError; 5] = [
        HttpAgent::new("http://user:s3cret@:x/").unwrap_err(),
        HttpAgent::builder("http://h/").proxy("http://me:s3cret@:x/").build().unwrap_err(),
        HttpAgent::builder("http://h/").proxy("socks9://me:s3cret@h/").build().unwrap_err(),
        HttpAgent::builder("http://h/").header("Authorization: s3cret", "").build().unwrap_err(),
        agent.with_header("x y s3cret", "").unwrap_err(),
    ];
    for error in unusable {
        let shown = chain(&error);
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}

#[tokio::test]
async fn positions_are_noted_and_continued_from() {
    // T-16, T-21: they change nothing about a run, and serve those who agreed on them.
    let event = |id: &str, name: &str| {
        format!("id: {id}\ndata: {{\"type\":\"CUSTOM\",\"name\":\"{name}\",\"value\":1}}\n\n")
    };
    let run_answer = format!("{OK}id: a1\n{STARTED}{}{}", event("a2", "x"), event("", "y"));
    let (url, served) = peer(vec![run_answer]).await;
    let rest = format!("{OK}id: a3\n{FINISHED}");
    let (connect_url, connected) = peer(vec![rest.clone(), rest]).await;
    let agent = HttpAgent::builder(&url).connect_url(&connect_url).build().unwrap();

    let position = Position::new();
    let context = RunContext::new().with_position(position.clone());
    let mut stream = agent.run(input(), context);
    let mut seen = vec![position.get()];
    while stream.next().await.is_some_and(|item| item.is_ok()) {
        seen.push(position.get());
    }
    let seen: Vec<_> = seen.iter().map(Option::as_deref).collect();
    // Without a position of its own, an event's is not known.
    assert_eq!(seen, [None, Some("a1"), Some("a2"), None]);
    soon(served).await;

    let position = Position::at("a2");
    let context = RunContext::new().with_position(position.clone());
    let (types, error) = outcome(agent.connect(input(), context).unwrap()).await;
    assert_eq!((types, error.is_none()), (vec!["RUN_FINISHED".to_owned()], true));
    assert_eq!(position.get().as_deref(), Some("a3"));
    outcome(agent.connect(input(), RunContext::new()).unwrap()).await;
    let requests = soon(connected).await;
    let asked: Vec<_> = requests.iter().map(|it| header(it, "last-event-id")).collect();
    assert_eq!(asked, [Some("a2"), None]);

    assert!(HttpAgent::new(&url).unwrap().connect(input(), RunContext::new()).is_none());
}

/// A key and a certificate that it signed itself.
struct Identity {
    pem: String,
    with_key: String,
    der: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

fn identity(name: &str) -> Identity {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let pem = made.cert.pem();
    Identity {
        with_key: format!("{pem}{}", made.signing_key.serialize_pem()),
        pem,
        der: made.cert.der().clone(),
        key: PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap(),
    }
}

/// A peer that answers one client over TLS, the first that it and that trusts it; where `client` is
/// given, only who has shown that certificate.
async fn tls_peer(
    server: Identity,
    client: Option<CertificateDer<'static>>,
) -> (String, JoinHandle<()>) {
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = match client {
        Some(client) => {
            let mut roots = RootCertStore::empty();
            roots.add(client).unwrap();
            let roots = Arc::new(roots);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            config.with_client_cert_verifier(verifier.build().unwrap())
        }
        None => config.with_no_client_auth(),
    };
    let config = config.with_single_cert(vec![server.der], server.key).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let served = tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            // Who does not trust it, or is not trusted, goes away.
            let Ok(mut socket) = acceptor.accept(socket).await else { continue };
            read_request(&mut socket).await;
            let answer = format!("{OK}{STARTED}{FINISHED}");
            socket.write_all(answer.as_bytes()).await.unwrap();
            socket.shutdown().await.unwrap();
            return;
        }
    });
    (url, served)
}

#[tokio::test]
async fn tls_trusts_the_authority_that_it_is_given() {
    let server = identity("localhost");
    let pem = server.pem.clone();
    let (url, served) = tls_peer(server, None).await;
    let stranger = HttpAgent::builder(&url).no_proxy();
    let error = outcome(run(stranger)).await.1.unwrap();
    assert!(matches!(error, AgentError::Connect { .. }), "{error:?}");
    let agent = HttpAgent::builder(&url).no_proxy().root_certificates(pem).only_given_roots();
    let (types, error) = outcome(run(agent)).await;
    assert_eq!((types.len(), error.is_none()), (2, true), "{error:?}");
    soon(served).await;

    for pem in ["", "no certificate", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"] {
        let error = HttpAgent::builder(&url).root_certificates(pem).build().unwrap_err();
        assert!(matches!(error, BuildError::Certificate(_) | BuildError::Client(_)), "{error:?}");
    }
    let error = HttpAgent::builder(&url).client_certificate("x").build().unwrap_err();
    assert!(matches!(error, BuildError::Certificate(_)), "{error:?}");
}

#[tokio::test]
async fn tls_shows_a_certificate_where_it_is_given_one() {
    let (server, own, others) = (identity("localhost"), identity("client"), identity("client"));
    let pem = server.pem.clone();
    let (url, served) = tls_peer(server, Some(own.der)).await;
    let builder =
        || HttpAgent::builder(&url).no_proxy().root_certificates(pem.clone()).only_given_roots();
    for stranger in [builder(), builder().client_certificate(others.with_key)] {
        // The handshake of TLS 1.3 is over for the client before the server has judged.
        let (types, error) = outcome(run(stranger)).await;
        let error = error.unwrap();
        assert_eq!((types.len(), error.class()), (0, "transport"), "{error:?}");
    }
    let agent = builder().client_certificate(own.with_key);
    let (types, error) = outcome(run(agent)).await;
    assert_eq!((types.len(), error.is_none()), (2, true), "{error:?}");
    soon(served).await;
}

/// It is about connecting, TLS included, and not about the run.
#[tokio::test]
async fn connecting_has_its_time_and_a_run_any() {
    const SHORT: Duration = Duration::from_millis(200);
    // It takes the connection, and says nothing about TLS.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let agent = HttpAgent::builder(url).no_proxy().connect_timeout(SHORT);
    let error = outcome(run(agent)).await.1.unwrap();
    assert!(matches!(error, AgentError::Connect { .. }), "{error:?}");

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        for piece in [OK, STARTED, FINISHED] {
            tokio::time::sleep(SHORT * 2).await;
            socket.write_all(piece.as_bytes()).await.unwrap();
        }
    });
    let (types, error) = outcome(run(HttpAgent::builder(url).connect_timeout(SHORT))).await;
    assert_eq!((types.len(), error.is_none()), (2, true), "{error:?}");
    soon(served).await;
}

/// A proxy that makes one tunnel to a port of this machine. Gives the head of the request for it.
async fn tunnel() -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let tunnelled = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let head = read_request(&mut client).await;
        let port = head.split([':', ' ']).nth(2).unwrap().parse().unwrap();
        let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await.unwrap();
        // Either end may close without a word.
        let _ = copy_bidirectional(&mut client, &mut server).await;
        head
    });
    (address, tunnelled)
}

/// It learns where to, and nothing else: no path, no header of the agent's, no input.
#[tokio::test]
async fn a_proxy_in_front_of_tls_makes_a_tunnel() {
    let server = identity("localhost");
    let pem = server.pem.clone();
    let (url, served) = tls_peer(server, None).await;
    let (proxy, tunnelled) = tunnel().await;
    let agent = HttpAgent::builder(format!("{url}chat?key=s3cret"))
        .header("authorization", "Bearer s3cret")
        .proxy(format!("http://me:pr0xy@{proxy}"))
        .root_certificates(pem)
        .only_given_roots();
    let (types, error) = outcome(run(agent)).await;
    assert_eq!((types.len(), error.is_none()), (2, true), "{error:?}");
    soon(served).await;
    let head = soon(tunnelled).await;
    let place = url.trim_start_matches("https://").trim_end_matches('/');
    assert!(head.starts_with(&format!("CONNECT {place} HTTP/1.1\r\n")), "{head}");
    assert_eq!(header(&head, "proxy-authorization"), Some("Basic bWU6cHIweHk="));
    assert!(!head.contains("s3cret") && !head.contains("chat"), "{head}");
}

#[tokio::test]
async fn a_proxy_that_refuses_is_no_connection() {
    let refusal = "HTTP/1.1 407 Who are you\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let (url, served) = peer(vec![refusal]).await;
    let proxy = url.replace("http://", "http://me:pr0xy@");
    let agent = HttpAgent::builder("https://agents.example/chat").proxy(proxy);
    let error = outcome(run(agent)).await.1.unwrap();
    assert!(matches!(error, AgentError::Connect { .. }), "{error:?}");
    let shown = format!("{error:?} {}", chain(&error));
    assert!(shown.contains("agents.example") && !shown.contains("pr0xy"), "{shown}");
    soon(served).await;
}
