// A small agent server on the published `@ag-ui/encoder`: the peer our client is judged against.
//
//     node interop/node/server.mjs
//
// It prints `listening http://127.0.0.1:PORT` and plays the scenario of `../scenarios.json` that
// the first word of the last user message names. `POST /release` lets a held scenario go on.

import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { EventEncoder } from "@ag-ui/encoder";
import { RunAgentInputSchema } from "@ag-ui/core/schemas";

const HOLD_LIMIT_MS = 30_000;
const SPLIT_BYTES = 3;

const scenarios = new Map(
  JSON.parse(readFileSync(new URL("../scenarios.json", import.meta.url), "utf8")).scenarios.map(
    (scenario) => [scenario.word, scenario],
  ),
);
/** Called by `POST /release`, one for each response that is being held. */
const held = new Set();

const server = createServer((request, response) => {
  serve(request, response).catch((error) => {
    console.error(error);
    response.destroy();
  });
});
server.listen(0, "127.0.0.1", () => {
  console.log(`listening http://127.0.0.1:${server.address().port}`);
});

async function serve(request, response) {
  const text = await bodyOf(request);
  if (request.method !== "POST") return refuse(response, 405, "only POST is served");
  if (request.url === "/release") {
    for (const release of held) release();
    response.writeHead(204).end();
    return;
  }

  let body;
  let input;
  try {
    body = JSON.parse(text);
    input = RunAgentInputSchema.parse(body);
  } catch (error) {
    return refuse(response, 400, error.message);
  }
  const word = wordOf(input.messages);
  const scenario = scenarios.get(word);
  if (!scenario) return refuse(response, 400, `no scenario is called '${word}'`);
  if (scenario.http) {
    response.writeHead(scenario.http.status, { "content-type": "application/json" });
    response.end(JSON.stringify(scenario.http.body));
    return;
  }

  const received = { method: request.method, url: request.url, headers: request.headers, body };
  await play(scenario, received, response);
}

async function play(scenario, received, response) {
  const source = scenario.like ? scenarios.get(scenario.like) : scenario;
  const resumes = received.body.resume !== undefined && source.resumed !== undefined;
  const events = fill(resumes ? source.resumed : source.events, received);
  // Framing is a matter of SSE; everything else is sent in the form that was asked for.
  const encoder = new EventEncoder(scenario.framing ? {} : { accept: received.headers.accept });

  response.writeHead(200, {
    "content-type": encoder.getContentType(),
    "cache-control": "no-cache, no-transform",
  });
  // Made before the first byte: a client that is quick to let go must not be missed.
  const hold = scenario.holdBefore === undefined ? undefined : makeHold();
  for (const [index, event] of events.entries()) {
    if (index === scenario.holdBefore) await hold.released();
    const frame = Buffer.from(encoder.encodeBinary(event));
    for (const bytes of reframe(frame, scenario.framing)) await write(response, bytes);
  }
  if (scenario.ends === "cut") {
    await write(response, Buffer.from("data: {\"type\":\"TEXT_MES"));
    response.destroy();
  } else {
    response.end();
  }
}

/** Replaces the placeholders of a scenario: `$threadId`, `$runId`, `$resume`, `$request`, `$messages`. */
function fill(value, received) {
  const { body } = received;
  if (Array.isArray(value)) {
    return value.flatMap((item) => (item === "$messages" ? body.messages : [fill(item, received)]));
  }
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, fill(v, received)]));
  }
  switch (value) {
    case "$threadId":
      return body.threadId;
    case "$runId":
      return body.runId;
    case "$resume":
      return JSON.stringify(body.resume);
    case "$request":
      return JSON.stringify(received);
    default:
      return value;
  }
}

function* reframe(frame, framing) {
  switch (framing) {
    case "crlf":
      yield Buffer.from(frame.toString().replaceAll("\n", "\r\n"));
      return;
    case "comments":
      yield Buffer.from(`: keep-alive\n\nevent: message\nid: 7\nretry: 1000\n: inside\n${frame}:\n`);
      return;
    case "split":
      for (let at = 0; at < frame.length; at += SPLIT_BYTES) yield frame.subarray(at, at + SPLIT_BYTES);
      return;
    default:
      yield frame;
  }
}

function write(response, bytes) {
  return new Promise((resolve, reject) => {
    response.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}

function makeHold() {
  const timer = new AbortController();
  let letGo;
  const released = new Promise((resolve) => (letGo = resolve));
  held.add(letGo);
  return {
    async released() {
      await Promise.race([released, delay(HOLD_LIMIT_MS, null, { signal: timer.signal })]);
      held.delete(letGo);
      timer.abort();
    },
  };
}

function wordOf(messages) {
  const content = messages.findLast((message) => message.role === "user")?.content ?? "";
  const text =
    typeof content === "string" ? content : content.map((part) => part.text ?? "").join(" ");
  return text.trim().split(/\s+/)[0];
}

async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

function refuse(response, status, error) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ error }));
}
