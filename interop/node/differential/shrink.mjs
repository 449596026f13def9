// From a thread that shows something to a small one that still does.

import { frame, textOf } from "./spell.mjs";

/**
 * @param {object} thread as `generate` gives it
 * @param {(thread: object) => Promise<boolean>} shows whether a thread still shows it
 */
export async function shrink(thread, shows) {
  let left = MOST_TRIES;
  const until = async (thread, steps) => {
    let smallest = thread;
    for (let found = true; found; ) {
      found = false;
      // What did not help is not tried again before everything else was.
      for (let at = 0, more = true; more; ) {
        more = false;
        for (const smaller of skipping(at, steps(smallest))) {
          if (left-- <= 0) return smallest;
          if (await shows(smaller)) {
            smallest = smaller;
            found = more = true;
            break;
          }
          at++;
        }
      }
    }
    return smallest;
  };
  const few = await until(thread, fewer);
  return until(await until(few, plainer), fewer);
}

const MOST_TRIES = 3000;

function* skipping(count, steps) {
  for (const step of steps) if (count-- <= 0) yield step;
}

/** Threads with less of what happens, the most daring first. */
function* fewer(thread) {
  const { exchanges, messages, state } = thread;
  for (const at of exchanges.keys()) {
    if (exchanges.length > 1) yield { ...thread, exchanges: exchanges.toSpliced(at, 1) };
  }
  for (const [at, exchange] of exchanges.entries()) {
    const { frames, addMessages } = exchange;
    for (let size = Math.ceil(frames.length / 2); size >= 1; size = Math.floor(size / 2)) {
      for (let from = frames.length - size; from > -size; from -= size) {
        const first = Math.max(from, 0);
        const kept = frames.toSpliced(first, from + size - first);
        yield { ...thread, exchanges: exchanges.with(at, { ...exchange, frames: kept }) };
      }
    }
    if (addMessages.length > 0) {
      yield { ...thread, exchanges: exchanges.with(at, { ...exchange, addMessages: [] }) };
    }
  }
  for (const at of messages.keys()) yield { ...thread, messages: messages.toSpliced(at, 1) };
  if (Object.keys(state ?? {}).length > 0) yield { ...thread, state: {} };
}

/** Threads with something less inside of what happens. */
function* plainer(thread) {
  const { exchanges } = thread;
  for (const [at, exchange] of exchanges.entries()) {
    const changed = (change) => ({
      ...thread,
      exchanges: exchanges.with(at, { ...exchange, ...change }),
    });
    const { frames, input, read } = exchange;
    if (read !== WHOLE) yield changed({ read: WHOLE });
    for (const [index, sent] of frames.entries()) {
      for (const smaller of simplerFrames(sent)) {
        yield changed({ frames: frames.with(index, smaller) });
      }
    }
    for (const smaller of simpler(input)) {
      const { threadId, runId } = input;
      const least = { threadId, runId, tools: [], context: [], forwardedProps: {} };
      yield changed({ input: { ...least, ...smaller } });
    }
  }
  for (const messages of simpler(thread.messages)) {
    if (messages.every(({ id, role }) => id && role)) yield { ...thread, messages };
  }
  for (const state of simpler(thread.state)) yield { ...thread, state };
}

const WHOLE = 2 ** 20;

/** The plain spelling first, then the event without one thing or another. */
function* simplerFrames(sent) {
  const event = JSON.parse(textOf(sent));
  const plain = frame(JSON.stringify(event));
  if (plain !== sent) yield plain;
  for (const smaller of simpler(event)) yield frame(JSON.stringify(smaller));
}

/** Values with something less inside. Ids stay as they are: others may name them. */
function* simpler(value) {
  if (typeof value === "string" && value.length > 12) yield "x";
  if (typeof value !== "object" || value === null) return;
  const entries = Object.entries(value);
  const rebuilt = (entries) =>
    Array.isArray(value) ? entries.map(([, item]) => item) : Object.fromEntries(entries);
  for (const at of entries.keys()) yield rebuilt(entries.toSpliced(at, 1));
  for (const [at, [name, member]] of entries.entries()) {
    for (const smaller of simpler(member)) yield rebuilt(entries.with(at, [name, smaller]));
  }
}
