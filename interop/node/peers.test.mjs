// The peers judge our client, so they are judged first: by the published client.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { HttpAgent, buildResumeArray } from "@ag-ui/client";
import { peers } from "../lib/processes.mjs";
import { scenario, scenarios } from "../lib/scenarios.mjs";
import { eventsOf, post, runInput } from "../lib/sse.mjs";
import { BinaryHttpAgent, run, say } from "./reference.mjs";

for (const [name, start] of Object.entries(peers)) {
  describe(`the ${name} peer`, () => {
    let peer;
    before(async () => (peer = await start()));
    after(() => peer?.stop());
    const connect = () => new HttpAgent({ url: `${peer.url}/agent`, threadId: "thread-1" });

    for (const scenario of scenarios) {
      const { word, shows, only = name, why, stockClient } = scenario;
      test(`${word}: ${shows}`, { skip: only !== name && why }, async () => {
        if (stockClient) return assertWritten(await post(peer.url, input(word)), scenario);
        const agent = connect();
        const seen = await say(agent, word, {}, releaseAt(peer, scenario));
        assertReached(agent, seen, scenario);
      });
    }

    test("request: body and headers arrive as they were sent", async () => {
      const agent = connect();
      agent.headers = { "X-Trace": "t-1" };
      agent.state = { kept: [1, null] };
      const tools = [{ name: "ask", description: "asks", parameters: { type: "object" } }];
      const context = [{ description: "where", value: "here" }];
      await say(agent, "request", { runId: "run-7", tools, context, forwardedProps: { a: null } });

      const { method, headers, body } = JSON.parse(agent.messages[1].content);
      assert.equal(method, "POST");
      assert.equal(headers["x-trace"], "t-1");
      assert.equal(headers["content-type"], "application/json");
      const { messages, ...rest } = body;
      assert.deepEqual(rest, {
        threadId: "thread-1",
        runId: "run-7",
        protocolVersion: "1.0",
        state: { kept: [1, null] },
        tools,
        context,
        forwardedProps: { a: null },
      });
      assert.deepEqual(messages, [agent.messages[0]]);
    });

    test("interrupt: a resumed run is told the answer, falsy payloads too", async () => {
      const agent = connect();
      await say(agent, "interrupt");
      const resume = buildResumeArray(agent.pendingInterrupts, {
        "ask-1": { status: "resolved", payload: false },
      });
      const { failure } = await run(agent, { resume });

      assert.equal(failure, undefined);
      assert.deepEqual(agent.pendingInterrupts, []);
      const answer = agent.messages.at(-1);
      assert.deepEqual(JSON.parse(answer.content), [
        { interruptId: "ask-1", status: "resolved", payload: false },
      ]);
    });

    test("unknown words and malformed input are refused outside the stream", async () => {
      const { failure } = await say(connect(), "nonsense");
      assert.equal(failure.status, 400);
      const response = await fetch(peer.url, { method: "POST", body: '{"threadId": 1}' });
      assert.equal(response.status, 400);
    });
  });
}

describe("the node peer in the binary form", () => {
  let peer;
  before(async () => (peer = await peers.node()));
  after(() => peer?.stop());

  for (const word of ["text", "chunks", "tools", "reasoning", "activity", "interrupt", "all"]) {
    test(word, async () => {
      const agent = new BinaryHttpAgent({ url: peer.url, threadId: "thread-1" });
      assertReached(agent, await say(agent, word), scenario(word));
    });
  }
});

/** Lets a held scenario go on once the client has seen the event before the hold. */
function releaseAt(peer, { holdBefore }) {
  if (holdBefore === undefined) return {};
  let count = 0;
  return {
    onEvent() {
      count += 1;
      if (count === holdBefore) fetch(`${peer.url}/release`, { method: "POST" });
    },
  };
}

/** For what the published client is no judge of: the bytes themselves. */
function assertWritten({ status, text, died }, { events, framing, ends }) {
  assert.equal(status, 200);
  assert.equal(died, ends === "cut");
  assert.equal(/(?<!\r)\n/.test(text), framing !== "crlf", "line ends");
  const { threadId, runId } = input();
  const ids = { $threadId: threadId, $runId: runId };
  const written = JSON.parse(JSON.stringify(events), (_, value) => ids[value] ?? value);
  assert.deepEqual(eventsOf(text), written);
}

function assertReached(agent, seen, { word, expect }) {
  const rejects = expect.error !== undefined && expect.ending !== "failed";
  assert.equal(seen.failure !== undefined, rejects, `rejected with ${seen.failure}`);
  if (expect.delivered) assert.deepEqual(seen.types, expect.delivered);
  if (expect.messages) assert.deepEqual(agent.messages.slice(1), expect.messages);
  assert.deepEqual(agent.state, expect.state ?? {});
  assert.deepEqual(agent.pendingInterrupts, expect.openInterrupts);
  assert.equal(seen.warnings.length > 0, expect.warned, seen.warnings.join("\n"));
  if (expect.error) return assertFailed(seen, expect.error);

  const outcome = { completed: "success", interrupted: "interrupt", cancelled: "cancelled" };
  assert.equal(seen.finished.outcome, outcome[expect.ending], word);
  assert.deepEqual(seen.finished.event.usage, expect.usage);
  if (expect.ending !== "completed") return;
  assert.deepEqual(seen.result, expect.result);
  assert.deepEqual(seen.finished.pendingToolCallIds, expect.pendingToolCalls);
}

function assertFailed({ runError, failure }, { message, mentions }) {
  assert.equal(runError?.message, message);
  if (mentions) assert.ok(failure.message.includes(mentions), failure.message);
}

/** The same input every time, so that what was written can be compared with what was asked for. */
function input(word) {
  return { ...runInput(word), threadId: "thread-1", runId: "run-1" };
}
