// The material that streams are made of: text, JSON, messages, tools.

/** Text of every awkward kind. Halves of surrogate pairs and names of JavaScript's own included. */
const TEXTS = [
  "", " ", "a", "word ", "Hello, ", "\n", "é", "é", "日本語", "مرحبا", "🌍", "👩‍👩‍👧", "\u0000", "\u2028",
  "\ufeff", "\ud83d", "\udc4d", "\ufffd", '"', "\\", '{"a":1}', "data: x\n\n", "null", "__proto__",
  "constructor", "a".repeat(70),
];

const KEYS = ["a", "b", "list", "deep", "a/b", "m~n", "~1", "", "0", "-", "é", "constructor", "ag-ui", "__proto__"];

const NUMBERS = [
  0, 1, -1, 2, 0.5, -0.25, 0.1, 1e21, 1e-7, 5e-324, 2 ** 53 - 1, -(2 ** 53) + 1, 2 ** 63, 1.5e300,
  1700000000000,
];

export class Values {
  /** @param {import("./random.mjs").Random} random */
  constructor(random) {
    this.random = random;
  }

  text() {
    return this.random.chance(50) ? this.random.pick(["The ", "quick ", "fox. "]) : this.oddText();
  }

  oddText() {
    return this.random.pick(TEXTS);
  }

  key() {
    return this.random.chance(70) ? this.random.pick(["a", "b", "list"]) : this.random.pick(KEYS);
  }

  /** Any JSON value. */
  json(depth = 3) {
    const deeper = depth > 0 ? 2 : 0;
    const kind = this.random.weighted({
      null: 1, flag: 1, number: 2, text: 2, list: deeper, object: deeper,
    });
    switch (kind) {
      case "null":
        return null;
      case "flag":
        return this.random.chance(50);
      case "number":
        return this.random.pick(NUMBERS);
      case "text":
        return this.text();
      case "list":
        return this.random.list(0, 3, () => this.json(depth - 1));
      case "object":
        return this.object(depth - 1);
    }
  }

  object(depth = 2) {
    return Object.fromEntries(
      this.random.list(0, 3, () => [this.key(), this.json(depth)]),
    );
  }

  /** A value where `null` would be read as absent. */
  some() {
    return this.json() ?? false;
  }

  /** `object` with each of the named members added in `percent` of all cases. */
  maybe(percent, members) {
    const present = Object.entries(members).filter(() => this.random.chance(percent));
    return Object.fromEntries(present.map(([name, make]) => [name, make()]));
  }

  source() {
    return this.random.pick([
      { type: "data", value: "AAAA", mimeType: "image/png" },
      { type: "url", value: "https://files.example/x" },
      { type: "url", value: "", mimeType: "audio/wav" },
      { type: "file", value: "file-1", provider: "someone" },
    ]);
  }

  part() {
    const type = this.random.pick(["text", "text", "image", "audio", "video", "document"]);
    return {
      type,
      ...(type === "text" ? { text: this.text() } : { source: this.source() }),
      ...this.maybe(10, { id: () => this.text(), metadata: () => this.some() }),
    };
  }

  content() {
    return this.random.chance(70) ? this.text() : this.random.list(0, 3, () => this.part());
  }

  call(id) {
    return {
      id,
      type: "function",
      function: { name: this.random.pick(["search", "paint"]), arguments: this.text() },
      ...this.maybe(10, { metadata: () => this.object(), encryptedValue: () => this.text() }),
    };
  }

  /** A message; `callId` makes the ids of an assistant's calls. */
  message(id, role, callId) {
    const extra = this.maybe(15, { metadata: () => this.object() });
    const named = this.maybe(15, { name: () => this.text(), encryptedValue: () => this.text() });
    switch (role) {
      case "user":
        return { id, role, content: this.content(), ...extra, ...named };
      case "assistant":
        return {
          id,
          role,
          ...this.maybe(70, { content: () => this.text() }),
          ...this.maybe(40, { toolCalls: () => this.random.list(0, 2, () => this.call(callId())) }),
          ...extra,
          ...named,
        };
      case "tool":
        return {
          id,
          role,
          toolCallId: callId(),
          content: this.content(),
          ...extra,
          ...this.maybe(10, { error: () => this.text() }),
        };
      case "activity":
        return { id, role, activityType: "plan", content: this.object(), ...extra };
      case "reasoning":
        return {
          id,
          role,
          content: this.text(),
          ...extra,
          ...this.maybe(20, { encryptedValue: () => this.text() }),
        };
      default:
        return { id, role, content: this.text(), ...extra, ...named };
    }
  }

  usage() {
    return this.random.list(0, 2, () => ({
      ...this.maybe(60, {
        provider: () => "someone",
        model: () => this.random.pick(["small", "large"]),
        inputTokens: () => this.random.below(1000),
        outputTokens: () => this.random.below(1000),
      }),
      ...this.maybe(20, {
        totalTokens: () => this.random.below(2000),
        reasoningTokens: () => this.random.below(100),
        cachedInputTokens: () => 0,
        cacheWriteInputTokens: () => this.random.below(100),
      }),
    }));
  }

  interrupt(id) {
    return {
      id,
      reason: this.random.pick(["approval", "input", ""]),
      ...this.maybe(20, {
        message: () => this.text(),
        toolCallId: () => "t1",
        expiresAt: () =>
          this.random.pick([
            "2001-01-01T00:00:00Z", "2999-12-31T23:59:59Z", "2999-12-31", "2001-01-01T00:00:00+02:00",
            "tomorrow", "",
          ]),
        responseSchema: () => this.object(),
        metadata: () => this.object(),
      }),
    };
  }

  /** A patch of `document`, most often one that can be applied. */
  patch(document) {
    const places = [...pointersOf(document)];
    const place = () =>
      this.random.chance(90)
        ? this.random.pick(places)
        : this.random.pick([{ pointer: "/nowhere", value: 1 }, { pointer: "/a/b/c/d", value: 1 }]);
    return this.random.list(0, 3, () => {
      const { pointer, value } = place();
      switch (this.random.weighted({ add: 4, replace: 3, remove: 2, test: 2, move: 1, copy: 1 })) {
        case "add":
          return { op: "add", path: this.#within(pointer, value), value: this.json(2) };
        case "replace":
          return { op: "replace", path: pointer, value: this.json(2) };
        case "remove":
          return { op: "remove", path: pointer };
        case "test":
          return {
            op: "test",
            path: pointer,
            value: this.random.chance(85) ? structuredClone(value) : this.json(1),
          };
        case "move":
          return { op: "move", from: pointer, path: this.#into(place()) };
        case "copy":
          return { op: "copy", from: pointer, path: this.#into(place()) };
      }
    });
  }

  #into({ pointer, value }) {
    return this.#within(pointer, value);
  }

  /** A place for something new in the container at `pointer`. */
  #within(pointer, value) {
    if (Array.isArray(value)) {
      return `${pointer}/${this.random.chance(40) ? "-" : this.random.below(value.length + 1)}`;
    }
    if (typeof value === "object" && value !== null) return `${pointer}/${escape(this.key())}`;
    return pointer;
  }
}

/** Every place of a document, with what is there. */
function* pointersOf(value, pointer = "") {
  yield { pointer, value };
  if (typeof value !== "object" || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    yield* pointersOf(member, `${pointer}/${escape(key)}`);
  }
}

function escape(key) {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}
