// Our runtime, judged by the unmodified cores of CopilotKit front ends, an old one and a new one, over
// each of their transports: runs, tools, questions, and what a page that is loaded again shows.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";

import { aguiBinary, startAgui } from "../lib/processes.mjs";
import { FrontEnd, frontEnds, lastText, until, within } from "./front-end.mjs";
import { startHeldAgent } from "./held-agent.mjs";

// Without the binary the whole file fails here, with one message.
aguiBinary();

/** How long a stop may take until the run has ended, on a busy machine. */
const STOP_LIMIT_MS = 5_000;

let held, server;
before(async () => {
  held = await startHeldAgent();
  server = await startAgui("--agent", `held=${held.url}`);
});
after(() => Promise.all([server?.stop(), held?.stop()]));

for (const frontEnd of frontEnds) {
  const open = () => FrontEnd.open(frontEnd, `${server.url}/api/copilotkit`);

  /** A page that is loaded again, and the agent of that thread in it. */
  const reload = async (agent) => {
    const page = await open();
    return { page, agent: await page.reload(agent.agentId, agent.threadId) };
  };

  const isHeld = (text) => text === "one, ";

  /** A page in which an agent's run has said its first piece, and is held there. */
  const holding = async () => {
    const page = await open();
    const agent = page.agent("held");
    const running = page.say(agent, "hold on");
    await until(agent, isHeld);
    return { page, agent, running };
  };

  describe(frontEnd.name, () => {
    test("a run streams, and a page that is loaded again shows the thread", async () => {
      const page = await open();
      const agent = page.agent("demo");
      await page.say(agent, "hello");
      assert.equal(agent.messages.length, 2);
      assert.match(lastText(agent), /hello/i);
      for (const word of ["tools", "steps", "reasoning", "state", "activity"]) {
        await page.say(agent, word);
      }
      const calls = agent.messages.flatMap(({ toolCalls }) => toolCalls ?? []);
      assert.deepEqual(
        calls.map((call) => [call.function.name, call.function.arguments]),
        [
          ["get_weather", '{"city":"Paris"}'],
          ["get_weather", '{"city":"Oslo"}'],
        ],
      );
      assert.equal(agent.state.demo.progress, 100);
      assert.deepEqual(page.errors, []);

      const again = await reload(agent);
      assert.deepEqual(again.agent.messages, agent.messages);
      assert.deepEqual(again.agent.state, agent.state);
      assert.deepEqual(again.page.errors, []);
    });

    test("a piece is shown before the next one is made", async () => {
      const { page, agent, running } = await holding();
      assert.equal(agent.isRunning, true);
      held.release();
      await running;
      assert.equal(lastText(agent), "one, two");
      assert.deepEqual(page.errors, []);
    });

    test("a page that is loaded during a run shows what was, and then the rest", async () => {
      const { page, agent, running } = await holding();

      const second = await open();
      const twin = second.agent("held", agent.threadId);
      const connected = second.core.connectAgent({ agent: twin });
      await until(twin, isHeld);
      held.release();
      await within("the end", Promise.all([running, connected]));
      assert.equal(lastText(twin), "one, two");
      assert.deepEqual(twin.messages, agent.messages);
      assert.deepEqual([...page.errors, ...second.errors], []);
    });

    test("a run that failed does not hide those behind it", async () => {
      const page = await open();
      const agent = page.agent("demo");
      await page.say(agent, "error");
      assert.notEqual(page.errors.length, 0, "the failure is shown");
      await page.say(agent, "hello");
      const again = await reload(agent);
      assert.deepEqual(again.agent.messages, agent.messages);
      assert.deepEqual(again.page.errors, []);
    });

    test("a stop ends the run at once, and the next message works", async () => {
      const { page, agent, running } = await holding();
      page.core.stopAgent({ agent });
      // Nobody releases the agent: the end is the runtime's own.
      await within("the stop", running, STOP_LIMIT_MS);
      assert.equal(agent.isRunning, false);
      const before = agent.messages.length;
      await page.say(agent, "hello");
      assert.equal(agent.messages.length, before + 2);

      const again = await reload(agent);
      assert.deepEqual(again.agent.messages, agent.messages);
      assert.deepEqual(again.page.errors, []);
    });

    test("a busy thread is refused for all to see, and goes on", async () => {
      const { agent, running } = await holding();

      const second = await open();
      const twin = second.agent("held", agent.threadId);
      await second.say(twin, "me too").catch(() => {});
      assert.ok(second.errors.some((error) => error.includes("409")), `${second.errors}`);
      assert.equal(twin.isRunning, false);

      held.release();
      await running;
      assert.equal(lastText(agent), "one, two");
      await second.say(twin, "and now");
      assert.equal(lastText(twin), "I know nothing of that.");
    });

    test("a tool of the front end is carried out and followed up", async () => {
      const page = await open();
      const calls = [];
      page.core.addTool({
        name: "pick_colour",
        description: "Lets the user pick a colour",
        handler: async (args) => {
          calls.push(args);
          return "green";
        },
      });
      const agent = page.agent("demo");
      await page.say(agent, "frontend");
      assert.equal(calls.length, 1);
      const result = agent.messages.find(({ role }) => role === "tool");
      assert.equal(result?.content, "green");
      assert.equal(agent.messages.at(-1).role, "assistant", "it was followed up");
      assert.match(lastText(agent), /green/);
      assert.deepEqual(page.errors, []);

      const again = await reload(agent);
      assert.deepEqual(again.agent.messages, agent.messages);
      assert.equal(calls.length, 1, "it is not carried out again");
    });

    test("a tool for everything takes what nobody else does, and is shown to no agent", async () => {
      const page = await open();
      const calls = [];
      page.core.addTool({
        name: "*",
        handler: async (args) => {
          calls.push(args);
          return "the window is open";
        },
      });
      const agent = page.agent("held");
      await page.say(agent, "call");
      assert.deepEqual(calls, [{ toolName: "open_window", args: { side: "left" } }]);
      assert.equal(lastText(agent), "It answered: the window is open");
      assert.deepEqual(held.inputs.at(-1).tools, []);
      assert.deepEqual(page.errors, []);
    });

    for (const [answer, text] of [
      [{ status: "resolved", payload: { approved: true } }, /deleted/],
      [{ status: "resolved", payload: { approved: false } }, /refused/],
      [{ status: "cancelled" }, /refused/],
    ]) {
      test(`a question is there after a reload, and answered: ${JSON.stringify(answer)}`, async () => {
        const first = await open();
        const asking = first.agent("demo");
        await first.say(asking, "approval");
        assert.deepEqual(first.errors, []);

        const page = await open();
        const agent = page.agent("demo", asking.threadId);
        const finished = [];
        agent.subscribe({ onRunFinishedEvent: (seen) => void finished.push(seen) });
        await page.reload("demo", asking.threadId);
        assert.deepEqual(agent.messages, asking.messages);
        const { outcome, interrupts, input } = finished.at(-1);
        assert.equal(outcome, "interrupt");
        const [interrupt] = interrupts;
        assert.equal(interrupts.length, 1);
        assert.match(interrupt.message, /notes\.txt/);

        // As the hook of the front end does it: the state of the answers, the tool's result, the
        // interrupted run's id.
        const answers = new frontEnd.library.ɵInterruptState();
        answers.setStandard(interrupts);
        const decision =
          answer.status === "resolved" ? answers.resolve(answer.payload) : answers.cancel();
        assert.equal(decision.kind, "resume");
        assert.deepEqual(decision.resume, [{ interruptId: interrupt.id, ...answer }]);
        for (const { toolCallId, content } of decision.toolResults) {
          agent.addMessage({ id: randomUUID(), role: "tool", toolCallId, content });
        }
        await within(
          "the answer",
          page.core.runAgent({ agent, resume: decision.resume, runId: input.runId }),
        );
        assert.match(lastText(agent), text);
        assert.equal(finished.at(-1).outcome, "success");
        assert.deepEqual(page.errors, []);

        // It is settled: a third page is not asked, and can go on.
        const again = await reload(agent);
        assert.deepEqual(again.agent.messages, agent.messages);
        await again.page.say(again.agent, "hello");
        assert.match(lastText(again.agent), /hello/);
        assert.deepEqual(again.page.errors, []);
      });
    }

    test("suggestions come as they are made", async () => {
      const page = await open();
      const agent = page.agent("held");
      await page.say(agent, "hello");
      page.core.addSuggestionsConfig({
        instructions: "Two of them.",
        providerAgentId: "held",
        consumerAgentId: "held",
      });
      const seen = [];
      const finished = new Promise((resolve) => {
        page.core.subscribe({
          onSuggestionsChanged: ({ suggestions }) => {
            const titles = suggestions.map(({ title }) => title);
            // The second one is made when the first is there.
            if (titles.join() === "First" && seen.at(-1)?.join() !== "First") held.release();
            seen.push(titles);
          },
          onSuggestionsFinishedLoading: resolve,
        });
      });
      page.core.reloadSuggestions("held");
      await within("the suggestions", finished);
      assert.ok(seen.some((titles) => titles.join() === "First"), JSON.stringify(seen));
      const { suggestions } = page.core.getSuggestions("held");
      assert.deepEqual(
        suggestions.map(({ title, message }) => [title, message]),
        [
          ["First", "say first"],
          ["Second", "say second"],
        ],
      );
      assert.equal(
        held.inputs.at(-1).forwardedProps.toolChoice.function.name,
        "copilotkitSuggest",
      );
      // Nothing is kept of them: neither in this thread nor in one of their own.
      const again = await reload(agent);
      assert.deepEqual(again.agent.messages, agent.messages);
      const asked = held.inputs.at(-1).threadId;
      const url = `${server.url}/api/copilotkit/threads?includeArchived=true`;
      const { threads } = await (await fetch(url)).json();
      assert.ok(threads.some(({ id }) => id === agent.threadId));
      assert.ok(!threads.some(({ id }) => id === asked));
    });

    test("a thread that nobody has seen has no history, which is no error", async () => {
      const page = await open();
      const agent = await page.reload("demo", randomUUID());
      assert.deepEqual(agent.messages, []);
      assert.deepEqual(page.errors, []);
    });

    test("pages that come and go do no harm", async () => {
      const { page, agent, running } = await holding();

      // As a page does that is loaded over and over: connects that end before their answer, and those
      // that end as soon as there is one.
      const pages = await Promise.all(Array.from({ length: 6 }, open));
      const gone = pages.map(async (other, index) => {
        const twin = other.agent("held", agent.threadId);
        const abort = new AbortController();
        twin.abortController = abort;
        const connected = other.core.connectAgent({ agent: twin });
        if (index % 2) await until(twin, (text) => text !== "");
        abort.abort();
        await twin.detachActiveRun();
        await connected;
        return other.errors;
      });
      const body = JSON.stringify({
        threadId: agent.threadId,
        runId: randomUUID(),
        messages: [],
        tools: [],
        context: [],
      });
      const cut = Array.from({ length: 20 }, async (_, index) => {
        const abort = new AbortController();
        const answer = fetch(`${server.url}/api/copilotkit/agent/held/connect`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body,
          signal: abort.signal,
        });
        if (index % 2) await answer;
        abort.abort();
        await answer.then(({ body }) => body.cancel()).catch(() => {});
      });
      assert.deepEqual((await within("their end", Promise.all(gone))).flat(), []);
      await within("their end", Promise.all(cut));

      held.release();
      await running;
      assert.equal(lastText(agent), "one, two");
      const again = await reload(agent);
      assert.deepEqual(again.agent.messages, agent.messages);
      assert.deepEqual([...page.errors, ...again.page.errors], []);
    });
  });
}
