// What goes wrong with streams: in their order, in their ids, in the shape of an event.

import { Values } from "./values.mjs";

/** Changes a list of events in a few places. */
export function mutate(events, random) {
  const values = new Values(random);
  for (let times = random.between(1, 3); times > 0 && events.length > 0; times--) {
    const how = random.weighted({
      drop: 3, repeat: 2, swap: 3, move: 2, cut: 1, again: 1,
      id: 4, owner: 3, type: 2, stranger: 1, frame: 1,
      member: 5, wrong: 6, extra: 4, unknown: 3, text: 2,
    });
    MUTATIONS[how](events, random, values);
  }
}

const TYPES = [
  "RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "STEP_STARTED", "STEP_FINISHED", "TEXT_MESSAGE_START",
  "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "TEXT_MESSAGE_CHUNK", "TOOL_CALL_START",
  "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_CHUNK", "TOOL_CALL_RESULT", "REASONING_START",
  "REASONING_END", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END",
  "REASONING_MESSAGE_CHUNK", "REASONING_ENCRYPTED_VALUE", "STATE_SNAPSHOT", "STATE_DELTA",
  "MESSAGES_SNAPSHOT", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "SUBAGENT_STARTED",
  "SUBAGENT_FINISHED", "SUBAGENT_ERROR", "RAW", "CUSTOM", "THINKING_START", "THINKING_END",
  "THINKING_TEXT_MESSAGE_START", "THINKING_TEXT_MESSAGE_CONTENT", "THINKING_TEXT_MESSAGE_END",
];

const IDS = ["messageId", "toolCallId", "stepName", "entityId", "runId", "threadId", "parentMessageId", "id"];
const NAMES = [...IDS, "subagentRunId", "role", "delta", "content", "name", "metadata", "outcome", "type"];
const TAGS = ["type", "role", "op", "subtype", "status"];

const MUTATIONS = {
  drop(events, random) {
    events.splice(random.below(events.length), 1);
  },
  repeat(events, random) {
    const at = random.below(events.length);
    events.splice(at, 0, structuredClone(events[at]));
  },
  swap(events, random) {
    const at = random.below(events.length);
    events.splice(at, 2, ...events.slice(at, at + 2).reverse());
  },
  move(events, random) {
    const [moved] = events.splice(random.below(events.length), 1);
    events.splice(random.below(events.length + 1), 0, moved);
  },
  cut(events, random) {
    events.length = random.below(events.length + 1);
  },
  /** Everything a second time, or a part of it. */
  again(events, random) {
    const from = random.below(events.length);
    events.push(...structuredClone(events.slice(from)));
  },
  /** An id of one event in another. */
  id(events, random) {
    const place = random.pick([...membersOf(events)].filter(({ name }) => IDS.includes(name)));
    if (!place) return;
    const others = [...membersOf(events)].filter(
      ({ name, value }) => IDS.includes(name) && typeof value === "string",
    );
    place.object[place.name] = random.chance(80) ? random.pick(others)?.value ?? "x" : "";
  },
  /** Another owner, or none. */
  owner(events, random) {
    const event = random.pick(events.filter(isObject));
    const owners = events.map((other) => other?.subagentRunId).filter(Boolean);
    if (!event) return;
    if (random.chance(30)) delete event.subagentRunId;
    else event.subagentRunId = random.pick([...owners, "sub1", "nobody", ""]);
  },
  type(events, random) {
    const event = random.pick(events.filter(isObject));
    if (event) event.type = random.pick(TYPES);
  },
  /** An event of no known type. */
  stranger(events, random, values) {
    const type = random.pick(["FUTURE_EVENT", "run_started", "toString", " RAW", "__proto__"]);
    events.splice(random.below(events.length + 1), 0, { type, ...values.object() });
  },
  /** A frame that is no event. */
  frame(events, random) {
    const frame = random.pick([
      [], [{}], {}, { type: "" }, { type: null }, { type: 1 }, { type: ["RAW"] }, "text", 1, null, true,
    ]);
    events.splice(random.below(events.length + 1), 0, frame);
  },
  /** A member less. */
  member(events, random) {
    const place = random.pick([...membersOf(events)]);
    if (place) delete place.object[place.name];
  },
  /** A value of another kind. */
  wrong(events, random, values) {
    const place = random.pick([...membersOf(events)]);
    if (place) place.object[place.name] = random.chance(35) ? null : values.json(1);
  },
  /** A member more, of a name that may mean something elsewhere. */
  extra(events, random, values) {
    const object = random.pick([...objectsOf(events)]);
    const name = random.chance(50) ? random.pick(NAMES) : values.oddText();
    if (!object) return;
    Object.defineProperty(object, name, {
      value: random.chance(20) ? null : values.json(1),
      configurable: true,
      enumerable: true,
      writable: true,
    });
  },
  /** A word of a closed set, or a kind of a union, that nobody knows. */
  unknown(events, random) {
    const place = random.pick([...membersOf(events)].filter(({ name }) => TAGS.includes(name)));
    if (place) place.object[place.name] = random.pick(["narrator", "hologram", "", "toString"]);
  },
  text(events, random, values) {
    const texts = [...membersOf(events)].filter(({ value }) => typeof value === "string");
    const place = random.pick(texts.filter(({ name }) => name !== "type"));
    if (place) place.object[place.name] = values.oddText();
  },
};

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Every object within the events. */
function* objectsOf(value) {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) yield value;
  for (const member of Object.values(value)) yield* objectsOf(member);
}

/** Every member of every object. */
function* membersOf(events) {
  for (const object of objectsOf(events)) {
    for (const [name, value] of Object.entries(object)) yield { object, name, value };
  }
}
