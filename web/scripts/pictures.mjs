// Takes the pictures of the README into docs/pictures: views of the simulated fleet, as the page's tests drive them.
// Those of every view, size and theme are in tests/pictures after `npm test`.
//
//   TAFFRAIL_BIN=../target/release/taffrail npm run pictures
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { launch, missing as noBrowser, watchedPage } from "../tests/browser.mjs";
import { missing as noBinary, startFleet } from "../tests/hub.mjs";

const INTO = fileURLToPath(new URL("../../docs/pictures/", import.meta.url));
const WIDE = { width: 1280, height: 760 };

const reason = noBinary() ?? noBrowser();
if (reason) {
  console.error(`no pictures were taken: ${reason}`);
  process.exit(1);
}
mkdirSync(INTO, { recursive: true });
const fleet = await startFleet();
const browser = await launch();
try {
  const hub = await fleet.startHub();
  const { page } = await watchedPage(browser, WIDE);
  await page.goto(`${hub.url}/#${hub.token}`);
  // Several faults at once say more than one.
  await page.locator(".entry").nth(2).waitFor({ timeout: 180_000 });
  await page.waitForTimeout(1000);
  await page.screenshot({ path: `${INTO}attention.png` });
  await page.goto(`${hub.url}/apps`);
  await page.locator("[role=row][data-index='0']").click();
  await page.locator(".why .step").first().waitFor();
  await page.screenshot({ path: `${INTO}app.png` });
  await page.goto(`${hub.url}/matrix`);
  await page.locator(".matrix canvas").waitFor();
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${INTO}matrix.png` });
  const dark = await watchedPage(browser, { ...WIDE, theme: "dark" });
  await dark.page.goto(`${hub.url}/apps#${hub.token}`);
  await dark.page.locator("[role=row][data-index='5']").waitFor();
  await dark.page.screenshot({ path: `${INTO}apps-dark.png` });
} finally {
  await browser.close();
  await fleet.stop();
}
