// Our client against an agent of pydantic-ai behind that framework's own AG-UI adapter
// (python/pydantic_agent.py): no part of it was made for us.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { aguiBinary, builtBinary, runProgram, startPydanticAgent } from "./lib/processes.mjs";

const COMPLETED = 0;
const FAILED = 1;
const INTERRUPTED = 3;

const agui = aguiBinary();
const interop = builtBinary("agui-interop", "AGUI_INTEROP_BIN", "-p agui-interop");
let folder;
let agent;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "agui-pydantic-"));
  agent = await startPydanticAgent();
});
after(async () => {
  await agent?.stop();
  if (folder) await rm(folder, { recursive: true });
});

describe("agui run against an agent of pydantic-ai", () => {
  test("text comes in its pieces, with usage", async () => {
    const { code, stdout, report } = await run({}, "text");
    assert.equal(code, COMPLETED);
    assert.deepEqual(deltasOf(stdout), ["Grüße, ", "世界 ", "🌍"]);
    assert.deepEqual(spoken(report), ["user: text", "assistant: Grüße, 世界 🌍"]);
    const [{ model, inputTokens, outputTokens, totalTokens }] = report.usage;
    assert.equal(model, "function::model");
    assert.ok(inputTokens > 0 && outputTokens > 0);
    assert.equal(totalTokens, inputTokens + outputTokens);
  });

  test("reasoning keeps its encrypted value, and goes back with the next request", async () => {
    const { report } = await run({}, "think");
    const [, thought, answer] = report.messages;
    assert.deepEqual(JSON.parse(thought.encryptedValue).signature, "sealed");
    assert.deepEqual([thought.role, thought.content], ["reasoning", "Hm, yes."]);
    assert.equal(answer.content, "Yes.");
    const next = await run(report, "and then?");
    assert.deepEqual(next.report.request.messages.slice(0, 3), report.messages);
    assert.match(next.report.messages.at(-1).content, /'think', 'and then\?'/);
  });

  test("a tool of the agent: arguments in pieces, the result behind the call", async () => {
    const { code, report } = await run({}, "weather");
    assert.equal(code, COMPLETED);
    const [, caller, result, answer] = report.messages;
    assert.equal(caller.content, "I look. ");
    assert.deepEqual(caller.toolCalls, [call("weather", '{"city":"Genève"}')]);
    assert.deepEqual([result.role, result.toolCallId], ["tool", "call-1"]);
    assert.equal(result.content, "sun over Genève");
    assert.equal(answer.content, "weather said sun over Genève.");
    assert.deepEqual(report.pendingToolCalls, []);
  });

  test("two calls of one message", async () => {
    const { report } = await run({}, "both");
    const [, caller, ...results] = report.messages;
    assert.deepEqual(caller.toolCalls.map(({ id }) => id), ["call-0", "call-1"]);
    // The agent runs them at once, so either may be done first.
    assert.deepEqual(
      results.slice(0, 2).map(({ toolCallId, content }) => `${toolCallId}: ${content}`).sort(),
      ["call-0: sun over Bonn", "call-1: sun over Köln"],
    );
  });

  test("state: sent, restated, patched, sent again", async () => {
    const state = { count: 6, notes: ["old"] };
    const first = await run({ state }, "count");
    assert.deepEqual(first.report.state, { count: 7, notes: ["old"] });
    const second = await run(first.report, "note milk");
    assert.deepEqual(second.report.request.state, first.report.state);
    assert.deepEqual(second.report.state, { count: 7, notes: ["old", "milk"] });
    const third = await run(second.report, "count");
    assert.deepEqual(third.report.state, { count: 8, notes: ["old", "milk"] });
    for (const { report } of [first, second, third]) assert.deepEqual(report.warnings, []);
  });

  test("a tool of the front end is called, answered, and put into words", async () => {
    const question = { type: "object", properties: { question: { type: "string" } } };
    const tools = [{ name: "ask_person", description: "Asks a person.", parameters: question }];
    const { code, report } = await run({ tools }, "ask person");
    assert.equal(code, COMPLETED);
    const caller = report.messages.at(-1);
    assert.deepEqual(caller.toolCalls, [call("ask_person", '{"question":"Why?"}')]);
    assert.deepEqual(report.pendingToolCalls, ["call-1"]);

    const answer = { id: "answer", role: "tool", toolCallId: "call-1", content: "Because." };
    const next = await run({ ...report, tools, messages: [...report.messages, answer] });
    assert.equal(next.code, COMPLETED);
    assert.equal(next.report.messages.at(-1).content, "ask_person said Because..");
    assert.deepEqual(next.report.pendingToolCalls, []);
  });

  for (const approved of [true, false]) {
    test(`a tool that wants approval is interrupted, and ${approved ? "done" : "left"}`, async () => {
      const { code, report } = await run({}, "delete");
      assert.equal(code, INTERRUPTED);
      const [{ id, toolCallId, responseSchema }] = report.openInterrupts;
      assert.equal(toolCallId, "call-1");
      assert.deepEqual(responseSchema.required, ["approved"]);

      const resume = [{ interruptId: id, status: "resolved", payload: { approved } }];
      const next = await run({ ...report, resume });
      assert.equal(next.code, COMPLETED, next.stderr);
      assert.deepEqual(next.report.openInterrupts, []);
      assert.match(next.report.messages.at(-1).content, approved ? /a is gone/ : /denied/);
    });
  }

  test("a failure in the middle of the text keeps what came", async () => {
    const { code, report } = await run({}, "fail");
    assert.equal(code, FAILED);
    assert.equal(report.error.message, "out of tokens");
    assert.deepEqual(spoken(report), ["user: fail", "assistant: I was "]);
  });
});

describe("a session with an agent of pydantic-ai", () => {
  test("text, and a history that the agent is told again", async () => {
    const [first, second] = await converse([{ say: "text" }, { say: "and then?" }]);
    assert.equal(first.ending, "completed");
    assert.deepEqual(first.texts, ["Grüße, ", "世界 ", "🌍"].map((text) => Buffer.byteLength(text)));
    assert.deepEqual(spoken(first), ["user: text", "assistant: Grüße, 世界 🌍"]);
    assert.deepEqual(spoken(second).slice(0, 3), [...spoken(first), "user: and then?"]);
    assert.match(second.messages.at(-1).content, /'text', 'and then\?'/);
    assert.equal(second.usage.length, 1);
    assert.ok(second.usage[0].totalTokens > first.usage[0].totalTokens);
  });

  test("a tool of the agent", async () => {
    const [{ runs, messages, pendingToolCalls }] = await converse([{ say: "weather" }]);
    assert.equal(runs, 1);
    assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant", "tool", "assistant"]);
    assert.equal(messages.at(-1).content, "weather said sun over Genève.");
    assert.deepEqual(pendingToolCalls, []);
  });

  test("a tool of the front end is carried out, and the agent told in the same turn", async () => {
    const [{ ending, runs, tools, messages }] = await converse([{ say: "ask person" }]);
    assert.equal(ending, "completed");
    assert.equal(runs, 2);
    assert.deepEqual(tools, ["call-1: answered"]);
    assert.equal(messages.at(-1).content, 'ask_person said Who asks "Why?"?.');
  });

  test("a tool of the front end without a handler waits for its answer", async () => {
    const [asked, told] = await converse([{ say: "ask later" }, { answer: "Because" }]);
    assert.deepEqual(asked.pendingToolCalls, ["call-1"]);
    assert.equal(asked.runs, 1);
    assert.deepEqual(told.pendingToolCalls, []);
    assert.equal(told.messages.at(-1).content, "ask_later said Because.");
  });

  test("state: set, restated, patched, sent again", async () => {
    const [first, second, third] = await converse([
      { state: { count: 6, notes: ["old"] }, say: "count" },
      { say: "note milk" },
      { say: "count" },
    ]);
    assert.deepEqual(first.state, { count: 7, notes: ["old"] });
    assert.deepEqual(second.state, { count: 7, notes: ["old", "milk"] });
    assert.deepEqual(third.state, { count: 8, notes: ["old", "milk"] });
  });

  test("an approval, asked for and given", async () => {
    const [asked, done] = await converse([{ say: "delete" }, { resolve: { approved: true } }]);
    assert.equal(asked.ending, "interrupted");
    assert.equal(asked.openInterrupts.length, 1);
    assert.equal(done.ending, "completed");
    assert.deepEqual(done.openInterrupts, []);
    assert.equal(done.messages.at(-1).content, "delete said a is gone.");
  });

  test("a failure, and the next turn", async () => {
    const [failed, next] = await converse([{ say: "fail" }, { say: "text" }]);
    assert.equal(failed.ending, "failed");
    assert.match(failed.failure, /out of tokens/);
    assert.equal(next.ending, "completed");
    assert.equal(next.messages.at(-1).content, "Grüße, 世界 🌍");
  });
});

/** Plays steps in one session (rust/src/session.rs), and tells what came of each. */
async function converse(steps) {
  const turns = steps.map(({ say, ...turn }, at) => ({
    ...turn,
    ...(say && { message: { id: `user-${at}`, role: "user", content: say } }),
  }));
  const stdin = turns.map((turn) => `${JSON.stringify(turn)}\n`).join("");
  const tools = ["ask_person", "ask_later"];
  const ran = await runProgram(interop, ["session", `${agent.url}/`, ...tools], { stdin });
  assert.equal(ran.code, 0, ran.stderr);
  const outcomes = ran.stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.equal(outcomes.length, steps.length);
  for (const { warnings } of outcomes) assert.deepEqual(warnings, []);
  return outcomes;
}

/** One run over an input or the report of an earlier run; every event must be as described. */
async function run(input, ...words) {
  const file = join(folder, `${crypto.randomUUID()}.json`);
  const args = ["run", `${agent.url}/`, "--input", "-", "--json", "--result", file, ...words];
  const ran = await runProgram(agui, args, { stdin: JSON.stringify(input) });
  let report;
  try {
    report = JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    assert.fail(`no report (${error.message}); exit code ${ran.code}, stderr:\n${ran.stderr}`);
  }
  assert.deepEqual(report.warnings, []);
  return { ...ran, report };
}

function deltasOf(stdout) {
  const events = stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
  return events.filter(({ type }) => type === "TEXT_MESSAGE_CONTENT").map(({ delta }) => delta);
}

function spoken({ messages }) {
  return messages.map(({ role, content }) => `${role}: ${content}`);
}

function call(name, args) {
  return { id: "call-1", type: "function", function: { name, arguments: args } };
}
