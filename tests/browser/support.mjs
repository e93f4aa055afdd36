// A small model, the inspector with it, a browser, and the results of `fovea trace` for comparison.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const fovea = process.env.FOVEA_BIN ?? "build/release/fovea";
export const shared = process.env.FOVEA_SHARED ?? "";
const CHROMIUM = process.env.FOVEA_CHROMIUM ?? "/usr/bin/chromium";
// Without these flags, Chromium contacts hosts of its vendor at every start.
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

const require = createRequire(process.env.FOVEA_NODE_MODULES ? join(process.env.FOVEA_NODE_MODULES, "x.js") : import.meta.url);

/** Returns the reason why browser tests cannot run, or false if they can. */
export function missing() {
  for (const name of ["playwright-core", "axe-core"]) {
    try {
      require.resolve(name);
    } catch {
      return `${name} is not installed; see tests/browser/package.json`;
    }
  }
  return existsSync(CHROMIUM) ? false : `${CHROMIUM} is missing`;
}

export const folder = mkdtempSync(join(tmpdir(), "fovea-browser-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

/** Trains a small model with grouped heads and a window; returns the directory of the run. @param {...string} options further ones */
export function trained(...options) {
  const text = join(folder, "corpus.txt");
  const line = "To be, or not to be: that is the question. Whether 'tis nobler in the mind to suffer <b>slings</b> & arrows.\n";
  writeFileSync(text, line.repeat(300));
  const out = join(folder, "model");
  execFileSync(fovea, ["train", text, "--out", out, "--steps", "30", "--save-every", "10", "--keep", "5", "--evaluate-every", "10", "--layers", "3", "--heads", "4",
    "--kv-heads", "2", "--width", "32", "--context", "1024", "--batch", "2", "--window", "0,8,0", "--seed", "7", "--threads", "2", ...options], { stdio: "pipe" });
  return out;
}

/** Starts `fovea inspect` and returns its address. */
export async function served(...models) {
  const [first, ...others] = models;
  const child = spawn(fovea, ["inspect", first, ...others.flatMap((each) => ["--with", each]), "--no-browser"], { stdio: ["ignore", "pipe", "pipe"] });
  process.on("exit", () => child.kill());
  const address = await new Promise((resolve, reject) => {
    child.stdout.once("data", (data) => resolve(String(data).trim()));
    child.once("exit", (code) => reject(new Error(`fovea inspect ended with ${code}`)));
  });
  return { address, stop: () => child.kill() };
}

let browser;
/** Opens a page and records errors, warnings and requests to other hosts in page.problems. */
export async function opened(address, options = {}) {
  const { chromium } = require("playwright-core");
  browser ??= await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(120000); // long enough for a busy machine
  page.problems = [];
  page.on("console", (message) => { if (message.type() === "error" || message.type() === "warning") page.problems.push(message.text()); });
  page.on("pageerror", (error) => page.problems.push(error.message));
  page.on("request", (request) => { if (!/^(http:\/\/127\.0\.0\.1:|data:|blob:|file:)/.test(request.url())) page.problems.push(`request to ${request.url()}`); });
  if (address) await page.goto(address);
  return page;
}

export async function closeBrowser() {
  await browser?.close();
}

/** Returns the violations that axe finds. */
export async function violations(page) {
  await page.evaluate(readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
  const found = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
  return found.violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.target.join(" ")).slice(0, 3).join("; ")}`);
}

/** Returns the results of `fovea trace` by name: {shape, data}. */
export function traced(model, ids, options = []) {
  const file = join(folder, "trace.safetensors");
  execFileSync(fovea, ["trace", model, "--ids", ids.join(","), "--out", file, ...options]);
  return tensors(file);
}

export function tensors(file) {
  const bytes = readFileSync(file);
  const size = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + size).toString());
  const found = {};
  delete header.__metadata__;
  for (const [name, { dtype, shape, data_offsets: [begin, end] }] of Object.entries(header)) {
    const Numbers = { F32: Float32Array, I64: BigInt64Array }[dtype];
    if (Numbers) found[name] = { shape, data: new Numbers(new Uint8Array(bytes.subarray(8 + size + begin, 8 + size + end)).buffer) };
  }
  return found;
}

/** Returns one row of an attention map. */
export function rowOf(tensor, head, query) {
  const [, , T, S] = tensor.shape;
  return tensor.data.slice((head * T + query) * S, (head * T + query + 1) * S);
}

/** Parses a number in the format of the page. */
export const number = (text) => Number(text.replace("−", "-"));
