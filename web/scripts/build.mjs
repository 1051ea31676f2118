// Builds the page, and writes into crates/hub/page what the hub is compiled with: each file compressed, and a list of
// them as a Rust expression. `cargo build` needs no Node, since these files are committed; `cargo xtask tidy` compares the
// digest of the sources in the list with the sources.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { extname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "vite";
import { PAGE, TYPES } from "./page.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const repository = fileURLToPath(new URL("../..", import.meta.url));
const into = fileURLToPath(new URL("../../crates/hub/page", import.meta.url));

/** The sources of the page, in the order of their paths; `tidy` has the same list. */
const SOURCES = ["docs/openapi.json", "web/index.html", "web/package-lock.json", "web/public", "web/scripts", "web/src", "web/tsconfig.json", "web/vite.config.ts"];

const filesIn = (path) =>
  statSync(path).isDirectory() ? readdirSync(path).sort().flatMap((name) => filesIn(join(path, name))) : [path];

function digest() {
  const hash = createHash("sha256");
  for (const file of SOURCES.flatMap((path) => filesIn(join(repository, path)))) {
    const bytes = readFileSync(file);
    hash.update(`${relative(repository, file)} ${bytes.length}\n`).update(bytes);
  }
  return hash.digest("hex");
}

await import("./types.mjs");
await build({ root, logLevel: "warn" });

rmSync(into, { recursive: true, force: true });
mkdirSync(into);
const html = readFileSync(join(PAGE, "index.html"), "utf8");
const entries = [];
let sum = 0;
let first = 0;
for (const file of filesIn(PAGE)) {
  const name = relative(PAGE, file);
  const bytes = readFileSync(file);
  const packed = gzipSync(bytes, { level: 9 });
  // The operating system of the build, which a header of gzip tells, is not that of the page.
  packed[9] = 255;
  const flat = `${name.replaceAll("/", "-")}.gz`;
  writeFileSync(join(into, flat), packed);
  const path = name === "index.html" ? "/" : `/${name}`;
  entries.push(`    PageFile { path: "${path}", content_type: "${TYPES[extname(name)]}", gzip: include_bytes!("${flat}") },`);
  sum += packed.length;
  if (path === "/" || html.includes(path)) first += packed.length;
  console.log(`${name.padEnd(44)} ${String(bytes.length).padStart(8)} ${String(packed.length).padStart(8)} gzip`);
}
writeFileSync(join(into, "files.rs"), `// Written by \`npm run build\` in web/. Digest of the sources: ${digest()}\n&[\n${entries.join("\n")}\n]\n`);
console.log(`first load ${(first / 1000).toFixed(1)} kB, all files ${(sum / 1000).toFixed(1)} kB, compressed`);
