import { h } from "./dom.js";
export function savePanel() {
  return h("span", {});
}
