// A headless Chromium that reaches nothing but this machine, and a server for the page it shows.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { listening } from "../lib/listening.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Debian's Chromium, or what `AGUI_CHROMIUM` names. */
export const chromiumPath = process.env.AGUI_CHROMIUM ?? "/usr/bin/chromium";

/** The built page of `examples/copilotkit-react`. */
export const builtPage = join(root, "examples/copilotkit-react/dist");

/** Why there can be no browser test here; `undefined` where there can. */
export function whyNoBrowser() {
  if (!existsSync(chromiumPath)) {
    return `there is no Chromium at ${chromiumPath}: install Debian's \`chromium\`, or name one in AGUI_CHROMIUM`;
  }
  if (!existsSync(join(builtPage, "index.html"))) {
    return "the page is not built: (cd examples/copilotkit-react && npm ci && npm run build)";
  }
  return undefined;
}

/**
 * Starts a Chromium with a profile of its own that is gone with it.
 *
 * @returns {Promise<{context: import("playwright-core").BrowserContext, stop: () => Promise<void>}>}
 */
export async function startBrowser() {
  const { chromium } = await import("playwright-core");
  const profile = mkdtempSync(join(tmpdir(), "agui-browser-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: chromiumPath,
    headless: true,
    chromiumSandbox: false,
    viewport: { width: 1280, height: 800 },
    args: [
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      // No name is looked up, so nothing but loopback is reached.
      "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
      "--no-proxy-server",
    ],
  });
  return {
    context,
    async stop() {
      await context.close();
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Where screenshots go: a folder of the build, made when it is not there. */
export function screenshots() {
  const folder = join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "screenshots");
  mkdirSync(folder, { recursive: true });
  return folder;
}

/**
 * Serves a folder on a loopback port of the system's choice.
 *
 * @returns {Promise<{url: string, stop: () => Promise<void>}>}
 */
export async function serveFolder(folder) {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://127.0.0.1");
    const path = normalize(decodeURIComponent(pathname));
    const file = join(folder, path.endsWith("/") ? `${path}index.html` : path);
    try {
      const bytes = await readFile(file);
      response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
      response.end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  return listening(server);
}

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".wasm": "application/wasm",
};
