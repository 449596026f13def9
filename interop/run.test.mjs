// Our command line against servers built from the published packages.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { aguiBinary, peers, runProgram } from "./lib/processes.mjs";
import { scenarios } from "./lib/scenarios.mjs";

const EXIT_CODES = { completed: 0, failed: 1, interrupted: 3, cancelled: 4, truncated: 5, rejected: 6 };
const USAGE_ERROR = 2;
const NO_STREAM = 7;

// Without the binary the whole file fails here, with one message.
const agui = aguiBinary();
let folder;
before(async () => (folder = await mkdtemp(join(tmpdir(), "agui-run-"))));
after(() => folder && rm(folder, { recursive: true }));

for (const [name, start] of Object.entries(peers)) {
  describe(`agui run against the ${name} peer`, () => {
    let peer;
    before(async () => (peer = await start()));
    after(() => peer?.stop());

    for (const scenario of scenarios) {
      const { word, shows, only = name, why, holdBefore } = scenario;
      test(`${word}: ${shows}`, { skip: only !== name && why }, async () => {
        const release = releaseOnce(peer);
        const ran = await run([peer.url, word, "--thread", "thread-1", "--json"], {
          // Silence on our side until the peer goes on would end in its time limit, not here.
          onStdout: (text) => text.split("\n").length > holdBefore && release(),
        });
        assertReached(ran, scenario);
      });
    }

    test("the answer is printed as text", async () => {
      const { code, stdout } = await run([peer.url, "text"]);
      assert.equal(code, 0);
      assert.ok(stdout.includes("Grüße, 世界 🌍"), stdout);
    });

    test("--thread, --state and --header reach the agent", async () => {
      const { report } = await run([
        peer.url, "request", "--thread", "my thread", "--state", '{"a":[1,null]}',
        "--header", "Authorization: Bearer k-1", "--header", "X-Two: 2: two",
      ]);
      const { method, headers, body } = JSON.parse(report.messages[1].content);
      assert.equal(method, "POST");
      assert.equal(headers["content-type"], "application/json");
      assert.match(headers.accept, /text\/event-stream/);
      assert.equal(headers.authorization, "Bearer k-1");
      assert.equal(headers["x-two"], "2: two");
      assert.equal(body.threadId, "my thread");
      assert.equal(body.protocolVersion, "1.0");
      assert.deepEqual(body.state, { a: [1, null] });
      assert.deepEqual(body.messages, [report.messages[0]]);
      assert.deepEqual(report.request, body);
    });

    for (const how of ["a file", "standard input"]) {
      test(`--input takes a whole run input from ${how}`, async () => {
        const input = {
          threadId: "thread-1",
          runId: "run-7",
          parentRunId: "run-6",
          state: { kept: true },
          messages: [
            { id: "s", role: "system", content: "Be brief." },
            { id: "r", role: "reasoning", content: "Hm.", encryptedValue: "c2VhbGVk" },
            { id: "a", role: "assistant", toolCalls: [{ id: "c", type: "function", function: { name: "f", arguments: "{" } }] },
            { id: "t", role: "tool", toolCallId: "c", content: "", error: "no such file" },
            { id: "u", role: "user", content: [{ type: "text", text: "request" }] },
          ],
          tools: [{ name: "ask", description: "asks", parameters: true, metadata: { a: null } }],
          context: [{ description: "where", value: "here" }],
          forwardedProps: { deep: { null: null } },
          resume: [{ interruptId: "i", status: "resolved", payload: 0 }],
        };
        // Activity is the client's own; it is never sent back (C-75).
        const activity = { id: "v", role: "activity", activityType: "PLAN", content: {} };
        const text = JSON.stringify({ ...input, messages: [activity, ...input.messages] });
        let ran;
        if (how === "a file") {
          const file = join(folder, "input.json");
          await writeFile(file, text);
          ran = await run([peer.url, "--input", file]);
        } else {
          ran = await run([peer.url, "--input", "-"], { stdin: text });
        }
        const { body } = JSON.parse(ran.report.messages.at(-1).content);
        assert.deepEqual(body, { ...input, protocolVersion: "1.0" });
        assert.deepEqual(ran.report.request, body);
        assert.deepEqual(ran.report.messages[0], activity);
      });
    }

    test("a question is taken up again with its answer", async () => {
      const asked = await run([peer.url, "interrupt", "--thread", "thread-1"]);
      assert.equal(asked.code, EXIT_CODES.interrupted);
      const [{ id }] = asked.report.openInterrupts;
      const input = {
        threadId: "thread-1",
        runId: "run-2",
        messages: asked.report.messages,
        resume: [{ interruptId: id, status: "resolved", payload: false }],
      };
      const answered = await run([peer.url, "--input", "-"], { stdin: JSON.stringify(input) });
      assert.equal(answered.code, 0, answered.stderr);
      assert.deepEqual(answered.report.openInterrupts, []);
      assert.deepEqual(JSON.parse(answered.report.messages.at(-1).content), input.resume);
      assert.deepEqual(idsOf(answered.report.newMessages), ["result-1"]);
    });

    test("--resume answers a question from its result file, or cancels it", async () => {
      const asked = await run([peer.url, "interrupt", "--thread", "thread-1"]);
      const [{ id }] = asked.report.openInterrupts;
      const file = join(folder, "asked.json");
      await writeFile(file, JSON.stringify(asked.report));
      for (const [answer, entry] of [
        [`${id}={"ok":[null]}`, { interruptId: id, status: "resolved", payload: { ok: [null] } }],
        [id, { interruptId: id, status: "cancelled" }],
      ]) {
        const answered = await run([peer.url, "--input", file, "--resume", answer]);
        assert.equal(answered.code, 0, answered.stderr);
        assert.deepEqual(answered.report.openInterrupts, []);
        assert.deepEqual(JSON.parse(answered.report.messages.at(-1).content), [entry]);
      }
    });

    test("a message comes from standard input", async () => {
      const { code, stdout, stderr } = await run([peer.url, "-"], { stdin: "text\n" });
      assert.equal(code, 0, stderr);
      assert.ok(stdout.includes("Grüße, 世界 🌍"), stdout);
    });

    test("malformed input is refused before anything is sent (C-37)", async () => {
      const input = { threadId: "t", runId: "r", messages: [{ id: "u", role: "user", content: 7 }] };
      const { code, stderr } = await runProgram(
        agui,
        ["run", peer.url, "--input", "-"],
        { stdin: JSON.stringify(input) },
      );
      assert.notEqual(code, 0);
      assert.notEqual(code, NO_STREAM);
      assert.match(stderr, /content/);
    });
  });
}

describe("agui run against the node peer, in the binary form", () => {
  let peer;
  before(async () => (peer = await peers.node()));
  after(() => peer?.stop());

  // The peer cannot say these in that form: it writes what it does not know, or what is malformed,
  // as something else, and cuts a connection with half a line of text.
  const elsewhere = ["newer", "malformed", "cut"];
  for (const scenario of scenarios) {
    const { word, shows, framing, http, holdBefore } = scenario;
    if (elsewhere.includes(word) || framing || http || holdBefore !== undefined) continue;
    test(`${word}: ${shows}`, async () => {
      const args = [peer.url, word, "--thread", "thread-1", "--json", "--wire", "proto"];
      assertReached(await run(args), scenario);
    });
  }

  test("it is asked for by name, beside the one that everyone has (T-25, T-26)", async () => {
    const { report } = await run([peer.url, "request", "--wire", "proto"]);
    const { headers } = JSON.parse(report.messages[1].content);
    assert.equal(headers.accept, "application/vnd.ag-ui.event+proto, text/event-stream");
  });
});

describe("agui run against nothing", () => {
  test("a server that is not there", async () => {
    const peer = await peers.node();
    await peer.stop();
    const { code, report, stderr } = await run([peer.url, "hello"]);
    assert.equal(code, NO_STREAM);
    assert.equal(report.error.class, "transport");
    assert.ok(stderr.includes(new URL(peer.url).host), "the message names the address");
  });

  const wrong = [
    [],
    ["not a url", "hello"],
    ["http://127.0.0.1:9", "hello", "--state", "{"],
    ["http://127.0.0.1:9", "hello", "--header", "no colon"],
    ["http://127.0.0.1:9", "hello", "--no-such-flag"],
  ];
  for (const args of wrong) {
    test(`used wrongly: run ${args.join(" ")}`, async () => {
      const { code, stderr } = await runProgram(agui, ["run", ...args]);
      assert.equal(code, USAGE_ERROR, stderr);
      assert.notEqual(stderr, "");
    });
  }
});

/** Runs `agui run` and reads the report it wrote. */
async function run(args, options) {
  const file = join(folder, `${crypto.randomUUID()}.json`);
  const ran = await runProgram(agui, ["run", ...args, "--result", file], options);
  let report;
  try {
    report = JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    assert.fail(`no report (${error.message}); exit code ${ran.code}, stderr:\n${ran.stderr}`);
  }
  return { ...ran, report };
}

function assertReached({ code, stdout, stderr, report }, { word, expect }) {
  if (expect.ending) {
    assert.equal(report.ending, expect.ending, stderr);
    assert.equal(code, EXIT_CODES[expect.ending]);
  } else {
    assert.equal(code, NO_STREAM, stderr);
    assert.notEqual(report.ending, "completed");
  }

  const [asked, ...messages] = report.messages;
  assert.equal(asked.role, "user");
  assert.equal(asked.content, word);
  if (expect.messages) {
    assert.deepEqual(messages, expect.messages);
    assert.deepEqual(idsOf(report.newMessages), idsOf(expect.messages));
  }
  assert.deepEqual(report.state, expect.state ?? {});
  assert.deepEqual(report.openInterrupts, expect.openInterrupts);
  assert.deepEqual(idsOf(report.pendingToolCalls), expect.pendingToolCalls);
  assert.deepEqual(report.result ?? null, expect.result ?? null);
  assert.deepEqual(report.usage ?? [], expect.usage ?? []);
  assert.equal(report.request.threadId, "thread-1");
  assert.deepEqual(report.request.messages, [asked]);
  assertError(report.error ?? undefined, expect.error);
  if (expect.ending === "completed") {
    assert.equal(report.warnings.length > 0, expect.warned, JSON.stringify(report.warnings));
  }

  const lines = stdout.split("\n").slice(0, -1);
  const delivered = lines.map((line) => JSON.parse(line).type);
  if (expect.delivered) assert.deepEqual(delivered, expect.delivered);
}

function assertError(error, expected) {
  assert.equal(error !== undefined, expected !== undefined, JSON.stringify(error));
  if (!expected) return;
  if (expected.class) assert.equal(error.class, expected.class);
  if (expected.path) assert.ok(error.path.includes(expected.path), error.path);
  for (const words of [expected.message, expected.mentions]) {
    if (words) assert.ok(error.message.includes(words), error.message);
  }
}

const idsOf = (list) => list.map((item) => (typeof item === "string" ? item : item.id));

function releaseOnce(peer) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    fetch(`${peer.url}/release`, { method: "POST" });
  };
}
