// The npm package @copilotkit/runtime with its InMemoryAgentRunner, on a port of the system's choice,
// behind an agent that says what the request asks for. It is the counterpart of `agui-load serve`.
//
//     node benches/peers/runtime.mjs [FOLDER]
//
// FOLDER has the package under the name "copilotkit-runtime-1.69" in its node_modules; unless given
// it is interop/node. Once it listens, the first line on standard output is the runtime's URL.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { pathToFileURL } from "node:url";

process.env.NODE_ENV ??= "production";
// Nothing is reported to anybody.
process.env.COPILOTKIT_TELEMETRY_DISABLED = "true";
process.env.DO_NOT_TRACK = "1";

const folder = process.argv[2] ?? new URL("../../interop/node", import.meta.url).pathname;
const require = createRequire(resolve(folder, "package.json"));
const runtimePath = require.resolve("copilotkit-runtime-1.69/v2");
const load = (path) => import(pathToFileURL(path.replace(/\.cjs$/, ".mjs")));
const { CopilotRuntime, InMemoryAgentRunner } = await load(runtimePath);
const { createCopilotNodeListener } = await load(
  require.resolve("copilotkit-runtime-1.69/v2/node"),
);
// The client that the runtime itself uses.
const inside = createRequire(runtimePath);
const { AbstractAgent } = await import(pathToFileURL(inside.resolve("@ag-ui/client")));
const { Observable } = await import(pathToFileURL(inside.resolve("rxjs")));

/** Microseconds since 1970. */
const now = () => Math.round((performance.timeOrigin + performance.now()) * 1000);

class Scripted extends AbstractAgent {
  run({ threadId, runId, forwardedProps }) {
    const { tokens = 0, every = 0, silent = false } = forwardedProps ?? {};
    return new Observable((subscriber) => {
      const messageId = "m1";
      const say = (delta) => subscriber.next({ type: "TEXT_MESSAGE_CONTENT", messageId, delta });
      const end = () => {
        subscriber.next({ type: "TEXT_MESSAGE_END", messageId });
        subscriber.next({ type: "RUN_FINISHED", threadId, runId });
        subscriber.complete();
      };
      subscriber.next({ type: "RUN_STARTED", threadId, runId });
      if (silent) return undefined;
      subscriber.next({ type: "TEXT_MESSAGE_START", messageId, role: "assistant" });
      if (every > 0) {
        let said = 0;
        const timer = setInterval(() => {
          say(String(now()));
          if (++said < tokens) return;
          clearInterval(timer);
          end();
        }, every);
        return () => clearInterval(timer);
      }
      for (let said = 0; said < tokens; said += 1) say("token");
      end();
      return undefined;
    });
  }
}

const runtime = new CopilotRuntime({
  agents: { default: new Scripted() },
  // As many threads as a measurement has.
  runner: new InMemoryAgentRunner({ maxThreads: 20_000 }),
});
const basePath = "/api/copilotkit";
const server = createServer(createCopilotNodeListener({ runtime, basePath }));
server.listen({ port: 0, host: "127.0.0.1", backlog: 4096 }, () => {
  console.log(`http://127.0.0.1:${server.address().port}${basePath}`);
});
