// `scenarios.json` as the tests read it: what each scenario must come to.

import { readFileSync } from "node:fs";

const all = JSON.parse(
  readFileSync(new URL("../scenarios.json", import.meta.url), "utf8"),
).scenarios;

/**
 * Every scenario, the ones that are `like` another with that one's expectation. What a scenario
 * does not expect in words is expected to be empty.
 */
export const scenarios = all.map((scenario) => {
  const source = all.find(({ word }) => word === (scenario.like ?? scenario.word));
  return {
    ...scenario,
    events: source.events,
    expect: { openInterrupts: [], pendingToolCalls: [], warned: false, ...source.expect },
  };
});

/** The scenario of that name. */
export function scenario(word) {
  const found = scenarios.find((candidate) => candidate.word === word);
  if (!found) throw new Error(`scenarios.json has no '${word}'`);
  return found;
}
