// The published client, and the stages it is made of, as a judge of event streams.

import { HttpAgent, enforceEvents, transformChunks, verifyEvents } from "@ag-ui/client";
import { EventSchemas } from "@ag-ui/core/schemas";
import { from, lastValueFrom, toArray } from "rxjs";

/**
 * Runs `agent` once and tells what a subscriber saw.
 *
 * @returns {Promise<{
 *   events: object[], types: string[], finished?: object, runError?: object, failure?: Error,
 *   result: unknown, newMessages: object[], warnings: string[],
 * }>} `finished` holds what `onRunFinishedEvent` was told, `failure` what the call rejected with.
 */
export async function run(agent, parameters = {}, subscriber = {}) {
  const seen = { events: [], types: [], newMessages: [], result: undefined };
  seen.warnings = await collectWarnings(async () => {
    try {
      const { result, newMessages } = await agent.runAgent(parameters, {
        ...subscriber,
        onEvent(params) {
          seen.events.push(structuredClone(params.event));
          seen.types.push(params.event.type);
          subscriber.onEvent?.(params);
        },
        onRunFinishedEvent({ agent: _, ...params }) {
          seen.finished = params;
        },
        onRunErrorEvent({ event }) {
          seen.runError = event;
        },
      });
      Object.assign(seen, { result, newMessages });
    } catch (error) {
      seen.failure = error;
    }
  });
  return seen;
}

/** Adds a user message and runs `agent`. */
export function say(agent, content, parameters, subscriber) {
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
  return run(agent, parameters, subscriber);
}

/** An agent whose answers come in the binary form. */
export class BinaryHttpAgent extends HttpAgent {
  requestInit(input) {
    const init = super.requestInit(input);
    init.headers.Accept = "application/vnd.ag-ui.event+proto";
    return init;
  }
}

/**
 * Judges a whole stream: every event against its schema, then the client's own enforcement,
 * expansion and verification. Rejects at the first fault; whatever enforcement would strip
 * (unknown events, unknown properties at any depth) comes back as `warnings`.
 */
export async function judge(events) {
  for (const event of events) EventSchemas.parse(event);
  let delivered;
  const warnings = await collectWarnings(async () => {
    delivered = await lastValueFrom(
      from(events).pipe(enforceEvents(), transformChunks(), verifyEvents(), toArray()),
    );
  });
  return { delivered, warnings };
}

/** The paths of everything in `value` that the schema does not describe. */
export function unknownKeys(value, schema, path = "") {
  const { type, innerType, element, shape } = schema.def;
  switch (type) {
    case "optional":
      return unknownKeys(value, innerType, path);
    case "array":
      return value.flatMap((item, index) => unknownKeys(item, element, `${path}/${index}`));
    case "object":
      return Object.entries(value).flatMap(([key, member]) =>
        Object.hasOwn(shape, key)
          ? unknownKeys(member, shape[key], `${path}/${key}`)
          : [`${path}/${key}`],
      );
    default:
      return [];
  }
}

/** Runs `work` with the console held back, and returns what was warned about meanwhile. */
async function collectWarnings(work) {
  const { warn, error } = console;
  const warnings = [];
  console.warn = (...words) => warnings.push(words.join(" "));
  // The client prints every failure that it also rejects with.
  console.error = () => {};
  try {
    await work();
  } finally {
    Object.assign(console, { warn, error });
  }
  return warnings;
}
