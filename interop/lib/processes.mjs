// Programs under test, started as values: each announces its own port and is ended by its own id.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const START_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 5_000;
const root = fileURLToPath(new URL("../..", import.meta.url));

/** Our binary: `AGUI_BIN`, else the release build of this tree. Throws when it is not there. */
export function aguiBinary() {
  return builtBinary("agui", "AGUI_BIN", "-p agui-cli");
}

/**
 * A program of this tree: what the environment variable names, else the release build. Throws when
 * it is not there; `packageFlag` is how cargo is told to build it.
 */
export function builtBinary(name, variable, packageFlag) {
  const built = join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "release", name);
  const path = process.env[variable] ?? built;
  if (!existsSync(path)) {
    throw new Error(
      `there is no ${name} binary at ${path}: build it with \`cargo build --release ${packageFlag}\`, or name one in ${variable}`,
    );
  }
  return path;
}

/** Starts `agui serve` on a port of the system's choice, with further arguments where there are. */
export function startAgui(...args) {
  const here = ["serve", "--listen", "127.0.0.1:0", "--journal", "memory:"];
  return startServer(aguiBinary(), [...here, ...args]);
}

/** The two peers of `scenarios.json`, by the name that `only` uses there. */
export const peers = {
  node: () => startServer(process.execPath, [join(root, "interop/node/server.mjs")]),
  python: () => startPython("server.py"),
};

/** Starts the agent of `python/pydantic_agent.py`. */
export function startPydanticAgent() {
  return startPython("pydantic_agent.py");
}

function startPython(script) {
  const python = join(root, "interop/python/.venv/bin/python");
  if (!existsSync(python)) {
    throw new Error(
      "interop/python/.venv is missing: `./test interop` makes it, or see interop/README.md",
    );
  }
  return startServer(python, [join(root, "interop/python", script)]);
}

/**
 * Starts a server and waits until `find` reads its address, or several, out of its output: that is
 * its `url`.
 *
 * @template T
 * @param {(output: string) => T | null | undefined} find nothing as long as they are not there
 * @returns {Promise<{url: T, output: () => string, stop: () => Promise<void>}>}
 */
export async function startServer(command, args, find = addressIn) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  let output = "";
  const url = await new Promise((resolve, reject) => {
    const fail = (why) => {
      clearTimeout(timer);
      child.kill("SIGKILL");
      reject(new Error(`${command} ${args.join(" ")}: ${why}\n${output}`));
    };
    const timer = setTimeout(() => fail("announced no address in time"), START_LIMIT_MS);
    const read = (text) => {
      output += text;
      const address = find(output);
      if (address) {
        clearTimeout(timer);
        resolve(address);
      }
    };
    child.stdout.setEncoding("utf8").on("data", read);
    child.stderr.setEncoding("utf8").on("data", read);
    child.once("error", (error) => fail(error.message));
    exited.then(() => fail("ended before it listened"));
  });

  return {
    url,
    output: () => output,
    async stop() {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS);
      await exited;
      clearTimeout(timer);
    },
  };
}

function addressIn(output) {
  return /http:\/\/127\.0\.0\.1:\d+(?=\D)/.exec(output)?.[0];
}

/**
 * Runs a program to its end. `onStdout` sees the output as it grows.
 *
 * @returns {Promise<{code: number | null, stdout: string, stderr: string}>}
 */
export function runProgram(command, args, { stdin = "", onStdout } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text) => {
      stdout += text;
      onStdout?.(stdout);
    });
    child.stderr.setEncoding("utf8").on("data", (text) => (stderr += text));
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, stdout, stderr }));
    // A program that does not read its input may close the pipe first.
    child.stdin.on("error", () => {});
    child.stdin.end(stdin);
  });
}
