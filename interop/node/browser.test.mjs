// Our runtime behind a CopilotKit page in a real browser: examples/copilotkit-react, built, unmodified
// packages and all, in headless Chromium. Whatever the page writes to its console as an error, throws,
// or asks of another machine fails the test.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { aguiBinary, startAgui } from "../lib/processes.mjs";
import { builtPage, screenshots, serveFolder, startBrowser, whyNoBrowser } from "./browser.mjs";

// Without the binary the whole file fails here, with one message.
aguiBinary();

/** How long the page may take for anything: far more than it needs, on a busy machine too. */
const WAIT_MS = 20_000;

const skip = whyNoBrowser();
let server, site, browser;

if (!skip) {
  before(async () => {
    [server, site, browser] = await Promise.all([
      startAgui(),
      serveFolder(builtPage),
      startBrowser(),
    ]);
  });
  after(() => Promise.all([browser?.stop(), site?.stop(), server?.stop()]));
}

/**
 * A test with pages. What they complained about is judged at the end, also when it failed before;
 * `allowed` is what they may say.
 */
function pageTest(name, body, { allowed = [] } = {}) {
  test(name, { skip, timeout: 90_000 }, async () => {
    const pages = [];
    const complaints = [];
    const open = async (thread = randomUUID()) => {
      const page = await browser.context.newPage();
      pages.push(page);
      page.setDefaultTimeout(WAIT_MS);
      listen(page, complaints);
      const query = new URLSearchParams({ thread, runtimeUrl: `${server.url}/api/copilotkit` });
      await page.goto(`${site.url}/?${query}`);
      return new Chat(page, thread);
    };
    try {
      await body(open);
    } finally {
      for (const [index, page] of pages.entries()) {
        const file = `${name.replaceAll(/[^a-z]+/gi, "-")}${index || ""}.png`;
        await page.screenshot({ path: join(screenshots(), file) });
        await page.close();
      }
    }
    const unexpected = complaints.filter((text) => !allowed.some((pattern) => pattern.test(text)));
    assert.deepEqual(unexpected, []);
  });
}

function listen(page, complaints) {
  page.on("pageerror", (error) => complaints.push(`threw ${error}`));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  page.on("request", (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (protocol.startsWith("http") && hostname !== "127.0.0.1") {
      complaints.push(`asked for ${request.url()}`);
    }
  });
}

/** What somebody at the page sees and does. */
class Chat {
  constructor(page, thread) {
    this.page = page;
    this.thread = thread;
    this.answers = page.getByTestId("copilot-assistant-message");
    this.button = page.getByTestId("copilot-send-button");
    this.problem = page.getByRole("alert");
    this.question = page.getByTestId("question");
  }

  async say(text) {
    const input = this.page.getByTestId("copilot-chat-textarea");
    await input.fill(text);
    await this.idle();
    await input.press("Enter");
    await this.page.getByTestId("copilot-user-message").filter({ hasText: text }).last().waitFor();
  }

  /** Waits until a message shows this text. */
  async sees(text) {
    await this.answers.filter({ hasText: text }).last().waitFor();
  }

  /** Waits until no run goes on. */
  async idle() {
    await this.button.locator("svg.lucide-arrow-up").waitFor();
  }

  async stop() {
    await this.button.locator("svg.lucide-square").waitFor();
    await this.button.click();
  }

  async answer(name) {
    await this.question.getByRole("button", { name }).click();
    await this.question.waitFor({ state: "detached" });
  }

  /** The whole conversation as it is shown, line by line. */
  async conversation() {
    await this.idle();
    return this.page.evaluate(shownLines);
  }

  /** Waits until this is the whole conversation. */
  async shows(lines) {
    const wanted = lines.join("\n");
    const same = `(${shownLines})().join("\\n") === ${JSON.stringify(wanted)}`;
    // Where it never is, the comparison says what differs.
    await this.page.waitForFunction(same).catch(() => {});
    assert.deepEqual(await this.conversation(), lines);
  }

  async state() {
    return JSON.parse(await this.page.getByTestId("state").innerText());
  }

  /** The threads in the list, once there are so many. */
  async threads(count) {
    const rows = this.page.getByRole("navigation").getByRole("listitem");
    await this.page.waitForFunction(
      (wanted) => document.querySelectorAll("nav li").length === wanted,
      count,
    );
    return rows;
  }
}

/** In the page: the lines of its conversation. */
const shownLines = () =>
  document
    .querySelector("[data-testid=copilot-message-list]")
    .innerText.split("\n")
    .filter((line) => line.trim() !== "");

/** What the demo agent says to a word that it does not know, as far as its end. */
const echoOf = (word) => new RegExp(`You said: ${word}\\s*Say help for what I can show\\.`);

pageTest("an answer is shown while it grows", async (open) => {
  const chat = await open();
  // Five minutes long, so whatever is shown is shown before its end.
  await chat.say("slow 300");
  await chat.sees("1 2");
  const first = (await chat.answers.innerText()).trim();
  await chat.sees(`${first} ${first.split(" ").length + 1}`);
  const second = (await chat.answers.innerText()).trim();
  assert.ok(second.startsWith(first) && second.length > first.length, `${first}, then ${second}`);
  await chat.stop();
  await chat.idle();
});

pageTest("the agent's tools are drawn, and drawn again after a reload", async (open) => {
  const chat = await open();
  await chat.say("tools");
  await chat.sees("4 °C and clear in Oslo.");
  const cards = chat.page.getByTestId("weather");
  const drawn = async () => (await cards.allInnerTexts()).map((text) => text.replaceAll("\n", " "));
  assert.deepEqual(await drawn(), ["Paris 18 °C, cloudy", "Oslo 4 °C, clear"]);
  const before = await chat.conversation();

  await chat.page.reload();
  await chat.sees("4 °C and clear in Oslo.");
  assert.deepEqual(await drawn(), ["Paris 18 °C, cloudy", "Oslo 4 °C, clear"]);
  await chat.shows(before);
});

pageTest("a tool of the page is carried out once, and the agent goes on", async (open) => {
  const chat = await open();
  const colour = () => chat.page.locator(".page").getAttribute("data-colour");
  assert.equal(await colour(), "indigo");
  await chat.say("frontend");
  await chat.sees("Your tool answered: The page is teal now");
  assert.equal(await colour(), "teal");
  await chat.page.getByText("Painted the page teal").waitFor();
  const before = await chat.conversation();

  await chat.page.reload();
  await chat.sees("Your tool answered: The page is teal now");
  await chat.shows(before);
  assert.equal(await colour(), "indigo", "history is shown, not done again");
});

pageTest("shared state, thoughts and activities show, and are there after a reload", async (open) => {
  const chat = await open();
  await chat.say("state");
  await chat.sees("The shared state went from 0 to 100.");
  await chat.say("reasoning");
  await chat.page.getByText("Thought for").waitFor();
  await chat.idle();
  await chat.say("activity");
  await chat.page.getByText("3 hits").waitFor();
  await chat.idle();
  const state = await chat.state();
  assert.equal(state.demo.progress, 100);
  assert.equal(await chat.page.getByRole("progressbar").getAttribute("value"), "100");

  await chat.page.reload();
  await chat.page.getByText("3 hits").waitFor();
  await chat.idle();
  assert.deepEqual(await chat.state(), state);
});

pageTest("a reload during a run shows the rest of it", async (open) => {
  const chat = await open();
  await chat.say("slow 5");
  await chat.sees("1 2");
  await chat.page.reload();
  await chat.sees("1 2 3 4 5 and done.");
  await chat.shows(["slow 5", "1 2 3 4 5 and done."]);
  await chat.say("hello");
  await chat.sees(echoOf("hello"));
});

pageTest("two pages on one thread see the same, while it comes and after", async (open) => {
  const one = await open();
  await one.say("slow 5");
  await one.sees("1");
  const two = await open(one.thread);
  await two.sees("1 2 3 4 5 and done.");
  await one.sees("1 2 3 4 5 and done.");
  await two.shows(await one.conversation());
});

pageTest("the stop button ends a run, and the next message works", async (open) => {
  const chat = await open();
  await chat.say("slow 300");
  await chat.sees("1 2");
  await chat.stop();
  await chat.idle();
  await chat.say("hello");
  await chat.sees(echoOf("hello"));
  const before = await chat.conversation();

  await chat.page.reload();
  await chat.sees(echoOf("hello"));
  await chat.shows(before);
});

pageTest("a run that a reloaded page has joined can be stopped there", async (open) => {
  const chat = await open();
  await chat.say("slow 300");
  await chat.sees("1 2");
  await chat.page.reload();
  await chat.sees("1 2");
  await chat.stop();
  await chat.idle();
  await chat.say("hello");
  await chat.sees(echoOf("hello"));
});

for (const [name, outcome, text] of [
  ["Approve", "deleted", "You approved, so notes.txt is deleted."],
  ["Reject", "refused", "You refused, so notes.txt stays."],
  ["Cancel", "refused", "You refused, so notes.txt stays."],
]) {
  pageTest(`a question can be answered: ${name}`, async (open) => {
    const chat = await open();
    await chat.say("approval");
    await chat.question.getByText("May I delete notes.txt?").waitFor();
    await chat.page.getByTestId("delete").getByText("waits for consent").waitFor();
    await chat.answer(name);
    await chat.sees(text);
    const before = await chat.conversation();

    await chat.page.reload();
    await chat.sees(text);
    await chat.shows(before);
    assert.equal(await chat.question.count(), 0, "it is not asked again");
    await chat.say("hello");
    await chat.sees(echoOf("hello"));
  });
}

pageTest("a question is still there after a reload, and can be answered", async (open) => {
  const chat = await open();
  await chat.say("approval");
  await chat.question.waitFor();
  await chat.page.reload();
  await chat.question.getByText("May I delete notes.txt?").waitFor();
  await chat.answer("Approve");
  await chat.sees("You approved, so notes.txt is deleted.");
});

pageTest(
  "a message to a busy thread is refused for all to see",
  async (open) => {
    const one = await open();
    const two = await open(one.thread);
    await two.idle();
    await one.say("slow 300");
    await one.sees("1");
    await two.say("hello");
    await two.problem.getByText("409").waitFor();
    await one.stop();
    await one.idle();
    await two.say("once more");
    await two.sees(echoOf("once more"));
  },
  { allowed: [/409/] },
);

pageTest("threads are listed, left, come back to, renamed, archived and deleted", async (open) => {
  const chat = await open();
  const others = await chat.page.evaluate(async (url) => {
    const { threads } = await (await fetch(`${url}/threads?agentId=default`)).json();
    return threads.length;
  }, `${server.url}/api/copilotkit`);
  await chat.say("first");
  await chat.sees(echoOf("first"));
  await chat.page.getByRole("button", { name: "New thread" }).click();
  await chat.answers.first().waitFor({ state: "detached" });
  await chat.say("second");
  await chat.sees(echoOf("second"));

  const rows = await chat.threads(others + 2);
  await rows.nth(1).locator(".go").click();
  await chat.sees(echoOf("first"));
  assert.equal(await chat.answers.filter({ hasText: "second" }).count(), 0);
  assert.equal(new URL(chat.page.url()).searchParams.get("thread"), chat.thread);
  await chat.page.goBack();
  await chat.sees(echoOf("second"));

  chat.page.once("dialog", (dialog) => dialog.accept("Trip to Oslo"));
  await rows.nth(1).getByTitle("Rename").click();
  const named = rows.filter({ hasText: "Trip to Oslo" });
  await named.waitFor();
  await chat.page.reload();
  await named.getByTitle("Archive").click();
  await chat.threads(others + 1);
  await rows.first().getByTitle("Delete").click();
  await chat.threads(others);
  await chat.page.reload();
  await chat.threads(others);
});
