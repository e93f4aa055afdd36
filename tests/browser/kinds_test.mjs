// Encoders, encoder-decoders, grouped heads, windows and experts, compared with the fixtures of reference implementations.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import { closeBrowser, missing, number, opened, rowOf, served, shared, tensors } from "./support.mjs";

const skip = missing() || (shared ? false : "FOVEA_SHARED is not set");
after(closeBrowser);

const fixture = (name) => join(shared, "fixtures/models", name);

/** Returns the index of the first row without padding in a fixture, and the row's ids. */
function wholeRow(found, name = "input_ids") {
  const { shape: [rows, length], data } = found[name];
  const mask = found.attention_mask.data;
  const width = found.attention_mask.shape[1];
  const row = Array.from({ length: rows }, (_, r) => r).find((r) => mask.slice(r * width, (r + 1) * width).every((each) => Number(each) === 1));
  return { row, ids: [...data.slice(row * length, (row + 1) * length)].map(Number) };
}

/** Returns the attention of one sequence of a batch. */
const alone = ({ shape: [, H, T, S], data }, row) => ({ shape: [1, H, T, S], data: data.slice(row * H * T * S, (row + 1) * H * T * S) });

async function expectRow(page, wanted) {
  const best = wanted.indexOf(Math.max(...wanted));
  await page.waitForFunction(({ key, least }) => Number(document.querySelector(`[data-weight="${key}"]`)?.title) > least, { key: best, least: wanted[best] - 1e-5 });
  const told = await page.$$eval("[data-weight]", (all) => all.map((each) => [Number(each.dataset.weight), each.title]));
  // The reference also computes in float32, so results may differ by 1e-5.
  for (const [key, text] of told) assert.ok(Math.abs(number(text) - wanted[key]) <= 1e-5, `${key}: ${text}, ${wanted[key]}`);
}

for (const [name, told] of [["bert", null], ["mixtral", "share 2 sets of keys and values"], ["gemma2", "window of"]]) {
  test(`${name}: a row equals that of the reference`, { skip }, async () => {
    const found = tensors(join(fixture(name), "expected.safetensors"));
    const { row, ids } = wholeRow(found);
    const server = await served(fixture(name));
    const page = await opened(`${server.address}#text=${ids.join("+")}&token=11&layer=0&heads=3`);
    await expectRow(page, rowOf(alone(found["attention.0"], row), 3, 11));
    if (told) await page.waitForSelector(`.row:has-text("${told}")`);
    assert.deepEqual(page.problems, []);
    server.stop();
  });
}

test("cross-attention is shown with source and target", { skip }, async () => {
  const both = await served(fixture("marian"));
  const page = await opened(`${both.address}#text=5+6+7+8&target=9+10+11&look=cross&token=1&layer=0&heads=0`);
  await page.waitForSelector("[data-weight]");
  const source = await page.$$eval(".sentence", (all) => all.length);
  assert.equal(source, 2, "source and target are shown");
  const told = await page.$$eval("[data-weight]", (all) => all.map((each) => Number(each.title)));
  assert.ok(Math.abs(told.reduce((a, b) => a + b, 0) - 1) < 1e-5);
  await page.getByRole("button", { name: "Encoder self-attention" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".sentence button").length === 4);
  assert.deepEqual(page.problems, []);
  both.stop();
});

test("the experts of each token are shown", { skip }, async () => {
  const mixture = await served(fixture("mixtral"));
  const page = await opened(`${mixture.address}#text=5+6+7+8`);
  await page.waitForSelector("h2:text('Experts')");
  const row = await page.locator(".panel:has(h2:text('Experts')) tbody tr").first().locator("td").allTextContents();
  assert.ok(Math.abs(row.filter(Boolean).map(number).reduce((a, b) => a + b, 0) - 1) < 0.011, row.join());
  assert.deepEqual(page.problems, []);
  mixture.stop();
});

test("cross-attention equals that of the reference in both directions", { skip }, async () => {
  const found = tensors(join(fixture("marian"), "expected.safetensors"));
  const { row, ids } = wholeRow(found);
  const T = found.labels.shape[1];
  const labels = [...found.labels.data.slice(row * T, (row + 1) * T)].map(Number);
  const server = await served(fixture("marian"));
  const cross = alone(found["cross_attention.1"], row);
  const text = `text=${ids.join("+")}&target=${labels.slice(0, -1).join("+")}&look=cross&layer=1&heads=2`;
  const page = await opened(`${server.address}#${text}&token=4`);
  await expectRow(page, rowOf(cross, 2, 4));
  await page.getByRole("button", { name: "attended by" }).click();
  await page.locator(".sentence button").nth(ids.length - 1).click();
  await page.waitForFunction((token) => location.hash.includes(`token=${token}`), ids.length - 1);
  await expectRow(page, Array.from({ length: T }, (_, t) => rowOf(cross, 2, t)[ids.length - 1]));
  assert.deepEqual(page.problems, []);
  server.stop();
});

test("switching heads off changes the vector of an encoder", { skip }, async () => {
  const server = await served(fixture("mpnet"));
  const page = await opened(`${server.address}#view=heads&text=5+6+7+8+9&muted=self.0.1`);
  const text = await page.locator("#cosine, #loss-after").first().textContent();
  assert.ok(Number.isFinite(number(text)), text);
  assert.deepEqual(page.problems, []);
  server.stop();
});
