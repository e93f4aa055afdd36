// The site of the documents, which `./run docs` builds: axe finds nothing in any page, no page is wider than a phone, and the search finds.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, relative, resolve } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { closeBrowser, missing, opened, violations } from "./support.mjs";

const site = resolve(process.env.FOVEA_SITE ?? join(fileURLToPath(new URL(".", import.meta.url)), "../../build/site"));
const skip = missing() || (existsSync(join(site, "index.html")) ? false : "there is no site; ./run docs builds it");
const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".png": "image/png" };
const server = createServer((request, response) => {
  const path = join(site, decodeURIComponent(new URL(request.url, "http://127.0.0.1").pathname));
  const found = path.startsWith(site) && existsSync(path);
  response.writeHead(found ? 200 : request.url === "/favicon.ico" ? 204 : 404, { "content-type": TYPES[extname(path)] ?? "text/plain" }).end(found ? readFileSync(path) : "");
});
before(() => new Promise((ready) => { server.listen(0, "127.0.0.1", ready); }));
after(async () => {
  await closeBrowser();
  server.close();
});

function pagesIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((each) => {
    const path = join(folder, each.name);
    return each.isDirectory() ? pagesIn(path) : path.endsWith(".html") ? [relative(site, path)] : [];
  });
}

async function check(page, pages, withAxe = () => true) {
  const found = [];
  for (const each of pages) {
    await page.goto(`http://127.0.0.1:${server.address().port}/${each}`);
    for (const violation of withAxe(each) ? await violations(page) : []) found.push(`${each}: ${violation}`);
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
  await check(await opened(null, { viewport: { width: 390, height: 800 } }), pagesIn(site), (each) => kinds.includes(each));
});

test("the search finds options and pages without a server", { skip }, async () => {
  const page = await opened(new URL("search.html?q=learning-rate", `${pathToFileURL(site)}/`).href);
  await page.waitForSelector("#search-results li a[href*='commands/train.html']"); // its excerpts need a server
  await page.context().close();
});
