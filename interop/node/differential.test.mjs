// Random streams through the published client and through ours, and the known deviations between
// them. `node interop/node/differential.mjs` plays any number more.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { generate } from "./differential/generate.mjs";
import { startJudge } from "./differential/judge.mjs";
import { frame } from "./differential/spell.mjs";

const SEEDS = 300;

let judge;
before(async () => (judge = await startJudge()));
after(() => judge?.stop());

describe("random streams, through @ag-ui/client and through ours", () => {
  test(`${SEEDS} threads come to the same, known deviations aside`, async () => {
    const different = [];
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { differences } = await judge.judge(generate(seed));
      if (differences.length > 0) different.push(`seed ${seed}: ${differences.join("\n  ")}`);
    }
    const rerun = "node interop/node/differential.mjs --seeds 1 --from SEED shrinks one";
    assert.deepEqual(different, [], rerun);
  });

  test("a seed always makes the same thread", () => {
    for (const seed of [1, 2, 77]) assert.deepEqual(generate(seed), generate(seed));
    assert.notDeepEqual(generate(1), generate(2));
  });

  test("each known deviation is still one, and nothing else explains its example", async () => {
    for (const { id, reason, example } of judge.deviations) {
      assert.ok(reason.trim(), `${id} has no reason`);
      assert.deepEqual(await judge.deviationsOf(asThread(example)), [id], id);
    }
  });

  test("a difference that is not known is found, at its place", async () => {
    const thread = asThread([
      { type: "RUN_STARTED", threadId: "thread", runId: "run" },
      { type: "TEXT_MESSAGE_CHUNK", messageId: "m", delta: "Hello" },
      { type: "RUN_FINISHED", threadId: "thread", runId: "run" },
    ]);
    assert.equal((await judge.judge(thread)).verdict, "same");
    // Each side is sent something else.
    const other = structuredClone(thread);
    other.exchanges[0].frames[1] = other.exchanges[0].frames[1].replace("Hello", "Hallo");
    const { differences } = await judge.judge(thread, other);
    assert.deepEqual(differences, [
      'exchange 0 delivered[2].delta: the reference has "Hello", ours "Hallo"',
      'exchange 0 messages[0].content: the reference has "Hello", ours "Hallo"',
    ]);
  });
});

/** A thread of one exchange. */
function asThread(events) {
  const input = { threadId: "thread", runId: "run", tools: [], context: [], forwardedProps: {} };
  const frames = events.map((event) => frame(JSON.stringify(event)));
  return { messages: [], state: {}, exchanges: [{ addMessages: [], input, frames, read: 7 }] };
}
