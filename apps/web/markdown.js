// The part of Markdown that the course uses, as elements: headings, paragraphs, lists, tables, code, bold text and links to views.

import { formulaOf } from "./formula.js";
import { h } from "./dom.js";

/** @typedef {(language: string, text: string) => Node | null} Blocks makes the elements of fenced blocks */

/** @param {string} text @returns {(Node | string)[]} */
export function inline(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|\$[^$]+\$|\[[^\]]+\]\([^)]+\))/).filter(Boolean).map((part) => {
    if (part.startsWith("`")) return h("code", {}, part.slice(1, -1));
    if (part.startsWith("**")) return h("b", {}, ...inline(part.slice(2, -2)));
    if (part.startsWith("$")) {
      const formula = formulaOf(part.slice(1, -1));
      formula.setAttribute("display", "inline");
      return formula;
    }
    const link = /^\[([^\]]+)\]\(([^)]+)\)$/.exec(part);
    if (!link) return part;
    // Links to other files, which the page does not have, are shown as text.
    return link[2].startsWith("#") ? h("a", { href: link[2].replace("#", "#/") }, link[1]) : h("span", {}, link[1]);
  });
}

/** @param {string} line */
const cellsOf = (line) => line.replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());

/** @param {string} source @param {Blocks} blocks @returns {Node[]} */
export function markdown(source, blocks) {
  const lines = source.split("\n");
  /** @type {Node[]} */
  const nodes = [];
  let at = 0;
  const while_ = (/** @type {(line: string) => boolean} */ belongs) => {
    const found = [];
    while (at < lines.length && belongs(lines[at])) found.push(lines[at++]);
    return found;
  };
  while (at < lines.length) {
    const line = lines[at];
    if (line.trim() === "") {
      ++at;
    } else if (line.startsWith("```")) {
      ++at;
      const text = while_((each) => !each.startsWith("```")).join("\n");
      ++at;
      const node = blocks(line.slice(3).trim(), text);
      if (node) nodes.push(node);
    } else if (/^#{1,3} /.test(line)) {
      ++at;
      const depth = line.indexOf(" ");
      nodes.push(h(depth === 1 ? "h2" : "h3", {}, ...inline(line.slice(depth + 1))));
    } else if (line.startsWith("|")) {
      const rows = while_((each) => each.startsWith("|")).map(cellsOf);
      nodes.push(h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table" }, h("table", {}, h("thead", {}, h("tr", {}, rows[0].map((cell) => (cell === "" ? h("td", {}) : h("th", { scope: "col" }, ...inline(cell)))))),
        h("tbody", {}, rows.slice(2).map((row) => h("tr", {}, row.map((cell) => h("td", {}, ...inline(cell)))))))));
    } else if (/^(-|\d+\.) /.test(line)) {
      const ordered = /^\d/.test(line);
      const items = while_((each) => /^(-|\d+\.) /.test(each) || /^ {2,}\S/.test(each)).join("\n").split(/\n(?=-|\d+\. )/);
      nodes.push(h(ordered ? "ol" : "ul", {}, items.map((item) => h("li", {}, ...inline(item.replace(/^(-|\d+\.) /, "").replace(/\s*\n\s*/g, " "))))));
    } else {
      nodes.push(h("p", {}, ...inline(while_((each) => each.trim() !== "" && !/^(```|#|\||- |\d+\. )/.test(each)).join(" "))));
    }
  }
  return nodes;
}
