// Our server over WebSockets, asked by the npm package `ws`.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { WebSocket } from "ws";
import { aguiBinary, startAgui } from "../lib/processes.mjs";
import { runInput } from "../lib/sse.mjs";
import { judge } from "./reference.mjs";

// Without the binary the whole file fails here, with one message.
aguiBinary();

let server;
let url;
before(async () => {
  server = await startAgui();
  url = `${server.url.replace("http:", "ws:")}/agents/demo`;
});
after(() => server?.stop());

/** Sends one message and gives what came up to the close frame. */
function talk(message, options = {}) {
  const socket = new WebSocket(url, options);
  const texts = [];
  return new Promise((resolve, reject) => {
    socket.once("open", () => socket.send(message));
    socket.on("message", (data, binary) => texts.push(binary ? data : data.toString()));
    socket.once("close", (code, reason) => resolve({ texts, code, reason: reason.toString() }));
    socket.once("unexpected-response", (_, response) => resolve({ status: response.statusCode }));
    socket.once("error", reject);
  });
}

describe("a run over a WebSocket", () => {
  for (const word of ["hello", "tools", "state", "subagents", "approval", "error", "slow 1"]) {
    test(`${word}: one event a message, the reference takes them, a close frame ends them`, async () => {
      const { texts, code } = await talk(JSON.stringify(runInput(word)));
      const events = texts.map((text) => JSON.parse(text));
      const { warnings } = await judge(events);
      assert.deepEqual(warnings, []);
      assert.equal(events[0].type, "RUN_STARTED");
      assert.match(events.at(-1).type, /^RUN_(FINISHED|ERROR)$/);
      assert.equal(code, 1000);
    });
  }

  test("a refused input is a close frame with a reason (T-4)", async () => {
    const { texts, code, reason } = await talk("{}");
    assert.deepEqual([texts, code], [[], 1007]);
    assert.match(reason, /^INVALID_INPUT: /);
  });

  test("an input that is too large is a close frame with a reason", async () => {
    const { code, reason } = await talk(" ".repeat(10 * 1024 * 1024 + 1));
    assert.equal(code, 1009, reason);
  });

  test("a page of another site may not", async () => {
    assert.deepEqual(await talk("{}", { origin: "https://evil.example" }), { status: 403 });
    const { code } = await talk(JSON.stringify(runInput("hello")), { origin: "http://localhost:5173" });
    assert.equal(code, 1000);
  });

  test("the declaration says that it is there", async () => {
    const response = await fetch(`${server.url}/agents/demo/capabilities`);
    assert.equal((await response.json()).transport.websocket, true);
  });
});
