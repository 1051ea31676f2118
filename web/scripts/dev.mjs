// Serves the built page as the hub does, and passes /api on to a running hub.
//
//   node scripts/dev.mjs --hub http://127.0.0.1:7655 [--port 5180] [--watch]
//
// The hub accepts requests only for its own host and from its own origin, so both headers are rewritten to its own.
import { createServer, request } from "node:http";
import { readFileSync, existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { extname, join, normalize } from "node:path";
import { PAGE, TYPES } from "./page.mjs";

export const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; worker-src 'self'; connect-src 'self'; img-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Starts the server; resolves to it once it listens. `hub` may be changed later through the returned object. */
export function serve({ hub, port = 0, page = PAGE }) {
  const state = { hub };
  const server = createServer((incoming, outgoing) => {
    const path = new URL(incoming.url, "http://page").pathname;
    if (path.startsWith("/api/")) return proxy(state.hub, incoming, outgoing);
    send(page, path, incoming, outgoing);
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve({ server, state, url: `http://127.0.0.1:${server.address().port}` }));
  });
}

function send(page, path, incoming, outgoing) {
  // Every path without an ending is a view of the page, which routes by itself.
  const name = extname(path) ? normalize(path).replace(/^\/+/, "") : "index.html";
  const file = join(page, name);
  if (!file.startsWith(page) || !existsSync(file)) return outgoing.writeHead(404).end();
  outgoing.writeHead(200, {
    "content-type": TYPES[extname(file)] ?? "application/octet-stream",
    "content-security-policy": CSP,
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
  });
  outgoing.end(readFileSync(file));
}

function proxy(hub, incoming, outgoing) {
  const to = new URL(incoming.url, hub);
  const headers = { ...incoming.headers, host: to.host };
  if (headers.origin) headers.origin = to.origin;
  const passed = request(to, { method: incoming.method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers);
    answer.pipe(outgoing);
    // A stream that the hub breaks off must break off here, too, not hang.
    answer.on("close", () => answer.complete || outgoing.destroy());
  });
  passed.on("error", () => (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end()));
  outgoing.on("close", () => passed.destroy());
  incoming.pipe(passed);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const option = (name) => process.argv[process.argv.indexOf(name) + 1];
  const hub = process.argv.includes("--hub") ? option("--hub") : "http://127.0.0.1:7655";
  const port = process.argv.includes("--port") ? Number(option("--port")) : 5180;
  if (process.argv.includes("--watch")) {
    const { build } = await import("vite");
    await build({ root: fileURLToPath(new URL("..", import.meta.url)), logLevel: "warn", build: { watch: {} } });
  }
  const { url } = await serve({ hub, port });
  console.log(`${url}/#TOKEN shows the page with the answers of ${hub}`);
}
