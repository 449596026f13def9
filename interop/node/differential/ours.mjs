// Our client: one process for all cases (interop/rust).

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { builtBinary } from "../../lib/processes.mjs";

/** Starts our client. Throws where it is not built. */
export function startOurs() {
  const program = builtBinary("agui-interop", "AGUI_INTEROP_BIN", "-p agui-interop");
  const child = spawn(program, ["cases"], { stdio: ["pipe", "pipe", "inherit"] });
  const waiting = [];
  let ended;
  const end = (why) => {
    ended ??= why;
    for (const { reject } of waiting.splice(0)) reject(ended);
  };
  child.once("error", end);
  const exited = new Promise((resolve) => {
    child.once("exit", (code, signal) => {
      end(new Error(`our client ended (${signal ?? code}) with a case unanswered`));
      resolve();
    });
  });
  child.stdin.on("error", () => {});
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { resolve, reject } = waiting.shift();
    try {
      resolve(JSON.parse(line).map(observed));
    } catch (error) {
      reject(error);
    }
  });

  return {
    /** Plays a case and tells what came of each of its exchanges, see `observed`. */
    play(thread) {
      return new Promise((resolve, reject) => {
        if (ended) return reject(ended);
        waiting.push({ resolve, reject });
        child.stdin.write(`${JSON.stringify(asLine(thread))}\n`);
      });
    },
    async stop() {
      child.stdin.end();
      await exited;
    },
  };
}

function asLine({ messages, state, exchanges }) {
  return {
    messages,
    state,
    exchanges: exchanges.map(({ addMessages, input, frames, read }) => ({
      addMessages,
      input: { ...input, messages: [] },
      body: frames.join(""),
      read,
    })),
  };
}

/** The answer of the process in the words of the comparison. */
function observed({ failure, warnings, ...rest }) {
  return {
    outcome: failure ? "failed" : "completed",
    ...(failure && { class: failure.class, failure }),
    ...rest,
    warnings,
  };
}
