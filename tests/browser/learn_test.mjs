// The view of a training run, during and after it, and the comparison of two models.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { closeBrowser, folder, fovea, missing, number, opened, rowOf, served, trained, traced } from "./support.mjs";

const skip = missing();
const TEXT = "To be, or not to be";
let model;

before(() => { if (!skip) model = trained(); });
after(closeBrowser);

test("the view shows curves, two snapshots side by side, and a head in each snapshot", { skip }, async () => {
  const server = await served(model);
  const page = await opened(`${server.address}#text=${encodeURIComponent(TEXT)}&view=learn`);
  await page.waitForSelector("h2:has-text('step 30')");
  assert.equal(await page.locator("[data-field=model]").inputValue(), "0@10", "the first snapshot is on the left");
  assert.equal(await page.locator("[data-field=other]").inputValue(), "0@30", "the last snapshot is on the right");
  await page.waitForSelector("text=The maps differ by");
  await page.waitForFunction(() => document.querySelectorAll("figure canvas").length === 3);
  assert.equal(await page.locator("[data-field=model] option").count(), 4);
  await page.getByRole("button", { name: "Head 2", exact: true }).click();
  await page.waitForSelector("h2:has-text('Head 2 of layer 0')");
  await page.locator("[data-field=model]").selectOption("0");
  await page.locator("[data-field=other]").selectOption("0");
  await page.waitForSelector("text=The maps differ by at most 0.000");
  assert.deepEqual(page.problems, []);
  server.stop();
});

test("the difference of two models is that of their traces", { skip }, async () => {
  const server = await served(model, model);
  const page = await opened(`${server.address}#text=${encodeURIComponent(TEXT)}&view=learn&model=0%4010&other=1&layer=1&heads=1`);
  await page.waitForSelector("text=The maps differ by");
  const run = async (name) => (await fetch(`${server.address}api/run`, { method: "POST", body: JSON.stringify({ model: name, text: TEXT }) })).json();
  const { run: early, tokens } = await run("0@10");
  const late = traced(model, tokens.map((token) => token.id))["attention.1"];
  const map = new Float32Array((await (await fetch(`${server.address}api/map?run=${early}&layer=1&heads=1`)).arrayBuffer()), 12);
  let most = 0;
  tokens.forEach((_, t) => rowOf(late, 1, t).forEach((weight, s) => { most = Math.max(most, Math.abs(weight - map[t * tokens.length + s])); }));
  const told = Number(await page.locator("p:has-text('The maps differ by') b").getAttribute("title"));
  assert.ok(Math.abs(told - most) <= 1e-6, `${told}, ${most}`);
  assert.deepEqual(page.problems, []);
  server.stop();
});

test("fovea train --inspect shows a training run from its first step", { skip }, async () => {
  const text = join(folder, "running.txt");
  writeFileSync(text, "Whether 'tis nobler in the mind to suffer the slings and arrows.\n".repeat(400));
  const training = spawn(fovea, ["train", text, "--out", join(folder, "running"), "--inspect", "--steps", "1000000", "--save-every", "200", "--keep", "1000", "--evaluate-every", "0",
    "--layers", "2", "--heads", "2", "--width", "32", "--context", "64", "--batch", "2", "--seed", "7", "--threads", "1"], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  training.stderr.on("data", (data) => { said += data; });
  const ended = new Promise((resolve) => { training.once("exit", resolve); });
  for (let i = 0; i < 200 && !/http:\S+/.test(said); ++i) await new Promise((resolve) => setTimeout(resolve, 100));
  const [address] = /http:\S+/.exec(said);
  assert.match(address, /#view=learn$/);
  const page = await opened(address);
  const step = async () => number((await page.locator("h2:has-text('step')").first().textContent()).split("step ")[1].replaceAll(",", ""));
  await page.waitForSelector("h2:has-text('step')");
  const first = await step();
  await page.waitForFunction((from) => Number(document.querySelector("h2")?.textContent?.split("step ")[1]?.replaceAll(",", "")) > from, first);
  await page.waitForSelector("h2:has-text('Head 0 of layer 0')", { timeout: 60000 });
  await page.waitForFunction(() => document.querySelectorAll("figure canvas").length >= 2, null, { timeout: 60000 });
  assert.match(await page.locator(".sample").first().textContent(), /\S/);
  await page.getByRole("link", { name: "Attention" }).click();
  await page.waitForSelector("[data-weight]");
  assert.deepEqual(page.problems, []);
  // The page ends with the run: its curves stay, and it says so.
  await page.getByRole("link", { name: "Training" }).click();
  await page.waitForSelector(".plot");
  training.kill("SIGINT");
  assert.equal(await ended, 130, said);
  await page.waitForSelector("[data-ended]");
  assert.ok(await page.locator(".plot").count() > 0);
});
