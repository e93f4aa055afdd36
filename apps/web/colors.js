// Colours that differ in lightness as well as in hue, for colour-blind readers and for print.

// 19 samples of viridis (Smith and van der Walt 2015).
const VIRIDIS = [
  [68, 1, 84], [72, 20, 103], [72, 38, 119], [69, 55, 129], [63, 71, 136], [57, 85, 140], [50, 100, 142],
  [45, 113, 142], [40, 125, 142], [35, 138, 141], [31, 150, 139], [32, 163, 134], [41, 175, 127], [63, 188, 115],
  [94, 201, 98], [132, 212, 75], [173, 220, 48], [216, 226, 25], [253, 231, 37]];

/** @type {Uint8ClampedArray} 256 colours with three bytes each */
const table = new Uint8ClampedArray(256 * 3);
for (let i = 0; i < 256; ++i) {
  const at = (i / 255) * (VIRIDIS.length - 1);
  const low = Math.floor(at);
  const high = Math.min(low + 1, VIRIDIS.length - 1);
  for (let c = 0; c < 3; ++c) table[3 * i + c] = VIRIDIS[low][c] + (at - low) * (VIRIDIS[high][c] - VIRIDIS[low][c]);
}

/** The position of a weight on the colour scale: its square root, so that 0.01 is visible next to 1. @param {number} weight */
export function shade(weight) {
  return Math.round(255 * Math.sqrt(Math.min(Math.max(weight, 0), 1)));
}

/** Writes the colour of a weight into pixels. @param {Uint8ClampedArray} pixels @param {number} at @param {number} weight */
export function paint(pixels, at, weight) {
  const i = 3 * shade(weight);
  pixels[at] = table[i];
  pixels[at + 1] = table[i + 1];
  pixels[at + 2] = table[i + 2];
  pixels[at + 3] = 255;
}

/** @param {number} weight @returns {string} CSS */
export function color(weight) {
  const i = 3 * shade(weight);
  return `rgb(${table[i]} ${table[i + 1]} ${table[i + 2]})`;
}

/** Black or white, whichever has the higher contrast with the colour (WCAG's relative luminance). @param {number} weight */
export function ink(weight) {
  const i = 3 * shade(weight);
  const linear = [0, 1, 2].map((c) => ((table[i + c] / 255 + 0.055) / 1.055) ** 2.4);
  return linear[0] * 0.2126 + linear[1] * 0.7152 + linear[2] * 0.0722 > 0.18 ? "#000" : "#fff";
}

// Okabe and Ito 2008, without black and yellow; distinguishes heads.
const HEADS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a5195", "#8c6d31"];
/** Further heads get hues at the golden angle, in turns dark and pale, so that no two are alike. @param {number} nth */
export function headColor(nth) {
  return nth < HEADS.length ? HEADS[nth] : hex((nth * 137.508) % 360, 0.62, nth % 2 ? 0.36 : 0.58);
}

/** @param {number} hue in degrees @param {number} saturation @param {number} lightness */
function hex(hue, saturation, lightness) {
  const reach = saturation * Math.min(lightness, 1 - lightness);
  return `#${[0, 8, 4].map((n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (lightness - reach * Math.max(-1, Math.min(k - 3, 9 - k, 1)))).toString(16).padStart(2, "0");
  }).join("")}`;
}

/** A translucent colour of the page, limited so that text on it stays readable. @param {string} name @param {number} share */
export function tint(name, share) {
  return `color-mix(in srgb, var(--${name}) calc(var(--depth) * ${Math.min(Math.max(share, 0), 1).toFixed(3)}), transparent)`;
}

/** The colour of an element of a vector: blue below 0, orange above. @param {number} value @param {number} most */
export function signed(value, most) {
  return tint(value < 0 ? "negative" : "positive", most > 0 ? Math.abs(value) / most : 0);
}
