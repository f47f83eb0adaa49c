"use strict";
const EVERY_MS = 2000;
const cards = new Map();
let before = null;

function node(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (key === "class") made.className = value; else made[key] = value;
  }
  made.append(...children);
  return made;
}

function box(title, ...children) { return node("section", { class: "box" }, node("h3", { textContent: title }), ...children); }

function bars(pairs, show) {
  const most = Math.max(...pairs.map(([, value]) => value), 1e-12);
  return pairs.map(([name, value]) => {
    const inner = node("i");
    inner.style.setProperty("width", `${(100 * value) / most}%`);
    return node("div", { class: "row" }, node("span", { textContent: name }), node("div", { class: "bar" }, inner),
      node("span", { textContent: show(value) }));
  });
}

function minus(now, then) {
  if (!then) return now;
  const buckets = {};
  for (const [le, count] of Object.entries(now.buckets)) buckets[le] = count - (then.buckets[le] || 0);
  return { count: now.count - then.count, sum: now.sum - then.sum, buckets };
}

function bounds(histogram) {
  return Object.entries(histogram.buckets).map(([le, count]) => [le === "+Inf" ? Infinity : Number(le), count])
    .sort((a, b) => a[0] - b[0]);
}

function quantile(histogram, q) {
  const found = bounds(histogram);
  const total = found.length ? found[found.length - 1][1] : 0;
  if (!total) return null;
  let [low, passed] = [0, 0];
  for (const [bound, count] of found) {
    if (count >= q * total) {
      if (bound === Infinity) return low;
      return low + ((bound - low) * (q * total - passed)) / Math.max(1e-12, count - passed);
    }
    [low, passed] = [bound, count];
  }
  return low;
}

function ms(seconds) { return seconds === null ? "–" : `${(seconds * 1000).toPrecision(3)} ms`; }
function whole(value) { return Math.round(value).toLocaleString("en"); }

function counts(of, none) {
  const pairs = Object.entries(of);
  return pairs.length ? bars(pairs, whole) : [node("p", { class: "reason", textContent: none })];
}

function sizes(histogram) {
  const out = [];
  let passed = 0;
  for (const [bound, count] of bounds(histogram)) {
    if (count > passed) out.push([bound === Infinity ? "more" : `up to ${bound}`, count - passed]);
    passed = count;
  }
  return out;
}

function numbers(model, then, seconds) {
  const rate = then && seconds ? (model.requests.count - then.requests.count) / seconds : null;
  const window = minus(model.requests, then && then.requests);
  const lately = window.count > 0 ? window : model.requests;
  const total = Object.values(model.stages).reduce((sum, value) => sum + value, 0);
  const batches = sizes(model.batches);
  return [
    box("requests a second", node("div", { class: "number", textContent: rate === null ? "–" : rate.toPrecision(3) }),
      node("div", { textContent: `${whole(model.requests.count)} requests, ${whole(model.rows)} rows since the start` })),
    box(window.count > 0 ? "latency, lately" : "latency, since the start",
      ...bars([["p50", 0.5], ["p95", 0.95], ["p99", 0.99]].map(([name, q]) => [name, quantile(lately, q) || 0]), ms)),
    box("rows in a batch", ...(batches.length ? bars(batches, whole) : [node("p", { textContent: "no batch yet" })])),
    box("time in stages", ...bars(Object.entries(model.stages), (value) => total ? `${Math.round((100 * value) / total)} %` : "–")),
    box("queue", node("div", { class: "number", textContent: whole(model.queue_rows) }),
      node("div", { textContent: `rows wait; p95 of the wait ${ms(quantile(model.queue, 0.95))}; ${whole(model.slots)} slot${model.slots === 1 ? "" : "s"}` })),
    box("answers by status", ...counts(model.answers, "none yet")),
    box("errors by kind", ...counts(model.errors, "none")),
    box("goldens", ...(model.goldens.length ? model.goldens.map((text) => node("p", { class: "reason", textContent: text }))
      : [node("p", { class: "reason", textContent: "none were run" })])),
    ...(model.sizing ? [box("max_batch = auto, rows/s", ...bars(model.sizing.measured.map(({ rows, rows_per_s }) => [`${rows} rows`, rows_per_s]), whole),
      node("p", { class: "reason", textContent: `${model.sizing.max_batch} rows: ${model.sizing.reason}` }))] : []),
    ...(Object.keys(model.shadow).length ? [box("as a shadow, rows", ...counts(model.shadow, ""))] : []),
    ...(Object.keys(model.slots_lost).length ? [box("slots lost", ...counts(model.slots_lost, ""))] : []),
  ];
}

function kinds(schema) { return [].concat(schema.type || (schema.anyOf || []).map((item) => item.type)); }

function field(name, schema, required, example) {
  const label = node("label", {}, node("span", { textContent: name + (required ? "" : " (optional)") }));
  const types = kinds(schema);
  let read;
  if (schema.contentEncoding === "base64") {
    const input = node("input", { type: "file", accept: "image/*" });
    const preview = node("img", { class: "preview", alt: "", hidden: true });
    let data = example;
    input.addEventListener("change", () => {
      const reader = new FileReader();
      reader.addEventListener("load", () => {
        preview.src = reader.result; preview.hidden = false;
        data = reader.result.slice(reader.result.indexOf(",") + 1);
      });
      if (input.files[0]) reader.readAsDataURL(input.files[0]);
    });
    label.append(input, preview);
    read = () => data;
  } else if (schema.enum) {
    const input = node("select", { name });
    for (const value of schema.enum) input.append(node("option", { value: JSON.stringify(value), textContent: String(value) }));
    input.value = JSON.stringify(example === undefined ? schema.enum[0] : example);
    label.append(input);
    read = () => JSON.parse(input.value);
  } else if (types.includes("boolean")) {
    const input = node("select", { name });
    for (const value of ["true", "false", ...(types.includes("null") ? ["null"] : [])]) input.append(node("option", { value, textContent: value }));
    input.value = JSON.stringify(example);
    label.append(input);
    read = () => JSON.parse(input.value);
  } else if (types.includes("string") && !types.includes("array")) {
    const input = node("input", { name, value: example === null || example === undefined ? "" : example });
    label.append(input);
    read = () => input.value === "" && types.includes("null") ? null : input.value;
  } else {
    const text = example === undefined ? "" : JSON.stringify(example);
    const input = text.length > 40 ? node("textarea", { name, value: text }) : node("input", { name, value: text });
    label.append(input);
    read = () => input.value.trim() === "" ? (types.includes("null") ? null : undefined) : JSON.parse(input.value);
  }
  if (schema.description) label.append(node("small", { textContent: schema.description }));
  return { label, read };
}

function form(model, { schema, example }) {
  const answer = node("pre", { textContent: "no answer yet", ariaLive: "polite" });
  const fields = Object.entries(schema.properties || {}).map(([name, item]) =>
    [name, field(name, item, (schema.required || []).includes(name), example[name])]);
  const made = node("form", {}, ...fields.map(([, found]) => found.label), node("button", { type: "submit", textContent: "Send" }));
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    const row = {};
    try {
      for (const [name, found] of fields) {
        const value = found.read();
        if (value !== undefined) row[name] = value;
      }
    } catch (error) { answer.textContent = `not JSON: ${error.message}`; return; }
    const started = performance.now();
    try {
      const path = `predictions/${encodeURIComponent(model.name)}/${encodeURIComponent(model.version)}`;
      const reply = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(row) });
      const text = JSON.stringify(await reply.json(), null, 1);
      answer.textContent = `${reply.status} in ${(performance.now() - started).toPrecision(3)} ms\n${text}`;
    } catch (error) { answer.textContent = String(error); }
    refresh();
  });
  return node("details", {}, node("summary", { textContent: "Send a request" }), made, answer);
}

function card(model) {
  const made = { head: node("div", { class: "head" }), reason: node("p", { class: "reason bad" }),
    advice: node("p", { class: "advice" }), grid: node("div", { class: "grid" }) };
  made.form = node("div");
  made.root = node("article", { id: `model-${model.name}-${model.version}` }, made.head, made.reason, made.advice, made.grid, made.form);
  return made;
}

// A form is asked for once, and again when the version has been loaded anew.
async function fill(made, model) {
  if (made.load === model.load) return;
  made.load = model.load;
  try {
    const reply = await fetch(`form.json?${new URLSearchParams({ name: model.name, version: model.version })}`);
    if (!reply.ok) throw new Error(String(reply.status));
    made.form.replaceChildren(form(model, await reply.json()));
  } catch { made.load = null; }
}

function show(now) {
  const ready = document.getElementById("ready");
  const waiting = Object.entries(now.waiting).map(([name, reason]) => `${name}: ${reason}`).join("; ");
  ready.textContent = now.ready ? "ready" : `not ready: ${waiting || "no model"}`;
  ready.className = now.ready ? "good" : "bad";
  const seconds = before ? (now.at - before.at) / 1000 : 0;
  const there = new Set();
  for (const model of now.models) {
    const key = `${model.name}@${model.version}`;
    there.add(key);
    if (!cards.has(key)) {
      cards.set(key, card(model));
      document.getElementById("models").append(cards.get(key).root);
    }
    const made = cards.get(key);
    const then = before && before.models.find((other) => other.name === model.name && other.version === model.version);
    made.head.replaceChildren(node("h2", { textContent: model.name }), node("span", { textContent: `version ${model.version}, ${model.role}, ${model.device}` }),
      node("span", { class: `state ${model.state === "ready" ? "good" : "bad"}`, textContent: model.state }));
    made.reason.textContent = model.state === "ready" ? "" : model.reason;
    made.advice.textContent = model.advice;
    made.grid.replaceChildren(...numbers(model, then, seconds));
    fill(made, model);
  }
  for (const [key, made] of cards) if (!there.has(key)) { made.root.remove(); cards.delete(key); }
  before = now;
}

async function refresh() {
  try {
    const reply = await fetch("status.json", { cache: "no-store" });
    const now = await reply.json();
    now.at = performance.now();
    show(now);
  } catch (error) {
    const ready = document.getElementById("ready");
    ready.textContent = "the server does not answer";
    ready.className = "bad";
  }
}

refresh();
setInterval(refresh, EVERY_MS);
