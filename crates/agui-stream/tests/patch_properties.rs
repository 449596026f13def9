//! What holds for every document and every patch.

use agui_stream::patch::{Document, PatchLimits, diff, resolve};
use agui_types::json::Value;
use agui_types::{JsonPatch, JsonPointer, PatchOp, PatchOperation};
use proptest::collection::vec;
use proptest::prelude::*;

/// Few names and numbers, so that patches hit something.
fn document() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        (-2i64..3).prop_map(|value| value.to_string()),
        Just("1.0".to_owned()),
        Just(r#""t\n\"é""#.to_owned()),
    ];
    let text = scalar.prop_recursive(5, 48, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(","))),
            vec((name(), inner), 0..5).prop_map(|members| {
                let members = members.iter().map(|(name, value)| format!("{name:?}:{value}"));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }),
        ]
    });
    text.prop_map(|text| Value::parse(&text).expect("a document"))
}

fn name() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b"), Just(""), Just("x/y"), Just("m~n"), Just("0"), Just("-")]
}

fn pointer() -> impl Strategy<Value = JsonPointer> {
    let step = prop_oneof![3 => name().prop_map(str::to_owned), 2 => (0..5usize).prop_map(|at| at.to_string())];
    vec(step, 0..5).prop_map(|steps| {
        steps.iter().fold(JsonPointer::default(), |pointer, step| pointer.join(step))
    })
}

/// A pointer that mostly leads somewhere in a document.
fn pointer_into(document: &Value, choices: &[usize]) -> JsonPointer {
    let (mut here, mut pointer) = (document, JsonPointer::default());
    for choice in choices {
        match here {
            Value::Array(items) if !items.is_empty() => {
                let at = choice % items.len();
                (here, pointer) = (&items[at], pointer.join(&at.to_string()));
            }
            Value::Object(members) if !members.is_empty() => {
                let (name, value) = members.get_index(choice % members.len()).expect("a member");
                (here, pointer) = (value, pointer.join(name));
            }
            _ => break,
        }
    }
    pointer
}

/// How to make an operation once the document is there.
#[derive(Clone, Debug)]
struct Plan {
    kind: usize,
    path: (bool, Vec<usize>, JsonPointer),
    from: (bool, Vec<usize>, JsonPointer),
    value: Value,
    same: bool,
}

impl Plan {
    fn operation(&self, document: &Value) -> PatchOperation {
        let pick = |(into, choices, free): &(bool, Vec<usize>, JsonPointer)| match into {
            true => pointer_into(document, choices),
            false => free.clone(),
        };
        let (path, from) = (pick(&self.path), pick(&self.from));
        let value = match resolve(document, &path) {
            Some(there) if self.same => there.to_json(),
            _ => self.value.to_json(),
        };
        match self.kind {
            0 => PatchOp::Add { path, value },
            1 => PatchOp::Remove { path },
            2 => PatchOp::Replace { path, value },
            3 => PatchOp::Move { from, path },
            4 => PatchOp::Copy { from, path },
            _ => PatchOp::Test { path, value },
        }
        .into()
    }
}

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let place = || (proptest::bool::weighted(0.7), vec(0..100usize, 0..5), pointer());
    let plan = (0..6usize, place(), place(), document(), proptest::bool::weighted(0.8))
        .prop_map(|(kind, path, from, value, same)| Plan { kind, path, from, value, same });
    vec(plan, 0..10)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..ProptestConfig::default() })]

    /// C-67: byte for byte what it was, order and digits included; and the size is kept either way.
    #[test]
    fn after_an_error_the_document_is_what_it_was(start in document(), plans in plans()) {
        let mut document = Document::new(start.clone());
        let mut applied: Vec<PatchOperation> = Vec::new();
        // Each operation is made for the document as it then is, so that patches run long.
        let mut now = Document::new(start.clone());
        for plan in &plans {
            let operation = plan.operation(now.value());
            let one = JsonPatch::from(vec![operation.clone()]);
            let good = now.apply(&one, &PatchLimits::default()).is_ok();
            applied.push(operation);
            if !good {
                break;
            }
        }
        let patch = JsonPatch::from(applied);
        match document.apply(&patch, &PatchLimits::default()) {
            Ok(()) => prop_assert_eq!(document.value().to_string(), now.value().to_string()),
            Err(error) => {
                prop_assert_eq!(document.value().to_string(), start.to_string());
                prop_assert_eq!(error.operation, patch.len() - 1);
                prop_assert!(error.pointer.as_str().starts_with(error.exists.as_str()));
                prop_assert!(!error.to_string().is_empty());
            }
        }
        prop_assert_eq!(document.size(), Document::new(document.value().clone()).size());
    }

    #[test]
    fn tight_limits_take_everything_back_too(
        start in document(),
        plans in plans(),
        size in 0..200usize,
        depth in 0..6usize,
        work in 0..20usize,
    ) {
        let mut document = Document::new(start.clone());
        let patch: Vec<_> = plans.iter().map(|plan| plan.operation(&start)).collect();
        let limits = PatchLimits::default().with_size(size).with_depth(depth).with_work(work);
        if document.apply(&patch.into(), &limits).is_err() {
            prop_assert_eq!(document.value().to_string(), start.to_string());
        } else {
            prop_assert!(document.size() <= size.max(Document::new(start).size()));
        }
        prop_assert_eq!(document.size(), Document::new(document.value().clone()).size());
    }

    #[test]
    fn the_difference_leads_from_one_to_the_other(from in document(), to in document()) {
        let patch = diff(&from, &to);
        let mut document = Document::new(from.clone());
        document.apply(&patch, &PatchLimits::default()).expect("a patch that applies");
        prop_assert_eq!(document.value(), &to);
        prop_assert_eq!(patch.is_empty(), from == to);
    }

    /// A small change to a document is a small patch.
    #[test]
    fn the_difference_is_no_larger_than_the_value(from in document(), plans in plans()) {
        let mut document = Document::new(from.clone());
        for plan in &plans {
            let one = JsonPatch::from(vec![plan.operation(document.value())]);
            let _ = document.apply(&one, &PatchLimits::default());
        }
        let to = document.into_value();
        let patch = diff(&from, &to);
        let whole = r#"[{"op":"replace","path":"","value":}]"#.len() + to.to_json().as_str().len();
        // A tenth for what is estimated.
        let size = agui_types::ToJson::to_json(&patch).len();
        prop_assert!(size <= whole + whole / 10 + 10, "{size} {whole}");
        let mut document = Document::new(from);
        document.apply(&patch, &PatchLimits::default()).expect("a patch that applies");
        prop_assert_eq!(document.value(), &to);
    }
}
