// Event streams read by the letter of the HTML standard, and no client in between.

/**
 * Posts a run input and reads the answer to its end.
 *
 * @returns {Promise<{status: number, headers: Headers, text: string, died: boolean}>}
 *   `died`: the connection broke before the body was complete.
 */
export async function post(url, input, headers = {}) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream", ...headers },
    body: typeof input === "string" ? input : JSON.stringify(input),
  });
  const decoder = new TextDecoder();
  let text = "";
  let died = false;
  try {
    for await (const bytes of response.body) text += decoder.decode(bytes, { stream: true });
  } catch {
    died = true;
  }
  return { status: response.status, headers: response.headers, text, died };
}

/** The data of every complete frame of an event stream, parsed as JSON. */
export function eventsOf(text) {
  const frames = text.replaceAll(/\r\n?/g, "\n").split("\n\n").slice(0, -1);
  return frames.flatMap((frame) => {
    const data = frame
      .split("\n")
      .filter((line) => line.startsWith("data:"))
      .map((line) => line.slice("data:".length).replace(/^ /, ""));
    return data.length > 0 ? [JSON.parse(data.join("\n"))] : [];
  });
}

/** A run input with nothing but what is needed, and one user message. */
export function runInput(content, extra = {}) {
  return {
    threadId: crypto.randomUUID(),
    runId: crypto.randomUUID(),
    messages: [{ id: crypto.randomUUID(), role: "user", content }],
    ...extra,
  };
}
