// Draws the table of those who fold: time against the length of a token stream, both logarithmic.
//
//     cargo bench -p agui-bench -- peers | node benches/plot.mjs > docs/performance-folding.svg

import { readFileSync } from "node:fs";

const SERIES = [
  { name: "agui", colour: "#0b6e4f" },
  { name: "ag-ui 0.5 (crate)", colour: "#b85300" },
  { name: "@ag-ui/client 1.0 (npm)", colour: "#8a1c7c" },
];
const [WIDTH, HEIGHT] = [760, 500];
const PLOT = { left: 72, right: 540, top: 56, bottom: 436 };
const [INK, FAINT, GRID] = ["#24292f", "#59636e", "#e1e4e8"];

const points = SERIES.map(() => []);
for (const line of readFileSync(0, "utf8").split("\n")) {
  const cells = line.split("|").map((cell) => cell.trim().replaceAll(",", ""));
  const tokens = /^(\d+) tokens$/.exec(cells[1])?.[1];
  if (!tokens) continue;
  cells.slice(3, 6).forEach((ms, series) => {
    if (/^[\d.]+$/.test(ms)) points[series].push([Number(tokens), Number(ms)]);
  });
}
if (points.some((series) => series.length === 0)) {
  console.error("no table of those who fold on standard input, or one of them is missing in it");
  process.exit(1);
}

const all = points.flat();
const x = scale(all.map(([tokens]) => tokens), PLOT.left, PLOT.right);
const times = all.map(([, ms]) => ms);
const [lowest, highest] = [Math.min(...times) / 1.5, decade(Math.max(...times))];
const y = scale([lowest, highest], PLOT.bottom, PLOT.top);

const title = "From the bytes of a stream to its conversation";
const parts = [text(PLOT.left, 30, title, "start", INK, 16)];
for (let ms = decade(lowest); ms <= highest * 1.001; ms *= 10) {
  const at = y(ms);
  parts.push(line(PLOT.left, at, PLOT.right, at), text(PLOT.left - 10, at + 4, time(ms), "end"));
}
for (const tokens of new Set(all.map(([tokens]) => tokens))) {
  const at = x(tokens);
  parts.push(line(at, PLOT.top, at, PLOT.bottom));
  parts.push(text(at, PLOT.bottom + 20, count(tokens), "middle"));
}
parts.push(line(PLOT.left, PLOT.bottom, PLOT.right, PLOT.bottom));
const middle = (PLOT.left + PLOT.right) / 2;
parts.push(text(middle, PLOT.bottom + 44, "tokens in one message", "middle"));
SERIES.forEach(({ name, colour }, series) => {
  const drawn = points[series].map(([tokens, ms]) => [x(tokens), y(ms)]);
  const [[fewest, soon], [, ms]] = [points[series][0], points[series].at(-1)];
  const [endX, endY] = drawn.at(-1);
  const growth = `${time(ms)}, ${count(Math.round(ms / soon))} times that of ${count(fewest)}`;
  parts.push(
    `<polyline points="${drawn.map((point) => point.join()).join(" ")}" fill="none" ` +
      `stroke="${colour}" stroke-width="2.5" stroke-linejoin="round"/>`,
    ...drawn.map(
      ([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="4" fill="${colour}" stroke="#fff"/>`,
    ),
    text(endX + 14, endY - 1, name, "start", colour, 14),
    text(endX + 14, endY + 13, growth, "start", FAINT, 11),
  );
});

console.log(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img"
  font-family="-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif">
<title>Time to fold a token stream, against its length</title>
<rect width="${WIDTH}" height="${HEIGHT}" rx="6" fill="#fff"/>
${parts.join("\n")}
</svg>`);

/** Where a value is drawn, between the least and the greatest of these. */
function scale(values, from, to) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return (value) => round(from + ((to - from) * Math.log(value / low)) / Math.log(high / low));
}

/** The power of ten at or above a value. */
function decade(value) {
  return 10 ** Math.ceil(Math.log10(value));
}

function line(x1, y1, x2, y2) {
  return `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="${GRID}"/>`;
}

function text(atX, atY, content, anchor, colour = FAINT, size = 12) {
  const weight = size > 12 ? ' font-weight="600"' : "";
  return (
    `<text x="${atX}" y="${round(atY)}" text-anchor="${anchor}" fill="${colour}" ` +
    `font-size="${size}"${weight}>${content}</text>`
  );
}

/** Milliseconds as a person reads them: two digits that count. */
function time(ms) {
  const [value, unit] = ms < 1000 ? [ms, "ms"] : [ms / 1000, "s"];
  return `${Number(value.toPrecision(2))} ${unit}`;
}

function count(number) {
  return number.toLocaleString("en");
}

function round(number) {
  return Math.round(number * 10) / 10;
}
