// What two clients made of the same thread, side by side.

/** What is compared of each exchange. */
const FIELDS = [
  "outcome", "class", "request", "delivered", "messages", "state", "pendingInterrupts",
  "newMessages", "result",
];

/**
 * Compares what came of the exchanges of a thread: objects without regard to order, numbers by
 * value, invented ids by where they occur.
 *
 * @returns {string[]} the differences, each with its place and both sides; empty where they agree
 */
export function compare(reference, ours) {
  const [theirs, own] = [renamed(reference), renamed(ours)];
  const all = [];
  for (const [at, expected] of theirs.entries()) {
    const found = own[at];
    for (const field of FIELDS) {
      // A call that fails has no result.
      if (field === "result" && expected.outcome === "failed") continue;
      differences(`exchange ${at} ${field}`, expected[field], found[field], all);
    }
    if (isTelling(reference[at]) && found.warnings.length === 0 && !found.failure) {
      all.push(`exchange ${at} warnings: the reference has ${reference[at].warnings[0]}, ours none`);
    }
  }
  return all;
}

/** Whether something was dropped, stripped or translated. */
function isTelling({ warnings }) {
  const marks = ["[enforce]", "[compat]", "protocol version", "speaks protocol", "Failed to apply"];
  return warnings.some((warning) => marks.some((mark) => warning.includes(mark)));
}

function differences(place, expected, found, all) {
  if (expected === found || Object.is(expected, found)) return;
  if (Array.isArray(expected) && Array.isArray(found)) {
    const common = Math.min(expected.length, found.length);
    for (let at = 0; at < common; at++) {
      differences(`${place}[${at}]`, expected[at], found[at], all);
    }
    if (expected.length === found.length) return;
    const [side, longer] = expected.length > found.length ? ["reference", expected] : ["ours", found];
    all.push(`${place}: only ${side} has ${longer.slice(common).map(shown).join(", ")}`);
  } else if (isObject(expected) && isObject(found)) {
    for (const name of new Set([...Object.keys(expected), ...Object.keys(found)])) {
      const [a, b] = [expected, found].map((side) =>
        Object.hasOwn(side, name) ? side[name] : undefined,
      );
      differences(`${place}.${name}`, a, b, all);
    }
  } else {
    all.push(`${place}: the reference has ${shown(expected)}, ours ${shown(found)}`);
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function shown(value) {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

const INVENTED = /^[0-9a-f]{8}-[0-9a-f]{4}-[48][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Invented ids named by their order, and halves of surrogate pairs as what UTF-8 makes of them. */
function renamed(outcomes) {
  const names = new Map();
  const rename = (value) => {
    if (typeof value === "string") {
      if (!INVENTED.test(value)) return value.toWellFormed();
      if (!names.has(value)) names.set(value, `invented ${names.size}`);
      return names.get(value);
    }
    if (Array.isArray(value)) return value.map(rename);
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.keys(value)
        .sort()
        .map((name) => [name.toWellFormed(), rename(value[name])]),
    );
  };
  return outcomes.map((outcome) =>
    Object.fromEntries(FIELDS.map((field) => [field, rename(outcome[field])])),
  ).map((outcome, at) => ({ ...outcome, warnings: outcomes[at].warnings, failure: outcomes[at].failure }));
}
