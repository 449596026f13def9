// CopilotKit's core as a front end uses it, an old one and a new one, over each of its transports.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

// Nothing is reported to anybody.
process.env.COPILOTKIT_TELEMETRY_DISABLED = "1";
process.env.DO_NOT_TRACK = "1";
// They take a window for the sign of a browser, and ask for nothing without one.
globalThis.window ??= globalThis;

const LIMIT_MS = 20_000;

/** Every pair of a published core and a transport. */
export const frontEnds = [];
for (const version of ["1.69", "1.75"]) {
  const library = await import(`copilotkit-core-${version}`);
  for (const transport of ["rest", "single", "auto"]) {
    frontEnds.push({ name: `CopilotKit ${version} by ${transport}`, version, transport, library });
  }
}

/** A page that is connected to a runtime, with a list of what it complained about. */
export class FrontEnd {
  static async open({ library, transport }, url) {
    const core = new library.CopilotKitCore({ runtimeTransport: transport });
    const errors = [];
    core.subscribe({ onError: ({ code, error }) => errors.push(`${code}: ${error}`) });
    const connected = new Promise((resolve, reject) => {
      core.subscribe({
        onRuntimeConnectionStatusChanged: ({ status }) => {
          if (status === "connected") resolve();
          if (status === "error") reject(new Error(errors.join("; ")));
        },
      });
    });
    core.setRuntimeTransport(transport);
    core.setRuntimeUrl(url);
    await within("the connection", connected);
    return new FrontEnd(core, errors);
  }

  constructor(core, errors) {
    this.core = core;
    this.errors = errors;
  }

  /** An agent of the runtime, on a thread. */
  agent(id, thread = randomUUID()) {
    const agent = this.core.getAgent(id);
    assert.ok(agent, `there is an agent ${id}`);
    agent.threadId = thread;
    return agent;
  }

  /** The same thread in this page, as a page that is loaded again gets it. */
  async reload(id, thread) {
    const agent = this.agent(id, thread);
    await within("the history", this.core.connectAgent({ agent }));
    return agent;
  }

  /** Says something and waits for the end of the run, follow-ups included. */
  async say(agent, content) {
    agent.addMessage({ id: randomUUID(), role: "user", content });
    await within(`the answer to ${content}`, this.core.runAgent({ agent }));
  }
}

/** The text of the last message; empty where there is none. */
export const lastText = (agent) => agent.messages.at(-1)?.content ?? "";

/** Waits until the last text is what is `wanted`, looking each time the agent has something new. */
export async function until(agent, wanted) {
  let subscription;
  const reached = new Promise((resolve) => {
    const look = () => {
      if (wanted(lastText(agent))) resolve();
    };
    subscription = agent.subscribe({ onMessagesChanged: look, onRunFinalized: look });
    look();
  });
  try {
    await within("what is waited for", reached);
  } finally {
    subscription.unsubscribe();
  }
}

/** The promise, unless it takes so long that it never comes. */
export async function within(what, promise, limit = LIMIT_MS) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not come within ${limit} ms`)), limit);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
