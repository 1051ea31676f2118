// The ten tasks of somebody who is called at night, by keys alone. What the page says is compared with what the API says.
// Presses (a typed word is one) and milliseconds are printed; SEEDS=3 runs them on three fleets.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { launch, missing, PICTURES, watchedPage } from "./browser.mjs";
import * as fleets from "./hub.mjs";
import { refOf, until } from "./hub.mjs";

const why = fleets.missing() ?? missing();
if (why && process.env.CI === "true") throw new Error(why);
const skip = why ?? false;
const SEEDS = Number(process.env.SEEDS ?? 1);
/** The most presses that a task may take. */
const MOST = 20;

const browser = skip ? undefined : await launch();
after(() => browser?.close());

for (let seed = 1; seed <= SEEDS; seed++) {
  test(`ten tasks by keys, seed ${seed}`, { skip }, async (t) => {
    const fleet = await fleets.startFleet(seed);
    try {
      const hub = await fleet.startHub();
      await tasks(t, { url: hub.url, token: hub.token });
    } finally {
      await fleet.stop();
    }
  });
}

async function tasks(t, { url, token }) {
  const headers = { authorization: `Bearer ${token}` };
  const ask = (path) => fetch(`${url}/api/v1/${path}`, { headers }).then((answer) => answer.json());
  const post = (body) => fetch(`${url}/api/v1/questions`, { method: "POST", headers, body: JSON.stringify(body) }).then((answer) => answer.json());
  const explain = async (row) => (await post({ view: "explain", names: [refOf(row)], perCluster: true })).items[0].explanation;
  const problems = async () => (await ask("attention?limit=100")).items.filter((one) => one.severity === "error" && one.axis === "health");
  const { page, context, faults } = await watchedPage(browser, { permissions: ["clipboard-read", "clipboard-write"] });
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
  /** Presses a key until the focus is where `holds` says. */
  const pressTo = async (key, holds, most = 12) => {
    for (let n = 0; n < most; n++) {
      if (await page.evaluate(holds)) return;
      await press(key);
    }
    assert.ok(await page.evaluate(holds), `${most} times ${key} did not lead there`);
  };
  const text = (selector) => page.locator(selector).first().innerText();
  const home = async () => {
    await page.goto(url);
    await page.waitForSelector("main h1");
    await page.evaluate(() => document.activeElement?.blur());
  };
  const task = (name, work) => t.test(name, async () => {
    await home();
    presses = 0;
    const begun = Date.now();
    try {
      await work();
    } catch (error) {
      await page.screenshot({ path: `${PICTURES}task-${name.split(" ")[0]}-failed.png` });
      throw error;
    }
    t.diagnostic(`${name}: ${presses} presses, ${Date.now() - begun} ms`);
    assert.ok(presses <= MOST, `${presses} presses`);
  });

  // A bad image in several clusters, which the demo brings about in each round.
  const image = await until(async () => (await problems()).find((one) => /pull/i.test(one.message) && one.clusterCount > 1), "a bad image in several clusters", 300_000);

  await task("1 the newest failure and its cause", async () => {
    await page.waitForSelector(".entry-main");
    const [first] = await problems();
    await press("j");
    assert.ok((await text(".entry-main:focus .entry-message")).includes(first.message.slice(0, 40)), first.message);
    await press("Enter");
    await page.waitForSelector(".entry-members .member");
    await press("j", "Enter");
    const cause = page.locator(".why .step[data-last=true]");
    await cause.waitFor();
    const app = new URL(page.url()).searchParams.get("app");
    const told = (await post({ view: "explain", names: [app], perCluster: true })).items[0].explanation.chain.at(-1);
    assert.ok((await cause.innerText()).includes(told.object.name.slice(0, 8)));
  });

  await task("2 the clusters that fail by one image", async () => {
    const [, name] = /"([^"]+)"/.exec(image.message) ?? [];
    await press("g", "s");
    await page.waitForSelector(".filter-text input");
    await press("Tab");
    await pressTo("Tab", () => document.activeElement?.matches(".filter-text input"));
    await type(name ?? "pull");
    const entry = page.locator(".entry-main").first();
    await entry.waitFor();
    const now = (await ask(`attention?text=${encodeURIComponent(name ?? "pull")}&limit=10`)).items[0];
    await until(async () => (await entry.innerText()).includes(`in ${now.clusterCount} of`), "the number of clusters", 5000);
    for (const cluster of now.clusters) assert.ok((await entry.innerText()).includes(cluster), cluster);
  });

  await task("4 the clusters that do not run a revision of an app", async () => {
    const key = "flux-kustomization/flux-system/shop";
    await press("/");
    await type(key);
    await press("Enter");
    await page.waitForSelector("[role=row][data-index='0']");
    await press("j", "Enter");
    await page.waitForSelector(".drawer .lead");
    await press("i");
    await page.waitForSelector(".revision");
    const rows = (await ask(`apps?text=${encodeURIComponent(key)}&limit=500`)).items.filter((row) => row.key === key);
    const revisions = new Set(rows.map((row) => row.sync.applied ?? ""));
    assert.equal(await page.locator(".revision").count(), revisions.size);
    assert.equal(await page.locator(".revision .member").count(), rows.length);
  });

  await task("5 what changed before an app turned red", async () => {
    const failing = (await ask("apps?status=Failed&limit=50")).items;
    const changes = await Promise.all(failing.map(async (row) => ((await explain(row)).changed?.length ? row : undefined)));
    const row = changes.find(Boolean);
    assert.ok(row, "an app that failed after a change");
    await press("/");
    await type(row.key);
    await press("Enter");
    const at = await until(async () => {
      const names = await page.locator("[role=row][data-index] [data-column=cluster]").allInnerTexts();
      const found = names.findIndex((name) => name.trim() === row.cluster);
      return found < 0 ? undefined : found + 1;
    }, "the row of the app", 5000);
    for (let n = 0; n < at; n++) await press("j");
    await press("Enter");
    const before = page.locator(".why .before-row").first();
    await before.waitFor();
    const [change] = (await explain(row)).changed;
    assert.ok((await before.innerText()).includes(change.object.name));
  });

  let pod;
  await task("6 the unwell objects of an app, and the warnings of the worst Pod", async () => {
    await press("g", "p");
    await page.waitForSelector("[role=row][data-index='0']");
    await press("j", "Enter");
    await page.waitForSelector(".drawer .lead");
    await press("o");
    await page.waitForSelector(".tree-row");
    await press("z");
    await page.waitForURL(/unwell=1/);
    await press("j");
    await pressTo("j", () => /^\s*Pod\b/.test(document.activeElement?.innerText ?? ""), 10);
    await press("y");
    await page.waitForURL(/\/object\/.*\/Pod\//);
    pod = page.url();
    await page.locator(".yaml").waitFor();
    await press("e");
    const warning = page.locator(".log-list .tag", { hasText: "warning" }).first();
    await warning.waitFor();
  });

  await task("7 the Pod's YAML, its last lines and its command", async () => {
    await page.goto(pod);
    await page.locator(".yaml").waitFor();
    assert.match(await page.locator(".yaml").innerText(), /kind: Pod/);
    await press("l");
    await page.locator(".container-log").first().waitFor();
    await press("c");
    await page.getByText("Copied").first().waitFor({ state: "attached" });
    const command = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(command, /^taffrail logs \S+\/Pod\/\S+ --hub /);
  });

  const calm = async () => (await ask("apps?status=Ready&delivery=flux-kustomization&limit=100")).items.find((row) => row.freshness.state === "live" && !row.suspended && row.home === row.cluster && row.name !== "flux-system");
  await task("8 an app is suspended, seen so, and resumed", async () => {
    const row = await until(calm, "a ready Kustomization");
    await press("/");
    await type(row.name);
    await press("Enter");
    await until(async () => (await page.locator("[role=row][data-index]").count()) > 0, "rows");
    const at = await until(async () => {
      const names = await page.locator("[role=row][data-index]").evaluateAll((rows) => rows.map((one) => `${one.querySelector("[data-column=name] .strong")?.textContent} ${one.querySelector("[data-column=cluster]")?.textContent}`));
      const found = names.indexOf(`${row.name} ${row.cluster}`);
      return found < 0 ? undefined : found + 1;
    }, "the row of the app", 5000);
    for (let n = 0; n < at; n++) await press("j");
    await press("Enter");
    await page.getByRole("button", { name: "Suspend…" }).waitFor();
    const dialog = page.getByRole("dialog").last();
    const go = (title) => page.locator("dialog .button.primary", { hasText: title });
    await press("S");
    await until(() => go("Suspend").isEnabled().catch(() => false), "the plan");
    await press("Tab", "Enter");
    await dialog.getByText("✓ Suspended").waitFor();
    await press("Escape");
    await page.locator(".drawer .lead").getByText("suspended", { exact: false }).first().waitFor();
    assert.ok(await until(async () => (await ask(`apps/${refOf(row)}`)).items[0].suspended, "suspended, as the hub sees it"));
    await press("S");
    await until(() => go("Resume").isEnabled().catch(() => false), "the plan");
    await press("Tab", "Enter");
    await page.locator("dialog").getByText(/✓ Ready after/).waitFor({ timeout: 60_000 });
    await press("Escape");
  });

  await task("9 reconcile with source in three clusters", async () => {
    const groups = (await ask("apps?group-by=key&delivery=flux-kustomization&limit=100")).items;
    const rows = [];
    for (const group of groups.filter((one) => one.apps > 2)) {
      const all = (await ask(`apps?text=${encodeURIComponent(group.group)}&sort=name&limit=50`)).items;
      if (all.length && all.every((row) => row.key === group.group && row.freshness.state === "live" && !row.suspended)) { rows.push(...all); break; }
    }
    assert.ok(rows.length >= 3, "an app of Flux that is live in three clusters");
    await press("/");
    await type(rows[0].key);
    await press("Enter");
    await until(async () => (await page.locator("[role=row][data-index]").count()) >= 3, "rows");
    await press("j", " ", " ", " ", "R");
    const go = page.locator("dialog .button.primary");
    await go.waitFor();
    await pressTo("Shift+Tab", () => document.activeElement?.closest("label")?.textContent.includes("Fetch the source"), 6);
    await press(" ");
    await until(() => go.isEnabled(), "the plan");
    await press("Control+Enter");
    await until(async () => (await page.locator(".operation-result").count()) === 3, "three results", 90_000);
    await press("Escape");
  });

  await task("10 a Deployment is restarted, and a second restart cancelled", async () => {
    const row = await until(calm, "a ready Kustomization");
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
      const go = page.locator("dialog .button.primary");
      await until(() => go.isEnabled(), "the plan", 20_000);
      if (isRun) {
        await press("Control+Enter");
        await dialog.getByText("✓").first().waitFor();
      }
      await press("Escape");
      await dialog.waitFor({ state: "detached" });
    }
    assert.equal((await ask("operations")).items.length, before + 1);
  });

  // Last, since a cluster is lost for a while only.
  await task("3 the lost clusters, since when, and what was known", async () => {
    const lost = await until(async () => (await ask("clusters?limit=100")).items.find((row) => row.freshness.state === "lost"), "a lost cluster", 400_000);
    await press("g", "c");
    await page.waitForSelector("[role=row][data-index='0']");
    const names = await page.locator("[role=row][data-index] [data-column=cluster]").allInnerTexts();
    for (let n = names.findIndex((name) => name.trim() === lost.name); n >= 0; n--) await press("j");
    await press("Enter");
    const lead = page.locator(".drawer .lead");
    await lead.waitFor();
    assert.ok((await page.locator(".drawer-title").innerText()).includes(lost.name));
    assert.match(await lead.innerText(), /lost[\s\S]*It does not answer for \d+/);
    assert.match(await page.locator(".drawer .block").first().innerText(), new RegExp(`Apps\\s+${lost.apps}`));
  });
  await context.close();
  assert.deepEqual(faults, []);
}
