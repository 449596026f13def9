// What is asked of a runtime: every route, every refusal that it knows, and threads through their
// life. The same for each runtime, in the same order.

import { add, addEvents, close, open, valuesOf } from "./exchange.mjs";

const BASE = "/api/copilotkit";
const JSON_TYPE = { "content-type": "application/json" };
const ORIGIN = "http://localhost:3000";

export const input = (threadId, runId, content, more = {}) => ({
  threadId, runId, state: {}, tools: [], context: [], forwardedProps: {},
  messages: content === undefined ? [] : [{ id: `u-${runId}`, role: "user", content }],
  ...more,
});

/**
 * Asks everything of a runtime.
 *
 * @param side the addresses `rest`, `single`, `open` (with transcription) and `pages` (with CORS),
 *   and the `agent` behind them
 * @returns {Promise<Map<string, Map<string, unknown>>>} by case, what was answered, value by value
 */
export async function play(side) {
  const cases = new Map();
  const keep = (name, values) => {
    if (cases.has(name)) throw new Error(`two cases are called ${name}`);
    cases.set(name, values);
  };
  const record = async (name, answer) => {
    const text = await answer.end();
    const replay = /^(single )?connect/.test(name);
    keep(name, valuesOf({ status: answer.status, headers: answer.headers, text }, { replay }));
  };
  const send = (base, method, path, body, headers = JSON_TYPE) => {
    const text = body === undefined || typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
    const length = text === undefined ? {} : { "content-length": Buffer.byteLength(text) };
    return open(`${base}${path}`, { method, headers: { ...headers, ...length }, body: text });
  };
  const rest = async (name, method, path, body, headers) =>
    record(name, await send(side.rest, method, BASE + path, body, headers));
  const single = async (name, envelope, headers) =>
    record(`single ${name}`, await send(side.single, "POST", BASE, envelope, headers));
  const run = (name, thread, id, content, more) =>
    rest(name, "POST", "/agent/default/run", input(thread, id, content, more));
  const begin = (thread, id, content, path = "/agent/default/run") =>
    send(side.rest, "POST", BASE + path, input(thread, id, content));

  await discovery(rest);
  await wrongMethods(rest);
  await refusedInputs(rest);
  await runs(run, rest, side, keep);
  await replays(run, rest);
  await busyAndStopped({ begin, rest, run, record, side });
  await suggestions(rest);
  await threads(rest, run);
  await transcriptions(rest, async (name, body, headers) =>
    record(name, await send(side.open, "POST", `${BASE}/transcribe`, body, headers)));
  await vendorsFeatures(rest);
  await envelopes(single, record, send, side);
  await pages(keep, send, side);
  await debugFeed(side, keep, begin);
  close();
  return cases;
}

async function discovery(rest) {
  for (const path of ["/info", "/info/", "//info"]) await rest(`GET ${path}`, "GET", path, undefined, {});
  for (const path of ["/nothing", "/x/y/info", "/INFO", "info", "", "/", "/agent", "/agent/default", "/agent/%zz/run"]) {
    await rest(`GET ${path || "(base)"}, which is not there`, "GET", path, undefined, {});
  }
  await rest("POST to an unknown path", "POST", "/nothing", { a: 1 });
  await rest("an envelope on a mount by path", "POST", "", { method: "info" });
  await rest("an unknown envelope on a mount by path", "POST", "", { method: "frobnicate" });
  await rest("an undecodable agent", "POST", "/agent/%zz/run", input("t", "r", "hello"));
}

async function wrongMethods(rest) {
  const routes = {
    GET: ["/info", "/threads", "/threads/t/messages", "/threads/t/events", "/threads/t/state", "/inspector-metadata", "/cpk-debug-events"],
    POST: ["/agent/default/run", "/agent/default/connect", "/agent/default/suggest", "/agent/default/stop/t", "/transcribe", "/threads/clear", "/threads/subscribe", "/threads/t/archive", "/annotate"],
  };
  for (const [right, paths] of Object.entries(routes)) {
    for (const path of paths) {
      for (const wrong of right === "GET" ? ["POST", "HEAD", "OPTIONS"] : ["GET", "DELETE"]) {
        await rest(`${wrong} ${path}`, wrong, path, wrong === "POST" ? {} : undefined);
      }
    }
  }
  for (const wrong of ["GET", "POST", "PUT"]) await rest(`${wrong} /threads/t`, wrong, "/threads/t");
  await rest("PATCH /memories/m", "PATCH", "/memories/m", {});
}

async function refusedInputs(rest) {
  const user = { id: "u", role: "user", content: "hello" };
  const bodies = {
    "an empty body": "",
    "half a body": "{",
    "a list": "[]",
    null: "null",
    "no members": {},
    "no messages": { ...input("t", "r"), messages: undefined },
    "no tools": { ...input("t", "r", "hello"), tools: undefined },
    "no context": { ...input("t", "r", "hello"), context: undefined },
    "no threadId": { ...input("t", "r", "hello"), threadId: undefined },
    "no runId": { ...input("t", "r", "hello"), runId: undefined },
    "a number for a threadId": { ...input("t", "r", "hello"), threadId: 7 },
    "parentRunId: null": input("x-parent", "r", "hello", { parentRunId: null }),
    "resume: null": input("x-resume", "r", "hello", { resume: null }),
    "a resume without a status": input("x", "r", "hello", { resume: [{ interruptId: "i" }] }),
    "a resume with another status": input("x", "r", "hello", { resume: [{ interruptId: "i", status: "maybe" }] }),
    "a tool without a name": input("x", "r", "hello", { tools: [{ description: "", parameters: {} }] }),
    "a tool without a description": input("x-tool", "r", "hello", { tools: [{ name: "f", parameters: {} }] }),
    "context without a value": input("x", "r", "hello", { context: [{ description: "d" }] }),
    "a message without an id": input("x", "r", undefined, { messages: [{ role: "user", content: "hello" }] }),
    "a message of another role": input("x-role", "r", undefined, { messages: [user, { id: "n", role: "narrator", content: "Once" }] }),
    "a user without content": input("x", "r", undefined, { messages: [{ id: "u", role: "user" }] }),
    "an assistant with content: null": input("x-null", "r", undefined, { messages: [{ id: "a", role: "assistant", content: null }, user] }),
    "a tool message without a call": input("x", "r", undefined, { messages: [{ id: "m", role: "tool", content: "4" }] }),
    "an activity without content": input("x", "r", undefined, { messages: [{ id: "m", role: "activity", activityType: "p" }] }),
  };
  for (const [what, body] of Object.entries(bodies)) {
    await rest(`run with ${what}`, "POST", "/agent/default/run", body);
  }
  for (const operation of ["connect", "suggest"]) {
    for (const what of ["an empty body", "half a body", "no messages"]) {
      await rest(`${operation} with ${what}`, "POST", `/agent/default/${operation}`, bodies[what]);
    }
  }
  for (const agent of ["nobody", "constructor", "__proto__", "Default"]) {
    for (const operation of ["run", "connect", "suggest", "stop/t"]) {
      await rest(`${operation} of the agent ${agent}`, "POST", `/agent/${agent}/${operation}`, "garbage");
    }
  }
}

async function runs(run, rest, side, keep) {
  for (const word of ["hello", "tools", "state", "steps", "reasoning", "activity", "custom", "snapshot", "chunks", "interrupt", "result", "success", "fails", "cut", "open", "http", "startless", "own"]) {
    await run(`run: ${word}`, `t-${word}`, `r-${word}`, word);
  }
  await run("run: the answer to an interrupt", "t-interrupt", "r-interrupt", "interrupt", {
    resume: [{ interruptId: "i-1", status: "resolved", payload: { approved: true } }],
  });
  await run("run: empty ids", "", "", "hello");
  await run("run: no message", "t-none", "r-none");
  await rest("run: without a content type", "POST", "/agent/default/run", input("t-untyped", "r", "hello"), {});
  await rest("run: on a page", "POST", "/agent/default/run", input("t-page", "r", "hello"), { ...JSON_TYPE, accept: "text/html" });
  await rest("run: protobuf is asked for", "POST", "/agent/default/run", input("t-proto", "r", "hello"), { ...JSON_TYPE, accept: "application/vnd.ag-ui.event+proto" });
  await run("run: a tool's answer is last", "t-follow", "r-follow", undefined, {
    messages: [
      { id: "u", role: "user", content: "hello" },
      { id: "a", role: "assistant", toolCalls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }] },
      { id: "m", role: "tool", toolCallId: "c", content: "green" },
    ],
  });

  // What reaches the agent.
  const sent = input("t-sent", "r-sent", "hello", {
    parentRunId: "r-before",
    state: { deep: { list: [1, null] } },
    forwardedProps: { toolChoice: "auto" },
    context: [{ description: "who", value: "Ada" }],
    tools: [{ name: "*", description: "any", parameters: {} }, { name: "pick", description: "", parameters: { type: "object" } }],
    resume: [{ interruptId: "i", status: "resolved", payload: 1 }],
    lastSeenEventId: null,
    extra: 1,
  });
  sent.messages[0].mood = "fine";
  sent.messages.push({ id: "p", role: "activity", activityType: "plan", content: {} });
  const headers = {
    authorization: "Bearer x", "x-tenant": "acme", "x-own": "client", cookie: "s=1", "accept-language": "de",
    "x-forwarded-for": "10.0.0.9", "x-request-id": "7", "x-vercel-id": "7", "x-copilotcloud-public-api-key": "k",
  };
  for (const operation of ["run", "suggest"]) {
    await rest(`${operation}: with everything`, "POST", `/agent/capable/${operation}`, sent, { ...JSON_TYPE, ...headers });
    const { headers: got, body } = side.agent.seen("t-sent");
    const values = new Map();
    for (const name of Object.keys(headers)) {
      // What accepts anything is the HTTP client's own.
      if (got[name] !== undefined && got[name] !== "*") values.set(`header ${name}`, got[name]);
    }
    add(values, "body", body);
    keep(`${operation}: what the agent got`, values);
  }
}

async function replays(run, rest) {
  const connect = (name, thread, more) => rest(`connect: ${name}`, "POST", "/agent/default/connect", input(thread, "x", undefined, more));
  await connect("a thread nobody knows", "t-unknown");
  for (const word of ["hello", "tools", "state", "steps", "reasoning", "activity", "custom", "snapshot", "chunks", "interrupt", "result", "fails", "cut", "open", "http", "own"]) {
    await connect(word, `t-${word}`);
  }
  await connect("by another agent's name", "t-hello", { lastSeenEventId: null });
  for (const [at, word] of ["hello", "tools", "state", "patch", "hello"].entries()) {
    await run(`run: ${at + 1} of many, ${word}`, "t-many", `m-${at}`, word);
  }
  await connect("many runs", "t-many");
  await run("run: fails before another", "t-failed", "f-1", "fails");
  await run("run: behind one that failed", "t-failed", "f-2", "hello");
  await connect("a failed run and another", "t-failed");
  await run("run: with a state and a patch", "t-brought", "b-1", "patch", { state: { mine: 1 } });
  await connect("with a state and a patch", "t-brought");
  await run("run: an id once more", "t-again", "same", "hello");
  await run("run: an id once more, again", "t-again", "same", "hello", { messages: [{ id: "u-2", role: "user", content: "hello" }] });
  await connect("an id once more", "t-again");
}

async function busyAndStopped({ begin, rest, run, record, side }) {
  const waiting = await begin("t-busy", "w-1", "wait");
  await waiting.until("One");
  await run("run: on a busy thread", "t-busy", "w-2", "hello");
  const viewer = await begin("t-busy", "x", undefined, "/agent/default/connect");
  await viewer.until("One");
  side.agent.release("t-busy");
  await record("run: goes on beside a refused one", waiting);
  await record("connect: joins a run", viewer);

  await rest("stop: nothing", "POST", "/agent/default/stop/t-nothing", undefined);
  await rest("stop: what has ended", "POST", "/agent/default/stop/t-busy", undefined);
  const busy = await begin("t-stopped", "s-1", "busy");
  await busy.until("TOOL_CALL_ARGS");
  await rest("stop: a run", "POST", "/agent/default/stop/t-stopped", undefined);
  await record("run: stopped", busy);
  await rest("stop: once more", "POST", "/agent/default/stop/t-stopped", undefined);
  await rest("connect: a stopped run", "POST", "/agent/default/connect", input("t-stopped", "x"));
  await run("run: behind a stopped one", "t-stopped", "s-2", "hello");
  await rest("connect: a stopped run and another", "POST", "/agent/default/connect", input("t-stopped", "x"));
}

async function suggestions(rest) {
  for (const word of ["hello", "tools", "fails", "cut", "open", "http", "chunks"]) {
    await rest(`suggest: ${word}`, "POST", "/agent/default/suggest", input(`s-${word}`, `s-${word}`, word));
  }
  await rest("suggest: leaves nothing", "POST", "/agent/default/connect", input("s-hello", "x"));
}

async function threads(rest, run) {
  await rest("threads: of one agent", "GET", "/threads?agentId=capable");
  await rest("threads: of nobody", "GET", "/threads?agentId=nobody");
  for (const word of ["hello", "tools", "state", "reasoning", "activity", "snapshot", "fails", "http", "unknown"]) {
    for (const what of ["messages", "events", "state"]) {
      await rest(`threads: ${what} of ${word}`, "GET", `/threads/t-${word}/${what}`);
    }
  }
  await rest("threads: state with what was brought", "GET", "/threads/t-brought/state");
  const mutations = [
    ["rename", "PATCH", "", { agentId: "default", name: "New" }],
    ["archive", "POST", "/archive", { agentId: "default" }],
    ["unarchive", "PATCH", "", { agentId: "default", archived: false }],
    ["delete", "DELETE", "", { agentId: "default" }],
  ];
  for (const [what, method, path, body] of mutations) {
    await rest(`threads: ${what}`, method, `/threads/t-hello${path}`, body);
  }
  await rest("threads: rename with no JSON", "PATCH", "/threads/t-tools", "{");
  await rest("threads: clear", "POST", "/threads/clear", undefined);
  await rest("threads: clear what is clear", "POST", "/threads/clear", undefined);
  await rest("threads: none", "GET", "/threads");
  await run("run: the first of two threads", "l-1", "l-1", "hello");
  await run("run: the second of two threads", "l-2", "l-2", "hello");
  await rest("threads: two", "GET", "/threads");
}

async function transcriptions(rest, open) {
  await rest("transcribe: not configured", "POST", "/transcribe", { audio: "aGk=", mimeType: "audio/webm" });
  await rest("transcribe: not configured, no body", "POST", "/transcribe", undefined, {});
  await rest("transcribe: not configured, garbage", "POST", "/transcribe", "{");
  const form = (type, content = "hi", name = 'name="audio"; filename="a.webm"') =>
    `--edge\r\ncontent-disposition: form-data; ${name}\r\n${type ? `content-type: ${type}\r\n` : ""}\r\n${content}\r\n--edge--\r\n`;
  const asForm = { "content-type": "multipart/form-data; boundary=edge" };
  for (const type of ["audio/webm", "audio/ogg", "audio/webm;codecs=opus", "application/octet-stream", "", "video/mp4", "text/plain"]) {
    await open(`transcribe: a form with ${type || "no type"}`, form(type), asForm);
  }
  await open("transcribe: a form without audio", form("audio/webm", "hi", 'name="other"; filename="a"'), asForm);
  await open("transcribe: a form with a text", form("", "hi", 'name="audio"'), asForm);
  await open("transcribe: a broken form", "garbage", asForm);
  await open("transcribe: the service fails", form("audio/webm", "fail"), asForm);
  await open("transcribe: no audio in the file", form("audio/webm", ""), asForm);
  await open("transcribe: another content type", "hi", { "content-type": "text/plain" });
  await open("transcribe: no content type", "hi", {});
  const bodies = {
    "base64": { audio: "aGk=", mimeType: "audio/webm", filename: "a.webm" },
    "a data URL": { audio: "data:audio/webm;base64,aGk=", mimeType: "audio/webm" },
    "base64 without padding": { audio: "aGk", mimeType: "audio/webm" },
    "octet-stream": { audio: "aGk=", mimeType: "application/octet-stream" },
    "parameters": { audio: "aGk=", mimeType: "audio/webm;codecs=opus" },
    "no base64": { audio: "*", mimeType: "audio/webm" },
    "no audio": { mimeType: "audio/webm" },
    "a number for audio": { audio: 7, mimeType: "audio/webm" },
    "no mimeType": { audio: "aGk=" },
    "a mimeType that is no audio": { audio: "aGk=", mimeType: "text/html" },
  };
  for (const [what, body] of Object.entries(bodies)) await open(`transcribe: JSON with ${what}`, body, JSON_TYPE);
  await open("transcribe: half JSON", "{", JSON_TYPE);
}

async function vendorsFeatures(rest) {
  await rest("inspector-metadata", "GET", "/inspector-metadata", undefined, {});
  for (const [method, path] of [["GET", ""], ["POST", ""], ["PUT", ""], ["POST", "/recall"], ["POST", "/subscribe"], ["PATCH", "/m"], ["DELETE", "/m"]]) {
    await rest(`memories: ${method} ${path || "(all)"}`, method, `/memories${path}`, method === "GET" ? undefined : {});
  }
  await rest("annotate", "POST", "/annotate", { type: "user_action", threadId: "t", clientEventId: "e", payload: {} });
  await rest("threads: subscribe", "POST", "/threads/subscribe", {});
  await rest("inspector-learning", "GET", "/inspector-learning");
}

async function envelopes(single, record, send, side) {
  const agentId = "default";
  const run = (method, params, body) => ({ method, params, body });
  await single("info", { method: "info" });
  await single("info, utf-8", { method: "info", more: 1 }, { "content-type": "application/json; charset=utf-8" });
  await single("run", run("agent/run", { agentId }, input("e-run", "e-1", "tools")));
  await single("run, the body as text", run("agent/run", { agentId }, JSON.stringify(input("e-text", "e-2", "hello"))));
  await single("connect", run("agent/connect", { agentId }, input("e-run", "x")));
  await single("connect, unknown", run("agent/connect", { agentId }, input("e-unknown", "x")));
  await single("suggest", run("agent/suggest", { agentId }, input("e-suggest", "e-3", "hello")));
  await single("stop nothing", run("agent/stop", { agentId, threadId: "e-run" }));
  await single("transcribe", run("transcribe", undefined, { audio: "aGk=", mimeType: "audio/webm" }));
  await single("metadata", { method: "inspector/metadata" });
  await single("learning", { method: "inspector/learning" });
  await single("resource", run("resource/request", { path: "/threads/e-run/state", httpMethod: "GET" }));
  for (const method of ["agent/run", "agent/connect", "agent/suggest", "agent/stop"]) {
    await single(`${method}, unknown agent`, run(method, { agentId: "nobody", threadId: "t" }, {}));
    await single(`${method}, no params`, { method, body: input("t", "r") });
    for (const [what, id] of [["blank", " "], ["a number", 7], ["null", null]]) {
      await single(`${method}, the agent is ${what}`, run(method, { agentId: id, threadId: "t" }, input("t", "r")));
    }
  }
  await single("agent/stop, no thread", run("agent/stop", { agentId }));
  for (const method of ["agent/run", "agent/connect", "agent/suggest", "transcribe"]) {
    await single(`${method}, no body`, run(method, { agentId }));
    await single(`${method}, body: null`, run(method, { agentId }, null));
  }
  await single("agent/run, invalid body", run("agent/run", { agentId }, { threadId: "t" }));
  await single("agent/run, body is no JSON text", run("agent/run", { agentId }, "{"));
  for (const [what, method] of [["null", null], ["empty", ""], ["a number", 7], ["unknown", "frobnicate"], ["in capitals", "INFO"]]) {
    await single(`the method is ${what}`, { method });
  }
  await single("no method", {});
  await single("a list", "[]");
  await single("null", "null");
  await single("a string", '"info"');
  await single("half a body", "{");
  await single("no body", undefined);
  await single("text", { method: "info" }, { "content-type": "text/plain" });
  await single("no content type", { method: "info" }, {});
  const at = async (name, method, path, body) => record(`single: ${name}`, await send(side.single, method, path, body));
  for (const method of ["GET", "PUT", "OPTIONS"]) await at(method, method, BASE);
  await at("GET /info, as auto probes", "GET", `${BASE}/info`);
  await at("a slash behind", "POST", `${BASE}/`, { method: "info" });
  await at("outside", "POST", "/api/other", { method: "info" });
  await at("a longer path", "POST", `${BASE}/more`, { method: "info" });
  await at("a longer word", "POST", `${BASE}2`, { method: "info" });
}

async function pages(keep, send, side) {
  const at = async (name, method, path, headers, body) => {
    const answer = await send(side.pages, method, BASE + path, body, { origin: ORIGIN, ...headers });
    await answer.end();
    // Who may read it, not what it says.
    keep(`page: ${name}`, valuesOf({ status: answer.status, headers: { ...answer.headers, "content-type": "" }, text: "" }));
  };
  for (const path of ["/info", "/agent/default/run", "/threads/t", "/nothing"]) {
    await at(`preflight of ${path}`, "OPTIONS", path, {
      "access-control-request-method": "PATCH",
      "access-control-request-headers": "authorization,content-type",
    });
  }
  await at("GET /info", "GET", "/info");
  await at("an unknown path", "GET", "/nothing");
  await at("an unknown agent", "POST", "/agent/nobody/run", JSON_TYPE, input("t", "r"));
  await at("a run", "POST", "/agent/default/run", JSON_TYPE, input("t-pages", "r", "hello"));
}

async function debugFeed(side, keep, begin) {
  const finish = async (...what) => (await begin(...what)).end();
  const feed = await open(`${side.rest}${BASE}/cpk-debug-events`);
  await feed.until("\n\n");
  await finish("d-1", "d-1", "hello");
  await finish("d-2", "d-2", "hello", "/agent/default/suggest");
  await finish("d-3", "d-3", "fails");
  const shown = await feed.until("RUN_ERROR");
  await finish("d-1", "x", undefined, "/agent/default/connect");
  await finish("d-4", "d-4", "result");
  const later = await feed.until('"sum"');
  feed.leave();
  const { status, headers } = feed;
  const values = valuesOf({ status, headers, text: "" });
  values.set("begins with a comment", shown.startsWith(":"));
  const data = shown.split("\n").filter((line) => line.startsWith("data: "));
  addEvents(values, data.map((line) => JSON.parse(line.slice("data: ".length))));
  values.set("shows replays", later.split('"type":"RUN_FINISHED","threadId":"d-1"').length > 2);
  keep("the debug feed", values);
}
