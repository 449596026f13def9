//! `agui serve`: agents over HTTP, a page to talk to the demo agent, and a CopilotKit runtime.

mod access;
mod agents;
mod config;
mod host;
mod log;
mod origin;
mod page;
mod request;
mod routes;

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use agui_agent::CancellationToken;
use agui_journal::Journal;
use agui_runtime::{Agents, Runtime, SingleUser};
use agui_server::Server;
use tokio::net::TcpListener;

use crate::args::{LogArgs, ServeArgs};
use crate::failure::Failure;
use crate::logging;
use crate::signals::Signals;
use config::{Access, Config, Effective};
use log::Log;

/// Serves until a signal ends it.
pub(crate) fn serve(args: &ServeArgs, log: &LogArgs) -> Result<ExitCode, Failure> {
    // What is no text names nothing and says nothing here.
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let variables: Vec<(String, String)> = variables.collect();
    let (mut config, effective) = Config::load(args, log, &variables)?;
    if args.check {
        return print(&effective);
    }
    logging::start(&config.log, config.log_format)?;
    config.limits.server.connections = within_open_files(config.limits.server.connections);
    let threads = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::new("the program's threads cannot be started").because(error))?;
    threads.block_on(async {
        let listener = listen(config.listen).await?;
        let log = Log::open(config.journal.as_deref().map(Path::new)).await?;
        let address = listener
            .local_addr()
            .map_err(|error| Failure::new("the listening address is unknown").because(error))?;
        let shutdown = CancellationToken::new();
        let mut signals = Signals::new().map_err(Failure::no_signals)?;
        let runtime = runtime(&config, log.journal())?;
        tokio::spawn(runtime.clone().recover());
        tokio::spawn(runtime.clone().upkeep(config.upkeep.clone()));
        let ended = tokio::spawn(end_with(runtime.clone(), shutdown.clone()));
        let app = routes::router(routes::Routes {
            agents: config.agents.clone(),
            runtime,
            base_path: config.base_path.clone(),
            hosts: config.hosts.clone(),
            origins: config.origins.clone(),
        });
        announce(address, &config);

        let server = Server::new(listener).limits(config.limits.server);
        let server = server.shutdown_with(shutdown.clone());
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

/// What the configuration comes to.
fn print(effective: &Effective) -> Result<ExitCode, Failure> {
    let mut out = io::stdout().lock();
    let printed = write!(out, "{effective}").and_then(|()| out.flush());
    printed
        .map(|()| ExitCode::SUCCESS)
        .map_err(|error| Failure::new("standard output cannot be written").because(error))
}

/// The runtime, with everything that is served.
fn runtime(config: &Config, log: Arc<dyn Journal>) -> Result<Runtime, Failure> {
    let mut hosted = Agents::new();
    let default = config.agents.iter().find(|agent| agent.id == config.default_agent);
    let named = config.agents.iter().map(|agent| (agent.id.as_str(), agent));
    for (id, served) in default.map(|agent| (Agents::DEFAULT, agent)).into_iter().chain(named) {
        hosted
            .add(id, Arc::clone(&served.agent))
            .map_err(|error| Failure::new(error.to_string()))?
            .describe(served.description.clone())
            .forward(served.headers.clone());
    }
    let builder = Runtime::builder(hosted, log)
        .base_path(&config.base_path)
        .keep_alive(config.keep_alive)
        .lease(config.lease)
        .deadline(config.limits.run_deadline)
        .body_limit(config.limits.body)
        .most_runs(config.limits.runs)
        .most_viewers(config.limits.viewers)
        .debug_events(config.debug_events)
        .most_runs_per_tenant(config.limits.runs_per_tenant)
        .most_viewers_per_thread(config.limits.viewers_per_thread)
        .most_run_events(config.limits.run_events)
        .most_run_bytes(config.limits.run_bytes)
        .busy(config.busy);
    Ok(match &config.access {
        Access::SingleUser => builder.authorize(SingleUser),
        Access::Known(known) => builder.authorize(known.clone()),
        // Nobody is known: everybody chats, and nobody sees what others said.
        Access::Anonymous => builder,
    }
    .build())
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

/// Says where the server listens, and what is there.
fn announce(address: SocketAddr, config: &Config) {
    // An address that stands for all of them is no place a browser can go to.
    let local = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let url = format!("http://{}", SocketAddr::new(local, address.port()));
    let names = || config.agents.iter().map(|agent| &agent.id);
    let agents: String = names().map(|name| format!("\x20 agent  {url}/agents/{name}\n")).collect();
    let docs = names().find(|name| *name == agents::DEMO);
    let docs = docs.map(|demo| format!("\x20 docs   agui run {url}/agents/{demo} help\n"));
    let who = match config.access {
        Access::SingleUser => "whoever reaches this address may do everything",
        Access::Known(_) => "whoever the configuration knows, each within their tenant",
        Access::Anonymous => "anybody may chat, nobody may list or delete: nobody is known",
    };
    let text = format!(
        "listening on http://{address}\n\
         \x20 page   {url}/\n\
         {agents}{docs}\
         \x20 access {who}\n\
         \x20 CopilotKit runtimeUrl {url}{base}\n",
        docs = docs.unwrap_or_default(),
        base = config.base_path,
    );
    let _ = io::stderr().write_all(text.as_bytes());
}
