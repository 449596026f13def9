// One long conversation, held by the published client and by our session with one server, which is
// made with the published encoder: after each turn both hold the same messages, the same state and
// the same open questions, and both have asked for the same.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { HttpAgent } from "@ag-ui/client";
import { EventEncoder } from "@ag-ui/encoder";
import { builtBinary } from "../lib/processes.mjs";
import { run } from "./reference.mjs";

const THREAD = "thread-1";
const ADD = {
  name: "add",
  description: "Adds two numbers",
  parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } },
};
/** Made up by one side or the other: which one it is does not matter, that it is the same does. */
const MADE_UP = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const text = (messageId, ...deltas) => [
  { type: "TEXT_MESSAGE_START", messageId, role: "assistant" },
  ...deltas.map((delta) => ({ type: "TEXT_MESSAGE_CONTENT", messageId, delta })),
  { type: "TEXT_MESSAGE_END", messageId },
];
const call = (toolCallId, toolCallName, parentMessageId, ...deltas) => [
  { type: "TOOL_CALL_START", toolCallId, toolCallName, parentMessageId },
  ...deltas.map((delta) => ({ type: "TOOL_CALL_ARGS", toolCallId, delta })),
  { type: "TOOL_CALL_END", toolCallId },
];
const usage = (inputTokens) => [{ model: "m", inputTokens, outputTokens: 1 }];
const asks = (...interrupts) => ({ outcome: { type: "interrupt", interrupts } });
const says = (id, content) => ({ message: { id, role: "user", content } });

/**
 * The turns: what is said or answered, the events of each run that it takes (`finish` is what its
 * last event holds; `end: "cut"` leaves that out), and how it ends.
 */
const TURNS = [
  {
    shows: "text, a state, a result and usage",
    ...says("u1", "Grüße, 世界 🌍"),
    runs: [
      {
        events: [
          ...text("m1", "Grü", "ße ", "", "🌍"),
          { type: "STATE_SNAPSHOT", snapshot: { list: [1, { a: null }], name: "x" } },
        ],
        finish: { result: { ok: [true, null] }, usage: usage(3) },
      },
    ],
    ending: "completed",
  },
  {
    shows: "shorthand, reasoning with an encrypted value, and patches",
    ...says("u2", [{ type: "text", text: "look" }, { type: "image", source: { type: "url", value: "u" } }]),
    runs: [
      {
        events: [
          { type: "REASONING_START", messageId: "span" },
          { type: "REASONING_MESSAGE_CHUNK", messageId: "r1", delta: "Hm" },
          { type: "REASONING_MESSAGE_CHUNK", delta: "." },
          { type: "REASONING_END", messageId: "span" },
          { type: "REASONING_ENCRYPTED_VALUE", subtype: "message", entityId: "r1", encryptedValue: "c2VhbGVk" },
          { type: "TEXT_MESSAGE_CHUNK", messageId: "m2", delta: "A " },
          { type: "TEXT_MESSAGE_CHUNK", delta: "cat", metadata: { sure: 0.5 } },
          { type: "STATE_DELTA", delta: [{ op: "add", path: "/list/-", value: "c" }, { op: "remove", path: "/name" }] },
          { type: "STATE_DELTA", delta: [{ op: "replace", path: "/nowhere/at/all", value: 1 }] },
        ],
        finish: { usage: usage(4) },
      },
    ],
    ending: "completed",
  },
  {
    shows: "a tool of the agent's own, in steps and by a subagent",
    ...says("u3", "search"),
    runs: [
      {
        events: [
          { type: "STEP_STARTED", stepName: "search" },
          { type: "SUBAGENT_STARTED", subagentRunId: "s1", name: "searcher" },
          { type: "TEXT_MESSAGE_START", messageId: "m3", subagentRunId: "s1" },
          { type: "TOOL_CALL_START", toolCallId: "c1", toolCallName: "search", parentMessageId: "m3", subagentRunId: "s1" },
          { type: "TOOL_CALL_ARGS", toolCallId: "c1", delta: "{\"q\":" },
          { type: "TEXT_MESSAGE_CONTENT", messageId: "m3", delta: "Searching" },
          { type: "TOOL_CALL_ARGS", toolCallId: "c1", delta: "\"é\"}" },
          { type: "TOOL_CALL_END", toolCallId: "c1" },
          { type: "TEXT_MESSAGE_END", messageId: "m3" },
          { type: "TOOL_CALL_RESULT", messageId: "t1", toolCallId: "c1", content: [{ type: "text", text: "found" }] },
          { type: "SUBAGENT_FINISHED", subagentRunId: "s1", result: 1 },
          { type: "STEP_FINISHED", stepName: "search" },
          ...text("m4", "Found it."),
        ],
      },
    ],
    ending: "completed",
  },
  {
    shows: "calls of a front-end tool, one of which fails, and the run that follows",
    ...says("u4", "add"),
    runs: [
      {
        events: [...call("c2", "add", "m5", "{\"a\":1,", "\"b\":2}"), ...call("c3", "add", "m5", "{\"a\":-1,\"b\":2}")],
        finish: { outcome: { type: "success", pendingToolCallIds: ["c2", "c3"] } },
      },
      { events: text("m6", "Three, and an error.") },
    ],
    ending: "completed",
  },
  {
    shows: "calls that follow upon calls",
    ...says("u5", "add more"),
    runs: [
      { events: [...text("m7", "First"), ...call("c4", "add", "m7", "{\"a\":3,\"b\":4}")] },
      { events: call("c5", "add", undefined, "{\"a\":7,\"b\":5}") },
      { events: text("m8", "12") },
    ],
    ending: "completed",
  },
  {
    shows: "activity, patched and replaced",
    ...says("u6", "plan"),
    runs: [
      {
        events: [
          { type: "ACTIVITY_SNAPSHOT", messageId: "a1", activityType: "plan", content: { steps: [] }, metadata: { k: 1 } },
          { type: "ACTIVITY_DELTA", messageId: "a1", activityType: "plan", patch: [{ op: "add", path: "/steps/-", value: "one" }] },
          { type: "ACTIVITY_SNAPSHOT", messageId: "a2", activityType: "card", content: { n: 1 } },
          { type: "ACTIVITY_SNAPSHOT", messageId: "a2", activityType: "card", content: { n: 2 } },
        ],
      },
    ],
    ending: "completed",
  },
  {
    shows: "two questions",
    ...says("u7", "delete everything"),
    runs: [
      {
        events: [
          ...call("c6", "delete", "m9", "{}"),
          { type: "CUSTOM", name: "app.note", value: [null] },
        ],
        finish: asks(
          { id: "i1", reason: "tool_call", message: "Really?", toolCallId: "c6", responseSchema: { type: "boolean" } },
          { id: "i2", reason: "why" },
        ),
      },
    ],
    ending: "interrupted",
  },
  { shows: "nothing is sent while questions are open", runs: [], class: "interrupts" },
  {
    shows: "nor when one of them is not answered",
    resume: [{ interruptId: "i1", status: "resolved", payload: true }],
    runs: [],
    class: "interrupts",
  },
  {
    shows: "the answers, and a question upon them",
    resume: [
      { interruptId: "i1", status: "resolved", payload: false },
      { interruptId: "i2", status: "cancelled" },
    ],
    runs: [{ events: text("m10", "Kept."), finish: asks({ id: "i3", reason: "again" }) }],
    ending: "interrupted",
  },
  {
    shows: "the last answer",
    resume: [{ interruptId: "i3", status: "resolved", payload: { edited: [] } }],
    runs: [{ events: text("m11", "Good.") }],
    ending: "completed",
  },
  {
    shows: "messages restated, the activities kept",
    ...says("u8", "forget"),
    runs: [
      {
        events: [
          {
            type: "MESSAGES_SNAPSHOT",
            messages: [
              { id: "u1", role: "user", content: "Hello" },
              { id: "m11", role: "assistant", content: "Good." },
              { id: "sys", role: "system", content: "Be brief." },
              { id: "u8", role: "user", content: "forget" },
            ],
          },
          ...text("m12", "Forgotten."),
          { type: "STATE_SNAPSHOT", snapshot: 0 },
        ],
      },
    ],
    ending: "completed",
  },
  {
    shows: "a run that fails, having said something",
    ...says("u9", "fail"),
    runs: [{ events: [{ type: "TEXT_MESSAGE_START", messageId: "m13" }, { type: "TEXT_MESSAGE_CONTENT", messageId: "m13", delta: "I can" }, { type: "RUN_ERROR", message: "no", code: "x" }], end: "cut" }],
    ending: "failed",
  },
  {
    shows: "a stream that breaks a rule",
    ...says("u10", "break"),
    runs: [{ events: [...text("m14", "so far"), { type: "TEXT_MESSAGE_CONTENT", messageId: "ghost", delta: "?" }] }],
    class: "sequence",
  },
  {
    shows: "and the conversation goes on, without anything new being said",
    runs: [{ events: [...text("m15", "Here."), { type: "STATE_SNAPSHOT", snapshot: { back: true } }], finish: { usage: usage(5) } }],
    ending: "completed",
  },
];

/** What our session has used at the end. */
const USAGE = [{ model: "m", inputTokens: 12, outputTokens: 3 }];

let server;
/** For each client, by its path: the answers still to be given, and the requests made. */
const sides = { "/reference": { answers: [], asked: [] }, "/ours": { answers: [], asked: [] } };
before(async () => {
  server = createServer(async (request, response) => {
    const { answers, asked } = sides[request.url];
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const input = JSON.parse(Buffer.concat(pieces).toString());
    asked.push(input);
    const { events, finish, end } = answers.shift();
    const ids = { threadId: input.threadId, runId: input.runId };
    const encoder = new EventEncoder({ accept: "text/event-stream" });
    response.writeHead(200, { "content-type": encoder.getContentType() });
    const all = [{ type: "RUN_STARTED", ...ids }, ...events];
    if (end !== "cut") all.push({ type: "RUN_FINISHED", ...ids, ...finish });
    for (const event of all) {
      response.write(encoder.encodeSSE(event));
      // The published client loses what comes in the same read as what it fails on.
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    response.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
after(() => {
  server.closeAllConnections();
  server.close();
});

test("both clients hold the same conversation, turn by turn", async (context) => {
  const base = `http://127.0.0.1:${server.address().port}`;
  const reference = new HttpAgent({ url: `${base}/reference`, threadId: THREAD });
  const ours = startSession(`${base}/ours`);
  let last;
  for (const [at, turn] of TURNS.entries()) {
    await context.test(`${at + 1}: ${turn.shows}`, async () => {
      for (const side of Object.values(sides)) {
        side.answers = structuredClone(turn.runs);
        side.asked = [];
      }
      const runId = `run-${at + 1}`;
      const before = new Set([...reference.messages.map(({ id }) => id), turn.message?.id]);
      const failure = await played(reference, turn, runId);
      last = await ours.play({ message: turn.message, resume: turn.resume, runId });

      assert.equal(last.ending, turn.ending ?? null);
      assert.equal(last.class, turn.class ?? null);
      assert.equal(Boolean(failure), Boolean(turn.class), failure?.message);
      assert.equal(sides["/ours"].asked.length, turn.runs.length);
      assert.equal(last.runs, turn.class ? 0 : turn.runs.length);
      const expected = {
        requests: sides["/reference"].asked,
        messages: plain(reference.messages),
        state: plain(reference.state),
        openInterrupts: plain(reference.pendingInterrupts),
      };
      const { messages, state, openInterrupts } = last;
      const found = { requests: sides["/ours"].asked, messages, state, openInterrupts };
      assert.deepEqual(renamed(found), renamed(expected));
      if (!turn.class) {
        const fresh = expected.messages.map(({ id }) => id).filter((id) => !before.has(id));
        assert.deepEqual(renamed(last.newMessages), renamed(fresh));
      }
      if (at === 0) assert.deepEqual(last.result, { ok: [true, null] });
    });
  }
  assert.deepEqual(last.usage, USAGE);
  assert.equal(await ours.stop(), 0);
});

/** One turn of the published client, which leaves front-end tools to its caller; why it failed. */
async function played(agent, { message, resume }, runId) {
  if (message) agent.addMessage(structuredClone(message));
  const parameters = { tools: [ADD], context: [], forwardedProps: {} };
  let seen = await run(agent, { ...parameters, runId, ...(resume && { resume }) });
  for (;;) {
    const answered = new Set(agent.messages.map(({ toolCallId }) => toolCallId));
    const open = agent.messages
      .flatMap(({ toolCalls }) => toolCalls ?? [])
      .filter(({ id, function: { name } }) => name === ADD.name && !answered.has(id));
    if (seen.failure || open.length === 0) return seen.failure;
    for (const { id, function: { arguments: json } } of open) {
      const { a, b } = JSON.parse(json);
      const error = a < 0 || b < 0 ? "only what is not negative can be added" : undefined;
      const content = error ? `Error: ${error}` : String(a + b);
      agent.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId: id, content, ...(error && { error }) });
    }
    seen = await run(agent, parameters);
  }
}

/** Our session, as a process. */
function startSession(url) {
  const program = builtBinary("agui-interop", "AGUI_INTEROP_BIN", "-p agui-interop");
  const child = spawn(program, ["session", url, "add"], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const exited = once(child, "exit");
  return {
    async play(turn) {
      child.stdin.write(`${JSON.stringify(turn)}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error("our session ended with a turn unanswered");
      return JSON.parse(value);
    },
    async stop() {
      child.stdin.end();
      return (await exited)[0];
    },
  };
}

/** As it would be written: no member that is `undefined`. */
function plain(value) {
  return JSON.parse(JSON.stringify(value));
}

/** The value with what was made up named by the order in which it occurs. */
function renamed(value) {
  const names = new Map();
  return JSON.parse(JSON.stringify(value), (_, item) => {
    if (typeof item !== "string" || !MADE_UP.test(item)) return item;
    if (!names.has(item)) names.set(item, `made up ${names.size}`);
    return names.get(item);
  });
}
