// The page speech.html: the spectrogram of a recording, and the part of it that each word came from.

import { h, replace } from "./dom.js";

/** @typedef {{word: string, start: number, end: number, probability: number}} Word */
/** @typedef {{text: string, language: string, seconds: number, bins: number, frames: number, spectrogram: number[],
 *   words: Word[], positions: number, similarity: number[]}} Heard */

const RATE = 16000, SECONDS = 30, ROW = 26; // samples per second, the longest window, pixels per word

/** Returns the first samples of a recording, in one channel, as a WAV file. @param {ArrayBuffer} bytes */
async function waveform(bytes) {
  const context = new OfflineAudioContext(1, RATE * SECONDS, RATE);
  const audio = await context.decodeAudioData(bytes);
  const count = Math.min(audio.length, RATE * SECONDS);
  const wav = new DataView(new ArrayBuffer(44 + 2 * count));
  const text = (/** @type {number} */ at, /** @type {string} */ letters) => {
    for (let i = 0; i < letters.length; ++i) wav.setUint8(at + i, letters.charCodeAt(i));
  };
  text(0, "RIFF"); wav.setUint32(4, 36 + 2 * count, true); text(8, "WAVEfmt "); wav.setUint32(16, 16, true);
  wav.setUint16(20, 1, true); wav.setUint16(22, 1, true); wav.setUint32(24, RATE, true); wav.setUint32(28, 2 * RATE, true);
  wav.setUint16(32, 2, true); wav.setUint16(34, 16, true); text(36, "data"); wav.setUint32(40, 2 * count, true);
  for (let i = 0; i < count; ++i) {
    let sum = 0;
    for (let c = 0; c < audio.numberOfChannels; ++c) sum += audio.getChannelData(c)[i];
    wav.setInt16(44 + 2 * i, Math.max(-1, Math.min(1, sum / audio.numberOfChannels)) * 32767, true);
  }
  return wav.buffer;
}

/** @param {ArrayBuffer} audio @returns {Promise<Heard>} */
async function listen(audio) {
  const model = new URLSearchParams(location.search).get("model") ?? "0";
  const response = await fetch(`api/speech?model=${encodeURIComponent(model)}`, { method: "POST", body: audio });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error?.message ?? `The server returned status ${response.status}.`);
  return answer;
}

/** Draws numbers from 0 to 255 as an image of rows and columns. @param {HTMLCanvasElement} canvas */
function paint(canvas, /** @type {number[]} */ values, /** @type {number} */ rows, /** @type {number} */ columns, upwards = false) {
  canvas.width = Math.max(1, columns);
  canvas.height = Math.max(1, rows);
  const context = canvas.getContext("2d");
  if (!context || values.length === 0) return;
  const image = context.createImageData(columns, rows);
  for (let row = 0; row < rows; ++row) {
    for (let column = 0; column < columns; ++column) {
      const value = values[row * columns + column], at = 4 * ((upwards ? rows - 1 - row : row) * columns + column);
      image.data.set([value, Math.max(0, 1.6 * value - 150), 90 + 0.45 * value, 255], at);
    }
  }
  context.putImageData(image, 0, 0);
}

const time = (/** @type {number} */ seconds) => `${seconds.toFixed(2)} s`;

/** @param {HTMLElement} box @param {Heard} heard */
function show(box, heard) {
  const audio = h("canvas", { role: "img", "aria-label": `Spectrogram of ${time(heard.seconds)} of audio` });
  const map = h("canvas", { role: "img", "aria-label": "The part of the audio that each word came from, word by word" });
  paint(audio, heard.spectrogram, heard.bins, heard.frames, true);
  paint(map, heard.similarity, heard.words.length, heard.positions);
  for (const [canvas, height] of /** @type {[HTMLCanvasElement, number][]} */ ([[audio, 160], [map, ROW * heard.words.length]])) {
    canvas.style.width = "100%";
    canvas.style.height = `${height}px`;
    canvas.style.imageRendering = "pixelated";
    canvas.style.display = "block";
  }
  const marker = h("div", { hidden: true });
  Object.assign(marker.style, { position: "absolute", top: "0", bottom: "0", border: "2px solid var(--positive)", pointerEvents: "none" });
  const stage = h("div", {}, audio, map, marker);
  stage.style.position = "relative";
  const mark = (/** @type {Word} */ word) => {
    marker.hidden = false;
    marker.style.left = `${(100 * word.start) / heard.seconds}%`;
    marker.style.width = `${Math.max(0.3, (100 * (word.end - word.start)) / heard.seconds)}%`;
    const said = document.getElementById("announcer");
    if (said) said.textContent = `${word.word.trim()}: ${time(word.start)} to ${time(word.end)}`;
  };
  const words = heard.words.map((word) =>
    h("button", { type: "button", onmouseenter: () => mark(word), onfocus: () => mark(word), onclick: () => mark(word) }, word.word.trim() || "·"));
  const rows = heard.words.map((word) => h("tr", {}, h("td", {}, word.word.trim()), h("td", { class: "number" }, time(word.start)),
    h("td", { class: "number" }, time(word.end)), h("td", { class: "number" }, word.probability.toFixed(3))));
  replace(box,
    h("p", {}, `${time(heard.seconds)} of audio, language ${heard.language}. Point at a word to see where it came from.`),
    h("div", { class: "panel" }, h("div", { class: "row" }, ...words), stage,
      h("p", { class: "quiet small" }, "Above: power in the mel bands, low ones at the bottom. Below: a row for each word, the similarity of its tokens and the audio " +
        "(cross-attention of the alignment heads), along which the times of words are found.")),
    h("details", {}, h("summary", {}, "As a table"), h("table", {}, h("thead", {}, h("tr", {}, ...["word", "from", "to", "probability"].map((name) => h("th", {}, name)))),
      h("tbody", {}, ...rows))));
}

function start() {
  const content = /** @type {HTMLElement} */ (document.getElementById("content"));
  const box = h("div", {});
  const file = /** @type {HTMLInputElement} */ (h("input", { type: "file", accept: "audio/*,video/*", id: "file" }));
  file.addEventListener("change", async () => {
    const chosen = file.files?.[0];
    if (!chosen) return;
    replace(box, h("p", { class: "quiet" }, "Listening …"));
    try {
      show(box, await listen(await waveform(await chosen.arrayBuffer())));
    } catch (error) {
      replace(box, h("p", { class: "error", role: "alert" }, error instanceof Error ? error.message : String(error)));
    }
  });
  replace(content, h("h1", {}, "Where words come from"),
    h("p", {}, "The first 30 seconds of an audio file, as a speech model hears them."),
    h("p", { class: "row" }, h("label", { for: "file" }, "Audio file "), file), box);
}

start();
