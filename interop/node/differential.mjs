// Random streams through the published client and through ours: `--help` tells the rest.

import { parseArgs } from "node:util";
import { generate } from "./differential/generate.mjs";
import { startJudge } from "./differential/judge.mjs";
import { shrink } from "./differential/shrink.mjs";
import { textOf } from "./differential/spell.mjs";

const USAGE = `usage: node interop/node/differential.mjs [--seeds N] [--from SEED] [--example DEVIATION]

Makes a thread with random streams from each of N seeds (default: 1000, from 1), plays it through
npm @ag-ui/client over HTTP and through our client, and compares outcome, delivered events, messages,
state, open interrupts, result and request. What conformance/deviations/differential.json knows is
undone and compared again; whatever differs otherwise is shown with its seed, shrunk to what it
takes, and the exit code is 1.

  --seeds N            how many
  --from SEED          the first
  --example DEVIATION  shrinks the first thread that only this deviation explains
  --as-it-is           does not shrink

Our client: cargo build --release -p agui-interop (CARGO_TARGET_DIR is respected; AGUI_INTEROP_BIN
names another).
`;

const MOST_SHOWN = 10;

const { values: options } = parseArgs({
  options: {
    seeds: { type: "string", default: "1000" },
    from: { type: "string", default: "1" },
    example: { type: "string" },
    "as-it-is": { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});
if (options.help) {
  process.stdout.write(USAGE);
} else {
  process.exitCode = await main(Number(options.from), Number(options.seeds));
}

async function main(from, seeds) {
  const judge = await startJudge();
  try {
    return options.example
      ? await showExample(judge, options.example, from, seeds)
      : await compareAll(judge, from, seeds);
  } finally {
    await judge.stop();
  }
}

async function compareAll(judge, from, seeds) {
  const counts = { same: 0, explained: 0, different: 0 };
  for (let seed = from; seed < from + seeds; seed++) {
    const thread = generate(seed);
    const { verdict } = await judge.judge(thread);
    counts[verdict]++;
    if (verdict === "different" && counts.different <= MOST_SHOWN) await show(judge, thread);
    if ((seed - from) % 1000 === 999) report(counts);
  }
  report(counts);
  return counts.different > 0 ? 1 : 0;
}

function report({ same, explained, different }) {
  const all = same + explained + different;
  console.log(`${all} seeds: ${same} the same, ${explained} explained, ${different} different`);
}

/** Shows a thread on which the clients differ, as small as it gets. */
async function show(judge, thread) {
  const differs = async (other) => (await judge.judge(other)).verdict === "different";
  const shown = options["as-it-is"] ? thread : await shrink(thread, differs);
  console.log(`\nseed ${thread.seed}:`);
  print(shown);
  for (const difference of (await judge.judge(shown)).differences) console.log(`  ${difference}`);
}

async function showExample(judge, deviation, from, seeds) {
  const only = async (thread) => {
    const { verdict } = await judge.judge(thread);
    if (verdict !== "explained") return false;
    const needed = await judge.deviationsOf(thread);
    return needed.length === 1 && needed[0] === deviation;
  };
  for (let seed = from; seed < from + seeds; seed++) {
    const thread = generate(seed);
    if (!(await only(thread))) continue;
    const { messages, state, exchanges } = await shrink(thread, only);
    console.log(`seed ${seed}`);
    console.log(JSON.stringify({ messages, state, exchanges }, null, 1));
    return 0;
  }
  console.log(`none of these seeds shows ${deviation}`);
  return 1;
}

function print({ messages, state, exchanges }) {
  console.log(`  messages ${JSON.stringify(messages)}, state ${JSON.stringify(state)}`);
  for (const { addMessages, input, frames } of exchanges) {
    console.log(`  input ${JSON.stringify(input)}, added ${JSON.stringify(addMessages)}`);
    for (const frame of frames) console.log(`    ${textOf(frame)}`);
  }
}
