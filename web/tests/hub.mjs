// Starts the simulated fleet of `taffrail demo`, and hubs that follow it. Everything ends with the tests.
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
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

/** Carries connections to the API server at `port`. As a broken line `cut` holds their bytes, until `mend`; `drop` ends those that are open. */
async function startWire(port) {
  const pairs = new Set();
  let isCut = false;
  const flow = (pair) => pair.forEach((socket, index) => (isCut ? socket.unpipe().pause() : socket.pipe(pair[1 - index])));
  const server = createServer((near) => {
    const pair = [near, connect(port, "127.0.0.1")];
    pairs.add(pair);
    for (const socket of pair) {
      socket.on("error", () => undefined);
      socket.on("close", () => {
        pairs.delete(pair);
        pair.forEach((one) => one.destroy());
      });
    }
    flow(pair);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const set = (value) => {
    isCut = value;
    pairs.forEach(flow);
  };
  const drop = () => pairs.forEach((pair) => pair.forEach((one) => one.destroy()));
  return {
    url: `https://127.0.0.1:${server.address().port}`,
    cut: () => set(true),
    mend: () => set(false),
    drop,
    end: () => {
      server.close();
      drop();
    },
  };
}

/** The API servers of a kubeconfig of the demo by their names: address, authority, and token of the admin. */
function serversOf(text) {
  const all = (pattern) => [...text.matchAll(pattern)];
  const tokens = new Map(all(/^- name: "admin-(.+)"\n +user:\n +token: "(.+)"$/gm).map(([, name, token]) => [name, token]));
  const servers = all(/^- name: "(.+)"\n +cluster:\n +server: (\S+)\n +certificate-authority-data: (\S+)$/gm);
  return new Map(servers.map(([, name, url, ca]) => [name, { url, ca: Buffer.from(ca, "base64"), token: tokens.get(name) }]));
}

/** Starts the fleet that `seed` draws, and its hub, 20 s into its round of faults. */
export async function startFleet(seed = 1) {
  const folder = mkdtempSync(join(tmpdir(), "taffrail-page-"));
  const kubeconfig = join(folder, "kubeconfig.yaml");
  const { child, found } = start(
    ["demo", "--kubeconfig", kubeconfig, "--skip", "20s", "--seed", String(seed)],
    /TAFFRAIL_HUB_TOKEN=(\S+)[\s\S]*--hub (http:\S+)/,
  );
  const [, token, hub] = await found;
  const text = readFileSync(kubeconfig, "utf8");
  const servers = serversOf(text);
  const hubs = [];
  const wires = [];
  /** Puts a wire before the API server of `cluster`. */
  async function addWire(cluster) {
    const wire = await startWire(new URL(servers.get(cluster).url).port);
    wires.push(wire);
    return { ...wire, cluster };
  }
  /** Starts one more hub of the same clusters, or of `contexts`, which reaches some of them by `through` and as other `users`. */
  async function startHub({ port, contexts, through = [], users = {} } = {}) {
    const at = port ?? (await freePort());
    const file = join(folder, `kubeconfig-${at}.yaml`);
    const wired = through.reduce((changed, wire) => changed.replace(`${servers.get(wire.cluster).url}\n`, `${wire.url}\n`), text);
    const reached = Object.entries(users).reduce((changed, [cluster, user]) => changed.replace(`"${servers.get(cluster).token}"`, `$&\n    as: "${user}"`), wired);
    writeFileSync(file, reached, { mode: 0o600 });
    const data = join(folder, `data-${at}`);
    const chosen = contexts ? ["--context", contexts.join(",")] : ["--all-contexts"];
    const hub = start(["hub", "serve", ...chosen, "--kubeconfig", file, "--listen", `127.0.0.1:${at}`, "--data", data], /TAFFRAIL_HUB_TOKEN=(\S+)/);
    hubs.push(hub.child);
    const [, token] = await hub.found;
    const tokens = (...args) => run(BIN, ["hub", "token", ...args, "--data", data]).then(({ stdout }) => stdout.trim());
    return { token, port: at, url: `http://127.0.0.1:${at}`, tokens, signal: (name) => hub.child.kill(name), kill: () => end(hub.child, "SIGKILL") };
  }
  /** Asks the API server of `cluster`, as its admin; returns the body of the answer. */
  function api(cluster, method, path, body, type = "application/json") {
    const { url, ca, token } = servers.get(cluster);
    return new Promise((resolve, reject) => {
      const sent = request(url + path, { method, ca, headers: { authorization: `Bearer ${token}`, "content-type": type } }, async (answer) => {
        let text = "";
        for await (const chunk of answer.setEncoding("utf8")) text += chunk;
        if (answer.statusCode >= 300) reject(new Error(`${method} ${path}: ${answer.statusCode} ${text}`));
        else resolve(JSON.parse(text));
      });
      sent.on("error", reject);
      sent.end(body && JSON.stringify(body));
    });
  }
  async function stop() {
    await Promise.all(hubs.map((one) => end(one, "SIGKILL")));
    wires.forEach((wire) => wire.end());
    await end(child);
    rmSync(folder, { recursive: true, force: true });
  }
  return { token, hub, startHub, addWire, api, clusters: [...servers.keys()], stop };
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
