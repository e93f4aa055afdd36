// A conversation with a served model: streams answers from POST /v1/chat/completions, and asks for
// the attention weights of an answer on demand.

const $ = (id) => document.getElementById(id);

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made && key !== "list") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

let models = [];
let messages = [];  // of the conversation, as they are sent
let running = null;  // the AbortController of the current request
let last = null;  // the last request, whose answer can be generated again

const model = () => models.find((each) => each.id === $("model").value);

function headers() {
  const key = $("key").value.trim();
  return {"Content-Type": "application/json", ...(key && {Authorization: `Bearer ${key}`})};
}

async function failure(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).error.message;
  } catch {
    return `${response.status} ${text.slice(0, 200)}`;
  }
}

async function open() {
  const response = await fetch("v1/models", {headers: headers()});
  if (!response.ok) return complain(await failure(response));
  models = (await response.json()).data;
  const chosen = $("model").value;
  $("model").replaceChildren(...models.map((each) => element("option", {value: each.id, selected: each.id === chosen}, each.id)));
  // A model that is not loaded has no figures.
  $("models").tBodies[0].replaceChildren(...models.map(({id, meta, max_model_len: context}) => element("tr", {},
    ...[id, meta?.n_params.toLocaleString() ?? "not loaded", context ?? "", meta?.n_layer || "", meta?.n_head || ""]
      .map((cell) => element("td", {}, String(cell))))));
  showFacts();
}

function showFacts() {
  const chosen = model();
  if (!chosen?.meta) return $("facts").textContent = chosen ? "not loaded; the first message loads it" : "";
  $("facts").textContent = `${chosen.meta.n_params.toLocaleString()} parameters, context ${chosen.max_model_len}`
    + (chosen.parent ? `, adapter of ${chosen.parent}` : "");
}

function complain(text) {
  $("talk").append(element("p", {className: "error", role: "alert"}, text));
}

function settings() {
  const chosen = {};
  for (const name of ["temperature", "top_p", "top_k", "min_p", "max_tokens", "seed"])
    if ($(name).value !== "") chosen[name] = Number($(name).value);
  const tools = $("tools").value.trim();
  if (tools) chosen.tools = JSON.parse(tools);
  // The same seed gives the same answer, so that its attention can be asked for afterwards.
  chosen.seed ??= Math.floor(Math.random() * 2 ** 31);
  return chosen;
}

// Yields the objects of a stream of server-sent events.
async function* events(body) {
  const decoder = new TextDecoder();
  let held = "";
  for (const reader = body.getReader(); ;) {
    const {done, value} = await reader.read();
    if (done) return;
    held += decoder.decode(value, {stream: true});
    for (let end = held.indexOf("\n\n"); end >= 0; end = held.indexOf("\n\n")) {
      const data = held.slice(0, end).replace(/^data: /, "");
      held = held.slice(end + 2);
      if (data === "[DONE]") return;
      if (data && !data.startsWith(":")) yield JSON.parse(data);
    }
  }
}

function addMessage(role, text = "") {
  const content = element("div", {className: "text"}, text);
  const box = element("article", {className: `message ${role}`}, element("div", {className: "who"}, role), content);
  $("talk").append(box);
  return {box, content};
}

// Shows the calls of an answer, with a field for the result of each, and continues with the results.
function showCalls(box, calls) {
  const results = calls.map(({function: {name, arguments: given}}) => {
    const result = element("textarea", {rows: 2, placeholder: "the result of the function"});
    box.append(element("div", {className: "call"}, element("strong", {}, name), element("pre", {}, given), result));
    return result;
  });
  box.append(element("button", {type: "button", onclick: (event) => {
    event.currentTarget.disabled = true;
    calls.forEach((call, i) => {
      messages.push({role: "tool", tool_call_id: call.id, content: results[i].value});
      addMessage("tool", results[i].value);
    });
    answer();
  }}, "Send results"));
}

function setBusy(busy) {
  $("send").disabled = busy;
  $("stop").hidden = !busy;
  $("again").hidden = busy || !last;
}

// Adds the pieces of calls in a part of a stream to the calls so far.
function addCalls(calls, pieces) {
  for (const {index, function: {name = "", arguments: given = ""}, ...rest} of pieces) {
    calls[index] ??= {...rest, function: {name: "", arguments: ""}};
    calls[index].function.name += name;
    calls[index].function.arguments += given;
  }
}

// Shows reasoning above the text of an answer: open until the answer begins.
function showReasoning(box, content) {
  const reasoning = element("pre");
  const details = element("details", {className: "reasoning", open: true}, element("summary", {}, "Reasoning"), reasoning);
  box.insertBefore(details, content);
  return {details, reasoning};
}

// Keeps the newest text in view, unless the reader has scrolled up.
function follow(change) {
  const page = document.scrollingElement;
  const atEnd = page.scrollHeight - page.scrollTop - page.clientHeight < 40;
  change();
  if (atEnd) page.scrollTop = page.scrollHeight;
}

async function answer() {
  let body;
  const conversation = messages;
  try {
    const system = $("system").value.trim();
    body = {model: $("model").value, messages: [...(system ? [{role: "system", content: system}] : []), ...messages], ...settings()};
  } catch (error) {
    return complain(`Tools: ${error.message}`);
  }
  const {box, content} = addMessage("assistant");
  const began = performance.now();
  running = new AbortController();
  setBusy(true);
  const calls = [];
  let tokens = 0, ended = "", failed = false, thought = null;
  try {
    const response = await fetch("v1/chat/completions", {
      method: "POST", headers: headers(), signal: running.signal,
      body: JSON.stringify({...body, stream: true, stream_options: {include_usage: true}}),
    });
    if (!response.ok) throw new Error(await failure(response));
    for await (const event of events(response.body)) {
      if (event.error) throw new Error(event.error.message);
      if (event.usage) tokens = event.usage.completion_tokens;
      const choice = event.choices?.[0];
      const {reasoning_content: reasoning, content: text = ""} = choice?.delta ?? {};
      if (reasoning) thought ??= showReasoning(box, content);
      if (text && thought) thought.details.open = false;
      follow(() => reasoning ? thought.reasoning.append(reasoning) : content.append(text));
      addCalls(calls, choice?.delta?.tool_calls ?? []);
      ended = choice?.finish_reason ?? ended;
    }
  } catch (error) {
    failed = error.name !== "AbortError";
    if (failed) follow(() => box.append(element("p", {className: "error", role: "alert"}, error.message)));
  }
  if (messages !== conversation) return;  // a new conversation began
  running = null;
  last = {body, box, before: messages.length, tokens};
  const said = {role: "assistant", content: content.textContent};
  if (thought) said.reasoning_content = thought.reasoning.textContent;
  if (calls.length) said.tool_calls = calls;
  if (said.content || calls.length) messages.push(said);
  const seconds = (performance.now() - began) / 1000;
  if (!model()?.meta && !failed) await open();  // the model is loaded now
  $("status").textContent = tokens ? `${tokens} tokens in ${seconds.toFixed(1)} s, ${(tokens / seconds).toFixed(1)} tokens/s${ended === "length" ? "; the limit was reached" : ""}` : "";
  follow(() => {
    if (calls.length && !failed) showCalls(box, calls);
    if (tokens && model()?.meta?.n_head) offerAttention(box, body, tokens);
    setBusy(false);
  });
}

function offerAttention(box, body, tokens) {
  const {n_layer: layers, n_head: heads} = model().meta;
  const layer = element("input", {type: "number", min: 0, max: layers - 1, value: layers - 1});
  const head = element("input", {type: "number", min: 0, max: heads - 1, value: 0});
  const panel = element("div", {className: "attention"});
  const show = element("button", {type: "button", onclick: () => showAttention(panel, body, tokens, +layer.value, +head.value)},
    "Show attention");
  box.append(element("div", {className: "tools"}, show, element("label", {}, "layer ", layer), element("label", {}, "head ", head)), panel);
}

// Generates the answer again, with the same bits, and shows which tokens each of its tokens saw.
async function showAttention(panel, body, tokens, layer, head) {
  panel.replaceChildren("…");
  const response = await fetch("v1/chat/completions", {
    method: "POST", headers: headers(),
    body: JSON.stringify({...body, max_tokens: tokens, fovea: {attention: {layer, head, top_k: 8}}}),
  });
  if (!response.ok) return panel.replaceChildren(element("p", {className: "error"}, await failure(response)));
  const seen = (await response.json()).choices[0].fovea.attention.tokens;
  const list = element("ol", {});
  const select = (button, {keys}) => {
    panel.querySelectorAll("button").forEach((each) => each.setAttribute("aria-pressed", String(each === button)));
    list.replaceChildren(...keys.map(({token, weight, position: at}) => element("li", {},
      element("meter", {min: 0, max: 1, value: weight}), ` ${(100 * weight).toFixed(1)} % `, JSON.stringify(token), ` at ${at}`)));
  };
  const buttons = seen.map((token) => element("button", {type: "button", "aria-pressed": "false",
    onclick: (event) => select(event.currentTarget, token)}, token.token));
  panel.replaceChildren(element("p", {className: "quiet"}, "Choose a token to see what it was predicted from:"), element("p", {}, ...buttons), list);
  if (seen.length) select(buttons[0], seen[0]);
}

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("question").value.trim();
  if (!text || running) return;
  $("question").value = "";
  messages.push({role: "user", content: text});
  addMessage("user", text);
  answer();
  document.scrollingElement.scrollTop = document.scrollingElement.scrollHeight;
});
$("question").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("ask").requestSubmit();
  }
});
$("stop").addEventListener("click", () => running?.abort());
$("again").addEventListener("click", () => {
  if (!last || running) return;
  messages.length = last.before;
  while (last.box.nextSibling) last.box.nextSibling.remove();
  last.box.remove();
  answer();
});
$("clear").addEventListener("click", () => {
  running?.abort();
  running = last = null;
  messages = [];
  $("talk").replaceChildren();
  $("status").textContent = "";
  setBusy(false);
});
$("model").addEventListener("change", showFacts);
$("key").addEventListener("change", open);
open();
