//! The schemas that the types derive against the published one: the same verdict on every instance
//! and on everything that is wrong with one.

use agui_types::{AgentCapabilities, Event, Message, RunAgentInput};
use schemars::{Schema as Derived, schema_for};

use super::{current, is_valid, validator};

#[test]
fn derived_schemas_judge_as_the_published_one() {
    let Some(schema) = current() else { return };
    let derived: [(&str, Derived); 4] = [
        ("Event", schema_for!(Event)),
        ("RunAgentInput", schema_for!(RunAgentInput)),
        ("Message", schema_for!(Message)),
        ("AgentCapabilities", schema_for!(AgentCapabilities)),
    ];
    for (name, derived) in derived {
        let ours = jsonschema::validator_for(derived.as_value()).unwrap();
        let theirs = validator(&schema, name);
        let shape = &schema.definitions[name];
        for instance in schema.instances(shape) {
            let text = instance.render();
            assert!(is_valid(&ours, &text), "{name}: {text}");
        }
        let instances = [schema.full(shape), vec![schema.least(shape)]].concat();
        let mut verdicts = [0, 0];
        for mutation in schema.mutations(shape, &instances, usize::MAX) {
            let text = mutation.instance.render();
            let verdict = is_valid(&theirs, &text);
            assert_eq!(is_valid(&ours, &text), verdict, "{name}: {text}");
            verdicts[usize::from(verdict)] += 1;
        }
        assert!(verdicts.iter().all(|count| *count > 30), "{name}: {verdicts:?}");
    }
}

#[test]
fn every_described_member_says_what_it_is() {
    // A generator of documentation or code finds a description on each.
    let mut members = 0;
    for derived in [schema_for!(Event), schema_for!(RunAgentInput), schema_for!(AgentCapabilities)]
    {
        let definitions = derived.as_value()["$defs"].as_object().unwrap();
        for (name, definition) in definitions {
            for (member, schema) in definition["properties"].as_object().into_iter().flatten() {
                if schema.get("const").is_none() && definition["additionalProperties"] == false {
                    assert!(schema["description"].as_str().is_some_and(|text| !text.is_empty()));
                    members += 1;
                }
                assert!(!member.is_empty(), "{name}");
            }
        }
    }
    assert!(members > 200, "{members}");
}
