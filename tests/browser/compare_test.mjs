// Two models side by side, and the curves of a reinforcement run.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { closeBrowser, folder, fovea, missing, number, opened, served, trained, violations } from "./support.mjs";

const skip = missing();
let base;
let aligned;

/** Trains a model on rewards; returns the directory of the run. */
function reinforced(from) {
  const prompts = join(folder, "prompts.jsonl");
  writeFileSync(prompts, Array.from({ length: 12 }, (_, i) => `${JSON.stringify({ prompt: `To be ${"or ".repeat(i % 3)}` })}\n`).join(""));
  const out = join(folder, "aligned");
  execFileSync(fovea, ["train", prompts, "--from", from, "--objective", "grpo", "--reward", "regex:be", "--lora", "4", "--out", out, "--steps", "6", "--prompts", "3", "--generations", "4",
    "--answer-tokens", "8", "--learning-rate", "1e-2", "--kl-weight", "0.01", "--evaluate-every", "3", "--save-every", "3", "--seed", "7", "--threads", "2", "--validation", "0.2"], { stdio: "pipe" });
  return out;
}

before(() => {
  if (skip) return;
  base = trained();
  aligned = reinforced(base);
});
after(closeBrowser);

test("two models answer a prompt, and the divergence is that of their logits", { skip }, async () => {
  const server = await served(base, aligned);
  const page = await opened(`${server.address}#view=compare&text=To+be&model=0&other=1%406`);
  await page.waitForSelector("[data-mean]");
  const answers = await page.locator("[data-answer] .sample").allTextContents();
  assert.equal(answers.length, 2);
  const ask = async (path, body) => (await fetch(`${server.address}api/${path}`, { method: "POST", body: JSON.stringify(body) })).json();
  const written = await ask("generation", { model: "1@6", prompt: "To be", tokens: 64 });
  assert.equal(answers[1].trim(), written.text.trim());
  const logits = async (model) => {
    const { run } = await ask("run", { model, ids: written.ids });
    return new Float32Array(await (await fetch(`${server.address}api/logits?run=${run}&position=3`)).arrayBuffer());
  };
  const softmax = (x) => {
    const most = Math.max(...x);
    const all = Array.from(x, (each) => Math.exp(each - most));
    const sum = all.reduce((a, b) => a + b);
    return all.map((each) => each / sum);
  };
  const [p, q] = [softmax(await logits("0")), softmax(await logits("1@6"))];
  const kl = p.reduce((sum, each, i) => sum + each * Math.log(each / q[i]), 0);
  const title = await page.locator("[data-token='4']").getAttribute("title");
  assert.ok(Math.abs(number(title.replace("KL ", "")) - kl) <= 1e-3 * kl + 1e-4, `${title}, ${kl}`);
  await page.locator("[data-token='4']").click();
  await page.waitForFunction(() => document.querySelectorAll("[data-side] .bar-row").length === 16);
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(page.problems, []);
  server.stop();
});

test("a reinforcement run shows its rewards, divergence, lengths and samples", { skip }, async () => {
  const server = await served(aligned);
  const page = await opened(`${server.address}#view=learn&text=To+be`);
  await page.waitForSelector("[data-curve=reward]");
  for (const name of ["reward", "kl", "entropy", "clip_fraction", "answer_tokens", "ended"]) assert.equal(await page.locator(`[data-curve=${name}] svg path`).count() > 0, true, name);
  await page.waitForSelector("text=A sample before and after");
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(page.problems, []);
  server.stop();
});
