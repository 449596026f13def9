// Our runtime and the published one, side by side: the same requests, the same agent behind both, and
// every status, header and value of the answers compared. Where they differ on purpose,
// `conformance/deviations/copilotkit-runtime.json` says so and why; anything else fails, and so does a
// difference that is no more. `AGUI_UPDATE=1` writes what differs, and leaves the reasons to people.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { aguiBinary, builtBinary, startAgui, startServer } from "../lib/processes.mjs";
import { startAgent } from "./copilotkit/agent.mjs";
import { play } from "./copilotkit/script.mjs";

const LIST = fileURLToPath(new URL("../../conformance/deviations/copilotkit-runtime.json", import.meta.url));
// The published one reports nothing to anybody.
process.env.COPILOTKIT_TELEMETRY_DISABLED = "1";
process.env.DO_NOT_TRACK = "1";

// Without the binaries the whole file fails here, with one message.
aguiBinary();
const ours = builtBinary("agui-interop", "AGUI_INTEROP_BIN", "-p agui-interop");
const published = isInstalled("copilotkit-runtime-1.69");
const skip = published ? false : "copilotkit-runtime-1.69 is not installed: npm ci in interop/node";

const running = [];
let agent;
let differences;
let compared;

before(async () => {
  if (skip) return;
  agent = await startAgent();
  running.push(agent);
  const serve = await startAgui();
  running.push(serve);
  const theirs = await start(process.execPath, [fileURLToPath(new URL("copilotkit/runtime.mjs", import.meta.url)), agent.url]);
  const npm = await play({ ...theirs, agent });
  const mine = await start(ours, ["runtime", agent.url]);
  const agui = await play({ ...mine, pages: serve.url, agent });
  assert.deepEqual([...agui.keys()], [...npm.keys()]);
  compared = npm.size;
  differences = differencesOf(npm, agui);
});
after(async () => {
  for (const it of running.reverse()) await it.stop();
});

test("every answer is the published runtime's, but for what is listed with its reason", { skip }, (t) => {
  t.diagnostic(`${compared} answers compared`);
  assert.ok(compared > 250, `${compared} answers`);
  const list = JSON.parse(readFileSync(LIST, "utf8"));
  if (process.env.AGUI_UPDATE === "1") {
    writeFileSync(LIST, written(list, differences));
    return;
  }
  const listed = list.differences.map(({ why: _, ...difference }) => JSON.stringify(difference));
  const found = differences.map((difference) => JSON.stringify(difference));
  assert.deepEqual(found.filter((it) => !listed.includes(it)), [], "differences that are not listed");
  assert.deepEqual(listed.filter((it) => !found.includes(it)), [], "listed differences that there are not");
});

test("every difference has a reason, and every reason a difference", { skip }, () => {
  const { reasons, differences } = JSON.parse(readFileSync(LIST, "utf8"));
  const used = new Set(differences.map(({ why }) => why));
  assert.deepEqual([...used].filter((why) => !reasons[why]), []);
  assert.deepEqual(Object.keys(reasons).filter((why) => !used.has(why)), []);
});

/** Each value that differs, with the cases in which it does so. */
function differencesOf(npm, agui) {
  const groups = new Map();
  for (const [name, theirs] of npm) {
    for (const difference of differencesBetween(theirs, agui.get(name))) {
      // What is not there has no member.
      const key = JSON.stringify(difference);
      if (!groups.has(key)) groups.set(key, { ...JSON.parse(key), in: [] });
      groups.get(key).in.push(name);
    }
  }
  return [...groups.values()];
}

function differencesBetween(theirs, mine) {
  // Answers of different kinds have nothing to be compared value by value.
  if (["status", "header content-type"].some((at) => theirs.get(at) !== mine.get(at))) {
    return [{ at: "answer", npm: kindOf(theirs), agui: kindOf(mine) }];
  }
  const differences = [];
  for (const at of new Set([...theirs.keys(), ...mine.keys()])) {
    // An event that only one of them sends is known by the list of types.
    const [event, ...inside] = at.split(".");
    if (/^[A-Z]/.test(event) && inside.length > 0 && hasEvent(theirs, event) !== hasEvent(mine, event)) continue;
    const found = { at, npm: theirs.get(at), agui: mine.get(at) };
    if (found.npm === found.agui) continue;
    const difference = theirs.has(at) && mine.has(at) ? found : whole(found, theirs, mine);
    if (differences.every((known) => known.at !== difference.at)) differences.push(difference);
  }
  return differences;
}

/** The largest part that only one of them has. */
function whole(found, theirs, mine) {
  const missing = theirs.has(found.at) ? mine : theirs;
  const parts = found.at.split(".");
  const prefixes = parts.map((_, count) => parts.slice(0, count + 1).join("."));
  const at = prefixes.find((prefix) =>
    [...missing.keys()].every((key) => key !== prefix && !key.startsWith(`${prefix}.`)));
  if (at === undefined || at === found.at) return found;
  return missing === mine ? { at, npm: "(there)" } : { at, agui: "(there)" };
}

const hasEvent = (values, event) => [`${event}.type`, `${event}.event.type`].some((at) => values.has(at));

/** An answer in a line. */
function kindOf(values) {
  const what = values.get("types") ?? values.get("body.error") ?? values.get("body");
  return [values.get("status"), values.get("header content-type"), what].filter((it) => it !== undefined && it !== "").join(" ");
}

/** The list with what was found; what was listed before keeps its reason. */
function written(list, found) {
  const key = ({ at, npm, agui }) => JSON.stringify({ at, npm, agui });
  const whys = new Map(list.differences.map((it) => [key(it), it.why]));
  const differences = found.map((it) => ({ why: whys.get(key(it)) ?? "?", ...it }));
  const lines = differences.map((it) => `    ${JSON.stringify(it)}`).join(",\n");
  const reasons = JSON.stringify(list.reasons, null, 2).replaceAll("\n", "\n  ");
  return `{\n  "reasons": ${reasons},\n  "differences": [\n${lines}\n  ]\n}\n`;
}

/** Starts a runtime, which says where it is in one line of JSON. */
async function start(command, args) {
  const runtime = await startServer(command, args, addressesIn);
  running.push(runtime);
  return runtime.url;
}

function addressesIn(output) {
  const line = /\{"\w+":"http[^}\n]*\}/.exec(output);
  return line && JSON.parse(line[0]);
}

function isInstalled(name) {
  try {
    import.meta.resolve(`${name}/v2`);
    return true;
  } catch {
    return false;
  }
}
