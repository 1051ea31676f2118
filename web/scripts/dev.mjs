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

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; worker-src 'self'; connect-src 'self'; img-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

function send(path, outgoing) {
  // Every path that is no file is a view of the page, which routes by itself; names in it may have dots.
  const named = join(PAGE, normalize(path));
  const file = extname(named) && named.startsWith(PAGE) && existsSync(named) ? named : join(PAGE, "index.html");
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

const option = (name, usual) => (process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : usual);
const hub = option("--hub", "http://127.0.0.1:7655");
const port = Number(option("--port", "5180"));
if (process.argv.includes("--watch")) {
  const { build } = await import("vite");
  await build({ root: fileURLToPath(new URL("..", import.meta.url)), logLevel: "warn", build: { watch: {} } });
}
const server = createServer((incoming, outgoing) => {
  const path = new URL(incoming.url, "http://page").pathname;
  if (path.startsWith("/api/")) proxy(hub, incoming, outgoing);
  else send(path, outgoing);
});
server.listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}/#TOKEN shows the page with the answers of ${hub}`));
