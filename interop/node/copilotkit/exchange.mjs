// Requests as they are written, and answers as they can be compared.

import { Agent, request as httpRequest } from "node:http";

/** What of an answer's head front ends and proxies go by. */
const HEADERS = [
  "content-type", "cache-control", "connection", "allow", "vary", "x-accel-buffering",
  "access-control-allow-origin", "access-control-allow-methods", "access-control-allow-headers",
  "access-control-allow-credentials", "access-control-max-age",
];
const LIMIT_MS = 20_000;
const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** Browsers keep their connections. */
const connections = new Agent({ keepAlive: true });

/** Lets all connections go. */
export const close = () => connections.destroy();

/**
 * Sends a request with its path as it is given and gives the answer once its head is there.
 *
 * @returns {Promise<{status: number, headers: object, text: () => string,
 *   until: (text: string) => Promise<void>, end: () => Promise<string>, leave: () => void}>}
 */
export function open(url, { method = "GET", headers = {}, body } = {}) {
  const { hostname, port } = new URL(url);
  const path = url.slice(url.indexOf("/", "http://".length));
  return new Promise((resolve, reject) => {
    const request = httpRequest({ hostname, port, path, method, headers, agent: connections });
    request.once("error", reject);
    request.once("response", (response) => {
      let text = "";
      let died;
      const changed = new Set();
      const tell = () => changed.forEach((told) => told());
      response.setEncoding("utf8").on("data", (more) => ((text += more), tell()));
      response.on("error", (error) => ((died = error), tell()));
      response.on("end", tell);
      const once = (reached, what) =>
        new Promise((resolve, reject) => {
          const fail = (why) => (finish(), reject(new Error(`${method} ${path}: ${what}: ${why}\n${text}`)));
          const timer = setTimeout(() => fail("not in time"), LIMIT_MS);
          const finish = () => (clearTimeout(timer), changed.delete(look));
          const look = () => {
            if (reached()) return finish(), resolve(text);
            if (died) return fail(died.message);
            if (response.complete) return fail("the answer ended before");
          };
          changed.add(look);
          look();
        });
      resolve({
        status: response.statusCode,
        headers: response.headers,
        text: () => text,
        until: (wanted) => once(() => text.includes(wanted), `"${wanted}"`),
        end: () => once(() => response.readableEnded, "its end"),
        leave: () => (response.removeAllListeners("error"), response.on("error", () => {}), request.destroy()),
      });
    });
    request.end(body);
  });
}

/**
 * Every value of an answer with where it is, so that two answers differ value by value. In a `replay`,
 * fragments in a row count as one: how many there were is no matter of what is shown.
 */
export function valuesOf({ status, headers, text }, { replay = false } = {}) {
  const values = new Map([["status", status]]);
  for (const name of HEADERS) {
    const value = headers[name];
    if (value !== undefined) values.set(`header ${name}`, value.toLowerCase());
  }
  const type = headers["content-type"] ?? "";
  // Elsewhere it is between the two servers and their client.
  if (!type.startsWith("text/event-stream")) values.delete("header connection");
  if (type.startsWith("text/event-stream")) {
    addStream(values, text, replay);
  } else if (type.startsWith("application/json") && text !== "") {
    const body = withoutTexts(JSON.parse(text));
    if (body?.events?.length > 0) addEvents(values, body.events, true);
    else add(values, "body", body);
  } else {
    values.set("body", text);
  }
  return values;
}

/** Adds every leaf of a JSON value. Times and versions are whatever they are. */
export function add(values, at, value) {
  const name = at.slice(at.lastIndexOf(".") + 1);
  if (typeof value === "string" && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) {
    values.set(at, "<time>");
  } else if (name === "timestamp" && typeof value === "number") {
    values.set(at, "<time>");
  } else if (name === "version" && typeof value === "string") {
    values.set(at, "<version>");
  } else if (value !== null && typeof value === "object") {
    const entries = Object.entries(value);
    if (entries.length === 0) values.set(at, Array.isArray(value) ? "[]" : "{}");
    for (const [key, inner] of entries) add(values, `${at}.${key}`, inner);
  } else {
    values.set(at, typeof value === "string" ? unnamed(value) : value);
  }
}

/** A text without what is different each time. */
const unnamed = (text) => text.replace(/127\.0\.0\.1:\d+/g, "<host>").replace(UUID, "<uuid>");

/** A refusal whose words for people are whatever they are, as long as there are some. */
function withoutTexts(body) {
  const blank = (holder) => {
    for (const name of ["message", "details"]) {
      if (typeof holder?.[name] === "string" && holder[name] !== "") holder[name] = "<text>";
    }
  };
  blank(body);
  blank(body?.interrupt);
  return body;
}

/** A stream: the kinds of lines, the types in order, and each event by its type and number. */
function addStream(values, text, replay) {
  const lines = text.split("\n").filter((line) => line !== "");
  const kinds = lines.map((line) => (line.startsWith(":") ? ":" : line.slice(0, line.indexOf(":"))));
  values.set("lines", [...new Set(kinds)].sort().join(" "));
  values.set("ends in a blank line", text === "" || text.endsWith("\n\n"));
  const data = lines.filter((line) => line.startsWith("data: "));
  addEvents(values, data.map((line) => JSON.parse(line.slice("data: ".length))), replay);
}

/** Events in order. Fragments are compared as what they add up to. */
export function addEvents(values, events, replay = false) {
  const typeOf = (event) => event.type ?? event.event.type;
  const types = events.map(typeOf);
  const again = (type, at) => replay && /_(CONTENT|ARGS)$/.test(type) && types[at - 1] === type;
  values.set("types", types.filter((type, at) => !again(type, at)).join(" "));
  const counts = new Map();
  const joined = new Map();
  for (const event of events) {
    const type = typeOf(event);
    if (typeof event.delta === "string") {
      const of = unnamed(`${type} ${event.messageId ?? event.toolCallId}`);
      joined.set(of, (joined.get(of) ?? "") + event.delta);
      continue;
    }
    const count = counts.get(type) ?? 0;
    counts.set(type, count + 1);
    add(values, count === 0 ? type : `${type}(${count})`, event);
  }
  for (const [of, delta] of joined) values.set(of, delta);
}
