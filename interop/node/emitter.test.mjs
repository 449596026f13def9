// Agents made by chance (rust/src/program.rs), whose streams the published client has to take as
// ours does: no broken rule, nothing to strip, and the same conversation on either side.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { builtBinary, runProgram } from "../lib/processes.mjs";
import { startJudge } from "./differential/judge.mjs";
import { startReference } from "./differential/reference.mjs";

/** `AGUI_PROGRAMS` plays another number. */
const PROGRAMS = Number(process.env.AGUI_PROGRAMS ?? 300);

describe("what agents come to that were made by chance", () => {
  let threads;
  let judge;
  let reference;
  before(async () => {
    const interop = builtBinary("agui-interop", "AGUI_INTEROP_BIN", "-p agui-interop");
    const ran = await runProgram(interop, ["programs", "1", String(PROGRAMS)]);
    assert.equal(ran.code, 0, ran.stderr);
    threads = ran.stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
    [judge, reference] = await Promise.all([startJudge(), startReference()]);
  });
  after(() => Promise.all([judge?.stop(), reference?.stop()]));

  test(`${PROGRAMS} streams keep every rule of @ag-ui/client`, async () => {
    const broken = [];
    for (const thread of threads) {
      const [{ class: failed, failure, warnings }] = await reference.play(thread);
      const told = warnings.filter((text) => /\[(enforce|compat)\]|Failed to apply/.test(text));
      if (failed || told.length > 0) broken.push({ seed: thread.seed, failed, failure, told });
    }
    assert.deepEqual(broken, []);
  });

  test("they come to what our client makes of them, known deviations aside", async () => {
    const different = [];
    for (const thread of threads) {
      const { differences } = await judge.judge(thread);
      if (differences.length > 0) different.push({ seed: thread.seed, differences });
    }
    assert.deepEqual(different, []);
  });

  test("they hold every event that an agent may emit, and every ending", () => {
    const events = threads.flatMap(({ exchanges: [{ frames }] }) =>
      frames.map((frame) => JSON.parse(frame.slice("data: ".length))),
    );
    const types = new Set(events.map(({ type }) => type));
    // All 31 but the chunks, which are shorthand for what the handles emit.
    assert.equal(types.size, 28, [...types].join(" "));
    const endings = events.filter(({ type }) => /^RUN_(FINISHED|ERROR)$/.test(type));
    assert.equal(endings.length, threads.length);
    const kinds = endings.map(({ type, code, outcome }) => code ?? outcome?.type ?? type);
    for (const kind of ["success", "cancelled", "interrupt", "RUN_ERROR", "AGENT_PANIC", "WORN_OUT"]) {
      assert.ok(kinds.includes(kind), kind);
    }
    assert.ok(threads.some(({ refused }) => refused > 0));
  });
});
