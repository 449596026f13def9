// Our server over plain HTTP: headers, frames, and what it says to a request it refuses.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { aguiBinary, startAgui } from "../lib/processes.mjs";
import { eventsOf, post, runInput } from "../lib/sse.mjs";
import { judge } from "./reference.mjs";

// Without the binary the whole file fails here, with one message.
aguiBinary();

let server;
let url;
before(async () => {
  server = await startAgui();
  url = `${server.url}/agents/demo`;
});
after(() => server?.stop());

describe("the stream", () => {
  const words = [
    "hello", "help", "reasoning", "tools", "frontend", "state", "steps", "activity", "subagents",
    "approval", "history", "custom", "result", "error", "slow 1",
  ];
  for (const word of words) {
    test(`${word}: one event a frame, nothing undescribed, one terminal event`, async () => {
      const input = runInput(word, { tools: [{ name: "ask", description: "asks" }] });
      const answer = await post(url, input);
      assert.equal(answer.status, 200);
      assert.equal(answer.died, false);
      assert.equal(answer.headers.get("content-type"), "text/event-stream");
      assert.equal(answer.headers.get("cache-control"), "no-cache, no-transform");
      assert.equal(answer.headers.get("x-accel-buffering"), "no");

      assertFrames(answer.text);
      const events = eventsOf(answer.text);
      const { warnings } = await judge(events);
      assert.deepEqual(warnings, [], "unknown material");
      assert.equal(events[0].type, "RUN_STARTED");
      assert.equal(events[0].threadId, input.threadId);
      assert.equal(events[0].runId, input.runId);
      const terminal = (event) => event.type === "RUN_FINISHED" || event.type === "RUN_ERROR";
      assert.deepEqual(events.filter(terminal), [events.at(-1)]);
    });
  }

  test("the content type is exact whatever else is accepted (T-12)", async () => {
    for (const accept of ["*/*", "text/*;q=0.5", "application/json, text/event-stream;q=0.1"]) {
      const { status, headers } = await post(url, runInput("hello"), { accept });
      assert.equal(status, 200, accept);
      assert.match(
        headers.get("content-type"),
        /^(text\/event-stream|application\/vnd\.ag-ui\.event\+proto)$/,
      );
    }
  });
});

describe("input that is unusual and fine", () => {
  const runs = async (input) => {
    const answer = await post(url, input);
    assert.equal(answer.status, 200, answer.text);
    const events = eventsOf(answer.text);
    assert.deepEqual((await judge(events)).warnings, []);
    assert.equal(events.at(-1).type, "RUN_FINISHED");
    return events;
  };

  test("no message at all", () => runs({ ...runInput(""), messages: [] }));
  test("tools, context and state left out (P-75)", () => runs(runInput("state")));
  test("state: null reads as absent", () => runs(runInput("state", { state: null })));
  test("empty identifiers", () => runs({ ...runInput("hello"), threadId: "", runId: "" }));

  test("unrecognised members are ignored (P-74)", async () => {
    const input = runInput("hello", { extra: { a: 1 } });
    input.messages[0].mood = "fine";
    input.messages.unshift({ id: "x", role: "narrator", content: "Once upon a time" });
    await runs(input);
  });

  test("a content part that is no text never fails the run (P-79)", () =>
    runs(
      runInput([
        { type: "image", source: { type: "url", value: "https://example.org/cat.png" } },
        { type: "document", source: { type: "file", value: "file-1" }, metadata: [1] },
        { type: "text", text: "what is this?" },
      ]),
    ));

  test("a newer minor version is served and answered with our own (P-80, P-81)", async () => {
    const [started] = await runs(runInput("hello", { protocolVersion: "1.99" }));
    assert.equal(started.protocolVersion, "1.0");
  });

  test("an answer to a question nobody asked is passed over (P-70)", () =>
    runs(runInput("hello", { resume: [{ interruptId: "nobody", status: "resolved", payload: 1 }] })));
});

describe("input that is refused, outside the stream (P-73, T-19)", () => {
  const message = (content) => ({ id: "m", role: "user", content });
  const text = (value) => [{ type: "text", text: "fine" }, { type: "text", text: value }];
  const refused = [
    ["a body that is not JSON", "{\"threadId\":", /./],
    ["an empty body", "", /./],
    ["a body that is no object", "[]", /object/i],
    ["no threadId", { ...runInput("hello"), threadId: undefined }, /threadId/],
    ["no runId", { ...runInput("hello"), runId: undefined }, /runId/],
    ["no messages", { ...runInput("hello"), messages: undefined }, /messages/],
    ["a threadId that is a number", { ...runInput("hello"), threadId: 7 }, /threadId/],
    ["messages that are no list", { ...runInput("hello"), messages: {} }, /messages/],
    [
      "a wrong type deep inside a message",
      { ...runInput("hello"), messages: [message("fine"), message(text(7))] },
      /messages\W*1\W*content\W*1\W*text/,
    ],
    [
      "tool call arguments that are no text",
      {
        ...runInput("hello"),
        messages: [
          {
            id: "m", role: "assistant",
            toolCalls: [{ id: "c", type: "function", function: { name: "f", arguments: {} } }],
          },
        ],
      },
      /messages\W*0\W*toolCalls\W*0\W*function\W*arguments/,
    ],
    ["a tool without a name", runInput("hello", { tools: [{ description: "d" }] }), /tools\W*0\W*name/],
    [
      "a resume entry that names nothing",
      runInput("hello", { resume: [{ status: "resolved" }] }),
      /resume\W*0\W*interruptId/,
    ],
    ["null in an optional place", runInput("hello", { parentRunId: null }), /parentRunId/],
  ];
  for (const [what, input, names] of refused) {
    test(what, async () => assertRefused(await post(url, input), names));
  }

  test("another method", async () => {
    for (const method of ["GET", "PUT", "DELETE"]) {
      const response = await fetch(url, { method });
      assert.equal(response.status, 405, method);
      assert.match(response.headers.get("allow") ?? "", /POST/);
      await assertRefused(response, /./);
    }
  });

  test("an agent nobody hosts", async () => {
    const answer = await post(`${server.url}/agents/nobody`, runInput("hello"));
    assert.equal(answer.status, 404);
    await assertRefused(answer, /nobody/);
  });

  test("and the server still serves", async () => {
    assert.equal((await post(url, runInput("hello"))).status, 200);
  });
});

/** Every frame is comments, or exactly one `data` line beside at most an `id`. */
function assertFrames(text) {
  assert.ok(text.endsWith("\n\n"), "the last frame is complete");
  assert.ok(!text.includes("\r"), "line ends are LF (T-15)");
  for (const frame of text.slice(0, -2).split("\n\n")) {
    const lines = frame.split("\n").filter((line) => !line.startsWith(":"));
    if (lines.length === 0) continue;
    const data = lines.filter((line) => line.startsWith("data: "));
    assert.equal(data.length, 1, frame);
    const others = lines.filter((line) => !line.startsWith("data: "));
    assert.ok(others.every((line) => line.startsWith("id: ")), frame);
    const event = JSON.parse(data[0].slice("data: ".length));
    assert.equal(typeof event.type, "string");
  }
}

/** A refusal: 4xx, JSON, an `error` object with a message that names the place. */
async function assertRefused(answer, names) {
  assert.ok(answer.status >= 400 && answer.status < 500, `status ${answer.status}`);
  assert.match(answer.headers.get("content-type"), /^application\/json/);
  const { error } = JSON.parse(typeof answer.text === "string" ? answer.text : await answer.text());
  assert.equal(typeof error, "object");
  assert.equal(typeof error.message, "string");
  assert.match(JSON.stringify(error), names);
}
