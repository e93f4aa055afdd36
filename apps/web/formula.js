// Formulas as MathML, from a short notation: x_i, x^2, √{…}, {a}/{b}; names of several letters are upright.

const SPACE = "http://www.w3.org/1998/Math/MathML";

/** @param {string} tag @param {(Node | string)[]} children @param {Record<string, string>} [attributes] */
function m(tag, children, attributes = {}) {
  const element = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** @param {string} text @returns {Element} a math element, whose text a screen reader and a search find */
export function formulaOf(text) {
  const tokens = text.match(/\p{L}+|\d+(?:[.,]\d+)*|[_^{}]|√|\s+|./gu) ?? [];
  let at = 0;
  const skip = () => { while (/^\s+$/.test(tokens[at] ?? "")) ++at; };
  /** @returns {Element} */
  const group = () => {
    ++at; // {
    const inside = row("}");
    ++at; // }
    return inside;
  };
  /** @returns {Element} */
  const atom = () => {
    const token = tokens[at];
    if (token === "{") return group();
    ++at;
    if (token === "√") return m("msqrt", [atom()]);
    if (/^\p{L}+$/u.test(token)) return m("mi", [token], [...token].length > 1 ? { mathvariant: "normal" } : {});
    if (/^\d/.test(token)) return m("mn", [token]);
    return m("mo", [token], "()[]".includes(token) ? { stretchy: "false" } : {});
  };
  /** An atom with its index and exponent. @returns {Element} */
  const scripted = () => {
    const base = atom();
    /** @type {Record<string, Element>} */
    const found = {};
    while (tokens[at] === "_" || tokens[at] === "^") {
      const kind = tokens[at++];
      found[kind] = atom();
    }
    if (found["_"] && found["^"]) return m("msubsup", [base, found["_"], found["^"]]);
    if (found["_"]) return m("msub", [base, found["_"]]);
    return found["^"] ? m("msup", [base, found["^"]]) : base;
  };
  /** @param {string} end @returns {Element} */
  function row(end) {
    const parts = [];
    for (skip(); at < tokens.length && tokens[at] !== end; skip()) {
      const braced = tokens[at] === "{";
      const part = scripted();
      if (braced && tokens[at] === "/" && tokens[at + 1] === "{") {
        ++at;
        parts.push(m("mfrac", [part, group()]));
      } else {
        parts.push(part);
      }
    }
    return m("mrow", parts);
  }
  return m("math", [row("")], { display: "block" });
}
