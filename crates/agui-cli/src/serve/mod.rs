//! `agui serve`: agents over HTTP, a page to talk to the demo agent, and a CopilotKit runtime.

mod agents;
mod host;
mod log;
mod origin;
mod page;
mod routes;

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use agui_agent::CancellationToken;
use agui_journal::Journal;
use agui_runtime::{Agents, Runtime, SingleUser};
use agui_server::{Server, ServerLimits};
use tokio::net::TcpListener;

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::signals::Signals;
use agents::Served;
use host::Hosts;
use log::Log;
use origin::Origins;

/// Serves until a signal ends it.
pub(crate) fn serve(args: &ServeArgs) -> Result<ExitCode, Failure> {
    let origins = Origins::new(&args.allow_origin)?;
    let hosts = Hosts::new(args.listen.ip(), &args.allow_host)?;
    let mut limits = ServerLimits::default();
    limits.connections = within_open_files(args.max_connections);
    let agents = agents::served(&args.agents)?;
    let threads = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::new("the program's threads cannot be started").because(error))?;
    threads.block_on(async {
        let listener = listen(args.listen).await?;
        let log = Log::open(args.journal.as_deref()).await?;
        let address = listener
            .local_addr()
            .map_err(|error| Failure::new("the listening address is unknown").because(error))?;
        let shutdown = CancellationToken::new();
        let mut signals = Signals::new().map_err(Failure::no_signals)?;
        let runtime = runtime(&agents, log.journal(), address.ip(), args.keep_alive)?;
        tokio::spawn(runtime.clone().recover());
        let ended = tokio::spawn(end_with(runtime.clone(), shutdown.clone()));
        let names: Vec<String> = agents.iter().map(|agent| agent.id.clone()).collect();
        let routes = routes::Routes { agents, runtime, hosts, origins };
        let app = routes::router(routes, args.keep_alive, &shutdown);
        announce(address, &names);

        let server = Server::new(listener).limits(limits).shutdown_with(shutdown.clone());
        tokio::select! {
            cut_off = server.serve(app) => {
                if cut_off > 0 {
                    tracing::warn!(cut_off, "some clients did not take the end of their answers");
                }
                // The log is closed behind the last event of the last run.
                let _ = ended.await;
                log.close().await;
                Ok(ExitCode::SUCCESS)
            }
            code = stop(&mut signals, &shutdown) => Ok(code.into()),
        }
    })
}

/// The runtime behind the CopilotKit routes. On a loopback address one person uses it, who may do
/// everything; elsewhere nobody may list, read or delete what others said.
fn runtime(
    agents: &[Served],
    log: Arc<dyn Journal>,
    listen: IpAddr,
    keep_alive: Duration,
) -> Result<Runtime, Failure> {
    let mut hosted = Agents::new();
    let default = agents.iter().find(|agent| agent.id != agents::DEMO).or(agents.first());
    let named = agents.iter().map(|agent| (agent.id.as_str(), agent));
    for (id, served) in default.map(|agent| (Agents::DEFAULT, agent)).into_iter().chain(named) {
        hosted
            .add(id, Arc::clone(&served.agent))
            .map_err(|error| Failure::new(error.to_string()))?
            .describe(served.description.clone());
    }
    let builder = Runtime::builder(hosted, log).keep_alive(keep_alive);
    Ok(if listen.is_loopback() { builder.authorize(SingleUser) } else { builder }.build())
}

/// Ends the runs of the runtime when everything is to end.
async fn end_with(runtime: Runtime, shutdown: CancellationToken) {
    shutdown.cancelled().await;
    runtime.shutdown().await;
}

/// Waits for a signal and has everything end; another signal gives the code to exit with at once.
async fn stop(signals: &mut Signals, shutdown: &CancellationToken) -> u8 {
    signals.next().await;
    tracing::info!("stopping: runs are cancelled");
    shutdown.cancel();
    signals.next().await
}

/// As many connections as the system lets the program have, and no more than asked for.
fn within_open_files(asked: usize) -> usize {
    /// What the program has open beside its connections, and some air.
    const OTHERS: usize = 24;
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let Some(files) = line.and_then(|line| line.split_whitespace().next()?.parse().ok()) else {
        // Another system, or no limit.
        return asked;
    };
    let connections = asked.min(usize::saturating_sub(files, OTHERS).max(1));
    if connections < asked {
        tracing::warn!(connections, files, "the limit of open files allows fewer connections");
    }
    connections
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

fn announce(address: SocketAddr, agents: &[String]) {
    // An address that stands for all of them is no place a browser can go to.
    let local = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let url = format!("http://{}", SocketAddr::new(local, address.port()));
    let agents: String =
        agents.iter().map(|name| format!("\x20 agent  {url}/agents/{name}\n")).collect();
    let text = format!(
        "listening on http://{address}\n\
         \x20 page   {url}/\n\
         {agents}\
         \x20 docs   agui run {url}{demo} help\n\
         \x20 CopilotKit runtimeUrl {url}{copilotkit}\n",
        demo = routes::DEMO,
        copilotkit = routes::COPILOTKIT,
    );
    let _ = io::stderr().write_all(text.as_bytes());
}
