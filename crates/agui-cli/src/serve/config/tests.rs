use std::collections::BTreeSet;

use super::reader::Asked;
use super::*;

const EXAMPLE: &str = include_str!("../../../../../docs/agui.toml");
const PAGE: &str = include_str!("../../../../../docs/configuration.md");

fn variables() -> Vec<(String, String)> {
    let secret = "0123456789abcdef0123456789abcdef";
    ["WEATHER_KEY", "ADA_TOKEN", "JWT_KEY"].map(|name| (name.into(), secret.into())).into()
}

fn load_as(
    text: &str,
    args: &ServeArgs,
    variables: &[(String, String)],
) -> Result<(Config, Effective), Failure> {
    let table = file::parse(text, &"agui.toml".into()).map_err(Problem::tell)?;
    Config::of_layers(table, args, &LogArgs::default(), variables)
}

fn load(text: &str) -> Result<(Config, Effective), Failure> {
    load_as(text, &ServeArgs::default(), &variables())
}

/// What is told, with what to do about it.
fn wrong(text: &str) -> Vec<(String, String)> {
    let failure = load(text).err().unwrap_or_else(|| panic!("{text}: nothing is wrong"));
    let told =
        |failure: &Failure| (failure.to_string(), failure.advice().unwrap_or_default().to_owned());
    std::iter::once(&failure).chain(failure.others()).map(told).collect()
}

fn keys(asked: &[Asked], counts: impl Fn(&Asked) -> bool) -> BTreeSet<String> {
    let general = |path: &[String]| {
        let mut path: Vec<&str> = path.iter().map(String::as_str).collect();
        match &mut path[..] {
            ["agents", name, ..] | ["auth", "tokens", name, ..] => *name = "NAME",
            _ => {}
        }
        path.join(".")
    };
    let asked = asked.iter().filter(|asked| counts(asked));
    asked
        .map(|asked| general(&[&asked.section[..], std::slice::from_ref(&asked.key)].concat()))
        .collect()
}

#[test]
fn the_example_can_be_used_and_has_every_key() {
    let (config, Effective(asked)) = load(EXAMPLE).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.default_agent, "weather");
    let all = keys(&asked, |_| true);
    let given = keys(&asked, |asked| asked.origin != Origin::Default);
    assert_eq!(all.difference(&given).collect::<Vec<_>>(), Vec::<&String>::new());
    // The page describes each of them.
    for key in &all {
        let described = key.replace(".headers.X-Api-Key", ".headers.HEADER");
        assert!(PAGE.contains(&format!("`{described}`")), "{described} is not described");
    }
    let plain: BTreeSet<&str> =
        all.iter().map(String::as_str).filter(|key| !key.contains('.')).collect();
    assert_eq!(plain, BTreeSet::from(environment::PLAIN));
}

#[test]
fn the_example_says_what_counts_where_nobody_says_anything() {
    let (_, Effective(usual)) = load("").unwrap_or_else(|error| panic!("{error}"));
    let (_, Effective(example)) = load(EXAMPLE).unwrap_or_else(|error| panic!("{error}"));
    let differs = ["allow-hosts", "cors.origins", "agents.demo.description"];
    for Asked { section, key, shown, .. } in usual.iter().filter(|asked| asked.shown.is_some()) {
        let name = [&section[..], std::slice::from_ref(key)].concat().join(".");
        if differs.contains(&&*name) {
            continue;
        }
        let same = example.iter().find(|asked| (&asked.section, &asked.key) == (section, key));
        assert_eq!(same.and_then(|asked| asked.shown.as_ref()), shown.as_ref(), "{name}");
    }
}

#[test]
fn what_is_printed_can_be_read_again() {
    let text = EXAMPLE.replace("\"http://127", "\"http://jo3:pa55@127");
    let (_, first) = load(&text).unwrap_or_else(|error| panic!("{error}"));
    let printed = first.to_string();
    for secret in ["0123456789abcdef", "jo3", "pa55"] {
        assert!(!printed.contains(secret), "{secret}: {printed}");
    }
    assert!(printed.contains("token = { env = \"ADA_TOKEN\" }  # agui.toml:"), "{printed}");
    let readable = printed.replace("[redacted]@", "");
    let (_, second) = load(&readable).unwrap_or_else(|error| panic!("{error}: {printed}"));
    let shown = |Effective(asked): Effective| {
        asked.into_iter().map(|it| (it.section, it.key, it.shown)).collect::<Vec<_>>()
    };
    let (_, first) = load(&EXAMPLE.replace("\"http://127", "\"http://jo3:pa55@127")).ok().unwrap();
    let without_user = |mut asked: Vec<(Vec<String>, String, Option<String>)>| {
        for (.., shown) in &mut asked {
            *shown = shown.take().map(|shown| shown.replace("[redacted]@", ""));
        }
        asked
    };
    assert_eq!(without_user(shown(first)), shown(second));
}

#[test]
fn an_argument_beats_a_variable_beats_the_file() {
    let file = "listen = \"127.0.0.1:1\"\nkeep-alive = 1\n[limits]\nruns = 1\nviewers = 2\n\
                [cors]\norigins = [\"http://a.example\"]";
    let mut set = variables();
    for (name, value) in [
        ("AGUI_LISTEN", "127.0.0.1:2"),
        ("AGUI_LIMITS__RUNS", "2"),
        ("AGUI_CORS__ORIGINS", "http://b.example, http://c.example"),
        ("AGUI_CORS__CREDENTIALS", "true"),
        ("AGUI_LOG", "info"),
        ("AGUI_CORPUS", "is somebody else's"),
    ] {
        set.push((name.into(), value.into()));
    }
    let args = ServeArgs { listen: Some("127.0.0.1:3".into()), ..ServeArgs::default() };
    let (config, effective) = load_as(file, &args, &set).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.listen.port(), 3);
    assert_eq!((config.limits.runs, config.limits.viewers, &*config.log), (2, 2, "info"));
    let printed = effective.to_string();
    for line in [
        "listen = \"127.0.0.1:3\"  # --listen",
        "runs = 2  # AGUI_LIMITS__RUNS",
        "viewers = 2  # agui.toml:5:11",
        "origins = [\"http://b.example\", \"http://c.example\"]  # AGUI_CORS__ORIGINS",
        "credentials = true  # AGUI_CORS__CREDENTIALS",
        "body = \"10 MiB\"",
        "# single-user is not set",
    ] {
        assert!(printed.lines().any(|it| it == line), "{line}: {printed}");
    }
}

#[test]
fn agents_come_from_everywhere() {
    let names = |config: &Config| {
        let names = config.agents.iter().map(|agent| agent.id.clone());
        (names.collect::<Vec<_>>().join(" "), config.default_agent.clone())
    };
    let flags = |agents: &[(&str, &str)]| ServeArgs {
        agents: agents.iter().map(|(name, url)| ((*name).into(), (*url).into())).collect(),
        ..ServeArgs::default()
    };
    let url = "http://127.0.0.1:1/";
    let is = |text: &str, args: &ServeArgs, set: &[(&str, &str)], all: &str, default: &str| {
        let set: Vec<_> = set.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let (config, _) = load_as(text, args, &set).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(names(&config), (all.into(), default.into()), "{text}");
    };
    let none = ServeArgs::default();
    is("", &none, &[], "demo", "demo");
    is("", &flags(&[("b", url), ("a", url)]), &[], "demo b a", "b");
    let file =
        "[agents.z]\nkind = \"http\"\nurl = \"http://127.0.0.1:1/\"\n[agents.a]\nkind = \"demo\"";
    is(file, &none, &[], "z a", "z");
    is(file, &flags(&[("b", url)]), &[], "z a b", "b");
    is(&format!("default-agent = \"a\"\n{file}"), &flags(&[("b", url)]), &[], "z a b", "a");
    is(&file.replace("[agents.a]", "[agents.default]"), &none, &[], "z default", "default");
    let set = [
        ("AGUI_AGENTS__NEW__KIND", "http"),
        ("AGUI_AGENTS__NEW__URL", url),
        ("AGUI_AGENTS__NEW__HEADERS__X_KEY", "k"),
        ("AGUI_AGENTS__Z__IDLE_TIMEOUT", "5m"),
        ("AGUI_DEFAULT_AGENT", "new"),
    ];
    is(file, &none, &set, "z a new", "new");
    // An argument says anew where an agent of the file is.
    is(file, &flags(&[("z", "http://127.0.0.1:2/")]), &[], "z a", "z");
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_what_to_do() {
    for (text, place, says, fix) in [
        (
            "listen = 4100",
            "agui.toml:1:10: listen: ",
            "expected an IP address",
            "write for example",
        ),
        ("listen = \"nowhere\"", "agui.toml:1:10: listen: ", "found \"nowhere\"", "127.0.0.1:4100"),
        ("\nlistn = 1", "agui.toml:2:1: listn: ", "no such key", "did you mean listen?"),
        ("[limits]\nbody = \"ten\"", "agui.toml:2:8: limits.body: ", "number of bytes", "10 MiB"),
        ("[limits]\nruns = 0", "agui.toml:2:8: limits.runs: ", "1 or more, found 0", "runs = "),
        ("[limits]\nruns = 1.5", "agui.toml:2:8: limits.runs: ", "with a fraction", "runs = "),
        ("limits = 5", "agui.toml:1:10: limits: ", "expected a table", "[limits]"),
        (
            "[limits]\nfrobnicate = 5",
            "agui.toml:2:1: limits.frobnicate: ",
            "no such",
            "connections",
        ),
        ("keep-alive = 1\nkeep-alive = 2", "agui.toml:2:1: ", "twice", "remove one"),
        ("[cors]\n[cors]", "agui.toml:2:", "", ""),
        ("keep-alive = ", "agui.toml:1:", "", "example"),
        ("é = 'a' b", "agui.toml:1:", "", ""),
        ("keep-alive = 1979-05-27", "agui.toml:1:14: keep-alive: ", "found a date", ""),
        ("keep-alive = 99999999999999999999", "agui.toml:1:14: keep-alive: ", "64 bits", ""),
        ("lease = \"10ms\"", "agui.toml:1:9: lease: ", "a second at least", ""),
        ("busy = \"queue\"", "agui.toml:1:8: busy: ", "\"refuse\" or \"supersede\"", ""),
        ("log = \"[=\"", "agui.toml:1:7: log: ", "", "a level"),
        ("base-path = \"/\"", "agui.toml:1:13: base-path: ", "at least one segment", ""),
        ("base-path = \"/agents/x\"", "agui.toml:1:13: base-path: ", "something else", ""),
        ("base-path = \"/a/{b}\"", "agui.toml:1:13: base-path: ", "letters, digits", ""),
        (
            "[cors]\norigins = [\"a.b\"]",
            "agui.toml:2:11: cors.origins: ",
            "no web origin",
            "https://",
        ),
        ("[cors]\norigins = [1]", "agui.toml:2:11: cors.origins: ", "entry 1", ""),
        ("allow-hosts = [\"a:1\"]", "agui.toml:1:15: allow-hosts: ", "no host name", ""),
        ("default-agent = \"x\"", "agui.toml:1:17: default-agent: ", "no agent \"x\"", "demo"),
        ("[agents.a]", "agui.toml:1:1: agents.a.kind: ", "it is missing", "kind"),
        ("[agents.a]\nkind = \"llm\"", "agui.toml:2:8: agents.a.kind: ", "no kind", "demo, http"),
        ("[agents.a]\nkind = \"http\"", "agui.toml:1:1: agents.a.url: ", "missing", "url = "),
        (
            "[agents.a]\nkind = \"http\"\nurl = \"ftp://x\"",
            "agui.toml:3:7: agents.a.url: ",
            "expected http or https",
            "",
        ),
        (
            "[agents.a]\nkind = \"http\"\nurl = \"http://x/${NOT_THERE}\"",
            "agui.toml:3:7: agents.a.url: ",
            "no variable NOT_THERE",
            "",
        ),
        (
            "[agents.a]\nkind = \"demo\"\nurl = \"x\"",
            "agui.toml:3:1: agents.a.url: ",
            "no such",
            "",
        ),
        ("[agents.\"a/b\"]\nkind = \"demo\"", "agui.toml:1:9: agents.\"a/b\"", "64 letters", ""),
        (
            "[agents.a]\nkind = \"http\"\nurl = \"http://x/\"\nheaders = { \"a b\" = \"1\" }",
            "agui.toml:4:13: agents.a.\"headers.a…\": ",
            "not one that HTTP allows",
            "",
        ),
        ("[auth.tokens.a]", "agui.toml:1:1: auth.tokens.a.token: ", "missing", "env"),
        ("[auth.tokens.a]\ntoken = \"a b\"", "agui.toml:2:9: auth.tokens.a.token: ", "white", ""),
        (
            "[auth.tokens.a]\ntoken = \"x\"\n[auth.tokens.b]\ntoken = \"x\"",
            "agui.toml:4:9: auth.tokens.b.token: ",
            "the token of a",
            "",
        ),
        (
            "listen = \"0.0.0.0:1\"\nsingle-user = true",
            "agui.toml:2:15: single-user: ",
            "could read and delete every thread",
            "[auth.tokens]",
        ),
        (
            "single-user = true\n[auth.tokens.a]\ntoken = \"x\"",
            "agui.toml:1:15: single-user: ",
            "known by [auth]",
            "",
        ),
        (
            "debug-events = true\n[auth.tokens.a]\ntoken = \"x\"",
            "agui.toml:1:16: debug-events: ",
            "one person uses",
            "single-user",
        ),
    ] {
        let told = wrong(text);
        let [(message, advice)] = &told[..] else { panic!("{text}: {told:?}") };
        assert!(message.starts_with(place), "{text}: {message}");
        assert!(message.contains(says), "{text}: {message}");
        assert!(advice.contains(fix) && !advice.is_empty(), "{text}: {advice}");
        // One line each.
        assert!(!message.contains('\n') && !advice.contains('\n'), "{text}: {message}");
    }
}

/// An issuer lets anybody have any name, also one that a token stands for.
#[cfg(feature = "jwt")]
#[test]
fn beside_jwts_a_token_says_whose_threads_it_sees() {
    let key = "k".repeat(32);
    let jwt = format!(
        "[auth.jwt]\nalgorithm = \"HS256\"\nkey = \"{key}\"\nissuer = \"i\"\naudience = \"a\"\n"
    );
    let token = |tenant: &str| format!("{jwt}[auth.tokens.ada]\ntoken = \"x\"\n{tenant}");
    let told = wrong(&token(""));
    let [(message, advice)] = &told[..] else { panic!("{told:?}") };
    assert!(message.starts_with("agui.toml:6:"), "{message}");
    assert!(message.contains("auth.tokens.ada.tenant: beside [auth.jwt]"), "{message}");
    assert!(advice.contains("tenant = \"acme\""), "{advice}");
    for right in [token("tenant = \"ada\""), jwt.clone(), "[auth.tokens.ada]\ntoken = \"x\"".into()]
    {
        assert!(load(&right).is_ok(), "{right}");
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let told = wrong("lisen = 1\nbusy = 5\n[limits]\nruns = -1\n[agents.a]\nkind = \"x\"");
    assert_eq!(told.len(), 4, "{told:?}");
    let set = [("AGUI_LIMITS__RUNZ".to_owned(), "1".to_owned())];
    let failure = load_as("", &ServeArgs::default(), &set).err().unwrap();
    assert!(failure.to_string().starts_with("AGUI_LIMITS__RUNZ: limits.runz: "), "{failure}");
    let args = ServeArgs { max_connections: Some("many".into()), ..ServeArgs::default() };
    let failure = load_as("", &args, &[]).err().unwrap();
    assert!(failure.to_string().starts_with("--max-connections: limits.connections: "));
}

#[test]
fn one_person_is_meant_only_on_this_machine() {
    let access = |text: &str| load(text).ok().unwrap().0.access;
    assert!(matches!(access(""), Access::SingleUser));
    assert!(matches!(access("listen = \"[::1]:0\""), Access::SingleUser));
    assert!(matches!(access("single-user = false"), Access::Anonymous));
    assert!(matches!(access("listen = \"0.0.0.0:0\""), Access::Anonymous));
    assert!(matches!(access("listen = \"0.0.0.0:0\"\nsingle-user = false"), Access::Anonymous));
    assert!(matches!(access("[auth.tokens.a]\ntoken = \"x\""), Access::Known(_)));
}

#[test]
fn a_token_for_this_server_stays_here() {
    let forwards = |text: &str| {
        let mut request = axum::http::HeaderMap::new();
        request.insert("authorization", axum::http::HeaderValue::from_static("Bearer x"));
        request.insert("x-tenant", axum::http::HeaderValue::from_static("t"));
        let agent = "[agents.a]\nkind = \"http\"\nurl = \"http://127.0.0.1:1/\"\n";
        let (config, _) = load(&format!("{agent}{text}")).ok().unwrap();
        let passed = config.agents[0].headers.choose(&request);
        passed.keys().map(|name| name.to_string()).collect::<Vec<_>>().join(" ")
    };
    let auth = "[auth.tokens.a]\ntoken = \"x\"\n";
    assert_eq!(forwards(""), "authorization x-tenant");
    assert_eq!(forwards(auth), "x-tenant");
    assert_eq!(forwards("[agents.a.forward]\nauthorization = false"), "x-tenant");
    let on = "[agents.a.forward]\nauthorization = true\n";
    assert_eq!(forwards(&format!("{on}{auth}")), "authorization x-tenant");
    let only = "[agents.a.forward]\nallow = [\"X-Tenant\"]\ndeny = [\"x-other\"]\n";
    assert_eq!(forwards(only), "x-tenant");
}
