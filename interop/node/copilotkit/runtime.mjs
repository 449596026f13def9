// The runtime of npm `@copilotkit/runtime` 1.69.0 over one remote agent:
//
//     node interop/node/copilotkit/runtime.mjs AGENT_URL
//
// Four servers, each below `/api/copilotkit`: one by path, one by envelope, one by path with a
// transcription service, and one for pages of any origin. Their addresses are printed as one line of
// JSON.

import { createRequire } from "node:module";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { CopilotRuntime, InMemoryAgentRunner } from "copilotkit-runtime-1.69/v2";
import { createCopilotNodeListener } from "copilotkit-runtime-1.69/v2/node";
import { listening } from "../../lib/listening.mjs";

const BASE = "/api/copilotkit";
const [agentUrl] = process.argv.slice(2);

// The client that the runtime itself brings, not ours.
const runtimePath = fileURLToPath(import.meta.resolve("copilotkit-runtime-1.69/v2"));
const { HttpAgent } = createRequire(runtimePath)("@ag-ui/client");

class Capable extends HttpAgent {
  getCapabilities() {
    return Promise.resolve({ tools: { supported: true } });
  }
}

function runtime(more = {}) {
  const agents = {
    default: new HttpAgent({ url: agentUrl, description: "Plays scripts" }),
    capable: new Capable({ url: agentUrl, headers: { "X-Own": "server" } }),
  };
  return new CopilotRuntime({ agents, runner: new InMemoryAgentRunner(), ...more });
}

async function serve(options) {
  const server = createServer(createCopilotNodeListener({ basePath: BASE, ...options }));
  return (await listening(server)).url;
}

const ear = {
  transcribeFile: async ({ audioFile }) => {
    const heard = Buffer.from(await audioFile.arrayBuffer()).toString();
    if (heard === "fail") throw new Error("the service is down");
    return `heard ${heard}`;
  },
};

const shared = runtime();
console.log(
  JSON.stringify({
    rest: await serve({ runtime: shared }),
    single: await serve({ runtime: shared, mode: "single-route" }),
    open: await serve({ runtime: runtime({ transcriptionService: ear }) }),
    pages: await serve({ runtime: runtime(), cors: true }),
  }),
);
