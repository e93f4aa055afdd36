// Compares the arithmetic of the playgrounds and the quiz with the worked examples; limits the size of the page. Needs no browser.

import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import * as math from "../../apps/web/math.js";
import { questions } from "../../apps/web/quiz_questions.js";
import { filtered } from "../../apps/web/sampling.js";

const shared = process.env.FOVEA_SHARED ?? "";
const skip = shared ? false : "FOVEA_SHARED is not set";
const examples = shared ? new Map(JSON.parse(readFileSync(join(shared, "fixtures/worked_examples.json"), "utf8")).examples.map((each) => [each.id, each])) : new Map();
const expected = (id, name) => examples.get(id).expected[name].data;
const input = (id, name) => {
  const { shape, data } = examples.get(id).inputs[name];
  return shape.length < 2 ? data : Array.from({ length: shape.at(-2) * (shape.length > 2 ? shape[0] : 1) }, (_, i) => data.slice(i * shape.at(-1), (i + 1) * shape.at(-1)));
};
const near = (found, wanted, tolerance = 1e-12) => {
  assert.equal(found.length, wanted.length);
  found.forEach((x, i) => assert.ok(Math.abs(x - wanted[i]) <= tolerance, `${i}: ${x} instead of ${wanted[i]}`));
};

test("attention reproduces the worked example of three tokens", { skip }, () => {
  const x = input("s000.attn3.scores", "X");
  const { scores, weights, output } = math.attention(x, x, x, 2);
  near(scores.flat(), expected("s000.attn3.scores", "scores"));
  near(weights.flat(), expected("s000.attn3.weights.full", "weights"));
  near(output.flat(), expected("s000.attn3.output.full", "output"));
  const causal = math.attention(x, x, x, 2, (i, j) => j <= i);
  near(causal.weights.flat(), expected("d.s000.attn3.causal", "weights"));
  near(math.attention(x, x, x, 2, (_, j) => j < 2).weights.flat(), expected("d.s000.attn3.padding", "weights"));
});

test("attention reproduces two queries, three keys and three divisors", { skip }, () => {
  const [q, k, v] = ["Q", "K", "V"].map((name) => input("d.s004.divisor", name));
  near([Math.sqrt(3), 1, 0.1].flatMap((divisor) => math.attention(q, k, v, divisor).weights.flat()), expected("d.s004.divisor", "weights"));
  near(math.attention(q, k, v, Math.sqrt(3)).output.flat(), expected("s004.attn2x3", "output"));
});

test("softmax handles large scores and saturation", { skip }, () => {
  near(math.softmax([1000, 1001, 1002]), expected("s003.softmax.1000", "softmax"));
  near(math.softmax([1, 0, 0.5]), expected("s000.softmax.row0", "softmax"));
  near([1, 10, 100].map((factor) => math.gradientThrough(math.softmax([1, 2, 3].map((x) => x * factor)))), expected("d.softmax.saturation.jacobian", "jacobian_fro"));
});

test("positions match the worked examples: sinusoids, wavelengths, ALiBi", { skip }, () => {
  near(Array.from({ length: 16 }, (_, i) => math.wave(Math.floor(i / 4), i % 4, 4)), expected("s003.pe.4x4", "pe"));
  near([math.wavelength(0, 512), math.wavelength(510, 512)], [...expected("s004.pe.wavelength", "first"), ...expected("s004.pe.wavelength", "last_exact")], 1e-6);
  near(Array.from({ length: 8 }, (_, h) => math.alibiSlope(h, 8)), expected("d.alibi.slopes", "slopes"));
});

test("rotary scores depend only on the distance", () => {
  const [q, k] = [math.randomOf("q", 8), math.randomOf("k", 8)];
  const score = (m, n) => math.dot(math.rotated(q, m, 10000), math.rotated(k, n, 10000));
  near([score(7, 3), score(107, 103)], [score(4, 0), score(4, 0)], 1e-10);
});

test("norms match the worked examples", { skip }, () => {
  const rows = input("d.layernorm.2x3x4", "x");
  near(rows.flatMap((row) => math.layerNorm(row)), expected("d.layernorm.2x3x4", "y"));
  near(rows.flatMap((row) => math.rmsNorm(row)), expected("d.rmsnorm.2x3x4", "y"), 1e-6);
  near(math.layerNorm([1, 2, 3]), expected("s003.layernorm.123", "y"));
  const batch = math.batchNorm([[1, 5], [3, 9]]);
  near(batch.flat(), [-1, -1, 1, 1], 1e-4);
});

test("the facts of the quiz agree with the worked examples", { skip }, () => {
  for (const { ask, facts = [] } of questions) {
    for (const [id, name, at, value] of facts) {
      const digits = (String(value).split(".")[1] ?? "").length;
      const right = expected(id, name)[at];
      // The quiz may round a fraction to its digits; an integer must be exact.
      assert.ok(Math.abs(right - value) <= 1.01 * 10 ** -Math.max(digits, 0) * (digits ? 0.51 : 0), `${ask} ${id} ${name}[${at}]: ${value}, but ${right}`);
    }
  }
});

test("each question has one correct answer and an explanation", () => {
  assert.ok(questions.length >= 12);
  for (const { choices, answer, why } of questions) {
    assert.ok(answer >= 0 && answer < choices.length && why.length > 40);
    assert.equal(new Set(choices).size, choices.length);
  }
  // The position of the correct answer varies.
  assert.ok(new Set(questions.map(({ answer }) => answer)).size >= 4);
});

test("temperature, top k and top p filter the tokens", { skip }, () => {
  const logits = Float32Array.of(2, 1, 0.5, -1);
  const wanted = expected("d.temperature", "probs");
  const temperatures = examples.get("d.temperature").inputs.T?.data ?? [0.25, 0.5, 1, 2, 10];
  temperatures.forEach((temperature, n) => near([...filtered(logits, temperature, 0, 1, 4).probabilities], wanted.slice(4 * n, 4 * n + 4), 1e-7));
  const two = filtered(logits, 1, 2, 1, 4);
  assert.equal(two.kept, 2);
  near([...two.probabilities], [...math.softmax([2, 1]), 0, 0], 1e-9);
  assert.equal(filtered(logits, 1, 0, 0.6, 4).kept, 1); // the first token alone has 0.609
  assert.equal(filtered(logits, 1, 0, 0.62, 4).kept, 2);
  const many = Float32Array.from({ length: 5000 }, (_, i) => Math.sin(i * 12.9898) * 5);
  const sorted = [...many.keys()].sort((a, b) => many[b] - many[a] || a - b).slice(0, 15);
  assert.deepEqual([...filtered(many, 1, 0, 1, 15).order], sorted);
});

test("the page without the text of the course is smaller than 455 KB", () => {
  const folder = new URL("../../apps/web/", import.meta.url).pathname;
  const bytes = readdirSync(folder).filter((name) => /\.(js|css|html)$/.test(name)).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  assert.ok(bytes < 455 * 1000, `${bytes} bytes`);
});
