// An agent on the published `@ag-ui/encoder` that the test holds in its hand: what it says next, it
// says when the test lets it. The first word of the last user message tells what it does:
//
//   hold     a text in two pieces, the second one after `release()`
//   call     a call of the tool `open_window`, which nobody has offered
//   Suggest  what a front end asks for: two suggestions, the second one after `release()`
//
// Whatever a tool answered, it repeats.

import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { EventEncoder } from "@ag-ui/encoder";
import { listening } from "../lib/listening.mjs";

/**
 * Starts one on a loopback port of the system's choice. `inputs` holds what it was asked, oldest
 * first; `release` lets everything go on that is held.
 *
 * @returns {Promise<{url: string, inputs: object[], release: () => void, stop: () => Promise<void>}>}
 */
export async function startHeldAgent() {
  const inputs = [];
  const held = new Set();
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray();
    const input = JSON.parse(Buffer.concat(chunks));
    inputs.push(input);
    const encoder = new EventEncoder();
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of events(input)) {
      if (event === HOLD) {
        await new Promise((resolve) => {
          held.add(resolve);
          response.once("close", resolve);
        });
      } else {
        response.write(encoder.encode(event));
      }
    }
    response.end();
  });
  return {
    ...(await listening(server)),
    inputs,
    release() {
      for (const resume of held) resume();
      held.clear();
    },
  };
}

const HOLD = Symbol("hold");

function* events({ threadId, runId, messages }) {
  const last = messages.at(-1);
  yield { type: "RUN_STARTED", threadId, runId };
  if (last.role === "tool") {
    yield* text(`It answered: ${last.content}`);
  } else {
    switch (messages.findLast(({ role }) => role === "user").content.split(" ")[0]) {
      case "hold":
        yield* text("one, ", HOLD, "two");
        break;
      case "call":
        yield* call("open_window", '{"side":"left"}');
        break;
      case "Suggest":
        yield* call(
          "copilotkitSuggest",
          '{"suggestions":[{"title":"First","message":"say first"}',
          HOLD,
          ',{"title":"Second","message":"say second"}]}',
        );
        break;
      default:
        yield* text("I know nothing of that.");
    }
  }
  yield { type: "RUN_FINISHED", threadId, runId };
}

function* text(...pieces) {
  const messageId = randomUUID();
  yield { type: "TEXT_MESSAGE_START", messageId, role: "assistant" };
  for (const delta of pieces) {
    yield delta === HOLD ? HOLD : { type: "TEXT_MESSAGE_CONTENT", messageId, delta };
  }
  yield { type: "TEXT_MESSAGE_END", messageId };
}

function* call(toolCallName, ...pieces) {
  const toolCallId = randomUUID();
  yield { type: "TOOL_CALL_START", toolCallId, toolCallName };
  for (const delta of pieces) {
    yield delta === HOLD ? HOLD : { type: "TOOL_CALL_ARGS", toolCallId, delta };
  }
  yield { type: "TOOL_CALL_END", toolCallId };
}
