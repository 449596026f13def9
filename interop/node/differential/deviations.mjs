// Where the reference knowingly does otherwise than the protocol says. Each deviation is undone on
// the reference's side as narrowly as can be, and both sides are compared again in full: nothing
// is left out of the comparison because something near it is known to differ.
//
// `conformance/deviations/differential.json` lists them with their reasons and an example each.

import { readFileSync } from "node:fs";
import { CompatibilityBoundary, enforceEvents } from "@ag-ui/client";
import { of } from "rxjs";
import { applyPatch } from "./patch.mjs";
import { frame, textOf } from "./spell.mjs";

/**
 * How each deviation is undone, by its id:
 *
 * - `rewrite(events, input)` gives the events that make the reference do what the protocol wants of
 *   the ones that were sent. It may change `events`, which are a copy; what is no object is left
 *   alone.
 * - `subscriber` intervenes while the reference folds, by its own contract.
 * - `drains`, `keepsInterrupts`: see `reference.play`.
 * - `settle(theirs, ours)` adjusts what came of one exchange on either side.
 */
const UNDO = {
  "truncated-is-success": {
    settle(theirs) {
      const boundary = theirs.delivered.findLast(({ type }) => type.startsWith("RUN_"));
      if (theirs.outcome === "completed" && /^(undefined|RUN_STARTED)$/.test(boundary?.type)) {
        theirs.outcome = "failed";
        theirs.class = "truncated";
      }
    },
  },

  "closed-string-set": {
    rewrite(events) {
      return events.filter((event) => {
        if (/^TEXT_MESSAGE_(START|CHUNK)$/.test(event?.type) && isUnknown(event.role, ROLES)) {
          delete event.role;
        }
        if (event?.type === "RUN_STARTED" && Array.isArray(event.input?.resume)) {
          event.input.resume = event.input.resume.filter(
            (entry) => !isUnknown(entry?.status, STATUSES),
          );
        }
        const isValue = event?.type === "REASONING_ENCRYPTED_VALUE";
        return !(isValue && isUnknown(event.subtype, SUBTYPES));
      });
    },
  },

  "boundary-ids": {
    rewrite(events, { threadId }) {
      let run;
      return failAt(events, (event) => {
        if (event?.type === "RUN_STARTED") {
          run = event.runId;
          return event.threadId !== threadId;
        }
        if (event?.type !== "RUN_FINISHED") return false;
        return event.threadId !== threadId || event.runId !== run;
      });
    },
  },

  "duplicate-interrupts": {
    rewrite(events) {
      return failAt(events, (event) => {
        const raised = event?.type === "RUN_FINISHED" && event.outcome?.interrupts;
        const ids = Array.isArray(raised) ? raised.map((interrupt) => interrupt?.id) : [];
        return new Set(ids).size < ids.length;
      });
    },
  },

  "interrupts-cleared": { keepsInterrupts: true },

  "queued-events-lost": { drains: true },

  "patch-semantics": {
    subscriber: {
      onStateDeltaEvent({ event, state }) {
        const patched = attempt(() => applyPatch(state, event.delta));
        return { ...(patched && { state: patched.value }), stopPropagation: true };
      },
      onActivityDeltaEvent({ event, messages }) {
        const { messageId, activityType, patch, metadata } = event;
        const message = messages.find(({ id }) => id === messageId);
        const merged = withMetadata(message, metadata);
        const content = attempt(() => applyPatch(message.content, patch));
        const patched = isObject(content?.value)
          ? { ...merged, activityType, content: content.value }
          : merged;
        return { messages: replaced(messages, message, patched), stopPropagation: true };
      },
    },
  },

  "parts-lost": {
    subscriber: { onTextMessageContentEvent: appended, onReasoningMessageContentEvent: appended },
  },

  "messages-shared": {
    subscriber: {
      onEvent({ messages }) {
        if (new Set(messages).size === messages.length) return undefined;
        return { messages: [...new Set(messages)] };
      },
    },
  },

  "call-doubles-its-message": {
    subscriber: {
      onToolCallStartEvent({ event, messages }) {
        const { toolCallId, toolCallName, parentMessageId, subagentRunId, metadata } = event;
        const named = messages.find(({ id }) => id === parentMessageId);
        const own = messages.find(({ id }) => id === toolCallId);
        const isKnown = messages.some(({ toolCalls = [] }) =>
          toolCalls.some(({ id }) => id === toolCallId),
        );
        const isPlaced = parentMessageId && (!named || named.role === "assistant");
        if (isKnown || isPlaced || !own) return undefined;
        const called = { name: toolCallName, arguments: "" };
        const call = withMetadata({ id: toolCallId, type: "function", function: called }, metadata);
        const holding = ({ toolCalls = [], ...holder }) => ({
          ...holder,
          toolCalls: [...toolCalls, call],
        });
        const created = {
          id: toolCallId,
          role: "assistant",
          ...(subagentRunId !== undefined && { subagentRunId }),
        };
        return {
          messages:
            own.role === "assistant"
              ? replaced(messages, own, holding(own))
              : [...messages, holding(created)],
          stopPropagation: true,
        };
      },
    },
  },

  "call-renamed": {
    subscriber: {
      onToolCallStartEvent({ event, messages }) {
        const { toolCallId, toolCallName, metadata } = event;
        const isIt = ({ id }) => id === toolCallId;
        const holder = messages.find(({ toolCalls = [] }) => toolCalls.some(isIt));
        const call = holder?.toolCalls.find(isIt);
        if (!call || call.function.name === toolCallName) return undefined;
        const toolCalls = holder.toolCalls.map((other) =>
          other === call ? withMetadata(call, metadata) : other,
        );
        return {
          messages: replaced(messages, holder, { ...holder, toolCalls }),
          stopPropagation: true,
        };
      },
    },
  },

  "encrypted-value-type": {
    rewrite(events) {
      for (const event of events.filter((event) => event?.type === "REASONING_ENCRYPTED_VALUE")) {
        const { encryptedValueType = "" } = event;
        // Malformed, as a malformed value is.
        if (typeof encryptedValueType !== "string") event.encryptedValue = null;
      }
      return events;
    },
    settle(theirs, ours) {
      theirs.warnings = theirs.warnings.filter((text) => !text.includes("/encryptedValueType'"));
      for (const field of ["delivered", "messages", "request"]) {
        forget(ours[field], "encryptedValueType");
      }
    },
  },

  "span-owns-its-message": {
    rewrite(events) {
      for (const event of events.filter(isSpan)) {
        if (typeof event.messageId === "string") event.messageId += SPAN;
      }
      return events;
    },
    settle(theirs) {
      for (const event of theirs.delivered.filter(isSpan)) {
        event.messageId = event.messageId.replace(SPAN, "");
      }
    },
  },

  "surrogate-halves": {
    settle(theirs, ours) {
      for (const field of ["messages", "request"]) {
        theirs[field] = halved(theirs[field], ours[field]);
      }
    },
  },

  "proto-member": {
    settle(theirs, ours) {
      forget(theirs, "__proto__");
      forget(ours, "__proto__");
    },
  },

  "empty-parent-id": {
    rewrite(events) {
      for (const event of events) {
        for (const [name, value] of Object.entries(event ?? {})) {
          if (value === "" && ["messageId", "parentMessageId"].includes(name)) event[name] = EMPTY;
        }
        for (const message of event?.messages ?? []) {
          if (message?.id === "") message.id = EMPTY;
        }
      }
      return events;
    },
    settle(theirs) {
      Object.assign(theirs, JSON.parse(JSON.stringify(theirs).replaceAll(EMPTY, "")));
    },
  },
};

const ROLES = ["developer", "system", "assistant", "user"];
const SUBTYPES = ["message", "tool-call"];
const STATUSES = ["resolved", "cancelled"];
const SPAN = "(a span)";
const EMPTY = "(the empty id)";

/** The deviations of `conformance/deviations/differential.json`, each with how it is undone. */
export function knownDeviations() {
  const path = new URL("../../../conformance/deviations/differential.json", import.meta.url);
  const listed = JSON.parse(readFileSync(path, "utf8"));
  for (const id of Object.keys(UNDO)) {
    if (listed.every((deviation) => deviation.id !== id)) {
      throw new Error(`${id} can be undone and is not listed in differential.json`);
    }
  }
  return listed.map((deviation) => {
    const undo = UNDO[deviation.id];
    if (!undo) throw new Error(`differential.json lists ${deviation.id}, which nothing undoes`);
    return { ...deviation, ...undo };
  });
}

/** The thread as the reference is to be sent it. */
export function rewritten(thread, deviations) {
  const rewrites = deviations.filter(({ rewrite }) => rewrite);
  if (rewrites.length === 0) return thread;
  const exchanges = thread.exchanges.map((exchange) => {
    const sent = exchange.frames.map(parsed);
    const events = rewrites.reduce(
      (events, { rewrite }) => rewrite(events, exchange.input),
      structuredClone(sent),
    );
    return { ...exchange, frames: events.map((event) => frame(event?.[NO_JSON] ?? JSON.stringify(event))) };
  });
  return { ...thread, exchanges };
}

/** What the reference is to do otherwise than by itself. */
export function amendments(deviations) {
  return {
    subscribers: deviations.flatMap(({ subscriber = [] }) => subscriber),
    drains: deviations.some(({ drains }) => drains),
    keepsInterrupts: deviations.some(({ keepsInterrupts }) => keepsInterrupts),
  };
}

/** What came of the thread on both sides, adjusted. */
export function settled(theirs, ours, deviations) {
  const sides = structuredClone([theirs, ours]);
  for (const { settle } of deviations) {
    if (settle) sides[0].forEach((outcome, at) => settle(outcome, sides[1][at]));
  }
  return sides;
}

const NO_JSON = "\0no json";

function parsed(frame) {
  const text = textOf(frame);
  try {
    return JSON.parse(text);
  } catch {
    return { [NO_JSON]: text };
  }
}

/** Puts what always fails in the place of the first event that should. */
function failAt(events, fails) {
  const at = events.findIndex((event) => fails(event) && isWellFormed(event));
  if (at < 0) return events;
  const before = events.slice(0, at).findLast((event) => /^RUN_/.test(event?.type));
  // Within a run another one: like the event in whose place it is, it closes every chunk.
  const failing =
    before?.type === "RUN_STARTED"
      ? { type: "RUN_STARTED", threadId: "", runId: "" }
      : { type: "STEP_FINISHED", stepName: "" };
  return events.with(at, failing);
}

function isSpan(event) {
  return event?.type === "REASONING_START" || event?.type === "REASONING_END";
}

/** A delta behind the parts that a message has, not in their place. */
function appended({ event, messages }) {
  const { messageId, delta, metadata } = event;
  const message = messages.find(({ id }) => id === messageId);
  if (!Array.isArray(message.content)) return undefined;
  const last = message.content.at(-1);
  const content =
    last?.type === "text"
      ? message.content.with(-1, { ...last, text: last.text + delta })
      : [...message.content, ...(delta === "" ? [] : [{ type: "text", text: delta }])];
  const grown = { ...withMetadata(message, metadata), content };
  return { messages: replaced(messages, message, grown), stopPropagation: true };
}

/** Whether the reference finds the event well-formed. */
function isWellFormed(event) {
  const { warn } = console;
  console.warn = () => {};
  let isFine = true;
  new CompatibilityBoundary()
    .run({ messages: [] }, { run: () => of(structuredClone(event)) })
    .pipe(enforceEvents())
    .subscribe({ error: () => (isFine = false) });
  console.warn = warn;
  return isFine;
}

/** The messages with one of them replaced. */
function replaced(messages, message, by) {
  return messages.with(messages.indexOf(message), by);
}

/** Section 8: key by key, the last one wins. */
function withMetadata(target, metadata) {
  return metadata ? { ...target, metadata: { ...target.metadata, ...metadata } } : target;
}

function attempt(work) {
  try {
    return { value: work() };
  } catch {
    return undefined;
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isUnknown(value, known) {
  return typeof value === "string" && !known.includes(value);
}

/** The value with halves in place of a character wherever the other has the halves. */
function halved(value, other) {
  if (typeof value === "string" && typeof other === "string") {
    let out = "";
    for (const character of value.toWellFormed()) {
      const halves = "\ufffd\ufffd";
      out += character.length === 2 && other.startsWith(halves, out.length) ? halves : character;
    }
    return out;
  }
  if (!value || !other || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((item, at) => halved(item, other[at]));
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, halved(member, other[name])]),
  );
}

/** Removes every member of a name, at any depth. */
function forget(value, name) {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) delete value[name];
  for (const member of Object.values(value)) forget(member, name);
}
