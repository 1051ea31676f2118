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

/** Opens a page that collects its faults in `faults`. `expected` matches console errors that a test brings about. */
export async function watchedPage(browser, { width = 1440, height = 900, theme = "light", expected, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => {
    if (message.type() === "error" && !expected?.test(message.text())) faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  await page.exposeFunction("reportViolation", (text) => faults.push(`policy: ${text}`));
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => window.reportViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
  });
  return { page, context, faults };
}

/** Runs axe in the page, whose own policy stays in force, and returns a line for each violation. */
export async function violations(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations.map((one) => `${one.id} (${one.impact}): ${one.help}\n    ${one.nodes.slice(0, 4).map((node) => `${node.target.join(" ")} ${node.failureSummary?.split("\n")[1] ?? ""}`).join("\n    ")}`);
}
