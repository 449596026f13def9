// Our runtime, judged by the unmodified cores of CopilotKit front ends, an old one and a new one, over
// each of their transports.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { aguiBinary, startAgui } from "../lib/processes.mjs";

// Without the binary the whole file fails here, with one message.
aguiBinary();

// Nothing is reported to anybody.
process.env.COPILOTKIT_TELEMETRY_DISABLED = "1";
process.env.DO_NOT_TRACK = "1";
// They take a window for the sign of a browser, and ask for nothing without one.
globalThis.window ??= globalThis;

const CONNECT_LIMIT_MS = 20_000;

let server;
before(async () => (server = await startAgui()));
after(() => server?.stop());

for (const version of ["1.69", "1.75"]) {
  const { CopilotKitCore } = await import(`copilotkit-core-${version}`);
  for (const transport of ["rest", "single", "auto"]) {
    describe(`CopilotKit ${version} by ${transport}`, () => {
      /** A front end that is connected, with a list of what it complained about. */
      async function open() {
        const core = new CopilotKitCore({ runtimeTransport: transport });
        const errors = [];
        core.subscribe({ onError: ({ code, error }) => errors.push(`${code}: ${error}`) });
        const connected = new Promise((resolve, reject) => {
          const limit = setTimeout(() => reject(new Error("no connection")), CONNECT_LIMIT_MS);
          core.subscribe({
            onRuntimeConnectionStatusChanged: ({ status }) => {
              if (status === "connected" || status === "error") {
                clearTimeout(limit);
                status === "connected" ? resolve() : reject(new Error(errors.join("; ")));
              }
            },
          });
        });
        core.setRuntimeTransport(transport);
        core.setRuntimeUrl(`${server.url}/api/copilotkit`);
        await connected;
        return { core, errors };
      }

      async function say(core, agent, content) {
        agent.addMessage({ id: randomUUID(), role: "user", content });
        await core.runAgent({ agent });
      }

      const shown = (agent) => agent.messages.map(({ id, role, content }) => ({ id, role, content }));

      /** The front end's default agent, on a thread. */
      function agentOn(core, thread) {
        const agent = core.getAgent("default");
        assert.ok(agent, "there is a default agent");
        agent.threadId = thread;
        return agent;
      }

      test("a run streams, and a page that is loaded again shows the thread", async () => {
        const { core, errors } = await open();
        const thread = randomUUID();
        const agent = agentOn(core, thread);
        await say(core, agent, "hello");
        assert.equal(agent.messages.length, 2);
        assert.match(agent.messages[1].content, /hello/i);
        await say(core, agent, "tools");
        await say(core, agent, "steps");
        assert.deepEqual(errors, []);

        const again = await open();
        const twin = agentOn(again.core, thread);
        await again.core.connectAgent({ agent: twin });
        assert.deepEqual(shown(twin), shown(agent));
        assert.deepEqual(twin.state, agent.state);
        assert.deepEqual(again.errors, []);
      });

      test("a run that failed does not hide those behind it", async () => {
        const { core, errors } = await open();
        const thread = randomUUID();
        const agent = agentOn(core, thread);
        await say(core, agent, "error");
        assert.notEqual(errors.length, 0, "the failure is shown");
        await say(core, agent, "hello");
        const again = await open();
        const twin = agentOn(again.core, thread);
        await again.core.connectAgent({ agent: twin });
        assert.deepEqual(shown(twin), shown(agent));
        assert.deepEqual(again.errors, []);
      });

      test("a stop ends the run, and the next message works", async () => {
        const { core } = await open();
        const agent = agentOn(core, randomUUID());
        const begun = new Promise((resolve) => {
          agent.subscribe({ onTextMessageContentEvent: resolve });
        });
        const running = say(core, agent, "slow 300");
        await begun;
        core.stopAgent({ agent });
        await running;
        assert.equal(agent.isRunning, false);
        const before = agent.messages.length;
        await say(core, agent, "hello");
        assert.equal(agent.messages.length, before + 2);
      });

      test("a tool of the front end is carried out and followed up", async () => {
        const { core, errors } = await open();
        const calls = [];
        core.addTool({
          name: "pick_colour",
          description: "Lets the user pick a colour",
          handler: async (args) => {
            calls.push(args);
            return "green";
          },
        });
        const agent = agentOn(core, randomUUID());
        await say(core, agent, "frontend");
        assert.equal(calls.length, 1);
        const result = agent.messages.find(({ role }) => role === "tool");
        assert.equal(result?.content, "green");
        assert.equal(agent.messages.at(-1).role, "assistant", "it was followed up");
        assert.match(agent.messages.at(-1).content, /green/);
        assert.deepEqual(errors, []);
      });

      test("a thread that nobody has seen has no history, which is no error", async () => {
        const { core, errors } = await open();
        const agent = agentOn(core, randomUUID());
        await core.connectAgent({ agent });
        assert.deepEqual(agent.messages, []);
        assert.deepEqual(errors, []);
      });
    });
  }
}
