// Draws the table of those who fold: time against the length of a token stream, both logarithmic.
//
//     cargo bench -p agui-bench -- peers | node benches/plot.mjs > docs/folding.svg

import { readFileSync } from "node:fs";

const SERIES = [
  { name: "agui", colour: "#0b6e4f" },
  { name: "ag-ui 0.5 (crate)", colour: "#c45a00" },
  { name: "@ag-ui/client 1.0 (npm)", colour: "#8a1c7c" },
];
const [WIDTH, HEIGHT] = [720, 440];
const PLOT = { left: 80, right: 510, top: 30, bottom: 380 };

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
const y = scale(all.map(([, ms]) => ms).map(decade).flat(), PLOT.bottom, PLOT.top);

const parts = [];
for (let ms = y.low; ms <= y.high * 1.001; ms *= 10) {
  const at = y(ms);
  parts.push(
    `<line x1="${PLOT.left}" y1="${at}" x2="${PLOT.right}" y2="${at}" stroke="#ddd"/>`,
    text(PLOT.left - 8, at + 4, ms < 1000 ? `${round(ms)} ms` : `${ms / 1000} s`, "end"),
  );
}
for (const tokens of new Set(all.map(([tokens]) => tokens))) {
  const at = x(tokens);
  parts.push(
    `<line x1="${at}" y1="${PLOT.top}" x2="${at}" y2="${PLOT.bottom}" stroke="#ddd"/>`,
    text(at, PLOT.bottom + 20, tokens.toLocaleString("en"), "middle"),
  );
}
parts.push(text((PLOT.left + PLOT.right) / 2, PLOT.bottom + 45, "tokens in one message", "middle"));
SERIES.forEach(({ name, colour }, series) => {
  const drawn = points[series].map(([tokens, ms]) => [x(tokens), y(ms)]);
  const [lastX, lastY] = drawn.at(-1);
  parts.push(
    `<polyline points="${drawn.map((point) => point.join()).join(" ")}" fill="none" ` +
      `stroke="${colour}" stroke-width="2"/>`,
    ...drawn.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`),
    text(lastX + 10, lastY + 4, name, "start", colour),
  );
});

console.log(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img"
  font-family="sans-serif" font-size="13">
<title>Time to fold a token stream, against its length</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
${parts.join("\n")}
</svg>`);

/** Where a value is drawn, between the least and the greatest of these. */
function scale(values, from, to) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const at = (value) => round(from + ((to - from) * Math.log(value / low)) / Math.log(high / low));
  return Object.assign(at, { low, high });
}

/** The powers of ten around a value. */
function decade(value) {
  const exponent = Math.floor(Math.log10(value));
  return [10 ** exponent, 10 ** (exponent + 1)];
}

function text(atX, atY, content, anchor, colour = "#333") {
  return `<text x="${atX}" y="${atY}" text-anchor="${anchor}" fill="${colour}">${content}</text>`;
}

function round(number) {
  return Math.round(number * 10) / 10;
}
