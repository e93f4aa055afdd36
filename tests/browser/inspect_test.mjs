// The page of the inspector with keyboard, clicks and drags. Displayed numbers are compared with `fovea trace`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { closeBrowser, folder, fovea, missing, number, opened, rowOf, served, shared, tensors, traced, trained, violations } from "./support.mjs";
import { execFileSync } from "node:child_process";

const skip = missing();
const TEXT = "To be, or not to be";
let model;
let server;
let expected;
let tokens;

before(async () => {
  if (skip) return;
  model = trained();
  server = await served(model);
  const run = await (await fetch(`${server.address}api/run`, { method: "POST", body: JSON.stringify({ model: "0", text: TEXT }) })).json();
  tokens = run.tokens;
  expected = traced(model, tokens.map((token) => token.id));
});

after(async () => {
  await closeBrowser();
  server?.stop();
});

/** Opens a view and waits for its first response. */
async function view(hash, options) {
  const page = await opened(`${server.address}#text=${encodeURIComponent(TEXT)}&${hash}`, options);
  await page.waitForFunction(() => !document.querySelector("header.busy"));
  return page;
}

function quiet(page) {
  assert.deepEqual(page.problems, []);
  return page.context().close();
}

/** Returns the weights in the list next to the map, by token. */
async function listed(page) {
  await page.waitForSelector("[data-weight]");
  const all = await page.$$eval("[data-weight]", (found) => found.map((each) => [Number(each.dataset.weight), Math.max(...each.title.split("\n").map(Number)), each.textContent]));
  for (const [, whole, text] of all) assert.equal(text, whole.toFixed(3), "three digits are shown, all of them on hover");
  return new Map(all.map(([key, whole]) => [key, String(whole)]));
}

async function expectRow(page, layer, head, query) {
  const wanted = rowOf(expected[`attention.${layer}`], head, query);
  await page.waitForFunction(({ key, value }) => Math.abs(Number(document.querySelector(`[data-weight="${key}"]`)?.title) - value) < 1e-6,
    { key: wanted.indexOf(Math.max(...wanted)), value: Math.max(...wanted) });
  for (const [key, text] of await listed(page)) assert.ok(Math.abs(number(text) - wanted[key]) <= 1e-6, `${key}: ${text}, ${wanted[key]}`);
}

test("a typed sentence and a clicked word show the row of trace", { skip }, async () => {
  const page = await opened(server.address);
  await page.locator("header [data-view=sentence]").click();
  await page.getByLabel("Text that the model reads").fill(TEXT);
  await page.keyboard.press("Enter");
  await page.waitForFunction((count) => document.querySelectorAll(".sentence button").length === count, tokens.length);
  await page.locator(".sentence button").nth(9).click();
  await page.getByLabel("Layer", { exact: true }).fill("0");
  await page.getByRole("button", { name: "Head 0", exact: true }).click();
  await expectRow(page, 0, 0, 9);
  assert.ok(await page.locator(".arcs path").count() > 2);
  assert.match(page.url(), /token=9/);
  await quiet(page);
});

test("heads and layers are selected by click and keyboard, several or averaged", { skip }, async () => {
  const page = await view("token=12");
  await page.getByRole("button", { name: "Head 2", exact: true }).click();
  await expectRow(page, 0, 2, 12);
  await page.getByLabel("Layer", { exact: true }).focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await expectRow(page, 2, 2, 12);
  await page.getByRole("button", { name: "Head 1", exact: true }).click({ modifiers: ["Shift"] });
  await page.waitForSelector("text=heads 2, 1");
  const rows = [rowOf(expected["attention.2"], 2, 12), rowOf(expected["attention.2"], 1, 12)];
  for (const [key, text] of await listed(page)) assert.ok(Math.abs(number(text) - Math.max(rows[0][key], rows[1][key])) <= 1e-6);
  await page.locator(".arc-heads button", { hasText: "head 1" }).hover();
  await page.waitForSelector(".arcs path.faded");
  await page.getByRole("button", { name: "average" }).click();
  await page.waitForSelector("text=the average of the selected heads");
  for (const [key, text] of await listed(page)) assert.ok(Math.abs(number(text) - (rows[0][key] + rows[1][key]) / 2) <= 1e-6);
  assert.equal(await page.locator(".heads .group").count(), 2, "grouped heads are drawn as groups");
  await quiet(page);
});

test("the other direction shows a column of the map", { skip }, async () => {
  const page = await view("token=3&layer=1&direction=from");
  const { data, shape: [, , T, S] } = expected["attention.1"];
  for (const [query, text] of await listed(page)) assert.ok(Math.abs(number(text) - data[query * S + 3]) <= 1e-6, `${query} of ${T}`);
  await quiet(page);
});

test("the map responds to row names, pointer, keyboard and drags", { skip }, async () => {
  const page = await view("layer=2&heads=3");
  await page.locator(".map .labels button[data-row='6']").click();
  await expectRow(page, 2, 3, 6);
  const canvas = page.locator(".map canvas");
  await canvas.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await page.waitForSelector(".reading:not(:empty)");
  const reading = await page.locator(".reading").first().textContent();
  assert.ok(reading.includes("(7)") && reading.includes("(1)"), reading);
  assert.ok(Math.abs(number(reading.split(": ").at(-1)) - rowOf(expected["attention.2"], 3, 7)[1]) <= 6e-4, reading);
  assert.ok((await page.locator(".map .tip").textContent()).includes(reading.split(": ").at(-1)), "the weight is shown next to the cell");
  await page.keyboard.press("+");
  await page.keyboard.press("+");
  await page.keyboard.press("+");
  const firstLabel = () => page.locator(".map .labels button").first().getAttribute("data-row");
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + 400, box.y + 400);
  await page.mouse.down();
  await page.mouse.move(box.x + 300, box.y + 130, { steps: 8 });
  await page.mouse.up();
  await page.waitForTimeout(100);
  assert.ok(Number(await firstLabel()) > 0, "the map has moved");
  assert.match(page.url(), /token=6/, "a drag does not change the selection");
  await quiet(page);
});

test("a click on a thumbnail shows the head; weights outside a window are blank", { skip }, async () => {
  const page = await view("token=15");
  await page.waitForFunction(() => document.querySelectorAll(".thumbs img").length === 12);
  await page.getByRole("button", { name: "Layer 1, head 3", exact: true }).click();
  await expectRow(page, 1, 3, 15);
  await page.waitForSelector("text=window of 8 tokens");
  const told = await listed(page);
  assert.deepEqual([...told.keys()].sort((a, b) => a - b), [8, 9, 10, 11, 12, 13, 14, 15], "a window of 8 keys");
  await quiet(page);
});

test("the steps of a token have the numbers of trace, forwards and backwards", { skip }, async () => {
  const page = await view("view=follow&layer=1&heads=2&token=10");
  await page.waitForSelector("text=step 1 of");
  await page.getByRole("button", { name: "Residual stream" }).click();
  await page.waitForSelector("h2:text('Residual stream')");
  // The page of images once had a style of the same name, which spread the numbers over the whole window.
  const [panel, numbers] = await page.$eval(".cells", (cells) => [cells.closest("section") ?? cells.parentElement, cells].map((each) => each.getBoundingClientRect().toJSON()));
  assert.ok(numbers.top >= panel.top && numbers.bottom <= panel.bottom && numbers.height < 400, JSON.stringify([panel, numbers]));
  const cells = await page.$$eval("[data-value]", (all) => all.map((each) => [each.title, each.textContent]));
  cells.forEach(([whole, text], i) => {
    assert.ok(Math.abs(Number(whole) - expected["hidden.1"].data[10 * 32 + i]) <= 1e-6);
    assert.ok(Math.abs(number(text) - Number(whole)) <= 5.1e-4);
  });
  await page.getByRole("button", { name: "Weights" }).click();
  await page.waitForSelector("h2:text('Weights')");
  const names = await page.$$eval("[role=listitem] .name", (all) => all.map((each) => Number.parseInt(each.textContent, 10)));
  const weights = await page.$$eval("[data-value]", (all) => all.map((each) => each.title));
  const wanted = rowOf(expected["attention.1"], 2, 10);
  weights.forEach((text, i) => assert.ok(Math.abs(number(text) - wanted[names[i]]) <= 1e-6));
  await page.locator("body").click({ position: { x: 5, y: 600 } });
  await page.keyboard.press("ArrowRight");
  await page.waitForSelector("h2:text('Weighted sum')");
  await page.keyboard.press("ArrowLeft");
  await page.waitForSelector("h2:text('Weights')");
  await page.getByRole("button", { name: "next →" }).click();
  await page.waitForSelector("h2:text('Weighted sum')");
  await page.getByRole("button", { name: "Add to the stream" }).first().click();
  await page.waitForSelector(".worked .total");
  const [before, added, after] = (await page.$$eval(".worked tr", (rows) => rows.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent)))).map((row) => row.slice(0, -1).map(number));
  after.forEach((x, i) => assert.ok(Math.abs(before[i] + added[i] - x) <= 1.6e-3, `${before[i]} + ${added[i]} = ${x}`));
  await page.getByRole("button", { name: "Scores" }).click();
  await page.waitForSelector(".formula:has-text('with its own key')");
  const [score] = (await page.locator(".formula:has-text('with its own key')").textContent()).split(":  ").slice(-1).map(number);
  const own = await page.locator(".bar-row", { hasText: "10: " }).locator(".number").textContent();
  assert.equal(score, number(own));
  await page.getByRole("button", { name: "Probabilities" }).click();
  await page.waitForSelector("h2:text('Probabilities')");
  await quiet(page);
});

const softmax = (logits, temperature = 1) => {
  const most = Math.max(...logits);
  const exps = [...logits].map((x) => Math.exp((x - most) / temperature));
  const sum = exps.reduce((a, b) => a + b, 0);
  return exps.map((x) => x / sum);
};
const lastLogits = () => expected.logits.data.slice(-expected.logits.shape[2]);
const bars = async (page) => new Map(await page.$$eval("[data-id]", (all) => all.map((each) => [Number(each.dataset.id), each.title])));

test("predictions are the softmax of trace's logits, and sliders take effect immediately", { skip }, async () => {
  const page = await view("view=say");
  await page.waitForSelector("[data-id]");
  let wanted = softmax(lastLogits());
  for (const [id, text] of await bars(page)) assert.ok(Math.abs(number(text) - wanted[id]) <= 1e-6);
  await page.getByLabel("Temperature").focus();
  for (let i = 0; i < 10; ++i) await page.keyboard.press("ArrowLeft"); // 1 to 0.5
  wanted = softmax(lastLogits(), 0.5);
  const best = wanted.indexOf(Math.max(...wanted));
  await page.waitForFunction(({ id, text }) => document.querySelector(`[data-id="${id}"]`)?.textContent === text, { id: best, text: wanted[best].toFixed(3) });
  await page.getByLabel("Top k").focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction((id) => document.querySelector(`[data-id="${id}"]`)?.textContent === "1.000", best);
  assert.match(page.url(), /temperature=0.5&k=1/);
  await quiet(page);
});

test("logit lens and surprise agree with trace", { skip }, async () => {
  const page = await view("view=say");
  await page.waitForSelector(".lens tbody tr");
  assert.equal(await page.locator(".lens tbody tr").count(), 4); // three layers and the final norm
  const V = expected.logits.shape[2];
  const bits = await page.$$eval("[data-bits]", (all) => all.map((each) => Number(each.dataset.bits)));
  assert.equal(bits.length, tokens.length - 1);
  bits.forEach((found, i) => {
    const p = softmax(expected.logits.data.slice(i * V, (i + 1) * V))[tokens[i + 1].id];
    assert.ok(Math.abs(found + Math.log2(p)) < 1e-4, `${i}`);
  });
  await page.locator("[data-bits]").nth(2).click();
  await page.waitForSelector("text=Most likely:");
  await page.locator(".lens th button").nth(4).click();
  await page.waitForFunction(() => /position=/.test(location.hash));
  await quiet(page);
});

test("the page can be used with the keyboard alone", { skip }, async () => {
  const page = await view("token=4");
  await page.getByLabel("Text that the model reads").focus();
  const stops = [];
  for (let i = 0; i < 45; ++i) {
    await page.keyboard.press("Tab");
    stops.push(await page.evaluate(() => document.activeElement?.closest(".sentence, .arcs, .map, .thumbs, .heads, header, main")?.className || document.activeElement?.tagName));
  }
  for (const place of ["sentence", "map", "thumbs"]) assert.equal(stops.filter((each) => each === place).length, 1, `${place} in ${stops}`);
  assert.ok(stops.indexOf("heads") < stops.indexOf("sentence") && stops.indexOf("sentence") < stops.indexOf("map") && stops.indexOf("map") < stops.indexOf("thumbs"), stops.join());
  await page.locator(".sentence button[tabindex='0']").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await expectRow(page, 0, 0, 6);
  assert.equal(await page.evaluate(() => document.activeElement?.dataset.token), "6", "the focus does not move");
  await page.locator(".thumbs button[tabindex='0']").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await expectRow(page, 1, 1, 6);
  await quiet(page);
});

test("head scores agree with trace, and switching heads off changes the loss reversibly", { skip }, async () => {
  const page = await view("view=heads");
  await page.waitForSelector("[data-score]");
  const { data, shape: [, , T, S] } = expected["attention.2"];
  let previous = 0;
  for (let t = 1; t < T; ++t) previous += data[(1 * T + t) * S + t - 1] / T;
  const told = await page.locator("[data-score='2.1.previous']").getAttribute("title");
  assert.ok(Math.abs(Number(told) - previous) < 1e-6);
  await page.getByRole("button", { name: "first", exact: true }).click();
  await page.waitForFunction(() => document.querySelector("th[aria-sort]")?.textContent === "first");
  const firsts = await page.$$eval("[data-score$='.first']", (all) => all.map((each) => Number(each.title)));
  assert.deepEqual(firsts, [...firsts].sort((a, b) => b - a));
  const before = await page.locator("#loss-before").textContent();
  await page.getByLabel("Switch head 0.1 off").check();
  await page.waitForFunction(() => document.querySelector("#loss-after")?.textContent);
  const after = await page.locator("#loss-after").textContent();
  assert.notEqual(after, before);
  assert.match(page.url(), /muted=self.0.1/);
  await page.waitForSelector("[data-clearest=itself]");
  await page.getByLabel("Switch heads off", { exact: true }).getByRole("button", { name: "Switch all on" }).click();
  await page.waitForFunction(() => document.querySelector("#loss-after")?.textContent === "");
  assert.equal(await page.locator("#loss-before").textContent(), before);
  await quiet(page);
});

test("playgrounds reproduce the worked examples", { skip }, async () => {
  const page = await view("view=play&play=example");
  const cell = (name, at) => page.locator(`[data-matrix^="${name}"] [data-cell="${at}"]`).textContent();
  assert.equal(await cell("3.", "0,0"), "0.5065");
  assert.equal(await cell("4.", "2,2"), "0.2741");
  await page.getByLabel("Mask").selectOption("causal");
  assert.equal(await cell("3.", "1,0"), "0.2689");
  await page.getByLabel("X: query, key and value of each token, The, number 1").fill("3");
  assert.equal(await cell("1.", "0,0"), "10.0000");
  await page.locator("[data-play=attention]").click();
  const share = async () => number((await page.locator("text=largest weight of this row").locator("xpath=../td[1]").textContent()));
  const scaled = await share();
  await page.getByRole("button", { name: "Do not divide" }).click();
  assert.ok(await share() > scaled, "without the divisor a row is more extreme");
  await page.locator("[data-play=rotary]").click();
  const score = await page.locator("#rotary-score").textContent();
  await page.getByLabel("Move both by").fill("500");
  assert.ok(Math.abs(number(await page.locator("#rotary-score").textContent()) - number(score)) < 1e-5);
  await page.locator("[data-play=recurrence]").click();
  assert.equal(await page.locator("[data-cost='recurrence.path']").textContent(), "49");
  await page.locator("[data-play=lookup]").click();
  await page.getByLabel("Sharpness (1 / temperature)").fill("0");
  assert.equal(await page.locator("#soft").textContent(), "25.000");
  await page.locator("[data-play=order]").click();
  assert.deepEqual(await page.locator("[data-apart=without]").allTextContents(), ["0.000", "0.000", "0.000"]);
  assert.ok((await page.locator("[data-apart=with]").allTextContents()).every((each) => Number(each) > 0));
  await page.locator("[data-play=leak]").click();
  assert.equal(await page.locator("#leaks").textContent(), "No row sees a later word.");
  await page.getByLabel("causal mask").uncheck();
  assert.equal(await page.locator("#leaks").textContent(), "3 rows see a later word.");
  await page.locator("[data-play=maskvalue]").click();
  await page.getByRole("button", { name: "Mask all" }).click();
  const way = (name) => page.locator(`[data-way="${name}"] td.number`).allTextContents();
  assert.deepEqual(await way("−1e9, fp32"), ["0.250", "0.250", "0.250", "0.250"]);
  assert.deepEqual(await way("−∞, bf16"), Array(4).fill("not a number"));
  assert.deepEqual(await way("fovea: visible keys only"), Array(4).fill("0.000"));
  await page.locator("[data-play=own]").click();
  await page.getByLabel("Your result").fill("0.264 0.264 0.471\n0.390 0.390 0.219");
  await page.getByRole("button", { name: "Check" }).click();
  assert.match(await page.locator("#verdict").textContent(), /These are the weights/);
  await page.getByLabel("Your result").fill("[[0.212 0.212 0.576], [0.422 0.422 0.155]]");
  await page.getByRole("button", { name: "Check" }).click();
  assert.match(await page.locator("#verdict").textContent(), /not divided/);
  await page.locator("[data-play=alibi]").click();
  assert.ok((await page.locator("#slopes").textContent()).startsWith("slopes 0.500000, 0.250000"));
  await page.locator("[data-play=norms]").click();
  assert.equal(await cell("layer norm", "0,0"), "−1.3416");
  await page.locator("[data-play=masks]").click();
  await page.getByLabel("Tokens").fill("100");
  await page.getByLabel("Window").fill("16");
  assert.equal(await page.locator("#pairs").textContent(), "1,480");
  await page.locator("[data-play=waves]").click();
  await page.waitForSelector("svg.plot path");
  await quiet(page);
});

test("the quiz explains right and wrong answers", { skip }, async () => {
  const page = await view("view=quiz");
  await page.locator("[data-choice='0']").click();
  await page.waitForSelector("#why:has-text('Right.')");
  await page.keyboard.press("Enter"); // the next button has the focus
  await page.locator("[data-choice='0']").click();
  await page.waitForSelector("#why:has-text('Wrong.')");
  assert.match(page.url(), /question=1/);
  await quiet(page);
});

test("a view is exported as a self-contained HTML file, SVG and PNG", { skip }, async () => {
  const page = await view("token=9&layer=1&heads=2");
  await expectRow(page, 1, 2, 9);
  const saved = async (name) => {
    if (!(await page.getByRole("button", { name }).isVisible())) await page.getByRole("button", { name: "Export" }).click();
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
    const path = join(folder, download.suggestedFilename());
    await download.saveAs(path);
    return path;
  };
  const html = await saved("This view as one HTML file");
  assert.match(readFileSync(await saved("The map as SVG"), "utf8"), /^<svg[\s\S]*<\/svg>\s*$/);
  assert.deepEqual([...readFileSync(await saved("The map as PNG")).subarray(1, 4)], [...Buffer.from("PNG")]);
  await quiet(page);
  const alone = await opened(`file://${html}`);
  await expectRow(alone, 1, 2, 9);
  await alone.getByRole("button", { name: "Head 0", exact: true }).click();
  await alone.locator(".sentence button").nth(5).click();
  await expectRow(alone, 1, 0, 5);
  await quiet(alone);
});

test("files written without a browser have the same numbers", { skip }, async () => {
  const html = join(folder, "view.html");
  execFileSync(fovea, ["inspect", model, TEXT, "--layer", "2", "--head", "1", "--out", html]);
  const page = await opened(`file://${html}`);
  await page.locator(".sentence button").nth(7).click();
  await expectRow(page, 2, 1, 7);
  await quiet(page);
  const file = join(folder, "view.safetensors");
  execFileSync(fovea, ["inspect", model, TEXT, "--layer", "2", "--out", file]);
  assert.deepEqual(tensors(file)["attention.2"], expected["attention.2"]);
});

test("hostile text is not interpreted as markup", { skip }, async () => {
  const page = await view("");
  const hostile = "<img src=x onerror=\"document.title='pwned'\"> \u202Eאבג 👩‍👩‍👧 </script><script>document.title='pwned'</script> & \u0000 &lt;";
  await page.getByLabel("Text that the model reads").fill(hostile);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".sentence button").length > 30);
  await page.locator(".sentence button").nth(20).click();
  await page.waitForSelector("[data-weight]");
  assert.notEqual(await page.title(), "pwned");
  assert.equal(await page.locator("img[src='x']").count(), 0);
  const html = join(folder, "hostile.html");
  execFileSync(fovea, ["inspect", model, hostile.replaceAll("\u0000", ""), "--out", html]);
  const alone = await opened(`file://${html}`);
  await alone.waitForSelector(".sentence button");
  assert.notEqual(await alone.title(), "pwned");
  await quiet(alone);
  await quiet(page);
});

test("a megabyte of text is refused with an error", { skip }, async () => {
  const page = await view("");
  await page.getByLabel("Text that the model reads").evaluate((box) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text", "x".repeat(1 << 20));
    if (box.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }))) throw new Error("the text was accepted");
  });
  await page.waitForSelector("[role=alert]:has-text('expected at most')");
  await quiet(page);
  const answer = await fetch(`${server.address}api/run`, { method: "POST", body: JSON.stringify({ model: "0", text: "x".repeat(1 << 20) }) });
  assert.ok(answer.status === 413 || answer.status === 400);
  assert.match((await answer.json()).error.message, /expected at most/);
});

test("other hosts, origins and paths are refused", { skip }, async () => {
  const { request } = await import("node:http");
  const { hostname, port } = new URL(server.address);
  const status = (path, headers) => new Promise((resolve, reject) => request({ host: hostname, port, path, headers }, (answer) => { answer.resume(); resolve(answer.statusCode); }).on("error", reject).end());
  assert.equal(await status("/", {}), 200);
  assert.equal(await status("/", { Host: "evil.example" }), 403);
  assert.equal(await status("/api/models", { Origin: "http://evil.example" }), 403);
  for (const path of ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/api/spec?model=../../etc", "/api/spec?model=7", "/api/spec?model=0@999"]) assert.ok([400, 404].includes(await status(path, {})), path);
});

test("a reload restores the view from the address", { skip }, async () => {
  const page = await view("token=11&layer=2&heads=1&view=sentence");
  await expectRow(page, 2, 1, 11);
  await page.reload();
  await expectRow(page, 2, 1, 11);
  await page.getByRole("link", { name: "Quiz" }).click();
  await page.goBack();
  await expectRow(page, 2, 1, 11);
  await quiet(page);
});

const views = ["home", "sentence&token=9&second=3", "twice&text2=to+be", "course", "course&chapter=06-positions", "play&play=recurrence", "play&play=lookup", "play&play=heads", "play&play=order", "play&play=maskvalue", "play&play=own", "follow&step=8", "say", "explain", "heads", "compare", "learn", "play&play=attention", "play&play=example", "play&play=waves", "play&play=masks", "quiz"];
for (const [name, options] of Object.entries({
  light: { colorScheme: "light" }, dark: { colorScheme: "dark" },
  phone: { viewport: { width: 360, height: 740 }, hasTouch: true },
})) {
  test(`views have no accessibility violations and fit the screen: ${name}`, { skip }, async () => {
    for (const each of views) {
      const page = await view(`view=${each}`, options);
      await page.waitForTimeout(700);
      assert.deepEqual(await violations(page), [], each);
      const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.ok(wide <= room, `${each}: ${wide} pixels in ${room}`);
      await quiet(page);
    }
  });
}

test("a map of a thousand tokens requests only visible tiles at the screen's resolution", { skip }, async () => {
  const page = await opened(null);
  const asked = [];
  page.on("request", (request) => { if (request.url().includes("api/map")) asked.push(new URL(request.url()).searchParams); });
  await page.goto(`${server.address}#text=${encodeURIComponent("To be, or not to be: that is it. ".repeat(31).slice(0, 1000))}&layer=2`);
  await page.waitForFunction(() => document.querySelectorAll(".thumbs img").length === 12);
  await page.waitForTimeout(300);
  const cells = (span) => { const [first, end] = (span ?? "0-1000").split("-").map(Number); return end - first; };
  for (const query of asked) {
    const step = Number(query.get("step") ?? 1);
    assert.ok((cells(query.get("q")) / step) * (cells(query.get("k")) / step) <= 256 * 256, String(query));
  }
  await page.locator(".map canvas").scrollIntoViewIfNeeded();
  const box = await page.locator(".map canvas").boundingBox();
  for (let i = 0; i < 3; ++i) await page.mouse.dblclick(box.x + 300, box.y + 300);
  const closer = () => asked.some((query) => cells(query.get("q")) > 1 && query.get("q") && !query.get("step"));
  for (let i = 0; i < 100 && !closer(); ++i) await page.waitForTimeout(100);
  assert.ok(closer(), "zooming in requests single tokens");
  await quiet(page);
});
