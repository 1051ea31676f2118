// Builds the page into crates/hub/page, and compresses each file beforehand: the hub sends the `.br` to browsers.
import { readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";
import { join } from "node:path";
import { build } from "vite";

const root = fileURLToPath(new URL("..", import.meta.url));
const page = fileURLToPath(new URL("../../crates/hub/page", import.meta.url));

await build({ root, logLevel: "warn" });

let sum = 0;
let first = 0;
const html = readFileSync(join(page, "index.html"), "utf8");
for (const name of readdirSync(page, { recursive: true }).sort()) {
  const file = join(page, name);
  if (!statSync(file).isFile()) continue;
  const bytes = readFileSync(file);
  const packed = brotliCompressSync(bytes, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: 11,
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
    },
  });
  writeFileSync(`${file}.br`, packed);
  sum += packed.length;
  if (name === "index.html" || html.includes(`/${name}`)) first += packed.length;
  console.log(`${name.padEnd(44)} ${String(bytes.length).padStart(8)} ${String(packed.length).padStart(8)} br`);
}
console.log(`first load ${(first / 1000).toFixed(1)} kB, all files ${(sum / 1000).toFixed(1)} kB, compressed`);
