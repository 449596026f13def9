// The agent that stands behind both runtimes: a small AG-UI server, which plays the script that the
// first word of the last user message names, and keeps what it was sent.

import { createServer } from "node:http";
import { listening } from "../../lib/listening.mjs";

const HOLD_LIMIT_MS = 20_000;

const text = (id, ...deltas) => [
  { type: "TEXT_MESSAGE_START", messageId: id, role: "assistant" },
  ...deltas.map((delta) => ({ type: "TEXT_MESSAGE_CONTENT", messageId: id, delta })),
  { type: "TEXT_MESSAGE_END", messageId: id },
];

/** What each word plays: events between the run's start and its end. `HOLD` waits for `release`. */
const HOLD = { type: "HOLD" };
const SCRIPTS = {
  hello: (id) => text(`a-${id}`, "Hel", "lo"),
  tools: (id) => [
    { type: "TOOL_CALL_START", toolCallId: `c-${id}`, toolCallName: "search", parentMessageId: `a-${id}` },
    { type: "TOOL_CALL_ARGS", toolCallId: `c-${id}`, delta: '{"q":' },
    { type: "TOOL_CALL_ARGS", toolCallId: `c-${id}`, delta: "1}" },
    { type: "TOOL_CALL_END", toolCallId: `c-${id}` },
    { type: "TOOL_CALL_RESULT", messageId: `r-${id}`, toolCallId: `c-${id}`, content: "4", role: "tool" },
    ...text(`b-${id}`, "Four"),
  ],
  state: () => [
    { type: "STATE_SNAPSHOT", snapshot: { count: 1, list: [] } },
    { type: "STATE_DELTA", delta: [{ op: "add", path: "/list/-", value: "x" }] },
    { type: "STATE_DELTA", delta: [{ op: "replace", path: "/count", value: 2 }] },
  ],
  patch: () => [{ type: "STATE_DELTA", delta: [{ op: "add", path: "/added", value: true }] }],
  steps: (id) => [
    { type: "STEP_STARTED", stepName: "look" },
    ...text(`a-${id}`, "Found"),
    { type: "STEP_FINISHED", stepName: "look" },
  ],
  reasoning: (id) => [
    { type: "REASONING_START", messageId: `r-${id}` },
    { type: "REASONING_MESSAGE_START", messageId: `r-${id}`, role: "reasoning" },
    { type: "REASONING_MESSAGE_CONTENT", messageId: `r-${id}`, delta: "Hm" },
    { type: "REASONING_MESSAGE_END", messageId: `r-${id}` },
    { type: "REASONING_END", messageId: `r-${id}` },
    ...text(`a-${id}`, "Yes"),
  ],
  activity: (id) => [
    { type: "ACTIVITY_SNAPSHOT", messageId: `p-${id}`, activityType: "plan", content: { steps: [] }, replace: true },
    { type: "ACTIVITY_DELTA", messageId: `p-${id}`, activityType: "plan", patch: [{ op: "add", path: "/steps/-", value: "a" }] },
  ],
  custom: () => [
    { type: "CUSTOM", name: "weather", value: { sun: true } },
    { type: "RAW", event: { any: [1, null] }, source: "there" },
  ],
  snapshot: (id, input) => [
    { type: "MESSAGES_SNAPSHOT", messages: [...input.messages, { id: `a-${id}`, role: "assistant", content: "Noted" }] },
  ],
  chunks: (id) => [
    { type: "TEXT_MESSAGE_CHUNK", messageId: `a-${id}`, role: "assistant", delta: "Hel" },
    { type: "TEXT_MESSAGE_CHUNK", messageId: `a-${id}`, delta: "lo" },
    { type: "TOOL_CALL_CHUNK", toolCallId: `c-${id}`, toolCallName: "search", parentMessageId: `a-${id}`, delta: "{}" },
  ],
  wait: (id) => [
    { type: "TEXT_MESSAGE_START", messageId: `a-${id}`, role: "assistant" },
    { type: "TEXT_MESSAGE_CONTENT", messageId: `a-${id}`, delta: "One" },
    HOLD,
    { type: "TEXT_MESSAGE_CONTENT", messageId: `a-${id}`, delta: ", two" },
    { type: "TEXT_MESSAGE_END", messageId: `a-${id}` },
  ],
  busy: (id) => [
    { type: "STEP_STARTED", stepName: "work" },
    { type: "TOOL_CALL_START", toolCallId: `c-${id}`, toolCallName: "search", parentMessageId: `a-${id}` },
    { type: "TOOL_CALL_ARGS", toolCallId: `c-${id}`, delta: "{" },
    HOLD,
  ],
  silent: () => [HOLD],
};

/** How those end that do not simply finish. */
const ENDINGS = {
  interrupt: ({ threadId, runId, resume }) =>
    resume
      ? { type: "RUN_FINISHED", threadId, runId }
      : {
          type: "RUN_FINISHED", threadId, runId,
          outcome: { type: "interrupt", interrupts: [{ id: "i-1", reason: "approval", message: "Send it?" }] },
        },
  result: ({ threadId, runId }) => ({ type: "RUN_FINISHED", threadId, runId, result: { sum: 4 } }),
  success: ({ threadId, runId }) => ({ type: "RUN_FINISHED", threadId, runId, outcome: { type: "success" } }),
  fails: () => ({ type: "RUN_ERROR", message: "it broke", code: "MINE" }),
  cut: () => undefined,
  open: () => undefined,
};

export async function startAgent() {
  /** The last request of each thread. */
  const seen = new Map();
  const held = new Map();

  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const input = JSON.parse(Buffer.concat(chunks).toString());
    seen.set(input.threadId, { headers: request.headers, body: input });
    const said = input.messages.findLast(({ role }) => role === "user")?.content ?? "hello";
    const word = String(said).split(" ")[0];
    if (word === "http") {
      response.writeHead(503, { "content-type": "application/json" });
      response.end('{"error":"the agent is out"}');
      return;
    }
    const { threadId, runId } = input;
    const start = { type: "RUN_STARTED", threadId, runId };
    if (word === "own") start.input = { ...input, forwardedProps: { mine: true } };
    const script = (SCRIPTS[word] ?? (word === "open" ? openText : () => []))(runId, input);
    const end = (ENDINGS[word] ?? (() => ({ type: "RUN_FINISHED", threadId, runId })))(input);
    const events = word === "startless" ? text(`a-${runId}`, "x") : [start, ...script];
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of end && word !== "startless" ? [...events, end] : events) {
      if (event === HOLD) {
        response.flushHeaders();
        await hold(threadId, response);
        if (response.destroyed) return;
      } else {
        response.write(`data: ${JSON.stringify(event)}\n\n`);
      }
    }
    response.end();
  });

  /** Waits until the thread's run is to go on, or nobody listens any more. */
  function hold(threadId, response) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, HOLD_LIMIT_MS);
      const go = () => {
        clearTimeout(timer);
        held.delete(threadId);
        resolve();
      };
      held.set(threadId, go);
      response.once("close", go);
    });
  }

  const { url, stop } = await listening(server);
  return {
    url: `${url}/agent`,
    /** What the agent was last sent on a thread. */
    seen: (threadId) => seen.get(threadId),
    release: (threadId) => held.get(threadId)?.(),
    stop,
  };
}

const openText = (id) => text(`a-${id}`, "So far").slice(0, 2);
