// Our client of a runtime, against the published runtime of CopilotKit in both of its mounts and
// against `agui serve`, over each transport.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { aguiBinary, builtBinary, runProgram, startAgui } from "../lib/processes.mjs";
import { startRuntime } from "./copilotkit/mounts.mjs";

// Without the binaries the whole file fails here, with one message.
const program = builtBinary("agui-interop", "AGUI_INTEROP_BIN", "-p agui-interop");
const agui = aguiBinary();

let published;
let ours;
before(async () => {
  [published, ours] = await Promise.all([startRuntime(), startAgui()]);
});
after(() => Promise.all([published?.stop(), ours?.stop()]));

/** Has a client carry out orders, one after another; what came of each. */
async function client(url, transport, orders) {
  const child = spawn(program, ["runtime-client", url, transport], { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  try {
    const came = [];
    for (const order of orders) {
      child.stdin.write(`${JSON.stringify(order)}\n`);
      const { value, done } = await lines.next();
      assert.ok(!done, "the client ended before it had carried out everything");
      came.push(JSON.parse(value));
    }
    return came;
  } finally {
    child.stdin.end();
    const [code] = await exited;
    assert.equal(code, 0, "the client succeeded");
  }
}

const texts = ({ messages }) => messages.map(({ role, content }) => [role, content]);

const MOUNTS = [
  { name: "the published runtime by paths", url: () => published.rest, transports: ["rest", "auto"], used: "Rest" },
  { name: "the published runtime by envelopes", url: () => published.single, transports: ["single", "auto"], used: "Single" },
  { name: "agui serve", url: () => `${ours.url}/api/copilotkit`, transports: ["rest", "single", "auto"] },
];

for (const { name, url, transports, used } of MOUNTS) {
  for (const transport of transports) {
    const isOurs = used === undefined;
    const over = used ?? (transport === "single" ? "Single" : "Rest");
    const agent = "default";
    describe(`${name}, asked ${transport}`, () => {
      const ask = (...orders) => client(url(), transport, orders);

      test("its information", async () => {
        const before = published.requests.length;
        const [info] = await ask({ do: "info" });
        assert.ok(info.agents.default.description, "there is a description");
        assert.equal(info.agents.default.capabilities.tools.supported, true);
        assert.equal(info.transport, `Some(${over})`);
        assert.equal(info.status, "Connected");
        assert.equal(info.suggestions, true);
        // The tunnel leads to ours by envelopes as well.
        assert.equal(info.list, isOurs || over === "Rest");
        assert.equal(info.mutations, isOurs);
        if (!isOurs) {
          const asked = published.requests.slice(before);
          const [get, post] = [`GET /${over.toLowerCase()}/info`, "POST /single"];
          const expected = { rest: [get], single: [post], auto: over === "Rest" ? [get] : [get, post] };
          assert.deepEqual(asked, expected[transport]);
        }
      });

      test("a conversation, taken over and gone on with", async () => {
        const thread = randomUUID();
        const says = ["hello", "tools", "state"];
        const [first] = await ask({ do: "converse", agent, thread, says });
        assert.deepEqual(first.map(({ ended }) => ended), Array(4).fill("completed"));
        assert.deepEqual(first.map(({ busy }) => busy), Array(4).fill(false));
        assert.deepEqual(first[0].messages, [], "nobody had seen the thread");
        const [, , , last] = first;
        assert.ok(last.messages.some(({ toolCalls }) => toolCalls?.length > 0));
        assert.notDeepEqual(last.state, {});

        const [second] = await ask({ do: "converse", agent, thread, says: ["hello"] });
        assert.deepEqual(second[0], last, "somebody else is shown the same");
        assert.equal(second[1].ended, "completed");
        assert.equal(second[1].messages.length, last.messages.length + 2);
        assert.match(second[1].messages.at(-1).content, /hello/i);
      });

      test("a run that is stopped", async () => {
        const thread = randomUUID();
        const says = isOurs ? "slow 300" : "slow";
        const orders = [
          { do: "stop", agent, thread, says },
          { do: "stopNothing", agent, thread },
          { do: "converse", agent, thread, says: ["hello"] },
        ];
        const [{ answers, told, twin }, nothing, next] = await ask(...orders);
        // Ours says so; the published one answers with nothing, which is no whole run.
        assert.match(answers[0], isOurs ? /busy/ : /^truncated/);
        assert.equal(answers[1], "true");
        assert.deepEqual([told.ended, told.busy], ["cancelled", false]);
        assert.equal(nothing, false);
        assert.match(twin.ended, /^cancelled/);
        assert.deepEqual(texts(twin), texts(told));
        assert.equal(next.at(-1).ended, "completed");
        assert.match(next.at(-1).messages.at(-1).content, /hello/i);
      });

      test("proposals, of which nothing is kept", async () => {
        const thread = randomUUID();
        const [types, [thereafter]] = await ask(
          { do: "suggest", agent, thread, says: "hello" },
          { do: "converse", agent, thread, says: [] },
        );
        assert.equal(types[0], "RUN_STARTED");
        assert.equal(types.at(-1), "RUN_FINISHED");
        assert.deepEqual(thereafter.messages, []);
      });

      test("an agent that is not there", async () => {
        const [[connected]] = await ask({ do: "converse", agent: "no such", thread: "t", says: [] });
        assert.match(connected.ended, /has no such agent/);
      });

      test("threads", async () => {
        const thread = randomUUID();
        const [, listed, messages, events, state, changed] = await ask(
          { do: "converse", agent, thread, says: ["hello"] },
          { do: "threads", agent },
          { do: "messages", thread },
          { do: "events", thread },
          { do: "state", thread },
          { do: "change", agent, thread },
        );
        if (!isOurs && over === "Single") {
          for (const refused of [listed, messages, events, state, changed]) {
            assert.match(refused.error, /does not offer/);
          }
          return;
        }
        assert.equal(listed[0], thread, "the latest comes first");
        assert.deepEqual(messages[0], ["user", "hello"]);
        assert.equal(events[0], "RUN_STARTED");
        assert.equal(events.at(-1), "RUN_FINISHED");
        // Nobody has set one.
        assert.deepEqual(state ?? {}, {});
        if (isOurs) {
          const [renamed, archived, unarchived, deleted, missing] = changed;
          assert.equal(renamed[thread], "Renamed");
          assert.equal(archived[thread], undefined);
          assert.equal(unarchived[thread], "Renamed");
          assert.equal(deleted[thread], undefined);
          assert.equal(missing, "unknown thread");
        } else {
          assert.match(changed.error, /does not offer changes of threads/);
        }
      });
    });
  }
}

describe("agui run with the published runtime", () => {
  const run = (...args) => runProgram(agui, ["run", ...args]);

  test("its URL by paths is found to be a runtime's, and the thread is gone on with", async (t) => {
    const thread = randomUUID();
    const first = await run(published.rest, "hello", "--thread", thread);
    assert.deepEqual([first.code, first.stdout], [0, "You said hello\n"], first.stderr);
    const folder = await mkdtemp(join(tmpdir(), "agui-"));
    t.after(() => rm(folder, { recursive: true }));
    const file = join(folder, "result.json");
    const second = await run(published.rest, "again", "--thread", thread, "--result", file);
    assert.deepEqual([second.code, second.stdout], [0, "You said again\n"], second.stderr);
    const report = JSON.parse(await readFile(file, "utf8"));
    const said = ["hello", "You said hello", "again", "You said again"];
    assert.deepEqual(report.messages.map(({ content }) => content), said);
    assert.deepEqual(report.request.messages.map(({ content }) => content), said.slice(0, 3));
  });

  test("its URL by envelopes is named", async () => {
    const unnamed = await run(published.single, "hello");
    assert.equal(unnamed.code, 7);
    assert.match(unnamed.stderr, /--runtime/);
    for (const named of ["--runtime", "--runtime=single", "--agent=default"]) {
      const { code, stdout, stderr } = await run(published.single, "hello", named);
      assert.deepEqual([code, stdout], [0, "You said hello\n"], stderr);
    }
  });
});
