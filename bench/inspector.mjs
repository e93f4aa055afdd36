// Measures the page of `fovea inspect`: the time until it is loaded, from Enter to the first map, and from a click
// on another head to its map. Usage: node bench/inspector.mjs MODEL (with the tools of tests/browser/package.json)

import { missing, opened, closeBrowser, served } from "../tests/browser/support.mjs";

const TOKENS = 256;
const RUNS = 7;

/** Returns numbers, which are ids if the model has no tokenizer, and words otherwise. */
const text = (seed) => Array.from({ length: TOKENS }, (_, i) => ((i * 7919 + seed * 104729) % 20000) + 3).join(" ");

/** Runs in the page: records when the map was drawn, and the time from each click to the screen. */
function watch() {
  const times = { enter: 0, map: 0, clicks: [] };
  Object.assign(globalThis, { times });
  addEventListener("keydown", (event) => { if (event.key === "Enter") Object.assign(times, { enter: performance.now(), map: 0 }); }, true);
  const draw = CanvasRenderingContext2D.prototype.drawImage;
  CanvasRenderingContext2D.prototype.drawImage = function (...rest) {
    times.map ||= performance.now();
    return draw.apply(this, rest);
  };
  new PerformanceObserver((list) => { for (const { name, duration } of list.getEntries()) if (name === "pointerup") times.clicks.push(duration); })
    .observe({ type: "event", durationThreshold: 16 });
}

async function loading(address) {
  const page = await opened(null);
  await page.goto(`${address}#view=quiz`);
  await page.waitForSelector("[data-choice]");
  const took = await page.evaluate(() => Math.max(...performance.getEntriesByType("resource").map((each) => each.responseEnd),
    performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd));
  await page.context().close();
  return took;
}

async function reading(page, seed) {
  await page.getByLabel("Text that the model reads").fill(text(seed));
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => globalThis.times.enter > 0 && globalThis.times.map > globalThis.times.enter);
  const took = await page.evaluate(() => globalThis.times.map - globalThis.times.enter);
  await page.waitForTimeout(2500); // until the thumbnails are drawn
  return took;
}

async function switching(page, head) {
  await page.evaluate(() => { globalThis.times.clicks.length = 0; });
  await page.click(`[data-control=head${head}]`);
  await page.waitForTimeout(700);
  return page.evaluate(() => globalThis.times.clicks[0] ?? 16); // shorter events are not reported
}

function report(what, times) {
  const sorted = times.map(Math.round).sort((a, b) => a - b);
  console.log(`${what}: median ${sorted[sorted.length >> 1]} ms (${sorted[0]} to ${sorted.at(-1)})`);
}

async function repeat(act) {
  const times = [];
  for (let i = 1; i <= RUNS; ++i) times.push(await act(i));
  return times;
}

if (missing() || process.argv.length < 3) {
  console.error(missing() || "usage: node bench/inspector.mjs MODEL");
  process.exit(2);
}
const { address, stop } = await served(process.argv[2]);
report("the page is loaded", await repeat(() => loading(address)));
const page = await opened(null);
await page.addInitScript(watch);
await page.goto(`${address}#text=1+2+3`);
await page.waitForSelector("[data-weight]");
report(`${TOKENS} tokens, from Enter to the first map`, await repeat((n) => reading(page, n)));
report("from a click on another head to its map", await repeat((n) => switching(page, n)));
await closeBrowser();
stop();
