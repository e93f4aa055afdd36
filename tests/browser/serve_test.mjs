// The page of `fovea serve`, as a person uses it: a conversation that is streamed, stopped and generated again.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { closeBrowser, folder, fovea, missing, opened, violations } from "./support.mjs";

const skip = missing();
const TEMPLATE = `{% for tool in tools or [] %}<tool>{{ tool | tojson }}</tool>{% endfor %}{% for message in messages %}<{{ message.role }}>{{ message.content or '' }}
{% for call in message.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}`;
const WEATHER = [{ type: "function", function: { name: "weather", parameters: { type: "object", properties: { city: { enum: ["fox", "eye"] } }, required: ["city"] } } }];
let child, address;

before(async () => {
  if (skip) return;
  const text = join(folder, "text.txt"), tokenizer = join(folder, "tokenizer"), model = join(folder, "chat"), template = join(folder, "template.jinja");
  writeFileSync(text, "The eye of a fox sees what light falls on it. ".repeat(400));
  writeFileSync(template, TEMPLATE);
  execFileSync(fovea, ["tokenize", "--train", "bpe", "--vocab-size", "300", text, "--out", tokenizer], { stdio: "pipe" });
  execFileSync(fovea, ["train", text, "--out", model, "--preset", "tiny", "--layers", "2", "--heads", "2", "--width", "32", "--batch", "1", "--context", "2048",
    "--tokenizer", tokenizer, "--steps", "4", "--sample-tokens", "0", "--seed", "7"], { stdio: "pipe" });
  child = spawn(fovea, ["serve", model, "--port", "0", "--json", "--chat-template", template], { stdio: ["ignore", "pipe", "pipe"] });
  process.on("exit", () => child.kill());
  address = await new Promise((resolve, reject) => {
    child.stdout.once("data", (data) => resolve(JSON.parse(data).url + "/"));
    child.once("exit", (code) => reject(new Error(`fovea serve ended with ${code}`)));
  });
});
after(async () => {
  await closeBrowser();
  child?.kill();
});

const settings = async (page, values) => {
  await page.locator("summary", { hasText: "System prompt" }).click();
  for (const [name, value] of Object.entries(values)) await page.fill(`#${name}`, value);
};
const say = async (page, text) => {
  await page.fill("#question", text);
  await page.press("#question", "Enter");
};
const done = (page) => page.waitForFunction(() => document.getElementById("stop").hidden);
const answers = (page) => page.locator(".message.assistant .text").allTextContents();

test("an answer is streamed, stopped and generated again", { skip }, async () => {
  const page = await opened(address);
  await settings(page, { max_tokens: "1500", system: "Be brief." });
  await say(page, "The eye?");
  // Clicks in the page, since a small model may have ended before another process clicks.
  await page.waitForFunction(() => {
    const stop = document.getElementById("stop"), some = document.querySelector(".message.assistant .text")?.textContent.length > 5;
    if (some && !stop.hidden) stop.click();
    return some;
  });
  await done(page);
  const [stopped] = await answers(page);
  await page.fill("#max_tokens", "6");
  await page.click("#again");
  await done(page);
  assert.equal((await answers(page)).length, 1);
  assert.notEqual((await answers(page))[0], stopped);
  assert.match(await page.locator("#status").textContent(), /^6 tokens in .*; the limit was reached$/);
  const sent = page.waitForRequest((request) => request.method() === "POST");
  await say(page, "A fox?");
  assert.deepEqual(JSON.parse((await sent).postData()).messages.map(({ role }) => role), ["system", "user", "assistant", "user"]);
  await done(page);
  await page.getByRole("button", { name: "Show attention" }).last().click();
  await page.waitForSelector(".attention meter");
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("a new conversation forgets the answer that is being generated", { skip }, async () => {
  const page = await opened(address);
  await settings(page, { max_tokens: "1500" });
  await say(page, "The eye?");
  await page.waitForFunction(() => {
    const some = document.querySelector(".message.assistant .text")?.textContent.length > 5;
    if (some) document.getElementById("clear").click();
    return some;
  });
  await page.waitForTimeout(200);
  assert.equal(await page.locator("#again").isHidden(), true);
  await page.fill("#max_tokens", "4");
  const sent = page.waitForRequest((request) => request.method() === "POST");
  await say(page, "A fox?");
  assert.deepEqual(JSON.parse((await sent).postData()).messages, [{ role: "user", content: "A fox?" }]);
  await done(page);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("an error is shown, and the question can be asked again", { skip }, async () => {
  const page = await opened(address);
  await settings(page, { temperature: "-1" });
  await page.evaluate(() => document.getElementById("ask").noValidate = true);
  await say(page, "The eye?");
  await page.waitForSelector(".message .error");
  assert.match(await page.locator(".message .error").textContent(), /temperature/);
  await page.fill("#temperature", "1");
  await page.fill("#max_tokens", "4");
  const sent = page.waitForRequest((request) => request.method() === "POST");
  await page.click("#again");
  assert.deepEqual(JSON.parse((await sent).postData()).messages, [{ role: "user", content: "The eye?" }]);
  await done(page);
  assert.equal(await page.locator(".message .error").count(), 0);
  await page.context().close();
});

test("calls of tools are shown, and their results sent back", { skip }, async () => {
  const page = await opened(address);
  await settings(page, { tools: JSON.stringify(WEATHER), max_tokens: "60" });
  // The model is not trained to call: the request demands it.
  await page.route("**/v1/chat/completions", (route) => {
    const body = JSON.parse(route.request().postData());
    if (body.messages.length === 1) body.tool_choice = "required";
    return route.continue({ postData: JSON.stringify(body) });
  });
  await say(page, "The weather?");
  await page.waitForSelector(".call textarea");
  assert.equal(await page.locator(".call strong").textContent(), "weather");
  assert.match(await page.locator(".call pre").textContent(), /"(fox|eye)"/);
  await page.fill(".call textarea", "light");
  const sent = page.waitForRequest((request) => request.method() === "POST");
  await page.getByRole("button", { name: "Send results" }).click();
  const { messages } = JSON.parse((await sent).postData());
  assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant", "tool"]);
  assert.equal(messages[2].tool_call_id, messages[1].tool_calls[0].id);
  await done(page);
  await page.context().close();
});

for (const [name, options] of Object.entries({ light: { colorScheme: "light" }, dark: { colorScheme: "dark" }, phone: { viewport: { width: 375, height: 700 } } })) {
  test(`the page is accessible and fits: ${name}`, { skip }, async () => {
    const page = await opened(address, options);
    await settings(page, { max_tokens: "40" });
    await say(page, "The eye of a fox sees what light falls on it, and never sleeps?");
    await done(page);
    await page.locator("summary", { hasText: "Models and routes" }).click();
    assert.deepEqual(await violations(page), []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), "wider than the screen");
    if (process.env.FOVEA_SCREENSHOTS) await page.screenshot({ path: join(process.env.FOVEA_SCREENSHOTS, `serve_${name}.png`), fullPage: true });
    await page.context().close();
  });
}
