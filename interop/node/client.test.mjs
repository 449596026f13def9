// Our server, judged by the published client: every behaviour of docs/demo-agent.md.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { HttpAgent, buildResumeArray } from "@ag-ui/client";
import { AgentCapabilitiesSchema, EventSchemas } from "@ag-ui/core/schemas";
import { aguiBinary, startAgui } from "../lib/processes.mjs";
import { BinaryHttpAgent, run, say, unknownKeys } from "./reference.mjs";

// Without the binary the whole file fails here, with one message.
aguiBinary();

let server;
before(async () => (server = await startAgui()));
after(() => server?.stop());

const WORDS = [
  "help", "reasoning", "tools", "frontend", "state", "steps", "activity", "subagents",
  "approval", "history", "custom", "result", "error", "slow",
];
const COLOUR_TOOL = {
  name: "pick_colour",
  description: "Lets the user pick a colour",
  parameters: { type: "object", properties: { hint: { type: "string" } } },
};

const connect = (config = {}) => new HttpAgent({ url: `${server.url}/agents/demo`, ...config });

/** Says `text` and asserts what holds for every run: no fault, no stripped material, the ids. */
async function talk(agent, text, parameters) {
  return assertClean(agent, await say(agent, text, parameters));
}

function assertClean(agent, seen) {
  assert.equal(seen.failure, undefined);
  assert.deepEqual(seen.warnings, [], "the client had to drop, strip or doubt something");
  for (const event of seen.events) EventSchemas.parse(event);

  const [started] = seen.events;
  assert.equal(started.type, "RUN_STARTED");
  assert.equal(started.threadId, agent.threadId);
  assert.equal(started.protocolVersion, "1.0");
  const terminals = seen.types.filter((type) => type === "RUN_FINISHED" || type === "RUN_ERROR");
  assert.deepEqual(terminals, [seen.types.at(-1)], "exactly one terminal event, and it is the last");
  if (seen.finished) {
    assert.equal(seen.finished.event.threadId, agent.threadId);
    assert.equal(seen.finished.event.runId, started.runId);
  }
  return seen;
}

const ofType = (seen, ...types) => seen.events.filter((event) => types.includes(event.type));
const roles = (agent) => agent.messages.map((message) => message.role);

function answerOf(agent) {
  const last = agent.messages.at(-1);
  assert.equal(last.role, "assistant");
  assert.equal(typeof last.content, "string");
  assert.notEqual(last.content.trim(), "");
  return last.content;
}

describe("the demo agent, driven by @ag-ui/client", () => {
  test("anything unknown is echoed, word by word", async () => {
    const agent = connect();
    const seen = await talk(agent, "Good morning, 世界 🌍");
    assert.deepEqual(roles(agent), ["user", "assistant"]);
    assert.ok(answerOf(agent).startsWith("You said: Good morning, 世界 🌍"), answerOf(agent));
    assert.match(answerOf(agent), /\bhelp\b/);
    assert.ok(ofType(seen, "TEXT_MESSAGE_CONTENT").length > 1, "streamed in several deltas");
    assert.equal(seen.finished.outcome, "success");
    assert.deepEqual(seen.newMessages, agent.messages.slice(1));
  });

  test("help lists every word in one message", async () => {
    const agent = connect();
    await talk(agent, "help");
    assert.deepEqual(roles(agent), ["user", "assistant"]);
    for (const word of WORDS) assert.match(answerOf(agent), new RegExp(`\\b${word}\\b`));
  });

  test("the runId asked for is the runId of the run", async () => {
    const seen = await talk(connect({ threadId: "thread of my own" }), "hello", { runId: "run-1" });
    assert.equal(seen.events[0].runId, "run-1");
    assert.equal(seen.finished.event.runId, "run-1");
  });

  test("reasoning: span, message, encrypted value, answer; the value travels back", async () => {
    const agent = connect();
    const seen = await talk(agent, "reasoning");
    assert.deepEqual(roles(agent), ["user", "reasoning", "assistant"]);
    const thought = agent.messages[1];
    assert.notEqual(thought.content, "");
    assert.ok(ofType(seen, "REASONING_MESSAGE_CONTENT").length > 1, "several deltas");
    const [value] = ofType(seen, "REASONING_ENCRYPTED_VALUE");
    assert.equal(value.subtype, "message");
    assert.equal(value.entityId, thought.id);
    assert.equal(thought.encryptedValue, value.encryptedValue);
    assert.ok(seen.types.indexOf("REASONING_START") < seen.types.indexOf("REASONING_MESSAGE_START"));
    assert.ok(seen.types.indexOf("REASONING_MESSAGE_END") < seen.types.indexOf("REASONING_END"));
    answerOf(agent);

    // The next input carries the reasoning message and its value.
    await talk(agent, "hello");
    assert.equal(agent.messages.length, 5);
  });

  test("tools: two calls open at once on one message, both answered", async () => {
    const agent = connect();
    const seen = await talk(agent, "tools");
    assert.deepEqual(roles(agent), ["user", "assistant", "tool", "tool", "assistant"]);

    const [, asking, ...results] = agent.messages;
    assert.notEqual(asking.content, "");
    assert.equal(asking.toolCalls.length, 2);
    for (const [index, city] of ["Paris", "Oslo"].entries()) {
      const { function: called } = asking.toolCalls[index];
      assert.equal(called.name, "get_weather");
      assert.ok(Object.values(JSON.parse(called.arguments)).includes(city), called.arguments);
    }
    assert.deepEqual(
      results.slice(0, 2).map(({ toolCallId }) => toolCallId).sort(),
      asking.toolCalls.map(({ id }) => id).sort(),
    );

    const order = ofType(seen, "TOOL_CALL_START", "TOOL_CALL_END").map(({ type }) => type);
    assert.deepEqual(order.slice(0, 2), ["TOOL_CALL_START", "TOOL_CALL_START"], "open together");
    const switches = ofType(seen, "TOOL_CALL_ARGS").filter(
      ({ toolCallId }, index, all) => index > 0 && all[index - 1].toolCallId !== toolCallId,
    );
    assert.ok(switches.length >= 2, "argument fragments are interleaved");
    assert.deepEqual(seen.finished.pendingToolCallIds, []);
    answerOf(agent);
  });

  test("frontend: the call is left to the client, its answer is repeated", async () => {
    const agent = connect();
    const other = { name: "other", description: "is not the first" };
    const tools = [COLOUR_TOOL, other];
    const asked = await talk(agent, "frontend", { tools });
    const [call] = agent.messages.flatMap((message) => message.toolCalls ?? []);
    assert.equal(call.function.name, COLOUR_TOOL.name);
    JSON.parse(call.function.arguments);
    assert.equal(asked.finished.outcome, "success");
    assert.deepEqual(asked.finished.event.outcome.pendingToolCallIds, [call.id]);
    assert.deepEqual(ofType(asked, "TOOL_CALL_RESULT"), []);

    agent.addMessage({ id: "answer-1", role: "tool", toolCallId: call.id, content: "teal, please" });
    const answered = assertClean(agent, await run(agent, { tools }));
    assert.match(answerOf(agent), /teal, please/);
    assert.deepEqual(ofType(answered, "TOOL_CALL_START"), [], "the question is not asked twice");
    assert.deepEqual(answered.finished.pendingToolCallIds, []);

    // And the thread goes on.
    await talk(agent, "hello again", { tools });
    assert.match(answerOf(agent), /hello again/);
  });

  test("frontend: an answer made of parts is repeated as its text", async () => {
    const agent = connect();
    await talk(agent, "frontend", { tools: [COLOUR_TOOL] });
    const [call] = agent.messages.flatMap((message) => message.toolCalls ?? []);
    const content = [
      { type: "text", text: "dark " },
      { type: "image", source: { type: "file", value: "file-1" } },
      { type: "text", text: "red" },
    ];
    agent.addMessage({ id: "answer-1", role: "tool", toolCallId: call.id, content });
    assertClean(agent, await run(agent, { tools: [COLOUR_TOOL] }));
    assert.match(answerOf(agent), /dark red/);
  });

  test("frontend: with no tool advertised a text says so", async () => {
    const agent = connect();
    const seen = await talk(agent, "frontend");
    assert.deepEqual(roles(agent), ["user", "assistant"]);
    assert.deepEqual(ofType(seen, "TOOL_CALL_START"), []);
    assert.match(answerOf(agent), /tool/i);
  });

  test("state: a snapshot of the input's state, then deltas up to 100", async () => {
    const agent = connect({ initialState: { kept: [1, { "a/b": null }] } });
    const progress = [];
    agent.subscribe({ onStateChanged: ({ state }) => void progress.push(state.demo?.progress) });
    const seen = await talk(agent, "state");

    assert.deepEqual(ofType(seen, "STATE_SNAPSHOT").map(({ snapshot }) => snapshot), [
      { kept: [1, { "a/b": null }], demo: { progress: 0, log: [] } },
    ]);
    assert.deepEqual([...new Set(progress)], [0, 25, 50, 75, 100]);
    const { demo, ...rest } = agent.state;
    assert.deepEqual(rest, { kept: [1, { "a/b": null }] });
    assert.equal(demo.progress, 100);
    assert.equal(demo.log.length, 4);
    answerOf(agent);
  });

  test("state: an input state that is no object does not stop the run", async () => {
    const agent = connect({ initialState: [1, 2] });
    await talk(agent, "state");
    assert.equal(agent.state.demo.progress, 100);
  });

  test("steps: plan and gather overlap, all three close", async () => {
    const seen = await talk(connect(), "steps");
    const steps = ofType(seen, "STEP_STARTED", "STEP_FINISHED").map(
      ({ type, stepName }) => `${stepName} ${type === "STEP_STARTED" ? "starts" : "ends"}`,
    );
    assert.deepEqual([...steps].sort(), [
      "answer ends", "answer starts", "gather ends", "gather starts", "plan ends", "plan starts",
    ]);
    assert.ok(steps.indexOf("plan starts") < steps.indexOf("gather starts"));
    assert.ok(steps.indexOf("gather starts") < steps.indexOf("plan ends"), "they overlap");
    assert.ok(steps.indexOf("gather ends") < steps.indexOf("answer ends"));
  });

  test("activity: a search whose hits are patched in", async () => {
    const agent = connect();
    const seen = await talk(agent, "activity");
    assert.deepEqual(ofType(seen, "ACTIVITY_SNAPSHOT").map(({ content }) => content), [
      { query: "agui", hits: [] },
    ]);
    assert.equal(ofType(seen, "ACTIVITY_DELTA").length, 3);
    const [activity] = agent.messages.filter(({ role }) => role === "activity");
    assert.equal(activity.activityType, "SEARCH");
    assert.equal(activity.content.query, "agui");
    assert.equal(activity.content.hits.length, 3);
    answerOf(agent);
  });

  test("subagents: two at once and one below, every text attributed", async () => {
    const agent = connect();
    const seen = await talk(agent, "subagents");
    const started = ofType(seen, "SUBAGENT_STARTED");
    assert.deepEqual(started.map(({ name }) => name).sort(), ["fact-checker", "researcher", "writer"]);
    const [researcher, writer, checker] = ["researcher", "writer", "fact-checker"].map((name) =>
      started.find((event) => event.name === name),
    );
    assert.equal(checker.parentSubagentRunId, researcher.subagentRunId);
    assert.equal(researcher.parentSubagentRunId, undefined);
    assert.deepEqual(
      ofType(seen, "SUBAGENT_FINISHED").map(({ subagentRunId }) => subagentRunId).sort(),
      started.map(({ subagentRunId }) => subagentRunId).sort(),
    );

    for (const { subagentRunId, name } of [researcher, writer, checker]) {
      const own = agent.messages.filter((message) => message.subagentRunId === subagentRunId);
      assert.ok(own.some(({ role, content }) => role === "assistant" && content !== ""), name);
    }
    const owners = ofType(seen, "TEXT_MESSAGE_CONTENT")
      .map(({ messageId }) => agent.messages.find(({ id }) => id === messageId).subagentRunId)
      .filter((owner) => [researcher, writer].some(({ subagentRunId }) => subagentRunId === owner));
    const switches = owners.filter((owner, index) => index > 0 && owners[index - 1] !== owner);
    assert.ok(switches.length >= 2, "researcher and writer stream at the same time");
  });

  describe("approval", () => {
    const interrupted = async () => {
      const agent = connect();
      const seen = await talk(agent, "approval");
      const [call] = agent.messages.flatMap((message) => message.toolCalls ?? []);
      return { agent, seen, call };
    };
    const resume = async (agent, response) => {
      const [{ id }] = agent.pendingInterrupts;
      const resume = buildResumeArray(agent.pendingInterrupts, { [id]: response });
      return assertClean(agent, await run(agent, { resume }));
    };

    test("the run stops to ask", async () => {
      const { agent, seen, call } = await interrupted();
      assert.equal(seen.finished.outcome, "interrupt");
      assert.equal(agent.pendingInterrupts.length, 1);
      const [interrupt] = agent.pendingInterrupts;
      assert.equal(interrupt.reason, "tool_call");
      assert.equal(interrupt.toolCallId, call.id);
      assert.notEqual(interrupt.message ?? "", "");
      assert.equal(typeof interrupt.responseSchema, "object");
      assert.equal(call.function.name, "delete_file");
      assert.deepEqual(ofType(seen, "TOOL_CALL_RESULT"), []);

      // Nothing is sent while the question is open (C-85).
      const { failure, events } = await say(agent, "never mind");
      assert.match(failure.message, /pending interrupt/);
      assert.deepEqual(events, []);
    });

    const answers = [
      ["resolved with approved: true", { status: "resolved", payload: { approved: true } }, "deleted"],
      ["resolved with true", { status: "resolved", payload: true }, "deleted"],
      ["resolved with approved: false", { status: "resolved", payload: { approved: false } }, "refused"],
      ["resolved with false", { status: "resolved", payload: false }, "refused"],
      ["resolved with a text", { status: "resolved", payload: "yes" }, "refused"],
      ["resolved without a payload", { status: "resolved" }, "refused"],
      ["cancelled", { status: "cancelled" }, "refused"],
    ];
    for (const [how, response, outcome] of answers) {
      test(`${how}: the call is answered with ${outcome}`, async () => {
        const { agent, call } = await interrupted();
        const seen = await resume(agent, response);
        assert.deepEqual(agent.pendingInterrupts, []);
        assert.equal(seen.finished.outcome, "success");
        const results = agent.messages.filter(({ role }) => role === "tool");
        assert.deepEqual(results.map(({ toolCallId }) => toolCallId), [call.id]);
        assert.equal(results[0].content, outcome);
        assert.deepEqual(ofType(seen, "TOOL_CALL_START"), [], "the call is not made again");
        assert.match(answerOf(agent), new RegExp(outcome));
      });
    }

    test("the answer may reach a process that never saw the question (P-69)", async () => {
      const { agent, call } = await interrupted();
      const second = await startAgui();
      try {
        agent.url = agent.url.replace(server.url, second.url);
        await resume(agent, { status: "resolved", payload: { approved: true } });
        const [result] = agent.messages.filter(({ role }) => role === "tool");
        assert.equal(result.toolCallId, call.id);
        assert.equal(result.content, "deleted");
      } finally {
        await second.stop();
      }
    });
  });

  test("history: a snapshot of the whole conversation with the answer appended", async () => {
    const initialMessages = [
      { id: "u1", role: "user", content: [{ type: "text", text: "hi" }] },
      { id: "a1", role: "assistant", content: "hello", metadata: { score: 1 } },
    ];
    const agent = connect({ initialMessages });
    const seen = await talk(agent, "history");
    const [{ messages }] = ofType(seen, "MESSAGES_SNAPSHOT");
    assert.deepEqual(messages.slice(0, 2), initialMessages);
    assert.equal(messages[2].content, "history");
    assert.equal(messages.length, 4);
    assert.deepEqual(agent.messages, messages);
    answerOf(agent);
  });

  test("custom: one CUSTOM and one RAW event", async () => {
    const agent = connect();
    const seen = await talk(agent, "custom");
    assert.deepEqual(ofType(seen, "CUSTOM").map(({ name }) => name), ["demo.greeting"]);
    assert.equal(ofType(seen, "RAW").length, 1);
    answerOf(agent);
  });

  test("result: a value, and usage that counts words", async () => {
    const agent = connect();
    const seen = await talk(agent, "result");
    assert.deepEqual(seen.result, { answer: 42 });
    const [usage, ...more] = seen.finished.event.usage;
    assert.deepEqual(more, []);
    assert.equal(usage.provider, "agui");
    assert.equal(usage.model, "demo");
    assert.ok(usage.inputTokens >= 1);
    assert.equal(usage.outputTokens, answerOf(agent).trim().split(/\s+/).length);
    if (usage.totalTokens !== undefined) {
      assert.equal(usage.totalTokens, usage.inputTokens + usage.outputTokens);
    }
  });

  test("error: the failure is told, what was said before it stays, the thread goes on", async () => {
    const agent = connect();
    const seen = await talk(agent, "error");
    assert.equal(seen.runError.code, "DEMO_ERROR");
    assert.notEqual(seen.runError.message, "");
    assert.equal(seen.finished, undefined);
    assert.notEqual(agent.messages[1].content, "");

    await talk(agent, "hello");
    assert.match(answerOf(agent), /You said: hello/);
  });

  test("slow N: a text over N seconds", async () => {
    const agent = connect();
    const times = [];
    const seen = await say(agent, "slow 2", {}, {
      onEvent({ event }) {
        if (event.type === "TEXT_MESSAGE_CONTENT") times.push(performance.now());
      },
    });
    assertClean(agent, seen);
    assert.ok(times.length >= 2);
    assert.ok(times.at(-1) - times[0] > 500, "words come apart, not in one piece");
  });

  test("aborting a slow run closes the connection and leaves the server serving", async () => {
    const agent = connect();
    const seen = await say(agent, "slow 300", {}, {
      onEvent({ event, agent }) {
        if (event.type === "TEXT_MESSAGE_CONTENT") agent.abortRun();
      },
    });
    assert.equal(seen.failure, undefined);
    assert.equal(seen.runError.code, "abort", "said by the client itself");
    assert.equal(seen.finished, undefined);
    assert.notEqual(agent.messages[1].content, "");

    await talk(connect(), "hello");
  });

  test("many runs at once stay apart", async () => {
    const agents = Array.from({ length: 20 }, (_, n) => connect({ threadId: `thread-${n}` }));
    // The console is held back once around all of them, so the runs are made without `say`.
    await Promise.all(
      agents.map(async (agent) => {
        agent.addMessage({ id: "u1", role: "user", content: `I am ${agent.threadId}.` });
        await agent.runAgent();
        assert.ok(answerOf(agent).startsWith(`You said: I am ${agent.threadId}.`));
      }),
    );
  });

  for (const word of WORDS.filter((word) => word !== "slow")) {
    test(`${word} is the same in the binary form (T-5)`, async () => {
      const config = { url: `${server.url}/agents/demo`, threadId: "thread-1" };
      const [text, binary] = await Promise.all(
        [new HttpAgent(config), new BinaryHttpAgent(config)].map(async (agent) => {
          const parameters = { runId: "run-1", tools: word === "frontend" ? [COLOUR_TOOL] : [] };
          agent.addMessage({ id: "u1", role: "user", content: word });
          const types = [];
          const onEvent = ({ event }) => types.push(event.type);
          const failed = await agent.runAgent(parameters, { onEvent }).then(
            () => undefined,
            (error) => error,
          );
          return { types, failed, roles: roles(agent), state: agent.state };
        }),
      );
      assert.equal(binary.failed?.message, text.failed?.message);
      assert.ok(binary.types.length > 2, "a run");
      assert.deepEqual(binary, text);
    });
  }

  test("capabilities are declared in the protocol's shape", async () => {
    const response = await fetch(`${server.url}/agents/demo/capabilities`);
    assert.equal(response.status, 200);
    assert.match(response.headers.get("content-type"), /^application\/json/);
    const declared = await response.json();
    AgentCapabilitiesSchema.parse(declared);
    assert.deepEqual(unknownKeys(declared, AgentCapabilitiesSchema), []);
    assert.equal(declared.transport?.streaming, true);
    assert.equal(declared.tools?.clientProvided, true);
    assert.equal(declared.humanInTheLoop?.interrupts, true);
  });
});
