// The states of an answer, each brought about by a real fault while a page is open: a cluster is cut off, the hub stops or
// dies, rights are taken away, an app is deleted. The page tells each one within its window and without a reload, each in
// other words, and is as before once the fault has ended. Seconds, and the words as readers hear them, are printed.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { holds, launch, missing, watchedPage } from "./browser.mjs";
import * as fleets from "./hub.mjs";
import { refOf, until } from "./hub.mjs";

const why = fleets.missing() ?? missing();
if (why && process.env.CI === "true") throw new Error(why);
const skip = why ?? false;

/** The longest times until a page tells a fault, in milliseconds. */
const WITHIN = {
  /** The cluster is asked for a sign of life after 10 s of silence, and has 5 s for it. */
  silence: 20_000,
  /** A hub that is there, but silent, has 25 s; one that is gone is noticed at once. */
  silentHub: 28_000,
  /** A hub looks for revoked tokens each 5 s. */
  token: 10_000,
  /** Each kind that an API server no longer sends is tried again after 30 s at most. */
  retry: 60_000,
  /** Views are read again when the fleet changes. */
  change: 10_000,
  /** Lists are read again each 10 s for the clusters that they lack. */
  list: 12_000,
};

/** The time for which ten tabs are watched: each log has a new line every 30 s, and is read again every 2 s. */
const LIVE_FOR = 36_000;

/** An app that its labels alone declare. */
const NIGHTLY = {
  apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "nightly", labels: { "app.kubernetes.io/instance": "nightly" } },
  spec: {
    replicas: 1, selector: { matchLabels: { app: "nightly" } },
    template: { metadata: { labels: { app: "nightly" } }, spec: { containers: [{ name: "nightly", image: "ghcr.io/acme/labs/kiosk:1.0" }] } },
  },
};

let fleet, browser;
/** The words of each state, without names and numbers. */
const words = new Map();

before(async () => {
  if (skip) return;
  fleet = await fleets.startFleet();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await fleet?.stop();
});

/** The elements that tell the state of an answer: notes, what a list lacks, the status of rows, of an app and of the fleet; the head of what is whole. */
const TELLS = ".note, .loading-what, .list-foot, .view > .cover, [role=row][data-index] [data-column=status], .lead, .container-log h3, .yaml-line:first-child, .tree-row[data-line='0'], .fresh";

/** The text of what tells the state of a page, as readers hear it: a line for each part. */
const told = async (page) => (await page.locator(TELLS).allInnerTexts()).map((text) => text.replace(/\s+/g, " ").replaceAll(" ,", ",").trim()).filter(Boolean).join("\n");

/** Leaves out what two pages in the same state may differ in. */
const wordsOf = (text, names) => names.reduce((all, name) => all.replaceAll(name, "NAME"), text.replace(/\d[\d:]*[smhd]?\b/g, "#"));

/** Follows one page, in the browser of the page `beside` if that is given, through its states. Its document is never loaded again. */
async function follow(t, hub, path, { names = [], beside, token = beside ? "" : hub.token, ...options } = {}) {
  const { context, faults, page } = beside ? { ...beside, page: await beside.context.newPage() } : await watchedPage(browser, options);
  await page.goto(`${hub.url}${path}${token && `#${token}`}`);
  await page.waitForSelector("main h1");
  await page.evaluate(() => { window.isFirst = true; });
  /** Waits until the page tells `pattern`. */
  const tells = (pattern, within = WITHIN.change) => holds(async () => {
    const text = await told(page);
    assert.match(text, pattern);
    return text;
  }, within);
  /** The same, of what began at `since`: prints how long it took. */
  async function timed(what, pattern, since, within) {
    const text = await tells(pattern, within);
    t.diagnostic(`${what} after ${((Date.now() - since) / 1000).toFixed(1)} s: ${path}`);
    assert.ok(await page.evaluate(() => window.isFirst), "the page was loaded again");
    return text;
  }
  /** Waits until the page tells a state, and keeps its words. */
  async function shows(state, pattern, since, within) {
    const text = await timed(state, pattern, since, within);
    if (!words.has(state)) words.set(state, wordsOf(text, [...fleet.clusters, ...names]));
  }
  const heals = (pattern, since, within) => timed("healed", pattern, since, within);
  async function end() {
    await context.close();
    assert.deepEqual(faults, []);
  }
  return { page, context, faults, tells, shows, heals, end };
}

const ROLES = "/apis/rbac.authorization.k8s.io/v1";
const ALL = [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }, { nonResourceURLs: ["*"], verbs: ["*"] }];
/** Makes a user who may do everything in a cluster, until `may` says less. */
async function addUser(cluster, name) {
  const make = (plural, body) => fleet.api(cluster, "POST", `${ROLES}/${plural}`, { apiVersion: "rbac.authorization.k8s.io/v1", metadata: { name }, ...body });
  await make("clusterroles", { kind: "ClusterRole", rules: ALL });
  await make("clusterrolebindings", {
    kind: "ClusterRoleBinding",
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name }],
  });
  return { may: (rules) => fleet.api(cluster, "PATCH", `${ROLES}/clusterroles/${name}`, { rules }, "application/merge-patch+json") };
}

const AWAY = /hub away[^]*The hub does not answer for[^]*tries again[^]*^was Ready, stale$/m;
const ENDED = /no session[^]*This session has ended/;

const isRead = (hub) => until(async () => {
  const answer = await fetch(`${hub.url}/api/v1/apps?limit=1`, { headers: { authorization: `Bearer ${hub.token}` } });
  return (await answer.json()).state === "complete";
}, "a hub that has read its clusters");

/** The clusters that a list lacks, each with the time and the reason. */
const lacking = (page) => page.locator(".list-foot .cover li").allTextContents();

describe("each state of an answer", { concurrency: true, skip }, () => {
  test("lost: a cluster is cut off", async (t) => {
    const wire = await fleet.addWire("us-edge");
    const hub = await fleet.startHub({ contexts: ["us-edge", "ap-edge"], through: [wire] });
    await isRead(hub);
    const list = await follow(t, hub, "/apps?cluster=us-edge&text=telemetry");
    const app = await follow(t, hub, "/app/us-edge/kpt/telemetry/telemetry", { beside: list });
    const object = await follow(t, hub, "/object/us-edge/apps/Deployment/telemetry/collector", { beside: list });
    await list.tells(/^Ready$/m);
    await app.tells(/^Ready All/m);
    await object.tells(/^Ready Deployment/m);
    wire.cut();
    const cut = Date.now();
    await Promise.all([
      app.shows("lost, of an app", /is lost for/, cut, WITHIN.silence),
      list.shows("lost", /^was Ready, lost$[^]*1 cluster is silent/m, cut, WITHIN.silence + WITHIN.list),
    ]);
    assert.match((await lacking(list.page)).join(), /^us-edge since \d\d:\d\d list namespaces: no complete answer/);
    await object.shows("lost, of an object", /^was Ready, lost/m, cut, WITHIN.change);
    wire.mend();
    const mended = Date.now();
    await Promise.all([
      app.heals(/^Ready All/m, mended, WITHIN.retry),
      list.heals(/live 2 [^]*^Ready$[^]*every cluster is covered/m, mended, WITHIN.retry),
    ]);
    await list.end();
  });

  test("loading, partial: a cluster does not answer a hub that starts", async (t) => {
    const wire = await fleet.addWire("ap-edge");
    wire.cut();
    const beside = await watchedPage(browser);
    const hub = await fleet.startHub({ contexts: ["us-edge", "ap-edge"], through: [wire] });
    const started = Date.now();
    const list = await follow(t, hub, "/apps?cluster=ap-edge&text=telemetry", { beside, token: hub.token, names: ["telemetry"] });
    await list.shows("loading, of a cluster", /1 cluster is still being read/, started);
    await list.shows("partial", /Partial: 1 cluster is missing/, started, WITHIN.silence + WITHIN.list);
    assert.match((await lacking(list.page)).join(), /^ap-edge /);
    wire.mend();
    await list.heals(/live 2 [^]*^Ready$[^]*every cluster is covered/m, Date.now(), WITHIN.retry);
    await list.end();
  });

  test("loading: a cluster is slow to answer a question", async (t) => {
    const wire = await fleet.addWire("ap-edge");
    const hub = await fleet.startHub({ contexts: ["ap-edge"], through: [wire] });
    await isRead(hub);
    const app = await follow(t, hub, "/app/ap-edge/kpt/telemetry/telemetry", { names: ["telemetry"] });
    await app.tells(/^Ready All/m);
    wire.cut();
    const asked = Date.now();
    await app.page.keyboard.press("o");
    await app.shows("loading, of a question", /Waiting for ap-edge, which is asked for the objects/, asked);
    assert.ok(Date.now() - asked >= 1000, "what is waited for is told before a second has passed");
    wire.mend();
    await app.heals(/^ResourceGroup telemetry/m, Date.now());
    await app.end();
  });

  test("hub away: it stops for a while", async (t) => {
    const hub = await fleet.startHub({ contexts: ["us-edge"] });
    await isRead(hub);
    const list = await follow(t, hub, "/apps?text=telemetry");
    const attention = await follow(t, hub, "/", { beside: list });
    await list.tells(/^Ready$/m);
    hub.signal("SIGSTOP");
    const stopped = Date.now();
    await Promise.all([
      list.shows("hub away", AWAY, stopped, WITHIN.silentHub),
      attention.shows("hub away, of the attention", /The hub does not answer for/, stopped, WITHIN.silentHub),
    ]);
    hub.signal("SIGCONT");
    const mended = Date.now();
    await Promise.all([
      list.heals(/live 1 [^]*^Ready$[^]*every cluster is covered/m, mended, WITHIN.retry),
      attention.heals(/^live 1 [^\n]*$(?![^]*does not answer)/m, mended, WITHIN.retry),
    ]);
    await list.end();
  });

  test("hub away, session ended, stale, lost: the hub is killed, and another one starts without a cluster", async (t) => {
    const wire = await fleet.addWire("us-edge");
    const options = { contexts: ["us-edge", "ap-edge"], through: [wire] };
    const hub = await fleet.startHub(options);
    await isRead(hub);
    const list = await follow(t, hub, "/apps?cluster=us-edge&text=telemetry", { expected: /ERR_|401/ });
    await list.tells(/^Ready$/m);
    const killed = Date.now();
    await hub.kill();
    wire.cut();
    await list.shows("hub away", AWAY, killed, WITHIN.change);
    const next = await fleet.startHub({ ...options, port: hub.port });
    await list.shows("session ended", ENDED, Date.now(), 2 * WITHIN.change);
    // Another tab opens a session, with which this one goes on.
    await follow(t, next, "/clusters", { beside: list, token: next.token });
    const opened = Date.now();
    await list.shows("stale", /^was Ready, stale$[^]*1 cluster is silent/m, opened);
    assert.match((await lacking(list.page)).join(), /^us-edge since \d\d:\d\d has not been observed for some time/);
    await list.shows("lost", /^was Ready, lost$[^]*1 cluster is silent/m, opened, WITHIN.silence + WITHIN.list);
    wire.mend();
    await list.heals(/live 2 [^]*^Ready$[^]*every cluster is covered/m, Date.now(), WITHIN.retry);
    await list.end();
  });

  test("forbidden: the hub may no longer read a cluster", async (t) => {
    const reader = await addUser("ap-edge", "reader");
    const wire = await fleet.addWire("ap-edge");
    const hub = await fleet.startHub({ contexts: ["ap-edge", "us-edge"], through: [wire], users: { "ap-edge": "reader" } });
    await isRead(hub);
    const object = await follow(t, hub, "/object/ap-edge/apps/Deployment/kiosk/kiosk", { expected: /422/ });
    const list = await follow(t, hub, "/apps?cluster=ap-edge&text=kiosk", { beside: object });
    const app = await follow(t, hub, "/app/ap-edge/label/kiosk/kiosk?tab=objects", { beside: object });
    await object.tells(/^apiVersion: apps/m);
    await list.tells(/^Ready$/m);
    await app.tells(/^kiosk Ready/m);
    await reader.may([]);
    // An API server looks at the rights when a watch is opened.
    wire.drop();
    const taken = Date.now();
    await Promise.all([
      object.shows("forbidden, of an object", /forbidden/, taken),
      list.shows("forbidden, of a list", /^was Ready, stale$[^]*Partial: 1 cluster/m, taken, WITHIN.list),
    ]);
    assert.match((await lacking(list.page)).join(), /^ap-edge [^]*forbidden: User "reader" cannot/);
    await app.shows("forbidden, of the objects", /You may not see the objects/, taken, WITHIN.change);
    await reader.may(ALL);
    const given = Date.now();
    await Promise.all([
      object.heals(/^apiVersion: apps/m, given, WITHIN.retry),
      list.heals(/^Ready$[^]*every cluster is covered/m, given, WITHIN.retry),
      app.heals(/^Ready All[^]*^kiosk Ready/m, given, WITHIN.retry),
    ]);
    await object.end();
  });

  test("forbidden, session ended: the session may no longer read logs, and its token is revoked", async (t) => {
    const hub = await fleet.startHub({ contexts: ["us-edge"] });
    const token = await hub.tokens("create", "viewer");
    await isRead(hub);
    await until(async () => (await fetch(`${hub.url}/api/v1/clusters`, { headers: { authorization: `Bearer ${token}` } })).ok, "the token");
    const logs = await follow(t, hub, "/app/us-edge/kpt/telemetry/telemetry?tab=logs", { names: ["telemetry"], expected: /403|401/ });
    await logs.tells(/^collector/m);
    // All tabs have the session that was opened last.
    await follow(t, hub, "/", { beside: logs, token });
    await logs.shows("forbidden, of logs", /You may not see logs/, Date.now());
    await hub.tokens("revoke", /^(\S+) .* viewer$/m.exec(await hub.tokens("list"))[1]);
    await logs.shows("session ended", ENDED, Date.now(), WITHIN.token);
    await follow(t, hub, "/", { beside: logs, token: hub.token });
    await logs.heals(/live 1 (?![^]*may not)[^]*^collector/m, Date.now());
    await logs.end();
  });

  test("empty, gone: an app is created, deleted, and created again", async (t) => {
    const hub = await fleet.startHub({ contexts: ["us-edge"] });
    await isRead(hub);
    const list = await follow(t, hub, "/apps?text=nightly&status=Ready", { names: ["nightly"], expected: /404|422/ });
    await list.shows("empty", /No app matches these filters[^]*Without Text: \d+ apps/, Date.now());
    const make = () => fleet.api("us-edge", "POST", "/apis/apps/v1/namespaces/kiosk/deployments", NIGHTLY);
    const remove = () => fleet.api("us-edge", "DELETE", "/apis/apps/v1/namespaces/kiosk/deployments/nightly");
    await make();
    await list.heals(/^Ready$/m, Date.now(), 2 * WITHIN.change);
    const app = await follow(t, hub, "/app/us-edge/label/kiosk/nightly", { names: ["nightly"], beside: list });
    const object = await follow(t, hub, "/object/us-edge/apps/Deployment/kiosk/nightly", { names: ["nightly"], beside: list });
    await app.tells(/^Ready Its object/m);
    await object.tells(/^apiVersion: apps/m);
    await remove();
    const removed = Date.now();
    await Promise.all([
      app.shows("gone, of an app", /not there/, removed),
      object.shows("gone, of an object", /not there/, removed),
    ]);
    await list.shows("gone, of a row", /^left, was Ready$|No app matches these filters/m, removed, WITHIN.list);
    await make();
    const made = Date.now();
    await Promise.all([
      app.heals(/^Ready Its object/m, made, 2 * WITHIN.change),
      object.heals(/^apiVersion: apps/m, made),
    ]);
    await remove();
    await list.end();
  });
});

test("no two states give the same text", { skip }, (t) => {
  const states = [...words];
  for (const [state, text] of states) t.diagnostic(`${state}: ${text.replaceAll("\n", " | ")}`);
  states.forEach(([state, text], index) => {
    const same = states.slice(0, index).find(([, other]) => other === text);
    assert.equal(same, undefined, `“${state}” reads as “${same?.[0]}” does`);
  });
});

/** Notes in the page each time when its view changes, and that it was not live. Ages pass without a hub, too. */
function noteMoves() {
  const text = () => {
    const copy = document.querySelector("main").cloneNode(true);
    copy.querySelectorAll("time").forEach((one) => one.remove());
    return copy.textContent;
  };
  let last = text();
  window.moved = 0;
  window.wasAway = false;
  const look = () => {
    window.wasAway ||= document.querySelector(".fresh").dataset.link !== "live";
    const now = text();
    if (now !== last) window.moved += 1;
    last = now;
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ["data-link"] });
}

/** Sets the image of an app; the registry lacks the one with the number 1.6.0. */
const setImage = (image) =>
  fleet.api("us-edge", "PATCH", "/apis/apps/v1/namespaces/kiosk/deployments/kiosk", { spec: { template: { spec: { containers: [{ name: "kiosk", image }] } } } }, "application/strategic-merge-patch+json");

test("ten tabs on ten views, seven of which follow logs, stay live", { skip }, async (t) => {
  const hub = await fleet.startHub();
  await isRead(hub);
  const answer = await fetch(`${hub.url}/api/v1/apps?cluster=us-edge&cluster=ap-edge&status=Ready&sort=name`, { headers: { authorization: `Bearer ${hub.token}` } });
  const followed = (await answer.json()).items.filter((row) => row.name !== "root-sync" && refOf(row) !== "us-edge/label/kiosk/kiosk").slice(0, 7);
  const paths = ["/apps?text=kiosk&sort=name", "/", "/matrix", ...followed.map((row) => `/app/${refOf(row)}?tab=logs`)];
  const { page, context, faults } = await watchedPage(browser);
  await page.goto(`${hub.url}/#${hub.token}`);
  await page.waitForSelector("[data-link=live]");
  const tabs = [];
  for (const path of paths) {
    const tab = tabs.length ? await context.newPage() : page;
    await tab.goto(hub.url + path);
    await tab.waitForSelector("[data-link=live]");
    await tab.locator(path.endsWith("logs") ? ".log-lines > div" : "main h1").first().waitFor();
    tabs.push(tab);
  }
  assert.equal(tabs.length, 10);
  for (const tab of tabs) await tab.evaluate(noteMoves);
  // An app fails and heals again and again; each container writes a line every 30 s.
  const begun = Date.now();
  const status = page.locator("[role=row][data-index]", { hasText: "us-edge" }).locator("[data-column=status] .mark-word");
  const SETS = [["ghcr.io/acme/shop/web:1.6.0", "Failed"], ["ghcr.io/acme/labs/kiosk:1.0", "Ready"]];
  for (let n = 0; n % 2 || Date.now() - begun < LIVE_FOR; n++) {
    const [image, word] = SETS[n % 2];
    await setImage(image);
    await holds(async () => assert.equal(await status.innerText(), word), 20_000);
  }
  const seconds = ((Date.now() - begun) / 1000).toFixed(0);
  for (const [index, tab] of tabs.entries()) {
    const { moved, wasAway } = await tab.evaluate(() => ({ moved: window.moved, wasAway: window.wasAway }));
    t.diagnostic(`${paths[index]}: ${moved} changes in ${seconds} s`);
    assert.ok(moved > 0, `${paths[index]} has not changed`);
    assert.ok(!wasAway, `${paths[index]} was away`);
    assert.deepEqual(await tab.locator(".note").allInnerTexts(), []);
  }
  await context.close();
  assert.deepEqual(faults, []);
});
