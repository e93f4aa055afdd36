// The view "Contributions" of a classifier and of a language model, compared with `fovea classify --explain` and `fovea trace --explain`.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, test } from "node:test";
import { closeBrowser, fovea, missing, number, opened, served, trained, violations } from "./support.mjs";

const skip = missing();
const classifier = (name) => new URL(`../goldens/classifiers/${name}`, import.meta.url).pathname;
const MODEL = classifier("texts");
const TEXT = "the fox sees Anna Lee in Paris.";
const METHODS = { integrated_gradients: "Integrated gradients", gradient_input: "Gradient × input", rollout: "Attention rollout" };
after(closeBrowser);

const asked = (...options) => JSON.parse(execFileSync(fovea, [...options, "--explain", "--json"], { encoding: "utf8" }));

/** Waits until the view shows this attribution, and compares its numbers. */
async function expectShown(page, { scores, deletion, completeness_error: error }) {
  const near = (text, wanted) => Math.abs(number(text) - wanted) <= 6e-6 + 1e-3 * Math.abs(wanted);
  // All of them: single tokens may have the same scores in the attribution that was shown before.
  await page.waitForFunction((all) => all.every((wanted, at) => {
    const text = document.querySelector(`[data-score="${at}"]`)?.title ?? "x";
    return Math.abs(Number(text.replace("−", "-")) - wanted) <= 6e-6 + 1e-3 * Math.abs(wanted);
  }), scores);
  const shown = await page.$$eval("[data-score]", (all) => all.map((each) => [Number(each.dataset.score), each.title]));
  assert.equal(shown.length, scores.length);
  for (const [token, text] of shown) assert.ok(near(text, scores[token]), `${token}: ${text}, ${scores[token]}`);
  const value = async (name) => page.locator(`[data-${name}]`).getAttribute("title");
  assert.ok(near(await value("change"), deletion.change));
  assert.ok(near(await value("random"), deletion.random_change));
  assert.ok(near(await value("deviation"), deletion.random_deviation));
  assert.equal(await page.locator("[data-completeness]").count(), error === undefined ? 0 : 1);
  if (error !== undefined) assert.ok(near(await value("completeness"), error), await value("completeness"));
}

test("a classifier shows its labels and what they rest on", { skip }, async () => {
  const server = await served(MODEL);
  const page = await opened(`${server.address}#view=explain&text=${encodeURIComponent(TEXT)}`);
  const best = asked("classify", MODEL, TEXT).explanation;
  await expectShown(page, best.attributions[1]);
  const labels = await page.$$eval("[data-answer]", (all) => all.map((each) => [each.dataset.answer, each.closest(".bar-row").querySelector(".number").title]));
  assert.deepEqual(labels.map(([name]) => name), best.outputs.map(({ name }) => name));
  labels.forEach(([, text], i) => assert.ok(Math.abs(number(text) - best.outputs[i].score) <= 1e-6));
  const other = best.outputs.at(-1).name;
  await page.getByRole("button", { name: other }).click();
  const wanted = asked("classify", MODEL, TEXT, "--target", other).explanation;
  for (const attribution of wanted.attributions) {
    await page.getByRole("button", { name: METHODS[attribution.method] }).click();
    await expectShown(page, attribution);
  }
  assert.match(page.url(), /answer=.*method=rollout/);
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(page.problems, []);
  server.stop();
});

test("a language model shows its next tokens and what they rest on", { skip }, async () => {
  const model = trained();
  const server = await served(model);
  const page = await opened(`${server.address}#view=explain&text=To+be`);
  const best = asked("trace", model, "--text", "To be");
  await expectShown(page, best.attributions[1]);
  const second = best.outputs[1];
  await page.locator("[data-answer]").nth(1).click();
  const wanted = asked("trace", model, "--text", "To be", "--target", `#${second.id}`);
  await expectShown(page, wanted.attributions[1]);
  assert.deepEqual(page.problems, []);
  server.stop();
});

test("entities, masked words and answers are shown with what they rest on", { skip }, async () => {
  const cases = [["words", TEXT, []], ["masks", "the [MASK] sees a [MASK] in Paris.", []], ["answers", "Who sees it?", ["--context", TEXT, "--top", "3"]]];
  for (const [name, text, more] of cases) {
    const server = await served(classifier(name));
    const page = await opened(`${server.address}#view=explain&text=${encodeURIComponent(text)}`);
    if (more.length > 0) {
      await page.getByLabel("Text that has the answer").fill(TEXT);
      await page.getByRole("button", { name: "Answer" }).click();
    }
    const all = asked("classify", classifier(name), text, ...more).explanations;
    assert.ok(all.length > 1);
    for (const [number, explanation] of all.entries()) {
      await page.locator(`[data-result="${number}"]`).click();
      await expectShown(page, explanation.attributions[1]);
      assert.equal(await page.locator(".contributions .position").count(), explanation.positions.length);
    }
    assert.deepEqual(await violations(page), []);
    assert.deepEqual(page.problems, []);
    server.stop();
  }
});

test("another model or an unknown answer is one message", { skip }, async () => {
  const server = await served(classifier("masks"));
  const page = await opened(`${server.address}#view=explain&text=night`);
  await page.waitForSelector("[role=status]:has-text('has no mask token; expected [MASK]')");
  server.stop();
  const labels = await served(MODEL);
  const other = await opened(`${labels.address}#view=explain&text=night&answer=sport`);
  await other.waitForSelector(".error:has-text('is not a label')");
  await other.getByRole("button", { name: "Explain the most probable answer" }).click();
  await other.waitForSelector("[data-score]");
  labels.stop();
});
