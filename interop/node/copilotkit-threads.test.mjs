// The threads of our runtime, judged by the thread store of unmodified CopilotKit cores: the one that
// their hook for threads is made of. The old core has no way to them by the single route, and is told so.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";

import { aguiBinary, startAgui } from "../lib/processes.mjs";
import { FrontEnd, frontEnds, within } from "./front-end.mjs";

// Without the binary the whole file fails here, with one message.
aguiBinary();

for (const frontEnd of frontEnds) {
  describe(`threads: ${frontEnd.name}`, () => {
    // Each has a runtime of its own, and so its own threads alone in the list.
    let server, url;
    before(async () => {
      server = await startAgui();
      url = `${server.url}/api/copilotkit`;
    });
    after(() => server?.stop());

    const { ɵcreateThreadStore: createThreadStore, ɵselectThreads: selectThreads } =
      frontEnd.library;
    const { ɵselectHasNextPage: selectHasNextPage } = frontEnd.library;
    const open = () => FrontEnd.open(frontEnd, url);
    const stores = [];
    after(() => stores.forEach((store) => store.stop()));

    /** The list of threads as a page has it that was just opened. */
    function threadsOf({ core }, context = {}) {
      const store = createThreadStore({ fetch: core.ɵruntimeFetch ?? globalThis.fetch });
      stores.push(store);
      store.start();
      store.setContext({ runtimeUrl: url, headers: {}, agentId: "demo", ...context });
      return store;
    }

    /** What the store selects, once it is what is wanted. */
    async function selected(store, selector, wanted) {
      let subscription;
      const seen = new Promise((resolve) => {
        subscription = store.select(selector).subscribe((value) => wanted(value) && resolve(value));
      });
      try {
        return await within("the list", seen);
      } finally {
        subscription.unsubscribe();
      }
    }

    const listed = async (store, ids) => {
      const threads = await selected(
        store,
        selectThreads,
        (threads) => threads.map(({ id }) => id).join() === ids.join(),
      );
      return threads;
    };

    /** Reads a route as the front end's own tools do. */
    async function read({ core }, path) {
      const response = await (core.ɵruntimeFetch ?? globalThis.fetch)(`${url}${path}`);
      assert.equal(response.status, 200, path);
      return response.json();
    }

    if (frontEnd.transport === "single" && frontEnd.version === "1.69") {
      test("it is told that it cannot have them", async () => {
        const { core } = await open();
        assert.deepEqual(core.threadEndpoints, {
          list: false,
          inspect: false,
          mutations: false,
          realtimeMetadata: false,
        });
      });
      return;
    }

    test("they are listed, named, archived, brought back and deleted", async () => {
      const page = await open();
      assert.deepEqual(page.core.threadEndpoints, {
        list: true,
        inspect: true,
        mutations: true,
        realtimeMetadata: false,
      });
      const [old, recent] = [page.agent("demo").threadId, randomUUID()];
      await page.say(page.agent("demo", old), "hello");
      await page.say(page.agent("demo", recent), "tools");

      const store = threadsOf(page);
      const threads = await listed(store, [recent, old]);
      for (const { agentId, name, archived, createdAt, updatedAt } of threads) {
        assert.deepEqual([agentId, name ?? null, archived], ["demo", null, false]);
        for (const time of [createdAt, updatedAt]) {
          assert.equal(new Date(time).toISOString(), time);
        }
      }

      await within("the name", store.renameThread(old, "Trip to Oslo"));
      const named = await selected(
        threadsOf(page),
        selectThreads,
        (threads) => threads.length === 2,
      );
      assert.equal(named.find(({ id }) => id === old).name, "Trip to Oslo");

      await within("the archive", store.archiveThread(recent));
      await listed(threadsOf(page), [old]);
      const all = await selected(
        threadsOf(page, { includeArchived: true }),
        selectThreads,
        (threads) => threads.length === 2,
      );
      assert.equal(all.find(({ id }) => id === recent).archived, true);
      assert.equal((await page.reload("demo", recent)).messages.length > 0, true, "it can be read");

      await within("the return", store.unarchiveThread(recent));
      await selected(threadsOf(page), selectThreads, (threads) => threads.length === 2);

      await within("the deletion", store.deleteThread(old));
      await listed(threadsOf(page), [recent]);
      assert.deepEqual((await page.reload("demo", old)).messages, []);
      await assert.rejects(within("the refusal", store.renameThread(old, "Gone")), /404/);
      assert.deepEqual(page.errors, []);
    });

    test("they are listed by agent, and page by page", async () => {
      const page = await open();
      const ids = [randomUUID(), randomUUID(), randomUUID()];
      for (const id of ids) await page.say(page.agent("default", id), "hello");
      const newest = ids.toReversed();
      await listed(threadsOf(page, { agentId: "default" }), newest);

      const store = threadsOf(page, { agentId: "default", limit: 2 });
      await listed(store, newest.slice(0, 2));
      await selected(store, selectHasNextPage, (more) => more);
      store.fetchNextPage();
      await listed(store, newest);
      await selected(store, selectHasNextPage, (more) => !more);
    });

    test("one can be looked into", async () => {
      const page = await open();
      const agent = page.agent("demo");
      await page.say(agent, "tools");
      await page.say(agent, "state");
      const path = `/threads/${agent.threadId}`;

      const { messages } = await read(page, `${path}/messages`);
      assert.deepEqual(
        messages.map(({ id, role }) => [id, role]),
        agent.messages.map(({ id, role }) => [id, role]),
      );
      const { events } = await read(page, `${path}/events`);
      assert.equal(events[0].type, "RUN_STARTED");
      assert.equal(events.at(-1).type, "RUN_FINISHED");
      assert.equal(events.filter(({ type }) => type === "RUN_STARTED").length, 2);
      assert.deepEqual((await read(page, `${path}/state`)).state, agent.state);

      const nowhere = `/threads/${randomUUID()}`;
      assert.deepEqual(await read(page, `${nowhere}/messages`), { messages: [] });
      assert.deepEqual(await read(page, `${nowhere}/events`), { events: [] });
    });
  });
}
