// Folds an event stream with the published npm client, and prints the milliseconds it took.
//
// Standard input: a line with the JSON array of the messages before it, then the body of the stream.
//
// The body is handed to `HttpAgent` by a `fetch` of ours, in reads of 16 KiB and without a socket:
// what is measured is what an application pays to get from bytes to `agent.messages`. A short stream
// before it lets V8 compile what it will. The best of several passes counts; and of a pass, what is
// less of the time on the clock and the time on the processors.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { performance } from "node:perf_hooks";
import { pathToFileURL } from "node:url";

const require = createRequire(new URL("../../interop/node/package.json", import.meta.url));
const { HttpAgent } = await import(pathToFileURL(require.resolve("@ag-ui/client")));

const READ = 16 * 1024;
const ENOUGH_MS = 3000;
const PASSES = 20;

const input = readFileSync(0);
const end = input.indexOf("\n");
const history = JSON.parse(input.subarray(0, end).toString());
const body = input.subarray(end + 1);

await fold(warmUp(), []);

let best = Infinity;
for (let pass = 0, total = 0; pass < PASSES && total < ENOUGH_MS; pass += 1) {
  const ms = await fold(body, history);
  best = Math.min(best, ms);
  total += ms;
}
process.stdout.write(`${best}\n`);

async function fold(body, initialMessages) {
  const agent = new HttpAgent({
    url: "http://127.0.0.1/",
    threadId: "thread-1",
    initialMessages,
    fetch: async () =>
      new Response(reads(body), { headers: { "content-type": "text/event-stream" } }),
  });
  const [wall, processors] = [performance.now(), process.cpuUsage()];
  await agent.runAgent({ runId: "run-1" });
  const { user, system } = process.cpuUsage(processors);
  return Math.min(performance.now() - wall, (user + system) / 1000);
}

function reads(body) {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at === body.length) return controller.close();
      controller.enqueue(body.subarray(at, (at = Math.min(at + READ, body.length))));
    },
  });
}

function warmUp() {
  const run = { threadId: "thread-1", runId: "run-1" };
  const message = { messageId: "m1" };
  const delta = { type: "TEXT_MESSAGE_CONTENT", ...message, delta: "token" };
  const events = [
    { type: "RUN_STARTED", ...run },
    { type: "TEXT_MESSAGE_START", ...message, role: "assistant" },
    ...Array(1000).fill(delta),
    { type: "TEXT_MESSAGE_END", ...message },
    { type: "RUN_FINISHED", ...run },
  ];
  return Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
}
