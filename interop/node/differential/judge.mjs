// Both clients on one thread, and a verdict.

import { compare } from "./compare.mjs";
import { amendments, knownDeviations, rewritten, settled } from "./deviations.mjs";
import { startOurs } from "./ours.mjs";
import { startReference } from "./reference.mjs";

/** Starts both clients. */
export async function startJudge() {
  const deviations = knownDeviations();
  const ours = startOurs();
  const reference = await startReference();

  /** The differences that are left when these deviations are undone. */
  const differences = async (thread, found, undone) => {
    const theirs = await reference.play(rewritten(thread, undone), amendments(undone));
    return compare(...settled(theirs, found, undone));
  };

  return {
    deviations,
    /**
     * Plays a thread through both clients.
     *
     * @param {object} other what our client is sent, where it is to be something else
     * @returns {Promise<{verdict: "same" | "explained" | "different", differences: string[]}>}
     *   whether they agree, do so but for known deviations, or do not
     */
    async judge(thread, other = thread) {
      const found = await ours.play(other);
      if ((await differences(thread, found, [])).length === 0) {
        return { verdict: "same", differences: [] };
      }
      const left = await differences(thread, found, deviations);
      if (left.length === 0) return { verdict: "explained", differences: [] };
      // One may get in another's way: what would fail anyhow must not be made to fail otherwise.
      for (const deviation of deviations) {
        const others = deviations.filter((other) => other !== deviation);
        if ((await differences(thread, found, others)).length === 0) {
          return { verdict: "explained", differences: [] };
        }
      }
      return { verdict: "different", differences: left };
    },
    /** The ids of the deviations without which something would differ on an explained thread. */
    async deviationsOf(thread) {
      const found = await ours.play(thread);
      let needed = deviations;
      for (const deviation of deviations) {
        const without = needed.filter((other) => other !== deviation);
        if ((await differences(thread, found, without)).length === 0) needed = without;
      }
      return needed.map(({ id }) => id);
    },
    async stop() {
      await Promise.all([ours.stop(), reference.stop()]);
    },
  };
}
