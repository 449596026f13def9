// Random threads: what they start from, what is asked, and the streams that answer.

import { mutate } from "./mutate.mjs";
import { applyPatch } from "./patch.mjs";
import { Random } from "./random.mjs";
import { spell } from "./spell.mjs";
import { Values } from "./values.mjs";

/**
 * The thread of a seed: always the same one.
 *
 * @returns {{seed: number, messages: object[], state: unknown, exchanges: {
 *   addMessages: object[], input: object, frames: string[], read: number}[]}}
 *   `input` lacks messages and state, which are the thread's at that time; `frames` are the frames
 *   of the answer, each as text; `read` is how many bytes of it our client gets at once.
 */
export function generate(seed) {
  const random = new Random(seed);
  const model = new Model(random);
  const messages = random.list(0, 3, () => model.history());
  const state = random.chance(60) ? model.values.object() : {};
  model.begin(messages, state);

  const exchanges = [];
  for (let at = random.chance(65) ? 1 : random.between(2, 3); at > 0; at--) {
    const addMessages = random.chance(50) ? [model.added("user")] : [];
    const input = model.input();
    const events = structuredClone(model.answer(input));
    if (random.chance(60)) mutate(events, random);
    const frames = events.map((event) => spell(event, random));
    exchanges.push({ addMessages, input, frames, read: random.pick([1, 7, 64, 1000, 2 ** 20]) });
  }
  return { seed, messages, state, exchanges };
}

const THREAD = "thread";
const TOOLS = [{ name: "search", description: "Searches" }];

/** What a conforming producer has to know of a thread to go on with it. */
class Model {
  constructor(random) {
    this.random = random;
    this.values = new Values(random);
    this.minted = [];
    /** In how many of a hundred times an id is not a new one. */
    this.repeats = random.chance(80) ? 0 : 12;
    this.open = [];
  }

  begin(messages, state) {
    this.messages = messages.map(({ id, role }) => ({ id, role }));
    this.calls = messages.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id }) => id));
    this.state = state;
    this.activities = new Map(
      messages.filter(({ role }) => role === "activity").map(({ id, content }) => [id, content]),
    );
  }

  mint(prefix) {
    if (this.minted.length > 0 && this.random.chance(this.repeats)) {
      return this.random.pick(this.minted);
    }
    this.minted.push(`${prefix}${this.minted.length + 1}`);
    return this.minted.at(-1);
  }

  history() {
    const role = this.random.weighted({
      user: 4, assistant: 4, tool: 1, system: 1, developer: 1, activity: 2, reasoning: 1,
    });
    return this.values.message(this.mint("h"), role, () => this.mint("t"));
  }

  added(role) {
    const message = this.values.message(this.mint("u"), role, () => this.mint("t"));
    this.messages.push({ id: message.id, role });
    return message;
  }

  /** The input of the next exchange. Interrupts are answered most of the time. */
  input() {
    const { random, values } = this;
    const answered = this.open.filter(() => random.chance(93));
    const resume = answered.map((interruptId) => ({
      interruptId,
      status: random.pick(["resolved", "resolved", "cancelled"]),
      ...values.maybe(40, { payload: () => values.some(), metadata: () => values.object() }),
    }));
    if (random.chance(4)) resume.push({ interruptId: "never-raised", status: "resolved" });
    return {
      threadId: THREAD,
      runId: this.mint("run"),
      tools: random.chance(20) ? TOOLS : [],
      context: random.chance(10) ? [{ description: "place", value: values.text() }] : [],
      forwardedProps: random.chance(20) ? values.object() : {},
      ...((resume.length > 0 || random.chance(5)) && { resume }),
    };
  }

  /** The events of one answer: one run, or several. */
  answer(input) {
    const events = [];
    const runs = this.random.chance(85) ? 1 : this.random.between(2, 3);
    for (let at = 1; at <= runs; at++) {
      const run = at === runs ? input.runId : this.mint("replayed");
      new Run(this, run, input, events).stream();
    }
    return events;
  }
}

/** One run as it is streamed: what is open, and what may come next. */
class Run {
  constructor(model, id, input, events) {
    this.model = model;
    this.random = model.random;
    this.values = model.values;
    this.id = id;
    this.input = input;
    this.events = events;
    this.texts = [];
    this.calls = [];
    this.spans = [];
    this.thoughts = [];
    this.steps = [];
    this.subagents = [];
    this.ended = [];
    this.lanes = new Map();
    this.owners = new Map();
  }

  stream() {
    const { random, values } = this;
    if (random.chance(3)) return this.fail();
    this.emit({
      type: "RUN_STARTED",
      threadId: THREAD,
      runId: this.id,
      ...values.maybe(20, {
        protocolVersion: () => random.pick(["1.0", "1.0", "0.9", "1.1", "2.0", "1", "draft"]),
        parentRunId: () => "run0",
        input: () => this.echo(),
      }),
    });
    const actions = random.between(0, 18);
    for (let at = 0; at < actions; at++) this.act();
    if (random.chance(8)) return this.fail();
    if (random.chance(6)) return;
    this.close();
    this.finish();
    if (random.chance(4)) this.fail();
  }

  echo() {
    const { messages: _, ...input } = { ...this.input, messages: [] };
    const messages = this.random.chance(40) ? [this.model.added("user")] : [];
    return { ...input, messages, ...this.values.maybe(30, { state: () => this.values.some() }) };
  }

  /** One random thing that the rules allow now. */
  act() {
    const { random } = this;
    const action = random.weighted({
      text: 5, content: 8, textEnd: 3, textChunk: 7, reopen: 1,
      call: 4, args: 5, callEnd: 2, callChunk: 5, result: 3, recall: 1,
      span: 1, spanEnd: 1, thought: 2, thoughtContent: 3, thoughtEnd: 1, thoughtChunk: 3,
      encrypted: 2, snapshot: 2, delta: 4, messages: 1, activity: 3, activityDelta: 3,
      step: 2, stepEnd: 2, subagent: 2, subagentEnd: 1, raw: 1, custom: 1, retired: 1, clash: 1,
    });
    this[action]();
  }

  // --- text

  text() {
    const messageId = this.model.mint("m");
    const role = this.random.pick(["assistant", "assistant", "user", "system", "developer"]);
    const opener = {
      ...(this.random.chance(60) && { role }),
      ...this.values.maybe(10, { name: () => this.values.text() }),
    };
    this.emit({ type: "TEXT_MESSAGE_START", messageId, ...opener, ...this.owned(messageId) });
    this.note(messageId, opener.role ?? "assistant");
    this.texts.push(messageId);
  }

  reopen() {
    const known = this.events.filter(
      ({ type, messageId }) =>
        type === "TEXT_MESSAGE_START" &&
        !this.texts.includes(messageId) &&
        !this.holds("text", messageId) &&
        this.owners.has(messageId),
    );
    if (known.length === 0) return;
    const { metadata: _, timestamp: __, rawEvent: ___, ...opener } = this.random.pick(known);
    this.emit(opener);
    this.texts.push(opener.messageId);
  }

  content() {
    if (this.texts.length === 0) return this.text();
    const messageId = this.random.pick(this.texts);
    this.go("TEXT_MESSAGE_CONTENT", { messageId, delta: this.values.text() }, messageId);
  }

  textEnd() {
    const messageId = this.taken(this.texts);
    if (messageId) this.go("TEXT_MESSAGE_END", { messageId }, messageId);
  }

  textChunk() {
    this.chunk("text", "TEXT_MESSAGE_CHUNK", "messageId", (id) => {
      const role = this.random.pick(["assistant", "assistant", "user"]);
      const opener = {
        ...(this.random.chance(40) && { role }),
        ...this.values.maybe(10, { name: () => this.values.text() }),
      };
      this.note(id, opener.role ?? "assistant");
      return opener;
    });
  }

  // --- tools

  call() {
    const toolCallId = this.model.mint("t");
    const parents = this.model.messages.filter(({ role }) => role === "assistant");
    const parent =
      parents.length > 0 && this.random.chance(80)
        ? this.random.pick(parents).id
        : this.model.mint("m");
    const named = this.random.chance(60);
    const owner = named && this.owners.has(parent) ? this.owners.get(parent) : this.owner();
    this.emit({
      type: "TOOL_CALL_START",
      toolCallId,
      toolCallName: this.random.pick(["search", "paint"]),
      ...(named && { parentMessageId: parent }),
      ...tag(owner),
    });
    this.owners.set(toolCallId, owner);
    if (named && !this.owners.has(parent)) this.owners.set(parent, owner);
    this.note(named ? parent : toolCallId, "assistant");
    this.model.calls.push(toolCallId);
    this.calls.push(toolCallId);
  }

  recall() {
    const known = this.events.filter(
      ({ type, toolCallId }) =>
        type === "TOOL_CALL_START" &&
        !this.calls.includes(toolCallId) &&
        !this.holds("tool", toolCallId) &&
        this.owners.has(toolCallId),
    );
    if (known.length === 0) return;
    const { metadata: _, timestamp: __, rawEvent: ___, ...opener } = this.random.pick(known);
    this.emit(opener);
    this.calls.push(opener.toolCallId);
  }

  args() {
    if (this.calls.length === 0) return this.call();
    const toolCallId = this.random.pick(this.calls);
    this.go("TOOL_CALL_ARGS", { toolCallId, delta: this.values.text() }, toolCallId);
  }

  callEnd() {
    const toolCallId = this.taken(this.calls);
    if (toolCallId) this.go("TOOL_CALL_END", { toolCallId }, toolCallId);
  }

  callChunk() {
    this.chunk("tool", "TOOL_CALL_CHUNK", "toolCallId", (id) => {
      this.model.calls.push(id);
      return {
        toolCallName: this.random.pick(["search", "paint"]),
        ...this.values.maybe(30, { parentMessageId: () => this.model.mint("m") }),
      };
    });
  }

  result() {
    if (this.model.calls.length === 0) return;
    const messageId = this.model.mint("r");
    this.emit({
      type: "TOOL_CALL_RESULT",
      messageId,
      toolCallId: this.random.pick(this.model.calls),
      content: this.values.content(),
      ...(this.random.chance(40) && { role: "tool" }),
      ...this.owned(messageId),
    });
    this.note(messageId, "tool");
  }

  // --- reasoning

  span() {
    const messageId = this.model.mint("s");
    this.emit({ type: "REASONING_START", messageId, ...this.owned(messageId) });
    this.spans.push(messageId);
  }

  spanEnd() {
    const messageId = this.taken(this.spans);
    if (messageId) this.go("REASONING_END", { messageId }, messageId);
  }

  thought() {
    const messageId = this.random.chance(80) ? this.model.mint("g") : this.random.pick(this.spans);
    if (!messageId || this.thoughts.includes(messageId)) return;
    const role = "reasoning";
    const owner = this.owners.has(messageId) ? tag(this.owners.get(messageId)) : this.owned(messageId);
    this.emit({ type: "REASONING_MESSAGE_START", messageId, role, ...owner });
    this.note(messageId, role);
    this.thoughts.push(messageId);
  }

  thoughtContent() {
    if (this.thoughts.length === 0) return this.thought();
    const messageId = this.random.pick(this.thoughts);
    this.go("REASONING_MESSAGE_CONTENT", { messageId, delta: this.values.text() }, messageId);
  }

  thoughtEnd() {
    const messageId = this.taken(this.thoughts);
    if (messageId) this.go("REASONING_MESSAGE_END", { messageId }, messageId);
  }

  thoughtChunk() {
    this.chunk("reasoning", "REASONING_MESSAGE_CHUNK", "messageId", (id) => {
      this.note(id, "reasoning");
      return {};
    });
  }

  encrypted() {
    const calls = this.random.chance(40);
    const known = calls ? this.model.calls : this.model.messages.map(({ id }) => id);
    this.emit({
      type: "REASONING_ENCRYPTED_VALUE",
      subtype: calls ? "tool-call" : "message",
      entityId: known.length > 0 && this.random.chance(90) ? this.random.pick(known) : "nobody",
      encryptedValue: this.values.text(),
      ...this.values.maybe(6, { encryptedValueType: () => "someone.blob" }),
      ...tag(this.owner()),
    });
  }

  // --- state, history, activity

  snapshot() {
    const snapshot = this.random.chance(85) ? this.values.object(3) : this.values.json();
    this.emit({ type: "STATE_SNAPSHOT", snapshot, ...tag(this.owner()) });
    this.model.state = snapshot;
  }

  delta() {
    const delta = this.values.patch(this.model.state ?? {});
    this.emit({ type: "STATE_DELTA", delta, ...tag(this.owner()) });
    this.model.state = patched(this.model.state, delta);
  }

  messages() {
    const { model, random, values } = this;
    const call = () => (model.calls.length > 0 ? random.pick(model.calls) : model.mint("t"));
    const kept = model.messages.filter(() => random.chance(75));
    const added = random.list(0, 2, () => ({
      id: model.mint("n"),
      role: random.pick(["user", "assistant", "tool", "activity", "reasoning", "system"]),
    }));
    const messages = [...kept, ...added].map(({ id, role }) =>
      // A call belongs to one message only.
      values.message(id, role, role === "assistant" ? () => model.mint("t") : call),
    );
    this.emit({ type: "MESSAGES_SNAPSHOT", messages });
    const { state, activities } = model;
    model.begin(messages, state);
    for (const [id, content] of activities) {
      if (messages.every(({ role }) => role !== "activity")) model.activities.set(id, content);
    }
  }

  activity() {
    const known = [...this.model.activities.keys()];
    const messageId =
      known.length > 0 && this.random.chance(50) ? this.random.pick(known) : this.model.mint("a");
    const content = this.values.object(3);
    const replace = this.random.pick([true, false, undefined, undefined]);
    this.emit({
      type: "ACTIVITY_SNAPSHOT",
      messageId,
      activityType: this.random.pick(["plan", "search"]),
      content,
      ...(replace !== undefined && { replace }),
      ...tag(this.owner()),
    });
    if (replace !== false || !this.model.activities.has(messageId)) {
      this.model.activities.set(messageId, content);
    }
    this.note(messageId, "activity");
  }

  activityDelta() {
    const known = [...this.model.activities.keys()];
    const messageId = known.length > 0 && this.random.chance(92) ? this.random.pick(known) : "nobody";
    const content = this.model.activities.get(messageId) ?? {};
    const patch = this.values.patch(content);
    this.emit({
      type: "ACTIVITY_DELTA",
      messageId,
      activityType: this.random.pick(["plan", "search"]),
      patch,
      ...tag(this.owner()),
    });
    if (known.includes(messageId)) this.model.activities.set(messageId, patched(content, patch));
  }

  // --- steps and subagents

  step() {
    const stepName = this.model.mint("step");
    const owner = this.owner();
    this.emit({ type: "STEP_STARTED", stepName, ...tag(owner) });
    this.steps.push({ stepName, owner });
  }

  stepEnd() {
    const step = this.taken(this.steps);
    if (step) this.emit({ type: "STEP_FINISHED", stepName: step.stepName, ...tag(step.owner) });
  }

  subagent() {
    const subagentRunId = this.model.mint("sub");
    const parents = [...this.subagents, ...this.ended];
    this.emit({
      type: "SUBAGENT_STARTED",
      subagentRunId,
      name: "helper",
      ...this.values.maybe(20, {
        description: () => this.values.text(),
        parentToolCallId: () => "t1",
        parentMessageId: () => "m1",
      }),
      ...(parents.length > 0 &&
        this.random.chance(30) && { parentSubagentRunId: this.random.pick(parents) }),
    });
    this.subagents.push(subagentRunId);
  }

  subagentEnd() {
    const subagentRunId = this.taken(this.subagents);
    if (!subagentRunId) return;
    const { values } = this;
    const interruptIds = () => this.random.list(0, 2, () => values.text());
    const event = this.random.pick([
      { type: "SUBAGENT_FINISHED" },
      { type: "SUBAGENT_FINISHED", outcome: { type: "success" } },
      {
        type: "SUBAGENT_FINISHED",
        outcome: { type: "suspended", ...values.maybe(50, { interruptIds }) },
      },
      { type: "SUBAGENT_ERROR", message: values.text(), ...values.maybe(30, { code: () => "c" }) },
    ]);
    const result = event.type === "SUBAGENT_FINISHED" && values.maybe(30, { result: () => values.some() });
    this.emit({ ...event, subagentRunId, ...result });
    this.ended.push(subagentRunId);
  }

  // --- passed through, and retired

  raw() {
    const source = this.values.maybe(30, { source: () => "someone" });
    this.emit({ type: "RAW", event: this.values.json(), ...source, ...tag(this.owner()) });
  }

  custom() {
    const name = this.values.text();
    this.emit({ type: "CUSTOM", name, value: this.values.json(), ...tag(this.owner()) });
  }

  retired() {
    const delta = () => ({ type: "THINKING_TEXT_MESSAGE_CONTENT", delta: this.values.text() });
    this.emit({ type: "THINKING_START", ...this.values.maybe(20, { title: () => "Thoughts" }) });
    if (this.random.chance(70)) {
      this.emit({ type: "THINKING_TEXT_MESSAGE_START" });
      for (let at = this.random.below(3); at > 0; at--) this.emit(delta());
      this.emit({ type: "THINKING_TEXT_MESSAGE_END" });
    }
    this.emit({ type: "THINKING_END" });
  }

  /** An id that something else has already. */
  clash() {
    const { model, random, values } = this;
    const ids = [...model.messages.map(({ id }) => id), ...model.calls, ...this.spans];
    if (ids.length === 0) return;
    const id = random.pick(ids);
    const owner = tag(random.chance(80) ? this.owners.get(id) : this.owner());
    const other = random.pick(ids);
    const event = random.pick([
      { type: "TEXT_MESSAGE_START", messageId: id, role: "user" },
      { type: "REASONING_MESSAGE_START", messageId: id, role: "reasoning" },
      { type: "REASONING_START", messageId: id },
      { type: "TOOL_CALL_START", toolCallId: id, toolCallName: "search" },
      { type: "TOOL_CALL_START", toolCallId: id, toolCallName: "paint", parentMessageId: other },
      { type: "TOOL_CALL_RESULT", messageId: id, toolCallId: other, content: values.content() },
      { type: "ACTIVITY_SNAPSHOT", messageId: id, activityType: "plan", content: values.object() },
      { type: "ACTIVITY_DELTA", messageId: id, activityType: "plan", patch: values.patch({}) },
    ]);
    this.emit({ ...event, ...owner });
    const opened = {
      TEXT_MESSAGE_START: this.texts,
      REASONING_MESSAGE_START: this.thoughts,
      REASONING_START: this.spans,
      TOOL_CALL_START: this.calls,
    }[event.type];
    if (opened && !opened.includes(id)) opened.push(id);
  }

  // --- the end

  close() {
    while (this.texts.length > 0) this.textEnd();
    while (this.calls.length > 0) this.callEnd();
    while (this.thoughts.length > 0) this.thoughtEnd();
    while (this.spans.length > 0) this.spanEnd();
    while (this.steps.length > 0) this.stepEnd();
    while (this.subagents.length > 0) this.subagentEnd();
  }

  finish() {
    const { random, values, model } = this;
    const kind = random.weighted({ none: 5, success: 3, interrupt: 4, cancelled: 1 });
    const finished = { type: "RUN_FINISHED", threadId: THREAD, runId: this.id };
    const extra = values.maybe(20, { result: () => values.some(), usage: () => values.usage() });
    const ids = () => random.list(0, 2, () => "t1");
    const raised = random.list(1, 3, () => values.interrupt(model.mint("i")));
    const outcome = {
      none: undefined,
      success: { type: "success", ...values.maybe(30, { pendingToolCallIds: ids }) },
      interrupt: { type: "interrupt", interrupts: raised },
      cancelled: { type: "cancelled" },
    }[kind];
    this.emit({ ...finished, ...extra, ...(outcome && { outcome }) });
    model.open = kind === "interrupt" ? raised.map(({ id }) => id) : [];
  }

  fail() {
    const extra = this.values.maybe(20, { code: () => "c", usage: () => this.values.usage() });
    this.emit({ type: "RUN_ERROR", message: this.values.text(), ...extra });
  }

  // --- how events come to be

  emit(event) {
    const { random, values } = this;
    const extra = values.maybe(4, {
      timestamp: () => random.pick([0, 1700000000000, -1]),
      rawEvent: () => values.some(),
      metadata: () => values.object(),
    });
    this.closeLanes(event);
    this.events.push({ ...event, ...extra });
  }

  /** A continuation: with or without its owner. */
  go(type, members, id) {
    const owner = this.owners.get(id);
    this.emit({ type, ...members, ...(this.random.chance(60) && tag(owner)) });
  }

  /** The next chunk of some lane: its first, or another. */
  chunk(kind, type, idName, open) {
    const owner = this.owner();
    const lane = this.lanes.get(owner);
    const delta = this.values.maybe(85, { delta: () => this.values.text() });
    if (lane?.kind === kind && this.random.chance(75)) {
      const named = this.random.chance(30) && { [idName]: lane.id };
      this.emit({ type, ...named, ...delta, ...tag(owner) });
      return;
    }
    const id = this.model.mint(kind[0]);
    const opener = open(id);
    this.emit({ type, [idName]: id, ...opener, ...delta, ...tag(owner) });
    this.owners.set(id, owner);
    this.lanes.set(owner, { kind, id });
  }

  /** Section 10: which chunks an event closes. */
  closeLanes({ type, subagentRunId }) {
    if (/^(RUN_|MESSAGES_)/.test(type)) this.lanes.clear();
    else if (!/^(RAW|ACTIVITY_|REASONING_ENCRYPTED|SUBAGENT_STARTED|.*_CHUNK$)/.test(type)) {
      this.lanes.delete(subagentRunId);
    }
  }

  holds(kind, id) {
    return [...this.lanes.values()].some((lane) => lane.kind === kind && lane.id === id);
  }

  /** Whom the next item belongs to: most often the parent agent. */
  owner() {
    return this.subagents.length > 0 && this.random.chance(50)
      ? this.random.pick(this.subagents)
      : undefined;
  }

  owned(id) {
    const owner = this.owner();
    this.owners.set(id, owner);
    return tag(owner);
  }

  note(id, role) {
    if (this.model.messages.every((message) => message.id !== id)) {
      this.model.messages.push({ id, role });
    }
  }

  taken(list) {
    return list.splice(this.random.below(list.length), 1)[0];
  }
}

function tag(owner) {
  return owner === undefined ? {} : { subagentRunId: owner };
}

function patched(document, patch) {
  try {
    return applyPatch(document, patch);
  } catch {
    return document;
  }
}
