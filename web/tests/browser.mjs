// A browser whose pages are watched: console errors, violations of the content security policy and of axe are faults.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
export const PICTURES = fileURLToPath(new URL("pictures/", import.meta.url));

export const missing = () => (existsSync(CHROMIUM) ? undefined : `no Chromium at ${CHROMIUM}`);

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

export const launch = () => {
  mkdirSync(PICTURES, { recursive: true });
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
};

/** Opens a page that collects in `faults` its own and those of the other pages of its context. `expected` matches console errors that a test brings about. */
export async function watchedPage(browser, { width = 1440, height = 900, theme = "light", expected, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, ...options });
  const faults = [];
  context.on("console", (message) => {
    if (message.type() === "error" && !expected?.test(message.text())) faults.push(`console: ${message.text()}`);
  });
  context.on("weberror", (error) => faults.push(`error: ${error.error().message}`));
  await context.exposeFunction("reportViolation", (text) => faults.push(`policy: ${text}`));
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => window.reportViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
  });
  const page = await context.newPage();
  return { page, context, faults };
}

/** Runs axe in the page, whose own policy stays in force, and returns a line for each violation. */
export async function violations(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations.map((one) => `${one.id} (${one.impact}): ${one.help}\n    ${one.nodes.slice(0, 4).map((node) => `${node.target.join(" ")} ${node.failureSummary?.split("\n")[1] ?? ""}`).join("\n    ")}`);
}

/** Tries `check` until it throws no more; after `millis` it throws what `check` did last. */
export async function holds(check, millis = 10_000) {
  const end = Date.now() + millis;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Lets `withhold` hide what a selector chooses, as a view that withholds its answer would; the rest of the page stays as it is. */
export const addWithholding = (page) =>
  page.addInitScript(() => {
    const sheet = new CSSStyleSheet();
    const hide = () => sheet.replaceSync(window.name && `:is(${window.name}), :is(${window.name}) * { visibility: hidden !important }`);
    // The name of a window outlives its documents.
    window.withhold = (selector) => { window.name = selector; hide(); };
    hide();
    document.adoptedStyleSheets.push(sheet);
  });

export const withhold = (page, selector) => page.evaluate((chosen) => window.withhold(chosen), selector);
