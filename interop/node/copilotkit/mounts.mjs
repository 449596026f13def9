// The published runtime of CopilotKit with an agent that needs no model, mounted twice: by paths and
// as a single route.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { Observable } from "rxjs";
import { listening } from "../../lib/listening.mjs";

// Nothing is reported to anybody.
process.env.COPILOTKIT_TELEMETRY_DISABLED = "1";
process.env.DO_NOT_TRACK = "1";

const { CopilotRuntime, InMemoryAgentRunner } = await import("copilotkit-runtime-1.69/v2");
const { createCopilotNodeListener } = await import("copilotkit-runtime-1.69/v2/node");
// The runtime works with the agents of the client that it depends on.
const near = createRequire(createRequire(import.meta.url).resolve("copilotkit-runtime-1.69/v2"));
const { AbstractAgent } = near("@ag-ui/client");

/** How long what goes on for ever says nothing. */
const PAUSE_MS = 20;

/** Answers by the last word that was said; the demo agent of `agui serve` knows the same ones. */
class Words extends AbstractAgent {
  constructor() {
    super({ description: "Knows some words" });
  }

  clone() {
    const clone = new Words();
    clone.agentId = this.agentId;
    return clone;
  }

  async getCapabilities() {
    return { tools: { supported: true } };
  }

  run({ threadId, runId, messages }) {
    const word = messages.filter(({ role }) => role === "user").at(-1)?.content ?? "";
    return new Observable((out) => {
      const emit = (type, members) => out.next({ type, ...members });
      const messageId = `said-${runId}`;
      const timers = [];
      emit("RUN_STARTED", { threadId, runId });
      const say = (...deltas) => {
        emit("TEXT_MESSAGE_START", { messageId, role: "assistant" });
        for (const delta of deltas) emit("TEXT_MESSAGE_CONTENT", { messageId, delta });
      };
      const finish = () => {
        emit("TEXT_MESSAGE_END", { messageId });
        emit("RUN_FINISHED", { threadId, runId });
        out.complete();
      };
      if (word === "slow") {
        say("Slow");
        timers.push(
          setInterval(() => emit("TEXT_MESSAGE_CONTENT", { messageId, delta: "." }), PAUSE_MS),
        );
        this.stopped = () => out.complete();
      } else if (word === "tools") {
        const toolCallId = `call-${runId}`;
        emit("TOOL_CALL_START", { toolCallId, toolCallName: "look", parentMessageId: messageId });
        emit("TOOL_CALL_ARGS", { toolCallId, delta: '{"at":"it"}' });
        emit("TOOL_CALL_END", { toolCallId });
        emit("TOOL_CALL_RESULT", { messageId: `result-${runId}`, toolCallId, content: "seen" });
        emit("RUN_FINISHED", { threadId, runId });
        out.complete();
      } else if (word === "state") {
        emit("STATE_SNAPSHOT", { snapshot: { words: 1 } });
        emit("STATE_DELTA", { delta: [{ op: "add", path: "/last", value: word }] });
        emit("RUN_FINISHED", { threadId, runId });
        out.complete();
      } else {
        say("You said ", word);
        finish();
      }
      return () => timers.forEach(clearInterval);
    });
  }

  abortRun() {
    this.stopped?.();
  }
}

/**
 * Starts the runtime.
 *
 * @returns {Promise<{rest: string, single: string, requests: string[], stop: () => Promise<void>}>}
 *   the URLs of the two mounts, and method and path of each request that came
 */
export async function startRuntime() {
  const runtime = new CopilotRuntime({
    agents: { default: new Words() },
    runner: new InMemoryAgentRunner(),
  });
  const mounts = { "/rest": "multi-route", "/single": "single-route" };
  const listeners = Object.entries(mounts).map(([basePath, mode]) => [
    basePath,
    createCopilotNodeListener({ runtime, basePath, mode }),
  ]);
  const requests = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    const mounted = listeners.find(([base]) => request.url.startsWith(base));
    mounted ? mounted[1](request, response) : response.writeHead(404).end();
  });
  const { url: origin, stop } = await listening(server);
  return {
    rest: `${origin}/rest`,
    single: `${origin}/single`,
    requests,
    stop,
  };
}
