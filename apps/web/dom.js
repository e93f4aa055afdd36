// Creates elements without a framework. Strings become text nodes; nothing parses markup.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, unknown>} [properties] on...: listeners; style: an object; all others: attributes
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  decorate(element, properties);
  element.append(...usable(children));
  return element;
}

/**
 * Like h(), for SVG.
 * @param {string} tag
 * @param {Record<string, unknown>} [properties]
 * @param {...(Child | Child[])} children
 * @returns {SVGElement}
 */
export function svg(tag, properties = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  decorate(element, properties);
  element.append(...usable(children));
  return element;
}

/** @param {Element} element @param {...(Child | Child[])} children */
export function replace(element, ...children) {
  element.replaceChildren(...usable(children));
}

/** @param {(Child | Child[])[]} children @returns {(Node | string)[]} */
function usable(children) {
  const kept = [];
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    kept.push(typeof child === "number" ? String(child) : child);
  }
  return kept;
}

/** @param {Element} element @param {Record<string, unknown>} properties */
function decorate(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else if (name === "style") {
      const { style } = /** @type {HTMLElement} */ (element);
      for (const [key, text] of Object.entries(/** @type {object} */ (value))) style.setProperty(key, String(text));
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

/** Sets an attribute if it changes: the browser processes unchanged ones too. @param {Element} element @param {string} name @param {string} value */
export function put(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** Formats a number with `digits` decimals and a true minus sign; very small and very large numbers in exponential notation. @param {number} x @param {number} [digits] */
export function figure(x, digits = 3) {
  if (!Number.isFinite(x)) return x > 0 ? "∞" : x < 0 ? "−∞" : "not a number";
  const size = Math.abs(x);
  const text = digits > 3 && size !== 0 && (size < 1e-4 || size >= 1e6) ? x.toExponential(digits - 2) : x.toFixed(digits);
  return text.replace("-", "−");
}

/**
 * A bar from 0 to a value; if some of the values are negative, from a zero line in the middle, to the left or to the right.
 * @param {number} value @param {number} most the largest size of a value @param {boolean} signed whether some are negative
 */
export function track(value, most, signed) {
  const share = most > 0 ? Math.min(Math.abs(value) / most, 1) * (signed ? 50 : 100) : 0;
  return h("span", { class: signed ? "track signed" : "track", "aria-hidden": "true" },
    h("span", { class: "fill", style: { width: `${share}%`, background: signed ? `var(--${value < 0 ? "negative" : "positive"})` : "var(--accent)", ...(signed ? { "margin-left": `${value < 0 ? 50 - share : 50}%` } : {}) } }));
}

/** Formats a fraction as a percentage. @param {number} x */
export function percent(x) {
  return x >= 0.1 ? `${(100 * x).toFixed(0)} %` : x >= 0.001 ? `${(100 * x).toFixed(1)} %` : x > 0 ? "< 0.1 %" : "0 %";
}

/** The text of a token with visible white space. @param {string} text */
export function shown(text) {
  if (text === "") return "∅";
  return text.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/^ +| +$/g, (s) => "·".repeat(s.length));
}

/** Announces a text to screen readers. @param {string} text */
export function announce(text) {
  const box = document.getElementById("announcer");
  if (box) box.textContent = text;
}

/**
 * Makes many buttons one stop of the Tab key; arrow keys, Home and End move between them.
 * @template {HTMLElement} T @param {T} root @param {number} [columns] buttons per row, if they are in rows @param {number} [first] the button that Tab reaches first
 */
export function oneStop(root, columns = 1, first = 0) {
  const buttons = () => [...root.querySelectorAll("button")];
  buttons().forEach((button, i) => { button.tabIndex = i === first ? 0 : -1; });
  root.addEventListener("focusin", (event) => {
    for (const button of buttons()) button.tabIndex = button === event.target ? 0 : -1;
  });
  root.addEventListener("keydown", (event) => {
    const all = buttons();
    const at = all.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    const by = /** @type {Record<string, number>} */ ({ ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, Home: -all.length, End: all.length })[event.key];
    if (at < 0 || by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    all[Math.min(Math.max(at + by, 0), all.length - 1)].focus();
  });
  return root;
}

/** Resolves after the next frame is on the screen. @returns {Promise<void>} */
export function onScreen() {
  return new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
}

/** Combines the calls within a frame into one. @param {() => void} call */
export function onceAFrame(call) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      call();
    });
  };
}

/**
 * A slider with its name and value. @param {string} name @param {{least: number, most: number, step: number, value: number, word?: (x: number) => string}} range
 * @param {(value: number) => void} act
 */
export function slider(name, range, act) {
  const word = range.word ?? ((x) => String(x));
  const output = h("output", { class: "mono" }, word(range.value));
  const input = h("input", { type: "range", min: range.least, max: range.most, step: range.step, "aria-label": name, oninput: () => {
    output.textContent = word(Number(input.value));
    act(Number(input.value));
  } });
  input.value = String(range.value);
  return { row: [h("span", {}, name), input, output], set: (/** @type {number} */ value) => {
    input.value = String(value);
    output.textContent = word(value);
  } };
}
