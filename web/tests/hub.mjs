// Starts the simulated fleet of `taffrail demo`, and hubs that follow it. Everything ends with the tests.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const BIN = process.env.TAFFRAIL_BIN;

/** The reason why the tests cannot run here, if there is one. */
export const missing = () => (BIN ? undefined : "TAFFRAIL_BIN names no taffrail binary");

function start(args, pattern) {
  const child = spawn(BIN, args, { stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  const found = new Promise((resolve, reject) => {
    const take = (chunk) => {
      text += chunk;
      const match = pattern.exec(text);
      if (match) resolve(match);
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.once("exit", (code) => reject(new Error(`taffrail ${args.join(" ")} ended with ${code}: ${text}`)));
  });
  return { child, found };
}

const end = (child, signal = "SIGTERM") =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once("exit", resolve);
    child.kill(signal);
  });

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

/** Starts the fleet that `seed` draws, and its hub, 20 s into its round of faults. */
export async function startFleet(seed = 1) {
  const folder = mkdtempSync(join(tmpdir(), "taffrail-page-"));
  const kubeconfig = join(folder, "kubeconfig.yaml");
  const { child, found } = start(
    ["demo", "--kubeconfig", kubeconfig, "--skip", "20s", "--seed", String(seed)],
    /TAFFRAIL_HUB_TOKEN=(\S+)[\s\S]*--hub (http:\S+)/,
  );
  const [, token, hub] = await found;
  const hubs = [];
  /** Starts one more hub of the same clusters, which a test may kill. */
  async function startHub(port) {
    const at = port ?? (await freePort());
    const hub = start(
      ["hub", "serve", "--all-contexts", "--kubeconfig", kubeconfig, "--listen", `127.0.0.1:${at}`, "--data", join(folder, `data-${at}`)],
      /TAFFRAIL_HUB_TOKEN=(\S+)/,
    );
    hubs.push(hub.child);
    const [, token] = await hub.found;
    return { token, port: at, url: `http://127.0.0.1:${at}`, kill: () => end(hub.child, "SIGKILL") };
  }
  async function stop() {
    await Promise.all(hubs.map((one) => end(one)));
    await end(child);
    rmSync(folder, { recursive: true, force: true });
  }
  return { token, hub, startHub, stop };
}

/** Waits until `check` returns something. */
export async function until(check, what, millis = 60_000) {
  const end = Date.now() + millis;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not within ${millis} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** The full name of an app, as addresses have it. */
export const refOf = (row) => [row.cluster, row.delivery, row.namespace || "-", row.name].join("/");
