// The page of models that read images: patches, attention over the image, rollout, and what a word of an answer looked at.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { closeBrowser, folder, fovea, missing, number, opened, rowOf, served, tensors, violations } from "./support.mjs";

const skip = missing();
const golden = (path) => fileURLToPath(new URL(`../goldens/${path}`, import.meta.url));
const image = golden("images/011.jpg");
after(closeBrowser);

/** The results of `fovea trace` for an image. */
function traced(model, ...options) {
  const file = join(folder, "image.safetensors");
  execFileSync(fovea, ["trace", model, "--image", image, "--out", file, ...options]);
  return tensors(file);
}

/** What the server returns for the image, as the page gets it. */
async function seenBy(address, question = "") {
  const query = new URLSearchParams({ model: "0", question });
  return (await fetch(new URL(`api/image?${query}`, address), { method: "POST", body: readFileSync(image) })).json();
}

/** The weights on the patches, as the page names them. */
async function cells(page) {
  const texts = await page.$$eval(".patches button", (all) => all.map((each) => each.title));
  return texts.map((text) => number(text.split(": ")[1]));
}

/** Waits until the sentence below the heads begins with `text`. */
const shows = (page, text) => page.waitForFunction((wanted) => document.getElementById("said")?.textContent.startsWith(wanted), text);

/** Compares numbers with 6 digits. */
function near(found, expected) {
  assert.equal(found.length, expected.length);
  found.forEach((x, i) => assert.ok(Math.abs(x - expected[i]) <= 5.1e-7, `${i}: ${x}, expected ${expected[i]}`));
}

const mean = (attention, row) => rowOf(attention, 0, row).map((_, s) =>
  [...Array(attention.shape[1]).keys()].reduce((sum, head) => sum + rowOf(attention, head, row)[s], 0) / attention.shape[1]);

test("the weights on the patches are those of fovea trace, for every head, layer and patch, and the rollout", { skip }, async () => {
  const model = golden("vision/clip"), { address, stop } = await served(model);
  assert.ok(address.endsWith("/images.html"));
  const page = await opened(address);
  await page.setInputFiles("#file", image);
  const seen = await seenBy(address);
  const trace = traced(model), layers = Object.keys(trace).filter((name) => name.startsWith("attention.")).length;
  const [{ rows, columns, tokens }] = seen.grids;
  const [, heads, T] = trace["attention.0"].shape;
  assert.equal(tokens.length, rows * columns);
  assert.equal(seen.tokens.length, T);
  assert.equal(seen.pixels.length, 4 * seen.side * seen.side);
  const onPatches = (row) => tokens.map((token) => row[token]);
  await shows(page, `Layer ${layers - 1}, mean, from “class token”`);
  near(await cells(page), onPatches(mean(trace[`attention.${layers - 1}`], 0)));
  await page.selectOption("#layer", "0");
  await page.getByRole("button", { name: "head 1", exact: true }).click();
  await page.locator(`.patches button[data-token="${tokens[3]}"]`).click();
  await shows(page, `Layer 0, head 1, from row ${Math.floor(3 / columns) + 1}, column ${3 % columns + 1}`);
  near(await cells(page), onPatches(rowOf(trace["attention.0"], 1, tokens[3])));
  await page.getByRole("button", { name: "rollout" }).click();
  await shows(page, "All layers, rollout");
  let row = [...Array(T).keys()].map((t) => (t === tokens[3] ? 1 : 0));
  for (let layer = layers; layer-- > 0;)
    row = row.map((own, s) => own / 2 + row.reduce((sum, r, t) => sum + r * mean(trace[`attention.${layer}`], t)[s] / 2, 0));
  near(await cells(page), onPatches(row));
  assert.equal(await page.locator(".small-maps button").count(), heads + 2);
  await page.locator(".patches button").first().focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => document.activeElement.dataset.token), String(tokens[1]));
  assert.deepEqual(await violations(page), []);
  await page.setInputFiles("#file", fileURLToPath(import.meta.url)); // no image
  await page.waitForSelector(".error");
  assert.ok((await page.locator(".error").textContent()).includes("not an image"));
  assert.deepEqual(page.problems.filter((each) => !each.includes("400")), []);
  stop();
});

test("a word of an answer shows what the model looked at when it wrote it", { skip }, async () => {
  for (const [name, question] of [["llava", "USER: <image> What is this? ASSISTANT:"], ["idefics3", "What is this?"]]) {
    const model = golden(`image_text/${name}`), { address, stop } = await served(model);
    const page = await opened(address);
    await page.getByRole("link", { name: "Images" }).click();
    await page.fill("#question", question);
    await page.setInputFiles("#file", image);
    const seen = await seenBy(address, question);
    const ids = seen.tokens.map((token) => token.id), written = seen.answer_begin + 1;
    assert.ok(seen.tokens.length > written);
    const trace = traced(model, "--ids", ids.join(","));
    await page.locator(`.sentence button[data-token="${written}"]`).click();
    await page.selectOption("#layer", "1");
    await page.getByRole("button", { name: "head 2", exact: true }).click();
    await shows(page, "Layer 1, head 2, from the place where");
    const expected = rowOf(trace["attention.1"], 2, written - 1);
    near(await cells(page), seen.grids[0].tokens.map((token) => expected[token]));
    assert.equal(seen.grids.length, name === "llava" ? 1 : 2);
    if (seen.grids.length > 1) {
      await page.getByRole("button", { name: "Tiles" }).click();
      await page.waitForFunction((count) => document.querySelectorAll(".patches button[title]").length === count, seen.grids[1].tokens.length);
      near(await cells(page), seen.grids[1].tokens.map((token) => expected[token]));
      assert.equal(new Set(seen.grids.flatMap((grid) => grid.tokens)).size, seen.grids[0].tokens.length + seen.grids[1].tokens.length);
    }
    assert.deepEqual(await violations(page), []);
    assert.deepEqual(page.problems, []);
    stop();
  }
});

test("the page begins with the image of --image, and fits narrow screens", { skip }, async () => {
  const child = spawn(fovea, ["inspect", golden("vision/siglip"), "--image", image, "--no-browser"], { stdio: ["ignore", "pipe", "pipe"] });
  const address = await new Promise((resolve) => { child.stdout.once("data", (data) => resolve(String(data).trim())); });
  for (const [name, options] of [["light", {}], ["dark", { colorScheme: "dark" }], ["phone", { viewport: { width: 390, height: 844 } }]]) {
    const page = await opened(address, options);
    await shows(page, "Layer");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), name);
    assert.deepEqual(await violations(page), [], name);
    assert.deepEqual(page.problems, []);
    if (process.env.FOVEA_SCREENSHOT) await page.screenshot({ path: `${process.env.FOVEA_SCREENSHOT}.${name}.png`, fullPage: true });
  }
  child.kill();
});
