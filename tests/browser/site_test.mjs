// The site of the documents, which `./run docs` builds: axe finds nothing in any page, no page is wider than a phone, and the search finds.

import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { closeBrowser, missing, opened, violations } from "./support.mjs";

const site = resolve(process.env.FOVEA_SITE ?? join(fileURLToPath(new URL(".", import.meta.url)), "../../build/site"));
const skip = missing() || (existsSync(join(site, "index.html")) ? false : "there is no site; ./run docs builds it");
const addressOf = (page) => new URL(page, `${pathToFileURL(site)}/`).href;
after(closeBrowser);

function pagesIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((each) => {
    const path = join(folder, each.name);
    return each.isDirectory() ? pagesIn(path) : path.endsWith(".html") ? [relative(site, path)] : [];
  });
}

async function check(page, pages) {
  const found = [];
  for (const each of pages) {
    await page.goto(addressOf(each));
    for (const violation of await violations(page)) found.push(`${each}: ${violation}`);
    const [width, content] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
    if (content > width) found.push(`${each}: is ${content} pixels wide in a window of ${width}`);
  }
  assert.equal(found.join("\n"), "");
  assert.deepEqual(page.problems, []);
  await page.context().close();
}

test("axe finds nothing in any page", { skip }, async () => {
  const pages = pagesIn(site);
  assert.ok(pages.length > 100);
  await check(await opened(null, { reducedMotion: "reduce" }), pages);
});

test("axe finds nothing in dark colours, and on a phone", { skip }, async () => {
  const kinds = ["index.html", "first-steps.html", "how-to/fine-tune-on-chats.html", "commands/convert.html", "headers/core/ops.html", "performance.html", "search.html",
    "genindex.html"];
  await check(await opened(null, { colorScheme: "dark" }), kinds);
  await check(await opened(null, { viewport: { width: 390, height: 800 } }), pagesIn(site));
});

test("the search finds options and pages without a server", { skip }, async () => {
  const page = await opened(addressOf("search.html?q=learning-rate"));
  await page.waitForSelector("#search-results li a[href*='commands/train.html']");
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
