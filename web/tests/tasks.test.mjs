// The ten tasks of somebody who is called at night, by keys alone. What the page says is compared with what the API says.
// Presses (a typed word is one) and milliseconds are printed; SEEDS=3 runs them on three fleets. With WITHHOLD=1 the views
// withhold the answers, one part at a time, and each task must fail because of it.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { addWithholding, holds, launch, missing, PICTURES, watchedPage, withhold } from "./browser.mjs";
import * as fleets from "./hub.mjs";
import { refOf, until } from "./hub.mjs";

const why = fleets.missing() ?? missing();
if (why && process.env.CI === "true") throw new Error(why);
const skip = why ?? false;
const SEEDS = Number(process.env.SEEDS ?? 1);
const isWithheld = process.env.WITHHOLD === "1";
/** The most presses that a task may take. */
const MOST = 20;
/** The time for which a task looks for an answer that is withheld. */
const WITHHELD_FOR = 1500;
/** The age from which a cluster may answer too soon: the demo ends its silence after 50 s. */
const LOST_LONG = 30_000;

const browser = skip ? undefined : await launch();
after(() => browser?.close());

for (let seed = 1; seed <= SEEDS; seed++) {
  test(`ten tasks by keys, seed ${seed}${isWithheld ? ", of views that withhold their answers" : ""}`, { skip }, async (t) => {
    const fleet = await fleets.startFleet(seed);
    try {
      const hub = await fleet.startHub();
      await tasks(t, { url: hub.url, token: hub.token });
    } finally {
      await fleet.stop();
    }
  });
}

/** A text without spaces, since names are cut into parts and messages into lines. */
const bare = (text) => text.replace(/\s+/g, "");
const contains = (text, part) => assert.ok(bare(text).includes(bare(part)), `“${part}” is not in “${text}”`);
const nodesOf = (node) => [node, ...node.children.flatMap(nodesOf)];
const isWell = (node) => node.effective === "Current" && !node.sync && node.children.every(isWell);

async function tasks(t, { url, token }) {
  const headers = { authorization: `Bearer ${token}` };
  const ask = (path) => fetch(`${url}/api/v1/${path}`, { headers }).then((answer) => answer.json());
  const send = (path, body) => fetch(`${url}/api/v1/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const post = (body) => send("questions", body).then((answer) => answer.json());
  const explain = async (name) => (await post({ view: "explain", names: [name], perCluster: true })).items[0].explanation;
  const problems = async () => (await ask("attention?limit=100")).items.filter((one) => one.severity === "error" && one.axis === "health");
  const treeOf = async (row) => (await post({ view: "tree", name: refOf(row), fold: true, compact: false, status: null, apps: { clusters: [row.cluster], namespace: null } })).items[0].root;
  const objectOf = async (name) => (await post({ view: "object", name, namespace: null, allNamespaces: false, clusters: [] })).items[0];
  const failing = async () => (await ask("apps?status=Failed&limit=50")).items.filter((row) => row.freshness.state === "live");
  const { page, context, faults } = await watchedPage(browser, { permissions: ["clipboard-read", "clipboard-write"] });
  if (isWithheld) await addWithholding(page);
  await page.goto(`${url}/#${token}`);
  await page.locator("[data-link=live]").waitFor();

  let presses = 0;
  const press = async (...keys) => {
    for (const key of keys) {
      presses += 1;
      await page.keyboard.press(key);
    }
  };
  const type = async (word) => {
    presses += 1;
    await page.keyboard.type(word);
  };
  /** Presses a key until the focus is where `is` says. */
  const pressTo = async (key, is, most = 12) => {
    for (let n = 0; n < most; n++) {
      if (await page.evaluate(is)) return;
      await press(key);
    }
    assert.ok(await page.evaluate(is), `${most} times ${key} did not lead there`);
  };
  /** The visible text of the elements that a selector chooses. */
  const texts = (selector) => page.locator(selector).allInnerTexts();
  const text = async (selector) => (await texts(selector)).join("\n");
  /** Searches the key of an app, and opens its row of one cluster. */
  const openApp = async (row) => {
    await press("/");
    await type(row.key);
    await press("Enter");
    const at = await until(async () => {
      const rows = await page.locator("[role=row][data-index]").evaluateAll((all) => all.map((one) => ["name", "cluster"].map((column) => one.querySelector(`[data-column=${column}] .name`)?.title).join(" ")));
      return rows.indexOf(`${row.name} ${row.cluster}`) + 1;
    }, "the row of the app", 10_000);
    for (let n = 0; n < at; n++) await press("j");
    await press("Enter");
    await page.waitForSelector(".drawer .tabs");
  };
  const isUsable = (button) => until(() => button.isEnabled().catch(() => false), "the plan");
  const home = async () => {
    await page.goto(url);
    await page.waitForSelector("main h1");
    await page.evaluate(() => document.activeElement?.blur());
  };

  /** Does a task, once the fleet is as `given` waits for; `parts` are those of its answer, with the selectors of what shows them. */
  const task = async (name, parts, given, work) => {
    if (isWithheld) {
      for (const [part, selector] of Object.entries(parts)) await t.test(`${name}, without the ${part}`, (t) => failsWithout(t, part, selector, given, work));
      return;
    }
    await t.test(name, async (t) => {
      const facts = await given();
      await home();
      presses = 0;
      const begun = Date.now();
      try {
        await work((_, check, millis) => holds(check, millis), facts);
      } catch (error) {
        await page.screenshot({ path: `${PICTURES}task-${name.split(" ")[0]}-failed.png` });
        throw error;
      }
      t.diagnostic(`${name}: ${presses} presses, ${Date.now() - begun} ms`);
      assert.ok(presses <= MOST, `${presses} presses`);
    });
  };

  /** Does a task while its view withholds a part of the answer, for which alone it must fail: shown again, the part is read. */
  async function failsWithout(t, part, selector, given, work) {
    let missed;
    const misses = (check, millis) => assert.rejects(holds(check, millis), (error) => {
      missed = error;
      return error instanceof assert.AssertionError;
    }, `the task does not read the ${part}`);
    const read = async (name, check, millis) => {
      if (name === part) await misses(check, WITHHELD_FOR);
      await withhold(page, "");
      await holds(check, millis);
      await withhold(page, selector);
      if (name !== part) return;
      await misses(check, 0);
      throw missed;
    };
    const facts = await given();
    await withhold(page, "");
    await home();
    await withhold(page, selector);
    await assert.rejects(work(read, facts), (error) => {
      if (error !== missed) throw error;
      return true;
    }, `the task does not need the ${part}`);
    t.diagnostic(`without the ${part}: ${missed.message.split("\n")[0]}`);
  }

  await task("1 the newest failure and its cause", { message: ".entry-message", cause: ".why .chain" }, () => until(async () => (await problems())[0], "a failure", 400_000), async (read, first) => {
    await page.waitForSelector(".entry-main");
    await read("message", async () => {
      // A failure whose message has changed is another entry, which has no focus.
      if (!(await page.evaluate(() => document.activeElement?.matches(".entry-main")))) await press("j");
      const [now] = await problems();
      const shown = await text(".entry-main:focus .entry-message");
      assert.ok([first, now].some((one) => one && bare(shown).includes(bare(one.message.slice(0, 40)))), `“${shown}” is not the newest failure`);
    });
    await press("Enter");
    await page.waitForSelector(".entry-members .member");
    await press("j", "Enter");
    await page.waitForURL((at) => at.searchParams.has("app"));
    const app = new URL(page.url()).searchParams.get("app");
    await read("cause", async () => {
      const cause = (await explain(app)).chain.at(-1);
      const shown = await text(".why .step[data-last=true]");
      contains(shown, cause.object.name);
      contains(shown, cause.reason);
    });
  });

  /** The demo brings it about in each round. */
  const badImage = () => until(async () => (await problems()).find((one) => /pull/i.test(one.message) && one.clusterCount > 1), "a bad image in several clusters", 400_000);
  await task("2 the clusters that fail by one image", { clusters: ".entry-where" }, badImage, async (read, image) => {
    const [, name = "pull"] = /"([^"]+)"/.exec(image.message) ?? [];
    await press("g", "s");
    await page.waitForSelector(".filter-text input");
    await press("Tab");
    await pressTo("Tab", () => document.activeElement?.matches(".filter-text input"));
    await type(name);
    await page.locator(".entry-main").first().waitFor();
    await read("clusters", async () => {
      const [now] = (await ask(`attention?text=${encodeURIComponent(name)}&limit=10`)).items;
      const [shown = ""] = await texts(".entry-where");
      contains(shown, `in ${now.clusterCount} of`);
      for (const cluster of now.clusters) contains(shown, cluster);
    });
  });

  await task("4 the clusters that do not run a revision of an app", { revisions: ".revision h3", clusters: ".revision .member" }, () => undefined, async (read) => {
    const key = "flux-kustomization/flux-system/shop";
    await press("/");
    await type(key);
    await press("Enter");
    await page.waitForSelector("[role=row][data-index='0']");
    await press("j", "Enter");
    await page.waitForSelector(".drawer .lead");
    await press("i");
    await page.waitForSelector(".revision");
    /** The hashes of the revisions, and the clusters of each, the most first. */
    const shown = () => page.locator(".revision").evaluateAll((all) => all.map((one) => ({
      revision: one.querySelector("h3").innerText,
      clusters: [...one.querySelectorAll(".member .name")].map((name) => name.innerText.replace(/\s+/g, "")).sort(),
    })));
    const known = async () => {
      const clusters = new Map();
      for (const row of (await ask(`apps?text=${encodeURIComponent(key)}&limit=500`)).items.filter((one) => one.key === key)) {
        const revision = row.sync.applied ?? "";
        clusters.set(revision, [...(clusters.get(revision) ?? []), row.cluster]);
      }
      return clusters;
    };
    await read("revisions", async () => {
      const revisions = [...(await known()).keys()];
      const found = await shown();
      assert.equal(found.length, revisions.length);
      for (const revision of revisions) {
        const hash = /[0-9a-f]{8}(?=[0-9a-f]{24,})/.exec(revision)?.[0] ?? "not known";
        assert.ok(found.some((one) => one.revision.includes(hash)), `no revision ${hash} in ${JSON.stringify(found)}`);
      }
    });
    await read("clusters", async () => {
      const clusters = [...(await known()).values()].map((names) => names.sort().join(" ")).sort();
      assert.deepEqual((await shown()).map((one) => one.clusters.join(" ")).sort(), clusters);
    });
  });

  const turnedRed = () => until(async () => {
    for (const one of await failing()) if ((await explain(refOf(one))).changed?.length) return one;
    return undefined;
  }, "an app that failed after a change", 400_000);
  await task("5 what changed before an app turned red", { change: ".why .before" }, turnedRed, async (read, row) => {
    await openApp(row);
    await page.locator(".why .before-row").first().waitFor({ state: "attached" });
    await read("change", async () => {
      const [change] = (await explain(refOf(row))).changed;
      const [shown = ""] = await texts(".why .before-row");
      contains(shown, change.object.name);
      contains(shown, `of ${change.object.kind}`);
    });
  });

  /** An app with a Pod that is not well and of which a warning is known. */
  const sick = () => until(async () => {
    for (const row of await failing()) {
      const pod = nodesOf(await treeOf(row)).find((node) => node.object?.kind === "Pod" && !isWell(node));
      const name = pod && [row.cluster, "", "Pod", pod.object.namespace, pod.object.name].join("/");
      if (name && (await objectOf(name))?.events?.some((event) => event.isWarning)) return { row, name };
    }
    return undefined;
  }, "an app with a Pod that is not well", 400_000);
  let pod;
  await task("6 the unwell objects of an app, and the warnings of the worst Pod", { objects: ".tree-row", warnings: ".log-list" }, sick, async (read, { row }) => {
    await openApp(row);
    await press("o");
    await page.locator(".tree-row").first().waitFor({ state: "attached" });
    await press("z");
    await page.waitForURL(/unwell=1/);
    await read("objects", async () => {
      const unwell = nodesOf(await treeOf(row)).filter((node) => node.object && !isWell(node));
      const shown = await texts(".tree-row");
      assert.equal(shown.length, unwell.length);
      unwell.forEach(({ object, message }, index) => {
        contains(shown[index], object.kind);
        contains(shown[index], object.name);
        contains(shown[index], message);
      });
    });
    await press("j");
    await pressTo("j", () => document.activeElement?.querySelector(".tree-name .muted")?.textContent === "Pod", 10);
    await press("y");
    await page.waitForURL(/\/object\/.*\/Pod\//);
    pod = new URL(page.url()).pathname.slice("/object/".length);
    await page.locator(".yaml").waitFor();
    await press("e");
    await read("warnings", async () => {
      const warnings = (await objectOf(pod)).events.filter((event) => event.isWarning);
      assert.ok(warnings.length, "a warning");
      const shown = (await texts(".log-list .log-row")).filter((one) => /\bwarning\b/.test(one));
      for (const { reason, message } of warnings) assert.ok(shown.some((one) => bare(one).includes(bare(reason)) && bare(one).includes(bare(message))), `“${message}” is not in ${JSON.stringify(shown)}`);
    });
  });

  await task("7 the Pod's YAML, its last lines and its command", { YAML: ".yaml", lines: ".container-log", command: "[data-copy=main]" }, async () => pod ?? (await sick()).name, async (read, pod) => {
    await page.goto(`${url}/object/${pod}`);
    await page.locator(".yaml").waitFor({ state: "attached" });
    await read("YAML", async () => {
      const { metadata } = (await objectOf(pod)).body;
      const shown = await text(".yaml");
      for (const line of ["kind: Pod", `name: ${metadata.name}`, metadata.uid]) contains(shown, line);
    });
    await press("l");
    await read("lines", async () => {
      const answer = await send("logs", { what: pod, clusters: [pod.split("/")[0]], tail: 200, follow: false, previous: false, allNamespaces: false, allPods: false, container: null, namespace: null, sinceMillis: null, timestamps: false });
      const events = (await answer.text()).trim().split("\n").map((line) => JSON.parse(line));
      const last = events.flatMap((event) => (event.event === "lines" ? event.lines.slice(-1).map((line) => line.text) : event.event === "failed" ? [event.message] : []));
      assert.ok(last.length, "a line, or why there is none");
      const shown = await text(".container-log");
      for (const line of last) contains(shown, line);
    });
    await press("c");
    await read("command", async () => {
      const command = await page.evaluate(() => navigator.clipboard.readText());
      assert.match(command, /^taffrail logs \S+\/Pod\/\S+ --hub /);
      contains(await text("[data-copy=main]"), command);
    });
  });

  const calm = () => until(async () => (await ask("apps?status=Ready&delivery=flux-kustomization&limit=100")).items.find((row) => row.freshness.state === "live" && !row.suspended && row.home === row.cluster && row.name !== "flux-system"), "a ready Kustomization");
  await task("8 an app is suspended, seen so, and resumed", { suspended: ".operation-result", state: ".drawer .lead", resumed: ".operation-result" }, calm, async (read, row) => {
    await openApp(row);
    await page.getByRole("button", { name: "Suspend…" }).waitFor();
    const go = (title) => page.locator("dialog .button.primary", { hasText: title });
    const result = (pattern) => async () => assert.match(await text("dialog .operation-result"), pattern);
    await press("S");
    await isUsable(go("Suspend"));
    await press("Tab", "Enter");
    await read("suspended", result(/^✓ Suspended$/));
    await press("Escape");
    await read("state", async () => {
      assert.ok((await ask(`apps/${refOf(row)}`)).items[0].suspended, "suspended, as the hub sees it");
      assert.match(await text(".drawer .lead"), /suspended/);
    });
    await press("S");
    await isUsable(go("Resume"));
    await press("Tab", "Enter");
    await read("resumed", result(/^✓ Ready after [0-9.]+ s/), 60_000);
    await press("Escape");
  });

  const shared = () => until(async () => {
    for (const group of (await ask("apps?group-by=key&delivery=flux-kustomization&limit=100")).items.filter((one) => one.apps > 2)) {
      const rows = (await ask(`apps?text=${encodeURIComponent(group.group)}&sort=name&limit=50`)).items;
      if (rows.every((row) => row.key === group.group && row.freshness.state === "live" && !row.suspended)) return group.group;
    }
    return undefined;
  }, "an app of Flux that is live in three clusters", 400_000);
  await task("9 reconcile with source in three clusters", { results: ".operation-result" }, shared, async (read, key) => {
    const before = (await ask("operations")).items[0]?.id;
    await press("/");
    await type(key);
    await press("Enter");
    await until(async () => (await page.locator("[role=row][data-index]").count()) >= 3, "rows");
    await press("j", " ", " ", " ", "R");
    const go = page.locator("dialog .button.primary");
    await go.waitFor();
    await pressTo("Shift+Tab", () => document.activeElement?.closest("label")?.textContent.includes("Fetch the source"), 6);
    await press(" ");
    await isUsable(go);
    await press("Control+Enter");
    const WORDS = { ready: "✓ Ready after", failed: "✕ Failed after", timedOut: "Not ready in time" };
    await read("results", async () => {
      const [operation] = (await ask("operations")).items;
      assert.notEqual(operation?.id, before);
      assert.deepEqual([operation.operation, operation.items.length], ["reconcile", 3]);
      const shown = await texts("dialog .operation-items > li .step-head");
      for (const { cluster, outcome } of operation.items) {
        const words = WORDS[outcome?.result];
        assert.ok(words, "a result");
        assert.ok(shown.some((one) => bare(one).startsWith(cluster) && bare(one).includes(bare(words))), `${cluster} “${words}” is not in ${JSON.stringify(shown)}`);
      }
    }, 90_000);
    await press("Escape");
  });

  await task("10 a Deployment is restarted, and a second restart cancelled", { change: ".diff", result: ".operation-result" }, calm, async (read, row) => {
    await page.goto(`${url}/app/${refOf(row)}?tab=objects`);
    await page.waitForSelector(".tree-row");
    const before = (await ask("operations")).items.length;
    await press("j");
    await pressTo("j", () => /^\s*Deployment\b/.test(document.activeElement?.innerText ?? ""), 8);
    for (const isRun of [true, false]) {
      // Within the second of the first restart a second one would write nothing.
      const second = Math.floor(Date.now() / 1000);
      await until(() => isRun || Math.floor(Date.now() / 1000) > second, "the next second");
      await press(".");
      const dialog = page.locator("dialog.operation");
      await dialog.getByLabel(/^restart/).waitFor();
      await pressTo("Shift+Tab", () => document.activeElement?.matches("input[type=radio]"), 4);
      await pressTo("ArrowDown", () => document.activeElement?.closest("label")?.textContent.startsWith("restart") && document.activeElement.checked, 6);
      await isUsable(page.locator("dialog .button.primary"));
      await read("change", async () => assert.match(await text("dialog .diff"), /kubectl\.kubernetes\.io\/restartedAt/));
      if (isRun) {
        await press("Control+Enter");
        await read("result", async () => assert.match(await text("dialog .operation-result"), /^✓ /));
      }
      await press("Escape");
      await dialog.waitFor({ state: "detached" });
    }
    assert.equal((await ask("operations")).items.length, before + 1);
  });

  // Last, since a cluster is lost for a while only.
  const lostNow = () => until(async () => (await ask("clusters?limit=100")).items.find(({ freshness }) => freshness.state === "lost" && Date.now() - Date.parse(freshness.observedAt) < LOST_LONG), "a lost cluster", 400_000);
  await task("3 the lost clusters, since when, and what was known", { silence: ".drawer .lead", apps: ".drawer .block" }, lostNow, async (read, lost) => {
    await press("g", "c");
    await page.waitForSelector("[role=row][data-index='0']");
    const names = await page.locator("[role=row][data-index] [data-column=cluster]").allInnerTexts();
    for (let n = names.findIndex((name) => name.trim() === lost.name); n >= 0; n--) await press("j");
    await press("Enter");
    const lead = page.locator(".drawer .lead");
    await lead.waitFor({ state: "attached" });
    assert.ok((await page.locator(".drawer-title").innerText()).includes(lost.name));
    await read("silence", async () => {
      const [, age] = /lost[\s\S]*It does not answer for (\d+)s: /.exec(await text(".drawer .lead")) ?? [];
      const known = (Date.now() - Date.parse(lost.freshness.observedAt)) / 1000;
      assert.ok(Math.abs(known - Number(age)) < 3, `silent for ${age} s on the page, for ${known} s in truth`);
    });
    await read("apps", async () => {
      const shown = await text(".drawer .block:first-of-type");
      assert.match(shown, new RegExp(`Apps\\s+${lost.apps}`));
      for (const [status, number] of Object.entries(lost.counts).filter(([, number]) => number)) contains(shown, `${number} ${status === "Current" ? "Ready" : status}`);
    });
  });
  await context.close();
  assert.deepEqual(faults, []);
}
