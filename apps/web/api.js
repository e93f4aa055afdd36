// Requests to the server. Most responses never change, so they are cached; a saved page contains those that it needs.

/** @typedef {{id: number, text: string, special: boolean}} Token */
/** @typedef {{run: string, tokens: Token[], source: Token[]}} Run */
/** @typedef {{heads: number, rows: number, keys: number, weights: Float32Array}} WeightMap */

/** @type {{hash: string, responses: Record<string, {type: string, body: string}>} | null} */
export const captured = readCaptured();

function readCaptured() {
  const element = document.getElementById("captured");
  if (!element) return null;
  return JSON.parse(element.textContent || "null");
}

const KEPT = 400; // responses; the oldest are evicted first
/** @type {Map<string, Promise<{type: string, bytes: ArrayBuffer}>>} */
const responses = new Map();

/** @param {Record<string, string | number | boolean | undefined>} query */
function address(/** @type {string} */ path, query) {
  const parts = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(parts.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

/** @param {string} where @param {RequestInit} [options] */
async function fetched(where, options) {
  if (captured) return fromCapture(where, options);
  const response = await fetch(where, options);
  const bytes = await response.arrayBuffer();
  if (response.status === 410) window.dispatchEvent(new Event("forgotten"));
  if (!response.ok) throw new Error(messageOf(bytes, response.status));
  return { type: response.headers.get("content-type") ?? "", bytes };
}

/** @param {string} where @param {RequestInit} [options] */
function fromCapture(where, options) {
  const name = options?.body ? `${where} ${options.body}` : where;
  const found = captured?.responses[name];
  if (!found) throw new Error("This is a saved view: it contains only the data that it showed.");
  const binary = !found.type.startsWith("application/json");
  const text = binary ? atob(found.body) : found.body;
  const bytes = binary ? Uint8Array.from(text, (c) => c.charCodeAt(0)) : new TextEncoder().encode(text);
  return { type: found.type, bytes: /** @type {ArrayBuffer} */ (bytes.buffer) };
}

/** @param {ArrayBuffer} bytes @param {number} status */
function messageOf(bytes, status) {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)).error.message;
  } catch {
    return `The server returned status ${status}.`;
  }
}

/** @param {string} name @param {() => Promise<{type: string, bytes: ArrayBuffer}>} make */
function once(name, make) {
  let found = responses.get(name);
  if (!found) {
    found = make();
    found.catch(() => responses.delete(name));
    responses.set(name, found);
    if (responses.size > KEPT) responses.delete(/** @type {string} */ (responses.keys().next().value));
  }
  return found;
}

/**
 * @param {string} path @param {Record<string, string | number | boolean | undefined>} [query]
 * @returns {Promise<any>}
 */
export async function ask(path, query = {}) {
  const where = address(path, query);
  const { bytes } = await once(where, () => fetched(where));
  return JSON.parse(new TextDecoder().decode(bytes));
}

/** Like ask(), for responses that change: ignores a cached one. @param {string} path @param {Record<string, string | number>} query */
export async function askAnew(path, query) {
  responses.delete(address(path, query));
  return ask(path, query);
}

/** @param {string} path @param {Record<string, string | number | boolean | undefined>} query */
export async function askBytes(path, query) {
  const where = address(path, query);
  return (await once(where, () => fetched(where))).bytes;
}

/** @param {string} path @param {object} wanted @returns {Promise<any>} */
export async function post(path, wanted) {
  const body = JSON.stringify(wanted);
  const { bytes } = await once(`${path} ${body}`, () =>
    fetched(path, { method: "POST", body, headers: { "content-type": "application/json" } }));
  return JSON.parse(new TextDecoder().decode(bytes));
}

/** @param {object} wanted @returns {Promise<Run>} */
export function startRun(wanted) {
  return post("api/run", wanted);
}

/** Removes the cached responses of runs that the server has evicted. */
export function forgetRuns() {
  for (const name of responses.keys()) if (name.startsWith("api/run ") || name.includes("run=")) responses.delete(name);
}

/**
 * @typedef {{run: string, look: string, layer: number, heads: string, mean?: number, q?: string, k?: string, step?: number}} MapQuery
 */
// Maximum cells of a map that is requested entirely.
const SMALL = 256 * 256;

/** @param {MapQuery} query @param {number} [cells] of the whole map @returns {Promise<WeightMap>} */
export async function askMap(query, cells = Infinity) {
  if (captured) return mapFromCapture(query);
  const { q, k, ...whole } = query;
  if (cells > SMALL || query.step) return asMap(await askBytes("api/map", query));
  return cut(asMap(await askBytes("api/map", whole)), q, k);
}

/** Prefetches the small maps that are likely to be needed next. @param {MapQuery[]} queries @param {number} cells of each */
export async function foresee(queries, cells) {
  if (captured || cells > SMALL) return;
  for (const query of queries) await askMap(query, cells);
}

/** @param {string | undefined} span @param {number} all @returns {[number, number]} */
function ends(span, all) {
  const [first, end] = span ? span.split("-").map(Number) : [0, all];
  return [first, end];
}

/** @param {WeightMap} whole @param {string} [q] @param {string} [k] @returns {WeightMap} */
function cut(whole, q, k) {
  const [q0, q1] = ends(q, whole.rows);
  const [k0, k1] = ends(k, whole.keys);
  const map = { heads: whole.heads, rows: q1 - q0, keys: k1 - k0, weights: whole.weights };
  if (map.rows === whole.rows && map.keys === whole.keys) return map;
  map.weights = new Float32Array(map.heads * map.rows * map.keys);
  for (let head = 0; head < map.heads; ++head) {
    for (let row = 0; row < map.rows; ++row) {
      const from = (head * whole.rows + q0 + row) * whole.keys;
      map.weights.set(whole.weights.subarray(from + k0, from + k1), (head * map.rows + row) * map.keys);
    }
  }
  return map;
}

/** @param {ArrayBuffer} bytes @returns {WeightMap} */
function asMap(bytes) {
  const [heads, rows, keys] = new Int32Array(bytes, 0, 3);
  return { heads, rows, keys, weights: new Float32Array(bytes, 12) };
}

/** A saved page stores all heads of a layer together; the requested part is extracted. @param {MapQuery} query */
async function mapFromCapture(query) {
  const name = `api/map?look=${query.look}&layer=${query.layer}`;
  const pooled = query.step && captured?.responses[`${name}&step=${query.step}`];
  const whole = asMap(await askBytes(pooled ? `${name}&step=${query.step}` : name, {}));
  const step = pooled ? 1 : query.step ?? 1;
  const heads = query.heads.split(",").map(Number);
  const [q0, q1] = ends(pooled ? undefined : query.q, whole.rows);
  const [k0, k1] = ends(pooled ? undefined : query.k, whole.keys);
  const map = { heads: query.mean ? 1 : heads.length, rows: Math.ceil((q1 - q0) / step), keys: Math.ceil((k1 - k0) / step), weights: new Float32Array() };
  map.weights = new Float32Array(map.heads * map.rows * map.keys);
  for (let q = q0; q < q1; ++q) {
    for (let k = k0; k < k1; ++k) {
      const values = heads.map((head) => whole.weights[(head * whole.rows + q) * whole.keys + k]);
      const averaged = query.mean ? [values.reduce((sum, x) => sum + x, 0) / values.length] : values;
      averaged.forEach((value, n) => {
        const at = (n * map.rows + Math.floor((q - q0) / step)) * map.keys + Math.floor((k - k0) / step);
        map.weights[at] = Math.max(map.weights[at], value);
      });
    }
  }
  return map;
}

/** The cached responses, for a saved page. @param {(name: string) => boolean} wanted */
export async function keptResponses(wanted) {
  /** @type {Record<string, {type: string, body: string}>} */
  const kept = {};
  for (const [name, response] of responses) {
    if (!wanted(name)) continue;
    const { type, bytes } = await response;
    const json = type.startsWith("application/json");
    kept[name] = { type, body: json ? new TextDecoder().decode(bytes) : base64(new Uint8Array(bytes)) };
  }
  return kept;
}

/** @param {Uint8Array} bytes */
export function base64(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}
