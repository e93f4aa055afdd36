// The page of models that read audio: the spectrogram of a file, and the part of it that each word came from.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { closeBrowser, folder, missing, opened, served, violations } from "./support.mjs";

const skip = missing();
const model = fileURLToPath(new URL("../goldens/speech/model", import.meta.url));
const RATE = 16000, SECONDS = 2;
after(closeBrowser);

/** Writes two seconds of a tone that rises, as a WAV file; returns its path. */
function recording() {
  const count = RATE * SECONDS, wav = Buffer.alloc(44 + 2 * count);
  wav.write("RIFF", 0); wav.writeUInt32LE(36 + 2 * count, 4); wav.write("WAVEfmt ", 8); wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20); wav.writeUInt16LE(1, 22); wav.writeUInt32LE(RATE, 24); wav.writeUInt32LE(2 * RATE, 28);
  wav.writeUInt16LE(2, 32); wav.writeUInt16LE(16, 34); wav.write("data", 36); wav.writeUInt32LE(2 * count, 40);
  for (let i = 0; i < count; ++i) wav.writeInt16LE(Math.round(8000 * Math.sin(2 * Math.PI * (200 + 300 * i / count) * i / RATE)), 44 + 2 * i);
  const path = join(folder, "tone.wav");
  writeFileSync(path, wav);
  return path;
}

test("the inspector's home refers to the page, which shows where words come from", { skip }, async () => {
  const server = await served(model);
  const page = await opened(server.address);
  await page.getByRole("link", { name: "See the spectrogram" }).click();
  const answer = page.waitForResponse((response) => response.url().includes("api/speech"));
  await page.setInputFiles("#file", recording());
  const heard = await (await answer).json();
  await page.waitForSelector("canvas");
  assert.ok(Math.abs(heard.seconds - SECONDS) < 0.01);
  assert.ok(heard.words.length > 0);
  assert.equal(await page.locator(".panel button").count(), heard.words.length);
  const sizes = await page.$$eval("canvas", (all) => all.map((each) => [each.height, each.width]));
  assert.deepEqual(sizes, [[heard.bins, heard.frames], [heard.words.length, heard.positions]]);
  await page.locator(".panel button").first().click();
  const { start, end } = heard.words[0];
  assert.ok((await page.locator("#announcer").textContent()).includes(`${start.toFixed(2)} s to ${end.toFixed(2)} s`));
  assert.deepEqual(await violations(page), []);
  await page.setInputFiles("#file", fileURLToPath(import.meta.url)); // no audio
  await page.waitForSelector(".error");
  assert.deepEqual(page.problems.filter((each) => !each.includes("404") && !each.includes("400")), []);
  if (process.env.FOVEA_SCREENSHOT) await page.screenshot({ path: process.env.FOVEA_SCREENSHOT, fullPage: true });
  server.stop();
});
