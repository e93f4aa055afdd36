// The picture of the whole model, writing on, two words, roles of heads, two texts and the course, as a person uses them.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { diagramOf } from "../../apps/web/diagram.js";
import { partsOf } from "../../apps/web/roles.js";
import { TAGGED, taggedHead, tokenOf, tokensOf } from "../../apps/web/tagged.js";
import { closeBrowser, folder, fovea, missing, opened, rowOf, served, shared, tensors, traced } from "./support.mjs";

const skip = missing();
const TEXT = "Mary went to the store because she wanted a ring.";
let model;
let server;

before(async () => {
  if (skip) return;
  model = join(folder, "course");
  execFileSync(fovea, ["learn", "--out", model]);
  server = await served(model);
});
after(async () => {
  await closeBrowser();
  server?.stop();
});

async function view(hash, options = { reducedMotion: "reduce" }) {
  const page = await opened(`${server.address}${hash}`, options);
  await page.waitForFunction(() => !document.querySelector("header.busy"));
  return page;
}
const quiet = (page) => {
  assert.deepEqual(page.problems, []);
  return page.context().close();
};
const idsOf = async (text) => (await (await fetch(`${server.address}api/run`, { method: "POST", body: JSON.stringify({ model: "0", text }) })).json()).tokens.map(({ id }) => id);
const softmax = (logits) => {
  const most = Math.max(...logits);
  const exps = [...logits].map((x) => Math.exp(x - most));
  const sum = exps.reduce((a, b) => a + b, 0);
  return exps.map((x) => x / sum);
};

const STACK = { layers: 2, mixers: [], position: { kind: "none", bias: "none", rotary: { theta: 10000 } }, norm: { kind: "layer" }, placement: { input: true, output: false, sum: false }, parallel: false,
  embedding_norm: false, first_norm: true, final_norm: true, residual: true, causal: true, attention: { heads: 4, kv_heads: 4, head_width: 8, windows: [] }, recurrence: { width: 0 }, latent: { width: 0 },
  ffn: { present: true, activation: "gelu", gated: false, width: 128, experts: { count: 0, chosen: 2, shared: 0, dense_layers: [] } } };
const SPEC = { vocabulary: 100, source_vocabulary: 0, width: 32, embedding_width: 32, token_types: 0, head: { kind: "language_model", tied: true, labels: 0, projection: 0 } };

test("the picture has the norms where they stand, groups of equal layers, and each kind of mixer", () => {
  const names = (stack) => stack.groups.flatMap((group) => group.sublayers.flatMap((sublayer) => sublayer.boxes.map((box) => `${box.title} ${box.detail}`)));
  const [pre] = diagramOf({ ...SPEC, decoder: STACK });
  assert.equal(pre.groups.length, 1);
  assert.deepEqual(pre.groups[0].layers, [0, 1]);
  assert.deepEqual(names(pre).map((name) => name.split(" ")[0]), ["Layer", "Attention", "Layer", "Feed-forward"]);
  const [post] = diagramOf({ ...SPEC, decoder: { ...STACK, placement: { input: false, output: false, sum: true } } });
  assert.deepEqual(post.groups[0].sublayers[0].boxes.map((box) => [box.part, box.lane]), [["attention", "branch"], ["norm", "stream"]]);
  const [mixed] = diagramOf({ ...SPEC, decoder: { ...STACK, mixers: ["lstm", "attention"] } });
  assert.deepEqual(mixed.groups.map((group) => group.sublayers[0].boxes[1].title), ["LSTM", "Attention"]);
  const [states] = diagramOf({ ...SPEC, decoder: { ...STACK, layers: 4, mixers: ["gated_delta", "state_space", "convolution", "attention"], placement: { input: false, output: true, sum: false },
    recurrent_pre_norm: true, delta: { heads: 2, key_width: 8, value_width: 16 }, state_space: { heads: 4, state_width: 32, head_width: 16 }, convolution: { tokens: 3 } } });
  assert.deepEqual(states.groups.map((group) => group.sublayers[0].boxes[group.layers[0] < 3 ? 1 : 0].detail.split(";").at(-1)),
    [" each has a state of 8 × 16 numbers", " each has a state of 32 × 16 numbers", "over the last 3 tokens", " earlier tokens only"]);
  const [windows] = diagramOf({ ...SPEC, decoder: { ...STACK, layers: 6, attention: { ...STACK.attention, kv_heads: 2, windows: [8, 0] } } });
  assert.deepEqual(windows.groups.map((group) => group.layers), [[0, 2, 4], [1, 3, 5]]);
  assert.match(names(windows)[1], /2 sets of keys and values; window of 8/);
  const [experts] = diagramOf({ ...SPEC, decoder: { ...STACK, ffn: { ...STACK.ffn, experts: { count: 8, chosen: 2, shared: 1, dense_layers: [0] } } } });
  assert.deepEqual(experts.groups.map((group) => group.sublayers[1].boxes[1].part), ["ffn", "experts"]);
  const both = diagramOf({ ...SPEC, encoder: STACK, decoder: STACK }, { T: 5, S: 7 });
  assert.deepEqual(both.map((stack) => stack.title), ["Encoder", "Decoder"]);
  assert.deepEqual(both[1].groups[0].sublayers[1].boxes[1].shape, [["H", 4], ["T", 5], ["S", 7]]);
  assert.ok(partsOf(both).some(([part]) => part === "cross") && partsOf(both).some(([part]) => part === "residual"));
  const [bare] = diagramOf({ ...SPEC, decoder: { ...STACK, residual: false } });
  assert.ok(!partsOf([bare]).some(([part]) => part === "residual"), "a model without sums has no row for them");
});

test("a role is shown only if its head beats the best fixed offset on the held-out half", () => {
  const rows = (good) => Array.from({ length: 2 }, (_, head) => ({ layer: 0, head, row: Float32Array.from({ length: 6 }, (__, key) => (key === (head === 1 ? good : 0) ? 0.9 : 0.02)) }));
  const varied = [1, 2, 3, 4, 1, 3, 2, 4].map((to) => ({ from: 5, to: new Set([to]), rows: rows(to) }));
  const found = taggedHead(varied);
  assert.equal(found.head, 1);
  assert.equal(found.score, 1);
  assert.ok(found.score > found.least);
  const fixed = Array.from({ length: 8 }, () => ({ from: 5, to: new Set([3]), rows: rows(3) }));
  assert.equal(taggedHead(fixed).least, 1, "a fixed offset does as well: the role is not shown");
  for (const { pairs } of Object.values(TAGGED)) for (const [text, ...words] of pairs) for (const word of words) assert.ok(text.includes(word), `${text}: ${word}`);
});

test("an address names a token by its word, which a tokenizer may cut", () => {
  const tokens = ["M", "ary", " saw", " M", "ary", " (", "3", ")"].map((text, id) => ({ id, text, special: false }));
  assert.deepEqual(tokensOf(tokens, "Mary"), [0, 1]);
  assert.deepEqual(tokensOf(tokens, "mary:2"), [3, 4]);
  assert.deepEqual(["Mary", "Mary:2", "Mary:3", "saw", "(", "2", "8", "", "ary"].map((name) => tokenOf(tokens, name)), ["1", "4", "", "2", "5", "2", "", "", "1"]);
  const pieces = ["[CLS]", "red", "green", "red", "green", "##ish"].map((text, id) => ({ id, text, special: id === 0 }));
  assert.deepEqual(["red", "red:2", "green:2"].map((name) => tokenOf(pieces, name)), ["1", "3", "4"]);
});

test("two words in an address open the head that links them most strongly", { skip }, async () => {
  for (const chapter of ["04-roles", "10-training"]) {
    const [, address, head] = /^```view\n(view=sentence\S.*)\nIn head (\d\.\d)/m.exec(readFileSync(new URL(`../../docs/course/${chapter}.md`, import.meta.url), "utf8"));
    const page = await view(`#${address.replaceAll(" ", "+")}`);
    await page.waitForSelector("[data-link]");
    const state = new URLSearchParams((await page.evaluate(() => location.hash)).slice(1));
    assert.equal(`${state.get("layer") ?? 0}.${state.get("heads") ?? 0}`, head, chapter);
    assert.equal(await page.locator("[data-link]").first().getAttribute("data-link"), head, chapter);
    await quiet(page);
  }
});

test("the first page is the whole model, and its boxes lead to their steps with the numbers of trace", { skip }, async () => {
  const page = await view("");
  await page.waitForSelector(".picture .box");
  const named = await page.locator(".picture .box .name").allTextContents();
  assert.deepEqual(named.map((each) => Number.parseInt(each, 10)), named.map((_, i) => i + 1), "the boxes have numbers in the order of the computation");
  const titles = named.map((each) => each.replace(/^\d+ /, ""));
  for (const title of ["Embedding", "Attention", "Feed-forward", "Head", "Softmax"]) assert.ok(titles.includes(title), titles.join());
  assert.match(await page.locator(".picture .box.attention .shape").first().textContent(), /^\[H 4, T \d+, S \d+\]$/);
  assert.ok(await page.locator(".roles tbody tr").count() >= 7);
  await page.locator("[data-measure=attention]").click();
  await page.waitForSelector("text=Loss on this text");
  const [whole, without] = (await page.locator(".roles [role='status'][title]").getAttribute("title")).split(" ").map(Number);
  assert.ok(without > whole + 0.5, `${without} without heads, ${whole} with them`);
  await page.getByRole("button", { name: "One box on" }).click();
  await page.waitForSelector(".box.now");
  await page.waitForSelector(".numbers:not(:empty)");
  await page.locator(".picture .box.attention").first().click();
  await page.waitForSelector("h2:text('Weights')");
  await page.waitForSelector("math mfrac");
  const expected = traced(model, await idsOf("The animal didn't cross the street because it was too tired."));
  const token = await page.locator("label", { hasText: "Token" }).locator("select").inputValue();
  const wanted = rowOf(expected["attention.0"], 0, Number(token));
  const bars = await page.$$eval("[role=listitem]", (all) => all.map((each) => [Number.parseInt(each.querySelector(".name").textContent, 10), each.querySelector("[data-value]").title]));
  assert.ok(bars.length > 3);
  for (const [key, text] of bars) assert.ok(Math.abs(Number(text) - wanted[key]) <= 1e-6, `${key}: ${text}`);
  await quiet(page);
});

test("the animation is still if reduced motion is preferred, and runs otherwise", { skip }, async () => {
  const still = await view("");
  await still.waitForSelector(".picture .box.now");
  const first = await still.locator(".box.now").getAttribute("data-step");
  await still.waitForTimeout(2600);
  assert.equal(await still.locator(".box.now").getAttribute("data-step"), first);
  await quiet(still);
  const moving = await view("", { reducedMotion: "no-preference" });
  await moving.waitForFunction((step) => document.querySelector(".box.now")?.dataset.step !== step, first);
  await moving.getByRole("button", { name: "Pause" }).click();
  await quiet(moving);
});

test("attention opens with a link from a pronoun, and two words rank all heads", { skip }, async () => {
  const page = await view("#view=sentence");
  await page.waitForSelector("[data-link]");
  const state = new URLSearchParams((await page.evaluate(() => location.hash)).slice(1));
  const ids = await idsOf("The animal didn't cross the street because it was too tired.");
  const expected = traced(model, ids);
  const [from, to] = [Number(state.get("token")), Number(state.get("second"))];
  const tokens = await page.$$eval(".sentence button", (all) => all.map((each) => each.textContent.trim()));
  assert.equal(tokens[from], "it");
  const wanted = [];
  for (let layer = 0; layer < 3; ++layer) for (let head = 0; head < 4; ++head) wanted.push([rowOf(expected[`attention.${layer}`], head, from)[to], `${layer}.${head}`]);
  wanted.sort((a, b) => b[0] - a[0]);
  assert.equal(await page.locator("[data-link]").first().getAttribute("data-link"), wanted[0][1], "the strongest head is the first");
  for (const [weight, name] of wanted.slice(0, 8)) assert.ok(Math.abs(Number(await page.locator(`[data-pair="there.${name}"]`).getAttribute("title")) - weight) < 1e-6, name);
  assert.equal(await page.locator(`[data-pair="back.${wanted[0][1]}"]`).textContent(), "masked", "a decoder's word does not see later ones");
  const file = join(folder, "qk.safetensors");
  execFileSync(fovea, ["trace", model, "--ids", ids.join(","), "--what", "query.*,key.*", "--out", file]);
  const found = tensors(file);
  const [layer, head] = wanted[0][1].split(".").map(Number);
  const [, , H, D] = found[`query.${layer}`].shape;
  const at = (name, token) => found[`${name}.${layer}`].data.slice((token * H + head) * D, (token * H + head + 1) * D);
  const sum = at("query", from).reduce((total, x, i) => total + x * at("key", to)[i], 0);
  assert.ok(Math.abs(Number(await page.locator("[data-sum]").getAttribute("data-sum")) - sum) < 1e-4 * Math.max(1, Math.abs(sum)));
  await page.locator(".sentence button").nth(1).click({ modifiers: ["Shift"] });
  await page.waitForFunction(() => /second=1(&|$)/.test(location.hash));
  const before = Number(await page.locator("[data-weight='1']").getAttribute("title"));
  const first = rowOf(expected[`attention.${layer}`], head, from)[0];
  await page.getByLabel("leave the first token out").check();
  await page.waitForSelector("text=The first token is left out");
  assert.ok(Math.abs(Number(await page.locator("[data-weight='1']").getAttribute("title")) - before / (1 - first)) < 1e-5);
  await quiet(page);
});

test("a suggestion shows its head with one click", { skip }, async () => {
  const page = await view("");
  await page.locator("[data-try='a repetition']").click();
  await page.waitForSelector("[data-link]");
  const chosen = await page.$$eval(".sentence button[aria-pressed=true]", (all) => all.map((each) => each.textContent.trim()));
  assert.deepEqual(chosen, ["green"]);
  await quiet(page);
});

test("a click on a bar appends the token, and ten tokens are written", { skip }, async () => {
  const page = await view(`#view=say&text=${encodeURIComponent("Mary went to the")}`);
  const ids = await idsOf("Mary went to the");
  const logits = traced(model, ids).logits;
  const wanted = softmax(logits.data.slice(-logits.shape[2]));
  const best = wanted.indexOf(Math.max(...wanted));
  await page.locator(`[data-append="${best}"]`).click();
  await page.waitForFunction((list) => location.hash.includes(`ids=${list}`), encodeURIComponent([...ids, best].join(",")));
  const next = traced(model, [...ids, best]).logits;
  const after = softmax(next.data.slice(-next.shape[2]));
  const likeliest = after.indexOf(Math.max(...after));
  await page.waitForFunction(({ id, p }) => Math.abs(Number(document.querySelector(`[data-id="${id}"]`)?.title) - p) < 1e-5, { id: likeliest, p: after[likeliest] });
  await page.locator("[data-write='10']").click();
  await page.waitForFunction((count) => new URLSearchParams(location.hash.slice(1)).get("ids")?.split(",").length >= count, ids.length + 11);
  await page.waitForSelector("text=11 choices");
  await page.locator("[data-fresh]").click();
  await page.waitForFunction(() => !location.hash.includes("ids="));
  assert.equal(await page.getByLabel("Text that the model reads").inputValue(), "Mary went to the");
  await page.locator("[data-beams]").click();
  await page.waitForSelector(".beams .dropped");
  assert.ok(await page.locator(".beams .best").count() >= 3);
  await quiet(page);
});

test("names of special tokens in a text are read as special tokens", { skip }, async () => {
  const page = await view(`#view=sentence&text=${encodeURIComponent("The animal<|endoftext|>The dog")}`);
  await page.waitForSelector(".sentence .special");
  assert.deepEqual(await page.locator(".sentence .special").allTextContents(), ["<|endoftext|>"]);
  await quiet(page);
});

test("a chat model reads a text in its chat format", { skip }, async () => {
  const chat = join(folder, "chat");
  cpSync(model, chat, { recursive: true });
  const config = join(chat, "tokenizer_config.json");
  const template = "{% for m in messages %}<|endoftext|>{{ m.role }} {{ m.content }}{% endfor %}{% if add_generation_prompt %}<|endoftext|>{% endif %}";
  writeFileSync(config, JSON.stringify({ ...JSON.parse(readFileSync(config, "utf8")), chat_template: template }));
  const chats = await served(chat);
  const page = await opened(`${chats.address}#view=say&text=The+dog`, { reducedMotion: "reduce" });
  await page.locator("[data-chat]").click();
  await page.waitForFunction(() => location.hash.includes("ids="));
  assert.equal(await page.getByLabel("Text that the model reads").inputValue(), "<|endoftext|>user The dog<|endoftext|>");
  await quiet(page);
  chats.stop();
});

test("heads have cards, and a banner names those that are off", { skip }, async () => {
  const page = await view(`#view=heads&text=${encodeURIComponent("red cat green dog tall horse king apple street river tired red cat green dog tall horse king apple street river tired")}`);
  await page.waitForSelector("[data-role='the previous token']");
  await page.waitForSelector("[data-role='induction']");
  await page.waitForSelector("text=The tagged sentences are ours");
  await page.getByLabel("Switch head 0.1 off").check();
  await page.waitForSelector(".banner:has-text('head 0.1')");
  await page.getByRole("link", { name: "Predictions" }).click();
  await page.waitForSelector(".banner:has-text('head 0.1')");
  await page.locator(".banner button").click();
  await page.waitForSelector(".banner", { state: "hidden" });
  await quiet(page);
});

test("a word in two texts moves apart layer by layer", { skip }, async () => {
  const page = await view("#view=twice");
  await page.locator("[data-pair-of='bank: river and loan']").click();
  await page.waitForSelector("[data-cosine]");
  const texts = ["The dog sat on the bank of the river.", "The bank gave the man a loan and some money."];
  const lists = await Promise.all(texts.map(idsOf));
  const vectors = lists.map((ids) => traced(model, ids)["hidden.1"]).map(({ data, shape: [, , C] }, n) => data.slice([6, 1][n] * C, ([6, 1][n] + 1) * C));
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  const wanted = dot(vectors[0], vectors[1]) / Math.sqrt(dot(vectors[0], vectors[0]) * dot(vectors[1], vectors[1]));
  assert.ok(Math.abs(Number(await page.locator("[data-cosine='1']").getAttribute("title")) - wanted) < 1e-5);
  await quiet(page);
});

test("two texts of an encoder have a cosine that its tokens add up to", { skip: skip || (shared ? false : "FOVEA_SHARED is not set") }, async () => {
  const encoder = await served(join(shared, "fixtures/models/bert"));
  const page = await opened(`${encoder.address}#view=twice&text=5+6+7+8&text2=5+9+10`);
  const total = Number(await page.locator("#text-cosine").getAttribute("title"));
  const pairs = await page.$$eval("[data-matrix] [data-cell]", (all) => all.map((each) => Number(each.title)));
  assert.equal(pairs.length, 12);
  assert.ok(Math.abs(pairs.reduce((a, b) => a + b, 0) - total) < 1e-9);
  assert.deepEqual(page.problems, []);
  encoder.stop();
});

test("a saved view offers no empty tabs", { skip }, async () => {
  const html = join(folder, "saved.html");
  execFileSync(fovea, ["inspect", model, TEXT, "--out", html]);
  const page = await opened(`file://${html}`);
  await page.waitForSelector("[data-weight]");
  const tabs = await page.locator("header nav a").allTextContents();
  assert.ok(tabs.includes("Attention") && !tabs.includes("Heads") && !tabs.includes("Training"), tabs.join());
  for (const tab of tabs) {
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: tab, exact: true }).click();
    await page.waitForTimeout(200);
    assert.equal(await page.locator("main [role=alert]").count(), 0, tab);
  }
  await quiet(page);
});

test("fovea learn opens the course; each chapter renders, and a right answer is kept", { skip }, async () => {
  const child = spawn(fovea, ["learn", "--no-browser"], { stdio: ["ignore", "pipe", "ignore"] });
  const address = String(await new Promise((resolve) => { child.stdout.once("data", resolve); })).trim();
  assert.match(address, /#view=course$/);
  const page = await opened(address, { reducedMotion: "reduce" });
  await page.waitForSelector(".question");
  const files = readdirSync(new URL("../../docs/course/", import.meta.url)).filter((name) => name.endsWith(".md")).map((name) => name.slice(0, -3)).sort();
  assert.deepEqual((await page.$$eval("[data-chapter]", (all) => all.map((each) => each.dataset.chapter))).filter((name) => name !== "tour").sort(), files);
  for (const name of files) {
    await page.locator(`[data-chapter="${name}"]`).click();
    const title = readFileSync(new URL(`../../docs/course/${name}.md`, import.meta.url), "utf8").split("\n")[0].slice(2);
    await page.waitForSelector(`.prose h2:has-text("${title}")`);
    assert.equal(await page.locator(".prose .error").count(), 0);
  }
  await page.locator("[data-chapter='01-recurrence']").click();
  await page.locator("[data-answer-of='01-recurrence']").fill("50");
  await page.getByRole("button", { name: "Check" }).click();
  await page.waitForSelector("text=Not yet");
  await page.locator("[data-answer-of='01-recurrence']").fill("forty-nine");
  await page.getByRole("button", { name: "Check" }).click();
  await page.waitForSelector("text=Write a number in digits");
  await page.locator("[data-answer-of='01-recurrence']").fill("49");
  await page.getByRole("button", { name: "Check" }).click();
  await page.waitForSelector("text=Right: 49");
  await page.reload();
  await page.waitForSelector("text=1 of 13 questions answered");
  await page.locator("[data-chapter='10-training']").click();
  const { scores } = await page.evaluate(async () => ({ scores: await (await fetch("api/induction?model=0")).json() }));
  const heads = scores.flatMap((row, layer) => row.map((score, head) => [score, `${layer}.${head}`])).sort((a, b) => b[0] - a[0]);
  assert.ok(heads[0][0] >= 0.5, `the model of the course has an induction head: ${heads[0]}`);
  await page.locator("[data-answer-of='10-training']").fill(heads[0][1]);
  await page.getByRole("button", { name: "Check" }).click();
  await page.waitForSelector("text=Right: head");
  await page.locator("[data-chapter='tour']").click();
  assert.equal(await page.locator(".tour li").count(), 8);
  await page.waitForTimeout(300);
  assert.deepEqual(page.problems.filter((each) => !/aborted/.test(each)), []);
  child.kill("SIGINT");
});

test("models without attention, or without answers to explain, say so", { skip }, async () => {
  for (const [name, shown, sentence] of [["lstm", "sentence", "All layers of this model are recurrent"], ["lstm", "learn", "This layer is recurrent"], ["sentence_model", "explain", "This model computes something else"]]) {
    const server = await served(fileURLToPath(new URL(`../goldens/${name}`, import.meta.url)));
    const page = await opened(`${server.address}#view=${shown}`);
    await page.waitForSelector(`text=${sentence}`);
    assert.equal(await page.locator(".error").count(), 0);
    await quiet(page);
    server.stop();
  }
});

test("five tasks of a new reader take at most three clicks each from the first screen", { skip }, async () => {
  const tasks = {
    "find the head that links a pronoun": [["[data-try='a pronoun']"], "[data-best]"],
    "say what the third box does": [["svg [data-step] >> nth=2"], ".formula"],
    "make the model write more": [["[data-try='write more']", "[data-write='10']"], "[data-fresh]"],
    "compare two words": [["[data-try='compare two words']"], "[data-best]"],
    "leave a part out": [["[data-try='leave a part out']", "[data-mute] >> nth=0"], "#loss-after[title]"],
  };
  for (const [task, [clicks, sign]] of Object.entries(tasks)) {
    assert.ok(clicks.length <= 3, task);
    const page = await view("");
    await page.waitForSelector("[data-try='a pronoun']");
    for (const click of clicks) await page.click(click);
    await page.waitForSelector(sign);
    await quiet(page);
  }
});
