// One value has many spellings in JSON, and one frame in server-sent events.

/** An event as the text of one frame: most often the plain one. */
export function spell(event, random) {
  if (random.chance(80)) return frame(JSON.stringify(event));
  const text = spelled(event, random);
  const before = random.pick(["", "", ": comment\n", "event: message\n", "id: 7\n", "retry: 10\n"]);
  const colon = random.pick(["data: ", "data:"]);
  return `${before}${colon}${text}\n\n`;
}

/** The frame of a text. */
export function frame(text) {
  return `data: ${text}\n\n`;
}

/** The text of a frame, without what surrounds it. */
export function textOf(frame) {
  const line = frame.split("\n").find((line) => line.startsWith("data:"));
  return line.slice("data:".length).trimStart();
}

function spelled(value, random) {
  const space = random.pick(["", "", " ", "\t"]);
  if (Array.isArray(value)) {
    return `[${space}${value.map((item) => spelled(item, random)).join(`,${space}`)}]`;
  }
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).map(
      ([name, member]) => `${letters(name, random)}${space}:${spelled(member, random)}`,
    );
    // In any order: nothing may depend on it.
    for (let at = members.length - 1; at > 0; at--) {
      const other = random.below(at + 1);
      [members[at], members[other]] = [members[other], members[at]];
    }
    return `{${members.join(`${space},`)}}`;
  }
  return typeof value === "string" ? letters(value, random) : number(value, random);
}

function letters(text, random) {
  const plain = JSON.stringify(text);
  if (random.chance(70)) return plain;
  const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
  return `"${units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("")}"`;
}

function number(value, random) {
  const plain = JSON.stringify(value);
  if (!Number.isInteger(value) || !/^-?\d+$/.test(plain)) return plain;
  return random.pick([plain, plain, `${plain}.0`, `${plain}e0`]);
}
