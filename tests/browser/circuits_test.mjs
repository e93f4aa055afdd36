// Neurons, votes for an answer, patching, steering, circuits of heads and rotary angles, as a person uses them, compared with `fovea trace`.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { MEASURED } from "../../apps/web/measured.js";
import { closeBrowser, folder, fovea, missing, number, opened, served, trained, traced, violations } from "./support.mjs";

const skip = missing();
const FIRST = "Anna went to the store because";
const SECOND = "John went to the store because";
let model;
let server;
let rotary;

before(async () => {
  if (skip) return;
  model = join(folder, "course");
  execFileSync(fovea, ["learn", "--out", model]);
  rotary = trained("--position", "rotary");
  server = await served(model, rotary);
});
after(async () => {
  await closeBrowser();
  server?.stop();
});

async function view(parts, options = {}) {
  const page = await opened(`${server.address}#/${new URLSearchParams({ view: "circuits", text: FIRST, ...parts })}`, options);
  await page.waitForFunction(() => !document.querySelector("header.busy"));
  return page;
}
const quiet = (page) => {
  assert.deepEqual(page.problems, []);
  return page.context().close();
};
const trace = (...options) => JSON.parse(execFileSync(fovea, ["trace", model, "--text", FIRST, ...options, "--json"]));
const idsOf = async (text) => (await (await fetch(`${server.address}api/run`, { method: "POST", body: JSON.stringify({ model: "0", text }) })).json()).tokens.map(({ id }) => id);
const near = (found, wanted, what) => assert.ok(Math.abs(Number(found) - wanted) <= 1e-9 * (1 + Math.abs(wanted)), `${what}: ${found} instead of ${wanted}`);

test("neurons of a token are those of fovea trace; without one, the probabilities change", { skip }, async () => {
  const page = await view({});
  await page.getByRole("link", { name: "Inside" }).click();
  await page.locator("[data-field='depth']").selectOption("1");
  await page.waitForSelector("[data-neuron^='1.']");
  const expected = trace("--neurons")[1];
  const shown = await page.locator("[data-activation]").evaluateAll((cells) => cells.map((cell) => [cell.dataset.activation, cell.title]));
  assert.deepEqual(shown.map(([name]) => name), expected.map(({ neuron }) => `1.${neuron}`));
  expected.forEach(({ activation }, i) => near(shown[i][1], activation, "activation"));
  const ids = await idsOf(FIRST);
  const hidden = traced(model, ids, ["--what", "mlp_hidden.1"])["mlp_hidden.1"];
  near(shown[0][1], hidden.data[(ids.length - 1) * hidden.shape[2] + expected[0].neuron], "mlp_hidden");
  const [first] = shown;
  await page.getByLabel(`Switch neuron ${first[0]} off`).check();
  await page.waitForSelector("[data-without]");
  const pairs = await page.locator("[data-without]").evaluateAll((cells) => cells.map((cell) => [cell.dataset.without, Number(cell.title), Number(cell.parentElement.querySelector("[data-with]").title)]));
  assert.ok(pairs.some(([, without, all]) => Math.abs(without - all) > 1e-4), "no effect");
  const logits = traced(model, ids).logits;
  const row = [...logits.data.slice(-logits.shape[2])];
  const sum = row.reduce((total, x) => total + Math.exp(x), 0);
  for (const [id, , all] of pairs) assert.ok(Math.abs(all - Math.exp(row[Number(id)]) / sum) < 1e-6);
  await page.getByRole("button", { name: "Switch all on" }).click();
  await page.getByText("Tick neurons").waitFor();
  await quiet(page);
});

test("votes for an answer add up to the difference of the logits", { skip }, async () => {
  const page = await view({ part: "attribution" });
  await page.waitForSelector("[data-difference]");
  const [one, two] = await page.locator("[data-answer]").evaluateAll((all) => all.map((each) => each.value));
  const expected = trace("--answers", `${one},${two}`);
  near(await page.locator("[data-difference]").getAttribute("title"), expected.difference, "difference");
  assert.ok(Math.abs(Number(await page.locator("[data-sum-of-parts]").getAttribute("title")) - expected.difference) < 1e-4);
  const cells = await page.locator("[data-matrix='votes by layer and head'] [data-cell]").evaluateAll((all) => all.map((cell) => [cell.dataset.cell, cell.title]));
  for (const [cell, value] of cells) {
    const [layer, head] = cell.split(",");
    near(value, expected.heads[layer][head], cell);
  }
  await page.getByLabel("or type A").fill(" she");
  await page.getByLabel("or type A").press("Enter");
  await page.waitForFunction(() => new URLSearchParams(location.hash.slice(1)).get("one"));
  await page.waitForFunction(() => /she/.test(document.querySelector("[data-answer='one']").selectedOptions[0].textContent));
  await quiet(page);
});

test("a person patches from a second text and sees where the answer rests", { skip }, async () => {
  const page = await view({ part: "patching", text: "Anything" });
  await page.getByRole("button", { name: "Anna or John: she or he" }).click();
  await page.waitForSelector("[data-into]");
  const [one, two] = await page.locator("[data-answer]").evaluateAll((all) => all.map((each) => each.value));
  const expected = trace("--other", SECOND, "--answers", `${one},${two}`);
  near(await page.locator("[data-into]").getAttribute("title"), expected.into, "into");
  near(await page.locator("[data-from]").getAttribute("title"), expected.from, "from");
  const cells = await page.locator("[data-matrix='change of the difference'] [data-cell]").evaluateAll((all) => all.map((cell) => [cell.dataset.cell, Number(cell.title)]));
  assert.equal(cells.length, expected.patched.length * expected.patched[0].length);
  for (const [cell, value] of cells) {
    const [row, token] = cell.split(",").map(Number);
    near(value, expected.patched[expected.patched.length - 1 - row][token] - expected.into, cell);
  }
  // The names differ at one token only; the other tokens before layer 0 are equal.
  const firstLayer = expected.patched[0].map((value) => value !== expected.into);
  assert.equal(firstLayer.filter(Boolean).length, 1);
  await page.getByLabel("Second text").fill("One two three four five");
  await page.getByLabel("Second text").press("Enter");
  await page.getByText("expected equal numbers").waitFor();
  await quiet(page);
});

test("steering changes the written text; factor 0 is the model's own text", { skip }, async () => {
  const page = await view({ part: "steering", text2: SECOND, strength: "0", depth: "2" });
  await page.waitForSelector("[data-written='after']");
  const own = trace("--steer", "2", "--other", SECOND, "--strength", "0");
  assert.equal(await page.locator("[data-written='after']").textContent(), FIRST + own.text);
  assert.equal(await page.locator("[data-written='before']").textContent(), FIRST + own.text);
  await page.locator("[data-field='strength']").fill("4");
  await page.locator("[data-field='strength']").dispatchEvent("change");
  await page.getByText("With 4 times the direction").waitFor();
  const steered = trace("--steer", "2", "--other", SECOND, "--strength", "4");
  assert.equal(await page.locator("[data-written='after']").textContent(), FIRST + steered.text);
  await quiet(page);
});

test("what a head looks for and writes is that of fovea trace", { skip }, async () => {
  const page = await view({ part: "head" });
  await page.getByRole("button", { name: "Head 1", exact: true }).click();
  await page.getByText("Head 0.1: what it looks for").waitFor();
  const expected = trace("--circuit", "0.1");
  const rows = await page.locator("[data-circuit]").evaluateAll((all) => all.map((row) => [Number(row.dataset.circuit), ...[...row.querySelectorAll("td")].map((cell) => [...cell.querySelectorAll("[data-token]")].map((each) => [Number(each.dataset.token), Number(each.title)]))]));
  assert.ok(rows.length > 3);
  for (const [place, sought, written] of rows) {
    assert.deepEqual(sought, expected.sought[place].slice(0, 5));
    assert.deepEqual(written, expected.written[place].slice(0, 5));
  }
  await quiet(page);
});

test("rotary angles are positions times frequencies", { skip }, async () => {
  const page = await view({ part: "rotation", model: "1", text: "To be, or not" });
  await page.waitForSelector("[data-angle]");
  for (const position of [1, 3]) for (const pair of [0, 1]) {
    const angle = position * 10000 ** (-2 * pair / 8);
    assert.equal(number(await page.locator(`[data-angle="${position}.${pair}"]`).textContent()).toFixed(2), angle.toFixed(2));
  }
  await quiet(page);
});

test("the table of parts shows the laboratory's results", () => {
  for (const rows of Object.values(MEASURED)) for (const [command, metric, value, without] of rows) {
    const experiment = command.split(" ")[2];
    const result = JSON.parse(readFileSync(new URL(`../../lab/results/${experiment}.json`, import.meta.url)));
    const means = result.points.filter(({ x }) => x === Number(/: (\S+)\)$/.exec(metric)[1])).map(({ mean }) => Number(mean.toPrecision(4))); // as tools/docs/write_measured.py writes them
    assert.ok(metric.startsWith(`${result.metric} (${result.axis}: `), metric);
    assert.ok(means.includes(value) && means.includes(without), experiment);
  }
});

test("axe finds nothing in any part, in light, dark and on a phone", { skip }, async () => {
  for (const options of [{ colorScheme: "light" }, { colorScheme: "dark" }, { viewport: { width: 390, height: 844 } }]) {
    for (const [part, sign, parts] of [["neurons", "[data-neuron]", {}], ["attribution", "[data-difference]", {}], ["patching", "[data-into]", { text2: SECOND }], ["steering", "[data-written]", { text2: SECOND }], ["head", "[data-circuit]", {}], ["rotation", "[data-angle]", { model: "1" }]]) {
      const page = await view({ part, ...parts }, options);
      await page.waitForSelector(sign);
      assert.deepEqual(await violations(page), [], `${part} ${JSON.stringify(options)}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `${part} is ${wide} pixels too wide`);
      await quiet(page);
    }
  }
});
