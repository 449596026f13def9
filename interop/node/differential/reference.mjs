// The published client: a real HttpAgent on a real connection.

import { createServer } from "node:http";
import { once } from "node:events";
import { setImmediate as idle } from "node:timers/promises";
import { HttpAgent } from "@ag-ui/client";
import { catchError, from, mergeMap, throwError } from "rxjs";
import { run } from "../reference.mjs";

/** Starts a server that answers an agent made for each thread. */
export async function startReference() {
  const answers = new Map();
  const requests = new Map();
  let calls = 0;
  const server = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    requests.set(request.url, JSON.parse(Buffer.concat(pieces).toString()));
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(answers.get(request.url));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const base = `http://127.0.0.1:${server.address().port}`;

  return {
    /**
     * Plays a thread and tells what came of each of its exchanges.
     *
     * @param {{subscribers?: object[], drains?: boolean, keepsInterrupts?: boolean}} amends what
     *   the client is to do otherwise than it does by itself: subscribers that intervene; whether
     *   events that are still under way when a later one fails are delivered; whether interrupts
     *   stay open until they are answered
     */
    async play(thread, { subscribers = [], drains = false, keepsInterrupts = false } = {}) {
      const path = `/${calls++}`;
      let frames;
      const agent = new (drains ? DrainingAgent : HttpAgent)({
        url: base + path,
        threadId: thread.exchanges[0].input.threadId,
        initialMessages: structuredClone(thread.messages),
        initialState: structuredClone(thread.state),
        fetch: async (url, init) => byFrame(await fetch(url, init), frames),
      });
      for (const subscriber of subscribers) agent.subscribe(subscriber);
      const outcomes = [];
      const open = new OpenInterrupts();
      for (const { addMessages, input, frames: sent } of structuredClone(thread.exchanges)) {
        frames = sent;
        answers.set(path, frames.join(""));
        requests.delete(path);
        agent.messages.push(...addMessages);
        const { threadId: _, ...parameters } = input;
        const before = new Set(agent.messages.map(({ id }) => id));
        const seen = await run(agent, parameters);
        if (keepsInterrupts && requests.has(path)) {
          agent.pendingInterrupts = open.after(seen.events, input);
        }
        outcomes.push(observed(agent, seen, before, requests.get(path)));
      }
      answers.delete(path);
      requests.delete(path);
      return outcomes;
    },
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

/** Fails when everything before the failure has been handled. */
class DrainingAgent extends HttpAgent {
  apply(input, events, subscribers) {
    const late = events.pipe(
      catchError((error) => from(idle()).pipe(mergeMap(() => throwError(() => error)))),
    );
    return super.apply(input, late, subscribers);
  }
}

/** The same answer, one frame a read, each when everything before it has been handled. */
async function byFrame(response, frames) {
  await response.arrayBuffer();
  const encoder = new TextEncoder();
  let at = 0;
  const body = new ReadableStream(
    {
      async pull(controller) {
        await idle();
        if (at < frames.length) controller.enqueue(encoder.encode(frames[at++]));
        else controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { status: response.status, headers: response.headers });
}

function observed(agent, { failure, result, events, warnings }, before, request) {
  return {
    outcome: failure ? "failed" : "completed",
    ...(failure && { class: classOf(failure), failure: { message: shortened(failure.message) } }),
    request: request ?? null,
    delivered: plain(events),
    messages: plain(agent.messages),
    state: plain(agent.state),
    pendingInterrupts: plain(agent.pendingInterrupts),
    newMessages: request
      ? plain(agent.messages.map(({ id }) => id).filter((id) => !before.has(id)))
      : [],
    ...(result !== undefined && { result: plain(result) }),
    warnings,
  };
}

/** As it would be written: no member that is `undefined`. Patches can leave it a circle. */
function plain(value) {
  try {
    return JSON.parse(JSON.stringify(value));
  } catch {
    return "<not JSON>";
  }
}

function shortened(text) {
  return text.length > 400 ? `${text.slice(0, 400)}…` : text;
}

/** The class of a failure, told from its type and words. */
function classOf(failure) {
  const { name, message } = failure;
  if (name === "ZodError" || Array.isArray(failure.issues)) return "schema";
  if (name === "SyntaxError") return "sse-json";
  if (/^Invalid event: /.test(message)) return "frame-shape";
  if (/^(First \w+_CHUNK must|Cannot continue |Ambiguous )/.test(message)) return "chunk";
  if (/^(Thread has \d+ pending|Interrupt .* expired at)/.test(message)) return "interrupts";
  if (failure.constructor.name === "AGUIError") return "sequence";
  return "other";
}

/** Interrupts stay open until a run that was asked with their answer, or a cancelled one, ends. */
class OpenInterrupts {
  #open = [];

  after(events, { runId, resume = [] }) {
    const asked = [...resume];
    let answered = [];
    for (const event of events) {
      if (event.type === "RUN_STARTED") {
        answered = [...(event.input?.resume ?? [])];
        if (event.runId === runId) answered.push(...asked.splice(0));
      } else if (event.type === "RUN_ERROR") {
        answered = [];
      } else if (event.type === "RUN_FINISHED") {
        const closed = new Set(answered.map(({ interruptId }) => interruptId));
        const outcome = event.outcome?.type;
        this.#open = this.#open.filter(({ id }) => outcome !== "cancelled" && !closed.has(id));
        for (const raised of outcome === "interrupt" ? event.outcome.interrupts : []) {
          const at = this.#open.findIndex(({ id }) => id === raised.id);
          this.#open.splice(at < 0 ? this.#open.length : at, at < 0 ? 0 : 1, raised);
        }
      }
    }
    return structuredClone(this.#open);
  }
}
