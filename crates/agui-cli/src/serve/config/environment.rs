//! Variables of the environment to values.

use super::tree::{Node, Origin, Table, Value};

/// What all of them begin with.
const PREFIX: &str = "AGUI_";

/// The keys outside any table. Only these are variables without `__`: others that begin like ours
/// may be somebody else's.
pub(super) const PLAIN: [&str; 12] = [
    "allow-hosts",
    "base-path",
    "busy",
    "debug-events",
    "default-agent",
    "journal",
    "keep-alive",
    "lease",
    "listen",
    "log",
    "log-format",
    "single-user",
];

/// The layer of the environment: `AGUI_LIMITS__BODY` is `limits.body`.
///
/// Names are in capitals; `__` stands for the dot between keys and `_` for a dash. An empty variable
/// is none.
pub(super) fn layer(variables: &[(String, String)]) -> Table {
    let mut layer = Table::new(Origin::Default);
    let mut variables: Vec<_> = variables.iter().collect();
    variables.sort();
    for (variable, value) in variables {
        let Some(name) = variable.strip_prefix(PREFIX) else { continue };
        let name = name.to_ascii_lowercase();
        let keys: Vec<String> = name.split("__").map(|key| key.replace('_', "-")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        if value.is_empty() || (keys.len() == 1 && !PLAIN.contains(&keys[0])) {
            continue;
        }
        let origin = Origin::Variable(variable.clone());
        layer.put(&keys, Node { origin, value: Value::Text(value.clone()) });
    }
    layer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_paths() {
        let variables = [
            ("AGUI_LISTEN", "a"),
            ("AGUI_AGENTS__WEATHER__HEADERS__X_KEY", "b"),
            ("AGUI_LIMITS__RUN_DEADLINE", ""),
            ("AGUI_CORPUS", "c"),
            ("PATH", "d"),
        ];
        let mut layer = layer(&variables.map(|(name, value)| (name.into(), value.into())));
        let listen = layer.take("listen").unwrap().node;
        assert_eq!(listen.origin, Origin::Variable("AGUI_LISTEN".into()));
        let mut node = layer.take("agents").unwrap().node;
        for name in ["weather", "headers", "x-key"] {
            let Value::Table(mut table) = node.value else { panic!("{name}") };
            node = table.take(name).unwrap().node;
        }
        assert!(matches!(node.value, Value::Text(text) if text == "b"));
        assert!(layer.entries.is_empty());
    }
}
