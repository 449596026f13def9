//! `agui serve`: the demo agent over HTTP, and a page to talk to it.

mod origin;
mod page;
mod routes;

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use agui_agent::CancellationToken;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::signals::Signals;
use origin::Origins;

/// How long the clients have to take the end of their runs, once the server is to stop.
const GRACE: Duration = Duration::from_secs(10);

/// Serves until a signal ends it.
pub(crate) fn serve(args: &ServeArgs) -> Result<ExitCode, Failure> {
    let origins = Origins::new(&args.allow_origin)?;
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::new("the program's threads cannot be started").because(error))?;
    runtime.block_on(async {
        let listener = listen(args.listen).await?;
        let address = listener
            .local_addr()
            .map_err(|error| Failure::new("the listening address is unknown").because(error))?;
        let shutdown = CancellationToken::new();
        let mut signals = Signals::new().map_err(Failure::no_signals)?;
        let app = routes::router(origins, args.keep_alive, shutdown.clone());
        announce(address);

        let server = axum::serve(listener.tap_io(send_at_once), app)
            .with_graceful_shutdown(shutdown.clone().cancelled_owned());
        tokio::select! {
            served = server => {
                served.map_err(|error| Failure::new("the server failed").because(error))?;
                Ok(ExitCode::SUCCESS)
            }
            code = stop(async || signals.next().await, shutdown) => Ok(code),
        }
    })
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => Failure::new(format!(
            "{address} is taken: another program listens there"
        ))
        .hint(format!(
            "stop it, or let the system choose a port with --listen {}",
            SocketAddr::new(address.ip(), 0)
        )),
        io::ErrorKind::PermissionDenied => Failure::new(format!("{address} is not allowed"))
            .because(error)
            .hint("choose a port above 1023 with --listen"),
        io::ErrorKind::AddrNotAvailable => {
            Failure::new(format!("{address} is no address of this machine"))
                .hint("listen on 127.0.0.1 for this machine alone, or on 0.0.0.0 for everyone")
        }
        _ => Failure::new(format!("cannot listen on {address}")).because(error),
    })
}

/// Small events are not held back to be sent together.
fn send_at_once(connection: &mut tokio::net::TcpStream) {
    if let Err(error) = connection.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY cannot be set");
    }
}

fn announce(address: SocketAddr) {
    // An address that stands for all of them is no place a browser can go to.
    let local = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let url = format!("http://{}", SocketAddr::new(local, address.port()));
    let text = format!(
        "listening on http://{address}\n\
         \x20 page   {url}/\n\
         \x20 agent  {url}{demo}\n\
         \x20 docs   agui run {url}{demo} help\n",
        demo = routes::DEMO,
    );
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Waits for a signal, has everything end, and gives an exit code where it does not end in time.
async fn stop(mut signal: impl AsyncFnMut() -> u8, shutdown: CancellationToken) -> ExitCode {
    signal().await;
    tracing::info!("stopping: runs are cancelled");
    shutdown.cancel();
    tokio::select! {
        code = signal() => code.into(),
        () = tokio::time::sleep(GRACE) => {
            tracing::warn!("some clients did not take the end of their runs");
            ExitCode::SUCCESS
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn clients_have_ten_seconds_to_take_the_end_of_their_runs() {
        let (began, shutdown) = (Instant::now(), CancellationToken::new());
        let mut signals = 0;
        let signal = async || {
            signals += 1;
            if signals > 1 {
                std::future::pending::<()>().await;
            }
            128 + 15
        };
        assert_eq!(stop(signal, shutdown.clone()).await, ExitCode::SUCCESS);
        assert!(shutdown.is_cancelled());
        assert_eq!(began.elapsed(), Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_signal_waits_for_nobody() {
        let began = Instant::now();
        let code = stop(async || 128 + 2, CancellationToken::new()).await;
        assert_eq!((code, began.elapsed()), (ExitCode::from(130), Duration::ZERO));
    }
}
