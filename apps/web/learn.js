import { h } from "./dom.js";
/** @param {HTMLElement} root @returns {import("./main.js").View} */
export function learnView(root) {
  root.append(h("p", {}, "soon"));
  return { update() {} };
}
