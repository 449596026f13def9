//! The configuration of `agui serve`: arguments, then the environment, then `agui.toml`, then what
//! it is where nobody says. `docs/configuration.md` describes it, `docs/agui.toml` has every key.

mod agents;
mod auth;
mod effective;
mod environment;
mod file;
mod problem;
mod reader;
mod setting;
mod tree;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use agui_journal::Retention;
use agui_runtime::{BusyPolicy, Upkeep};
use agui_server::ServerLimits;
use clap::ValueEnum;

use super::agents::Served;
use super::host::Hosts;
use super::origin::Origins;
use crate::args::{LogArgs, ServeArgs};
use crate::failure::Failure;
use crate::logging::LogFormat;
use problem::Problem;
use reader::{At, Reader, Section};
use setting::{Bound, Bytes, Count, Lookup, Positive, Span};
use tree::{Node, Origin, Table, Value};

pub(super) use auth::Known;
pub(super) use effective::Effective;

/// Everything that `agui serve` can be told.
pub(super) struct Config {
    pub(super) listen: SocketAddr,
    /// Where the CopilotKit runtime is: no slash at its end, one at its beginning.
    pub(super) base_path: String,
    /// Where the run log is, where somebody says so.
    pub(super) journal: Option<String>,
    pub(super) agents: Vec<Served>,
    /// The id of the agent for those who name none.
    pub(super) default_agent: String,
    pub(super) access: Access,
    pub(super) origins: Origins,
    pub(super) hosts: Hosts,
    pub(super) busy: BusyPolicy,
    pub(super) debug_events: bool,
    pub(super) keep_alive: Duration,
    pub(super) lease: Duration,
    pub(super) limits: Limits,
    pub(super) upkeep: Upkeep,
    pub(super) log: String,
    pub(super) log_format: LogFormat,
}

/// Who may do what.
pub(super) enum Access {
    /// One person uses the machine, and may do everything.
    SingleUser,
    /// Nobody is known: everybody chats, nobody lists or deletes.
    Anonymous,
    /// Those who are known do everything within their tenant, nobody else anything.
    Known(Known),
}

/// How much of anything.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub(super) server: ServerLimits,
    pub(super) body: usize,
    pub(super) runs: usize,
    pub(super) viewers: usize,
    pub(super) runs_per_tenant: usize,
    pub(super) viewers_per_thread: usize,
    pub(super) run_events: u64,
    pub(super) run_bytes: u64,
    pub(super) run_deadline: Option<Duration>,
}

impl Config {
    /// Reads everything; what is wrong is told all at once. Beside the configuration stands what
    /// it comes to, key by key.
    pub(super) fn load(
        args: &ServeArgs,
        log: &LogArgs,
        variables: &[(String, String)],
    ) -> Result<(Self, Effective), Failure> {
        let named = args.config.as_deref();
        let table = match file::read(named.unwrap_or(Path::new(file::USUAL))) {
            Ok(Some(table)) => table,
            Ok(None) => match named {
                None => Table::new(Origin::Default),
                Some(path) => {
                    let failure = Failure::usage(format!("there is no file {}", path.display()));
                    return Err(failure.hint("name one that is there with --config"));
                }
            },
            Err(problem) => return Err(problem.tell()),
        };
        Self::of_layers(table, args, log, variables)
    }

    fn of_layers(
        mut table: Table,
        args: &ServeArgs,
        log: &LogArgs,
        variables: &[(String, String)],
    ) -> Result<(Self, Effective), Failure> {
        table.overlay(environment::layer(variables));
        let has_agents = table.entries.iter().any(|entry| match &entry.node.value {
            Value::Table(agents) => entry.name == "agents" && !agents.entries.is_empty(),
            _ => entry.name == "agents",
        });
        if !has_agents {
            table.put(&["agents", super::agents::DEMO, "kind"], said(Origin::Default, "demo"));
        }
        let duplicate = overlay_flags(&mut table, args);
        overlay_log(&mut table, log, variables);

        let lookup = |name: &str| {
            let found = variables.iter().find(|(variable, _)| variable == name);
            found.map(|(_, value)| value.clone())
        };
        let lookup: Lookup<'_> = &lookup;
        let reader = Reader::new(lookup);
        duplicate.into_iter().for_each(|problem| reader.problem(problem));
        let first_of_flags = args.agents.first().map(|(name, _)| name.as_str());
        let config = read(reader.root(table), first_of_flags);
        let (asked, problems) = reader.into_parts();
        match (Problem::failure(problems), config) {
            (None, Some(config)) => Ok((config, Effective(asked))),
            (Some(failure), _) => Err(failure),
            // What is missing was told, or nothing would be.
            (None, None) => Err(Failure::usage("the configuration is not complete")),
        }
    }
}

fn said(origin: Origin, text: &str) -> Node {
    Node { origin, value: Value::Text(text.into()) }
}

/// Lays the arguments over everything else; an agent that is given twice is a problem.
fn overlay_flags(table: &mut Table, args: &ServeArgs) -> Option<Problem> {
    let mut flags = Table::new(Origin::Default);
    let texts: [(_, &[&str], _); 4] = [
        ("--listen", &["listen"], &args.listen),
        ("--journal", &["journal"], &args.journal),
        ("--max-connections", &["limits", "connections"], &args.max_connections),
        ("--keep-alive", &["keep-alive"], &args.keep_alive),
    ];
    for (flag, key, value) in texts {
        if let Some(value) = value {
            flags.put(key, said(Origin::Flag(flag), value));
        }
    }
    let lists: [(_, &[&str], _); 2] = [
        ("--allow-origin", &["cors", "origins"], &args.allow_origin),
        ("--allow-host", &["allow-hosts"], &args.allow_host),
    ];
    for (flag, key, values) in lists {
        if !values.is_empty() {
            let origin = Origin::Flag(flag);
            let items = values.iter().map(|value| said(origin.clone(), value)).collect();
            flags.put(key, Node { origin, value: Value::List(items) });
        }
    }
    let mut duplicate = None;
    for (at, (name, url)) in args.agents.iter().enumerate() {
        let origin = Origin::Flag("--agent");
        if args.agents[..at].iter().any(|(other, _)| other == name) {
            let what = format!("two agents are called {name}");
            let fix = "give each agent a name of its own";
            duplicate = Some(Problem::new(origin.clone(), "", what, fix));
        }
        flags.put(&["agents", name, "kind"], said(origin.clone(), "http"));
        flags.put(&["agents", name, "url"], said(origin, url));
    }
    table.overlay(flags);
    duplicate
}

/// The same with what is logged. That both commands have, so that these arguments stand for their
/// variables as well.
fn overlay_log(table: &mut Table, log: &LogArgs, variables: &[(String, String)]) {
    let format = log.log_format.and_then(|format| format.to_possible_value());
    let format = format.map(|format| format.get_name().to_owned());
    for (flag, key, variable, value) in [
        ("--log", "log", "AGUI_LOG", &log.log),
        ("--log-format", "log-format", "AGUI_LOG_FORMAT", &format),
    ] {
        let said_by = |value: &String| variables.contains(&(variable.to_owned(), value.clone()));
        if let Some(value) = value.as_ref().filter(|value| !said_by(value)) {
            table.put(&[key], said(Origin::Flag(flag), value));
        }
    }
}

/// Reads the whole. Where something that has no default is wrong, that was told and there is none.
fn read(mut root: Section<'_>, first_of_flags: Option<&str>) -> Option<Config> {
    let listen = root.get("listen", SocketAddr::from(([127, 0, 0, 1], 4100)));
    let base_path = root.get("base-path", super::routes::COPILOTKIT.to_owned());
    let base_path = check_base_path(&root, base_path);
    let journal = root.get("journal", super::log::FILE.to_owned());
    let journal = (journal.origin != Origin::Default).then_some(journal.value);
    let named_default = root.optional::<String>("default-agent");
    let busy = root.get("busy", BusyPolicy::Refuse).value;
    let single_user = root.optional::<bool>("single-user");
    let debug_events = root.get("debug-events", false);
    let keep_alive = root.get("keep-alive", Span(Duration::from_secs(15))).value.0;
    let lease = root.get("lease", Positive(Duration::from_secs(30)));
    if lease.value.0 < Duration::from_secs(1) {
        let what = "a lease is good for a second at least";
        root.problem_at(lease.origin, "lease", what, "write for example lease = \"30s\"");
    }
    let allow_hosts = root.get::<Vec<String>>("allow-hosts", Vec::new());
    let hosts = Hosts::new(listen.value.ip(), &allow_hosts.value);
    let hosts = found(&root, "allow-hosts", &allow_hosts.origin, hosts);
    let log = root.get("log", crate::logging::USUAL.to_owned());
    if let Err(error) = crate::logging::filter(&log.value) {
        let fix = "write a level such as info, or targets such as agui_server=debug";
        root.problem_at(log.origin, "log", error.to_string(), fix);
    }
    let log_format = root.get("log-format", LogFormat::Text).value;

    let origins = read_cors(root.section("cors"));
    let limits = read_limits(root.section("limits"));
    let upkeep = read_retention(root.section("retention"));
    let known = auth::read(root.section("auth"));
    let agents = agents::read(root.sections("agents"), known.anybody());
    let default_agent =
        agents::default_agent(&agents, named_default.as_ref(), first_of_flags, &root);
    let access = choose_access(&root, single_user, known, listen.value);
    if debug_events.value && !matches!(access, Access::SingleUser) {
        let what =
            "it shows all that is said as it is said, which is for a server that one person uses";
        let fix = "remove it, or say single-user = true";
        root.problem_at(debug_events.origin.clone(), "debug-events", what, fix);
    }
    root.finish();
    Some(Config {
        listen: listen.value,
        base_path,
        journal,
        agents,
        default_agent: default_agent?,
        access,
        origins: origins?,
        hosts: hosts?,
        busy,
        debug_events: debug_events.value,
        keep_alive,
        lease: lease.value.0,
        limits,
        upkeep,
        log: log.value,
        log_format,
    })
}

/// A value that is made of the one of a key; where it cannot be, that is a problem of the key.
fn found<T>(section: &Section<'_>, key: &str, at: &Origin, made: Result<T, Failure>) -> Option<T> {
    made.map_err(|failure| {
        let fix = failure.advice().unwrap_or_default().to_owned();
        section.problem_at(at.clone(), key, failure.to_string(), fix);
    })
    .ok()
}

/// A path that no other route is below, in the characters that stand for themselves.
fn check_base_path(root: &Section<'_>, path: At<String>) -> String {
    const FIX: &str = "write for example base-path = \"/api/copilotkit\"";
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
    let trimmed = path.value.trim_matches('/');
    let segments: Vec<&str> = trimmed.split('/').collect();
    let what = if segments.iter().any(|it| it.is_empty() || *it == "." || *it == "..") {
        "it has to name at least one segment, and no empty one, such as /api/copilotkit"
    } else if !segments.iter().all(|segment| segment.chars().all(plain)) {
        "a path has letters, digits, -, _, . and ~ between its slashes"
    } else if ["agents", "health", "ready"].contains(&segments[0]) {
        "what begins with /agents, /health or /ready is something else here"
    } else {
        return format!("/{trimmed}");
    };
    root.problem_at(path.origin, "base-path", what, FIX);
    super::routes::COPILOTKIT.into()
}

fn read_cors(mut cors: Section<'_>) -> Option<Origins> {
    let origins = cors.get::<Vec<String>>("origins", Vec::new());
    let credentials = cors.get("credentials", false).value;
    let made = Origins::new(&origins.value, credentials);
    let made = found(&cors, "origins", &origins.origin, made);
    cors.finish();
    made
}

fn read_limits(mut section: Section<'_>) -> Limits {
    let usual = ServerLimits::default();
    let count = |section: &mut Section<'_>, key, usual: usize| {
        section.get(key, Count(usual as u64)).value.size()
    };
    let bytes = |section: &mut Section<'_>, key, usual: usize| {
        section.get(key, Bytes(usual as u64)).value.size()
    };
    let span = |section: &mut Section<'_>, key, usual| section.get(key, Positive(usual)).value.0;
    let mut server = usual;
    server.connections = count(&mut section, "connections", usual.connections);
    server.headers = count(&mut section, "headers", usual.headers);
    server.head_bytes = bytes(&mut section, "head", usual.head_bytes);
    let body = bytes(&mut section, "body", agui_server::AgentService::BODY_LIMIT);
    let runs = count(&mut section, "runs", 10_000);
    let runs_per_tenant = count(&mut section, "runs-per-tenant", 10_000);
    let viewers = count(&mut section, "viewers", 20_000);
    let viewers_per_thread = count(&mut section, "viewers-per-thread", 2_000);
    let run_events = section.get("run-events", Count(1_000_000)).value.0;
    let run_bytes = section.get("run-bytes", Bytes(256 << 20)).value.0;
    let run_deadline = section.get("run-deadline", Bound::<Positive>(None)).value.0;
    server.head_timeout = span(&mut section, "head-timeout", usual.head_timeout);
    server.body_grace = span(&mut section, "body-grace", usual.body_grace);
    server.idle_timeout = span(&mut section, "idle-timeout", usual.idle_timeout);
    server.write_timeout = span(&mut section, "write-timeout", usual.write_timeout);
    server.shutdown_grace = span(&mut section, "shutdown-grace", usual.shutdown_grace);
    section.finish();
    Limits {
        server,
        body,
        runs,
        viewers,
        runs_per_tenant,
        viewers_per_thread,
        run_events,
        run_bytes,
        run_deadline: run_deadline.map(|Positive(span)| span),
    }
}

fn read_retention(mut section: Section<'_>) -> Upkeep {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let mut upkeep = Upkeep::default();
    let mut retention = Retention::new();
    retention.idle = section.get("age", Bound::<Positive>(None)).value.0.map(|it| it.0);
    retention.threads = section.get("threads", Bound::<Count>(None)).value.0.map(|it| it.0);
    retention.bytes = section.get("bytes", Bound::<Bytes>(None)).value.0.map(|it| it.0);
    upkeep.retention = retention;
    let compact = section.get("compact-after", Bound(Some(Positive(DAY)))).value.0;
    upkeep.compact_after = compact.map(|it| it.0);
    upkeep.every = section.get("every", Positive(upkeep.every)).value.0;
    section.finish();
    upkeep
}

/// On a loopback address where nobody is to be known, one person uses the server.
fn choose_access(
    root: &Section<'_>,
    single_user: Option<At<bool>>,
    known: Known,
    listen: SocketAddr,
) -> Access {
    let alone = single_user.as_ref().map_or(listen.ip().is_loopback(), |at| at.value);
    if known.anybody() {
        if let Some(single_user) = single_user.filter(|at| at.value) {
            let what = "either one person uses the server, or those who do are known by [auth]";
            let fix = "remove single-user, or the table auth";
            root.problem_at(single_user.origin, "single-user", what, fix);
        }
        return Access::Known(known);
    }
    match single_user {
        Some(single_user) if single_user.value && !listen.ip().is_loopback() => {
            let what = format!(
                "on {listen} everybody who reaches this machine could read and delete every thread"
            );
            let fix = "listen on 127.0.0.1, or say who is known in [auth.tokens]";
            root.problem_at(single_user.origin, "single-user", what, fix);
            Access::Anonymous
        }
        _ if alone => Access::SingleUser,
        _ => Access::Anonymous,
    }
}

#[cfg(test)]
mod tests;
