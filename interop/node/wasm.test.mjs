// The crates without I/O as a WebAssembly module (wasm/build), against the published client and
// against the same crates in a native program.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { startOurs } from "./differential/ours.mjs";
import { startReference } from "./differential/reference.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
const module = join(target, "wasm/wasm32-unknown-unknown/release/agui_wasm.wasm");
const corpus = process.env.AGUI_CORPUS ?? join(root, "../shared/conformance");
const workload = join(corpus, "workloads/w2-mixed.sse.gz");

const withModule = { skip: !existsSync(module) && `there is no ${module}: wasm/build makes it` };
const withBoth = {
  skip: withModule.skip || (!existsSync(workload) && `there is no ${workload}: set AGUI_CORPUS`),
};

describe("the rules as a WebAssembly module", () => {
  test("it imports nothing, so that any host can load it", withModule, async () => {
    const compiled = await WebAssembly.compile(readFileSync(module));
    assert.deepEqual(WebAssembly.Module.imports(compiled), []);
  });

  test("a broken rule is told, and what came before stays", withModule, async () => {
    const client = await Client.load();
    const events = [
      { type: "RUN_STARTED", threadId: "t", runId: "r" },
      { type: "TEXT_MESSAGE_CHUNK", messageId: "m", delta: "Grüße 🌍", mood: "good" },
      { type: "TOOL_CALL_END", toolCallId: "c" },
    ];
    assert.equal(client.feed(bodyOf(events.slice(0, 2))), true);
    assert.equal(client.feed(bodyOf(events.slice(2))), false);
    assert.match(client.text("failure"), /TOOL_CALL_END.*\(C-38\)/);
    assert.match(client.text("warnings"), /\/mood.*\(C-23\)\n$/);
    assert.deepEqual(JSON.parse(client.text("messages")), [
      { id: "m", role: "assistant", content: "Grüße 🌍" },
    ]);
  });

  test("W2 folds to what the native crates fold it to", withBoth, async () => {
    const frames = framesOf(workload);
    const ours = startOurs();
    const [native] = await ours.play(thread(frames)).finally(() => ours.stop());
    assert.equal(native.outcome, "completed");
    assert.deepEqual(await folded(frames), { messages: native.messages, state: native.state });
  });

  test("the first runs of W2 fold to what @ag-ui/client folds them to", withBoth, async () => {
    // Its time grows with the square of the thread, so not all of them.
    const frames = framesOf(workload).slice(0, 5 * RUN);
    const reference = await startReference();
    const [expected] = await reference.play(thread(frames)).finally(() => reference.stop());
    assert.equal(expected.outcome, "completed");
    assert.ok(expected.messages.length > 50);
    const { messages, state } = expected;
    assert.deepEqual(await folded(frames), { messages, state });
  });
});

/** Events of one run of W2. */
const RUN = 305;

/** The module, and the calls it takes. */
class Client {
  static async load() {
    const client = new Client();
    const { instance } = await WebAssembly.instantiate(readFileSync(module), {});
    client.exports = instance.exports;
    return client;
  }

  /** Hands a piece of a body over; whether all of it was fine. */
  feed(bytes) {
    const at = this.exports.agui_room(bytes.length);
    new Uint8Array(this.exports.memory.buffer, at, bytes.length).set(bytes);
    return this.exports.agui_feed() === 0;
  }

  finish() {
    return this.exports.agui_finish() === 0;
  }

  text(what) {
    const at = this.exports[`agui_${what}`]();
    const bytes = new Uint8Array(this.exports.memory.buffer, at, this.exports.agui_length());
    return new TextDecoder().decode(bytes);
  }
}

/** What the module makes of a body that comes in reads of an odd size. */
async function folded(frames) {
  const client = await Client.load();
  const body = Buffer.from(frames.join(""));
  for (let at = 0; at < body.length; at += 1439) {
    assert.ok(client.feed(body.subarray(at, at + 1439)), client.text("failure"));
  }
  assert.ok(client.finish(), client.text("failure"));
  assert.equal(client.text("warnings"), "");
  return { messages: JSON.parse(client.text("messages")), state: JSON.parse(client.text("state")) };
}

function framesOf(path) {
  const frames = gunzipSync(readFileSync(path)).toString().split("\n\n").slice(0, -1);
  return frames.map((frame) => `${frame}\n\n`);
}

function bodyOf(events) {
  return Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
}

function thread(frames) {
  const { threadId, runId } = JSON.parse(frames[0].slice("data: ".length));
  const input = { threadId, runId, tools: [], context: [], forwardedProps: {} };
  return {
    messages: [],
    state: {},
    exchanges: [{ addMessages: [], input, frames, read: 2 ** 20 }],
  };
}
