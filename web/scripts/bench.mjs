// Measures the page in Chromium, beside an empty page of the same hub. `cargo xtask bench ui` runs it.
//
//   node scripts/bench.mjs HUB TOKEN PROCESS...
//
// It obeys the commands on standard input, one a line, and answers each with a line of JSON. HUB keeps the fleet, and the
// processes are the hub and then those that load the machine: they stand still while paint is measured, the hub as soon
// as it has answered. Times are in milliseconds and end when the frame was painted that shows what was waited for.
import { createInterface } from "node:readline";
import { launch, missing } from "../tests/browser.mjs";
import { refOf } from "../tests/hub.mjs";

const [hub, token, ...processes] = process.argv.slice(2);
const [server, ...load] = processes.map(Number);
const EMPTY = `${hub}/healthz`;
const WIDE = { width: 1440, height: 900 };
const HOME = ".entry";
const ROWS = "[role=grid] [role=row][data-index]";
const BOARD = ".board-canvas";
/** The time in which a view may finish what it does after a step. */
const REST = 60;

const why = missing();
if (why) {
  console.error(`the page cannot be measured: ${why}`);
  process.exit(1);
}
const browser = await launch();

const sorted = (times) => [...times].sort((a, b) => a - b);
const at = (times, part) => sorted(times)[Math.min(times.length - 1, Math.floor(times.length * part))];
const spread = (times) => ({ count: times.length, median: at(times, 0.5), p98: at(times, 0.98), longest: at(times, 1) });
const hold = (pids, signal) => pids.forEach((pid) => process.kill(pid, signal));
const rest = (millis = REST) => new Promise((resolve) => setTimeout(resolve, millis));

/** Runs in the page before its own code: tells when a selector was painted, how long steps take, and long tasks. */
function meter() {
  const painted = (then) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => then(performance.now());
    port2.postMessage(0);
  });
  const bench = { steps: [], tasks: [] };
  window.bench = bench;
  /** The time at which an element is painted that matches. */
  bench.shown = (selector) => new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`${selector} was not painted in 30 s`)), 30_000);
    const look = () => {
      if (!document.querySelector(selector)) return false;
      painted(resolve);
      return true;
    };
    if (look()) return;
    new MutationObserver((_, observer) => { if (look()) observer.disconnect(); }).observe(document, { childList: true, subtree: true });
  });
  /** The time from now until such an element is painted. */
  bench.taken = async (selector) => {
    const begun = performance.now();
    return (await bench.shown(selector)) - begun;
  };
  for (const type of ["keydown", "click"]) {
    addEventListener(type, (event) => painted((end) => bench.steps.push(end - event.timeStamp)), { capture: true });
  }
  new PerformanceObserver((list) => bench.tasks.push(...list.getEntries().map((one) => one.duration))).observe({ type: "longtask" });
}

const taken = (page, selector) => page.evaluate((wanted) => window.bench.taken(wanted), selector);

async function open(address, { width, height } = WIDE) {
  const context = await browser.newContext({ viewport: { width, height } });
  const page = await context.newPage();
  await page.addInitScript(meter);
  const client = await context.newCDPSession(page);
  await client.send("Network.enable");
  if (address) await page.goto(address);
  return { page, context, client };
}

/** Opens the page with a session. */
async function openPage(path) {
  const opened = await open(`${hub}/#${token}`);
  await opened.page.waitForSelector(HOME);
  await opened.page.goto(hub + path);
  return opened;
}

/** Loads an address again and again, and returns the times until `selector` was painted. */
async function paints({ page }, address, selector, answer, rounds) {
  const times = [];
  for (let round = 0; round < rounds; round++) {
    await page.goto("about:blank");
    hold(load, "SIGSTOP");
    const answered = page.waitForResponse(answer).then((response) => response.finished()).then(() => hold([server], "SIGSTOP"));
    try {
      await page.goto(address, { waitUntil: "commit" });
      times.push(await page.evaluate((wanted) => window.bench.shown(wanted), selector));
      await answered;
    } finally {
      hold([server, ...load], "SIGCONT");
    }
    await rest();
  }
  return times;
}

async function paint(rounds) {
  const views = { attention: ["/", HOME, /\/api\/v1\/attention/], apps: ["/apps", ROWS, /\/api\/v1\/apps\?(?!.*group-by)/] };
  const empty = await open();
  const told = { empty: spread(await paints(empty, EMPTY, "pre", /healthz/, rounds)) };
  const opened = await openPage("/");
  for (const [name, [path, selector, answer]] of Object.entries(views)) {
    told[name] = spread(await paints(opened, hub + path, selector, answer, rounds));
  }
  await empty.context.close();
  await opened.context.close();
  return told;
}

/** The steps of somebody who looks around, and what must stand before each part of them. */
const STEPS = [
  ["/", HOME, [..."jjjjjjjj", "Enter", "j", "j", "k", "k", "Enter", ..."kkkk"]],
  ["/apps", ROWS, [..."jjjjjjjjjjjj", "Enter", "Escape", ..."kkkkkk", "PageDown", "PageDown", "PageUp", "End", "Home"]],
  ["/apps", ".filter-text input", ["click .filter-text input", ..."payments", "Backspace", "Backspace", "Escape"]],
  ["/apps?group-by=namespace", "[role=row][data-index]", [..."jjjjjjkk"]],
  ["/clusters", ROWS, [..."jjjjjjjjkkkk", "Enter", "Escape"]],
  ["/matrix", BOARD, ["click .board", "Escape", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "End", "Home", "n", "n", "PageDown", "PageUp"]],
];

async function steps({ page }, keys) {
  for (const key of keys) {
    if (key.startsWith("click ")) await page.locator(key.slice(6)).first().click();
    else await page.keyboard.press(key);
    await rest();
  }
  return page.evaluate(() => window.bench.steps.splice(0));
}

async function interact() {
  const empty = await open(EMPTY);
  const opened = await openPage("/");
  const times = [];
  const slow = [];
  let number = 0;
  for (const [path, selector, keys] of STEPS) {
    await opened.page.goto(hub + path);
    await opened.page.waitForSelector(selector);
    await rest(500);
    const taken = await steps(opened, keys);
    number += keys.length;
    times.push(...taken);
    slow.push({ path, longest: at(taken, 1) });
  }
  const idle = await steps(empty, Array.from({ length: number }, () => "j"));
  await empty.context.close();
  await opened.context.close();
  return { page: spread(times), empty: spread(idle), steps: number, slow };
}

const heapOf = async ({ client }) => {
  await client.send("HeapProfiler.collectGarbage");
  await client.send("HeapProfiler.collectGarbage");
  return (await client.send("Runtime.getHeapUsage")).usedSize / 1e6;
};

/** Shows views for so many seconds while the fleet changes, and returns their long tasks and heaps. */
async function follow(seconds) {
  const views = { empty: await open(EMPTY) };
  for (const path of ["/", "/apps", "/matrix"]) views[path] = await openPage(path);
  await views["/matrix"].page.waitForSelector(BOARD);
  await rest(5000);
  const told = {};
  for (const [name, view] of Object.entries(views)) {
    told[name] = { before: await heapOf(view) };
    await view.page.evaluate(() => window.bench.tasks.splice(0));
  }
  await rest(seconds * 1000);
  for (const [name, view] of Object.entries(views)) {
    const tasks = await view.page.evaluate(() => window.bench.tasks.splice(0));
    told[name] = { ...told[name], tasks: tasks.length, longest: Math.max(0, ...tasks), after: await heapOf(view) };
    await view.context.close();
  }
  return told;
}

/** Draws the matrix of all pairs so many times, from the view of all apps, and changes its zoom. */
async function matrix(rounds) {
  const opened = await openPage("/apps");
  const { page, client } = opened;
  const drawn = [];
  const zooms = [];
  let sent = 0;
  const asked = new Map();
  client.on("Network.requestWillBeSent", ({ requestId, request }) => asked.set(requestId, request.url));
  client.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (asked.get(requestId)?.includes("/api/v1/matrix")) sent = encodedDataLength;
  });
  for (let round = 0; round < rounds; round++) {
    await page.waitForSelector(ROWS);
    const shown = taken(page, BOARD);
    await page.keyboard.press("g");
    await page.keyboard.press("m");
    drawn.push(await shown);
    await rest(300);
    await page.evaluate(() => window.bench.steps.splice(0));
    for (const name of ["Larger cells", "Larger cells", "Smaller cells", "Smaller cells"]) {
      await page.getByRole("button", { name }).click();
      await rest(150);
    }
    zooms.push(...(await page.evaluate(() => window.bench.steps.splice(0))));
    await page.keyboard.press("g");
    await page.keyboard.press("p");
  }
  await opened.context.close();
  return { drawn: spread(drawn), zooms: spread(zooms), sent };
}

/** The bytes that a first visit loads, without the answers of the API. */
async function weigh() {
  const opened = await open();
  const { page, client } = opened;
  const asked = new Map();
  let bytes = 0;
  client.on("Network.requestWillBeSent", ({ requestId, request }) => asked.set(requestId, request.url));
  client.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (!asked.get(requestId)?.includes("/api/")) bytes += encodedDataLength;
  });
  await page.goto(`${hub}/#${token}`);
  await page.waitForSelector(HOME);
  await rest(500);
  await opened.context.close();
  return { bytes };
}

/** Draws the graph and the tree table of the one app of a hub so many times. */
async function objects(rounds) {
  const headers = { authorization: `Bearer ${token}` };
  const { items } = await fetch(`${hub}/api/v1/apps?limit=1`, { headers }).then((answer) => answer.json());
  const path = `/app/${refOf(items[0])}`;
  const { page, context } = await openPage(`${path}?tab=trust&all=1`);
  const times = { graph: [], tree: [] };
  for (let round = 0; round < rounds; round++) {
    for (const [name, tab, selector] of [["graph", "Graph", ".graph-node"], ["tree", "Objects", ".tree-row"]]) {
      await page.getByRole("tab", { name: "Trust" }).click();
      await page.waitForSelector(selector, { state: "detached" });
      await rest(300);
      const shown = taken(page, selector);
      await page.getByRole("tab", { name: tab, exact: true }).click();
      times[name].push(await shown);
    }
  }
  const table = page.locator(".tree");
  const rows = Number(await table.getAttribute("aria-rowcount")) - 1;
  await page.locator(".tree-row").first().focus();
  const end = taken(page, `[data-line="${rows - 1}"]`);
  await page.keyboard.press("End");
  const tree = { longest: Math.max(...times.tree), rows, end: await end };
  await page.keyboard.press("Home");
  await rest(300);
  await page.getByRole("tab", { name: "Graph", exact: true }).click();
  await page.locator(".graph-node").first().focus();
  await page.evaluate(() => window.bench.steps.splice(0));
  const taps = await steps({ page }, ["ArrowRight", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft"]);
  const shown = await page.locator(".log-tools .muted").first().innerText();
  await context.close();
  return { graph: { longest: Math.max(...times.graph), step: Math.max(...taps), shown }, tree };
}

const COMMANDS = { paint, interact, follow, matrix, weigh, objects };

console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  const [name, number] = line.split(" ");
  const told = await COMMANDS[name](Number(number));
  console.log(JSON.stringify(told));
}
await browser.close();
