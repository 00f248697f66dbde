// The operator's page: reads /metrics and /debug every second.
const at = (id) => document.getElementById(id);

function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

function shape(tag, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

// Prometheus' text: name{label="value",…} number
function parse(text) {
  const samples = new Map();
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!match) continue;
    const labels = {};
    for (const [, name, value] of (match[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value;
    if (!samples.has(match[1])) samples.set(match[1], []);
    samples.get(match[1]).push({ labels, value: Number(match[3]) });
  }
  return samples;
}

const sum = (samples, name, test = () => true) =>
  (samples.get(name) ?? []).filter(({ labels }) => test(labels)).reduce((total, { value }) => total + value, 0);

const bytes = (value) => {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < 4) { value /= 1000; unit += 1; }
  return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
};
const seconds = (value) => (value === 0 ? "0 s" : value >= 1 ? `${Number(value.toFixed(2))} s` : value >= 0.001 ? `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms` : `${Math.round(value * 1e6)} µs`);

let last = null;
const history = { rate: [], latency: [] };

function numbers(values) {
  const section = at("numbers");
  if (section.childElementCount !== values.length) section.replaceChildren(...values.map(() => element("div", { className: "number" }, element("strong"), element("span"))));
  values.forEach(([name, value], index) => {
    const [strong, span] = section.children[index].children;
    strong.textContent = value;
    span.textContent = name;
  });
}

// The next of 1, 2 and 5 with zeros.
function ceiling(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((step) => step * unit >= value * 0.9999) * unit;
}

// The last two minutes, with a scale in units of show() and the highest value. text: the value of now.
function chart(id, values, show, text) {
  const count = 120, height = 100;
  const peak = Math.max(...values, 0);
  const top = ceiling(peak || 1e-3);
  const label = `${text}${peak ? `, peak ${show(peak)}` : ""}`;
  const points = values.slice(-count).map((value, index, all) => [((count - all.length + index) / (count - 1)) * 600, height - (value / top) * height]);
  const svg = shape("svg", { viewBox: `0 0 600 ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": `${at(id).previousElementSibling.textContent}: ${label}` });
  const line = points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join(" L");
  for (const y of [0, height / 2, height]) svg.append(shape("path", { class: "base", d: `M0 ${y} H600` }));
  if (points.length > 1) {
    svg.append(shape("path", { class: "area", d: `M${points[0][0].toFixed(1)} ${height} L${line} L600 ${height} Z` }), shape("path", { class: "line", d: `M${line}` }));
  }
  const scale = element("div", { className: "scale" }, ...(peak ? [top, top / 2, 0] : []).map((value) => element("span", { textContent: show(value) })));
  scale.setAttribute("aria-hidden", "true");
  const times = element("p", {}, element("span", { textContent: "2 minutes ago" }), element("b", { textContent: label }), element("span", { textContent: "now" }));
  at(id).replaceChildren(element("div", { className: "plot" }, scale, svg), times);
}

function bars(id, values, show, none) {
  const total = values.reduce((result, [, value]) => result + value, 0);
  at(id).replaceChildren(...(total ? values.filter(([, value]) => value > 0).map(([name, value]) => {
    const meter = element("meter", { min: 0, max: 1, value: value / total });
    meter.setAttribute("aria-label", name);
    return element("div", {}, element("span", { textContent: name }), meter, element("b", { textContent: show(value, total) }));
  }) : [element("p", { textContent: none })]));
}

// The source that a path names.
function source(path) {
  const plain = path.indexOf("/plain/");
  const tile = /\/iiif\/[23]\/([^/]+)\/([^/]+)\/[^/]+\/[^/]+\/[^/]+$/.exec(path);
  try {
    if (tile) return `${decodeURIComponent(tile[1])} · ${tile[2]}`;
    if (plain >= 0) return decodeURIComponent(path.slice(plain + 7).replace(/@\w*$/, ""));
    const parts = path.split("/").filter(Boolean);
    const text = parts.at(-1).replace(/\.\w+$/, "").replaceAll("-", "+").replaceAll("_", "/");
    const decoded = atob(text);
    return /^[\x20-\x7e]+:\/\//.test(decoded) ? decoded : path;
  } catch { return path; }
}

function table(id, rows) {
  const body = at(id).tBodies[0];
  body.replaceChildren(...(rows.length ? rows.map((cells) => element("tr", {}, ...cells.map((cell) => {
    const isPath = typeof cell === "object";
    return element("td", { className: isPath ? "path" : "", textContent: isPath ? cell.path : cell, title: isPath ? cell.full ?? "" : "" });
  }))) : [element("tr", {}, element("td", { textContent: "None", colSpan: 4 }))]));
}

const clock = (time) => new Date(time * 1000).toLocaleTimeString();

// The quantile of the answers between two readings of a histogram.
function quantile(now, before, name, part) {
  const buckets = new Map();
  const add = (samples, sign) => {
    for (const { labels, value } of samples?.get(`${name}_bucket`) ?? []) {
      const limit = labels.le === "+Inf" ? Infinity : Number(labels.le);
      buckets.set(limit, (buckets.get(limit) ?? 0) + sign * value);
    }
  };
  add(now, 1);
  add(before, -1);
  const sorted = [...buckets].sort((one, other) => one[0] - other[0]);
  const total = sorted.at(-1)?.[1] ?? 0;
  if (!total) return null;
  let previous = 0;
  for (const [limit, count] of sorted) {
    if (count >= total * part) return limit === Infinity ? previous : limit;
    previous = limit;
  }
  return previous;
}

async function read() {
  const [metricsAnswer, debugAnswer] = await Promise.all([fetch("/metrics"), fetch("/debug")]);
  const samples = parse(await metricsAnswer.text());
  const debug = await debugAnswer.json();
  const time = performance.now() / 1000;
  const answered = sum(samples, "vitrine_requests_total");
  const passed = last ? time - last.time : 1;
  const rate = last ? Math.max(0, (answered - last.answered) / passed) : 0;
  const slow = last ? quantile(samples, last.samples, "vitrine_request_duration_seconds", 0.99) : null;
  history.rate.push(rate);
  history.latency.push(slow ?? 0);
  for (const values of Object.values(history)) if (values.length > 120) values.shift();
  const levels = ["memory", "disk", "coalesced", "stale", "shared", "store", "made"].map((level) => [level, sum(samples, "vitrine_cache_results_total", (labels) => labels.level === level)]);
  const found = levels.reduce((total, [, value]) => total + value, 0);
  numbers([
    ["requests under way", String(debug.in_flight.length)],
    ["renders running", String(debug.renders_running ?? 0)],
    ["renders waiting", String(debug.renders_waiting ?? 0)],
    ["downloads running", String(debug.loads_running ?? 0)],
    ["downloads waiting", String(debug.loads_waiting ?? 0)],
    ["found in a cache", found ? `${Math.round(((found - levels.at(-1)[1]) / found) * 100)} %` : "–"],
    ["requests cancelled", String(sum(samples, "vitrine_requests_total", (labels) => labels.status === "499"))],
    ["answers with errors", String(sum(samples, "vitrine_requests_total", (labels) => Number(labels.status) >= 400 && labels.status !== "499"))],
    ["workers", String(sum(samples, "vitrine_workers"))],
    ["memory of workers", bytes(sum(samples, "vitrine_workers_resident_memory_bytes"))],
    ["results in memory", bytes(sum(samples, "vitrine_cache_bytes", (labels) => labels.level === "memory"))],
    ["connections", String(sum(samples, "vitrine_connections", (labels) => labels.listener === "main"))],
  ]);
  const number = (value) => String(Number(value.toFixed(value < 10 ? 1 : 0)));
  chart("rate", history.rate, number, `${number(rate)} a second`);
  chart("latency", history.latency, seconds, slow === null ? "no answers" : `99 % within ${seconds(slow)}`);
  bars("levels", levels, (value, total) => `${((value / total) * 100).toFixed(1)} %`, "No results yet");
  const stages = new Map();
  for (const { labels, value } of samples.get("vitrine_stage_duration_seconds_sum") ?? []) stages.set(labels.stage, value);
  bars("stages", [...stages], (value) => seconds(value), "No work yet");
  const refused = (samples.get("vitrine_refusals_total") ?? []).map(({ labels, value }) => [labels.reason, value]);
  bars("refused", refused, (value) => String(value), "Nothing was refused");
  table("slowest", debug.slowest.map((one) => [seconds(one.seconds), String(one.status), { path: source(one.path), full: one.path }, clock(one.time)]));
  table("errors", debug.errors.map((one) => [String(one.status), { path: one.path }, clock(one.time)]));
  table("flight", debug.in_flight.slice(0, 50).map((one) => [seconds(one.seconds), { path: one.path }, one.client]));
  at("health").textContent = debug.draining ? "The server stops." : "The server runs.";
  at("health").classList.remove("bad");
  last = { time, answered, samples };
}

async function loop() {
  try { if (!document.hidden) await read(); } catch {
    at("health").textContent = "The server does not answer.";
    at("health").classList.add("bad");
  }
  setTimeout(loop, 1000);
}

// Preview

at("preview").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = new FormData(event.target);
  const options = form.get("options").trim().replace(/^\/+|\/+$/g, "");
  const address = form.get("source").trim();
  const format = form.get("format");
  const path = address.startsWith("/") ? address
    : `/${options ? `${options}/` : ""}plain/${encodeURIComponent(address).replaceAll("%2F", "/").replaceAll("%3A", ":")}${format ? `@${format}` : ""}`;
  const error = at("preview-error");
  error.hidden = true;
  at("result").hidden = true;
  try {
    const signed = await fetch(`/admin/sign?path=${encodeURIComponent(path)}`).then((answer) => answer.json());
    if (signed.reason) throw new Error(signed.reason);
    at("signed").value = signed.path;
    const began = performance.now();
    const answer = await fetch(`/admin/preview?path=${encodeURIComponent(path)}`);
    if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).reason ?? `The server answers ${answer.status}.`);
    const body = await answer.blob();
    const took = performance.now() - began;
    const picture = at("result").querySelector("img");
    // Asked for again by its address, as pages may show no data of scripts.
    await new Promise((done, failed) => { picture.onload = done; picture.onerror = () => failed(new Error("The browser cannot show the result.")); picture.src = `/admin/preview?path=${encodeURIComponent(path)}&${Date.now()}`; });
    at("result").querySelector("figcaption").textContent = `${answer.headers.get("Content-Type")}, ${picture.naturalWidth} × ${picture.naturalHeight}, ${bytes(body.size)}, ${seconds(took / 1000)}, ${answer.headers.get("Cache-Status") ?? ""}`;
    at("result").hidden = false;
  } catch (failure) {
    error.textContent = failure.message;
    error.hidden = false;
  }
});

at("copy").addEventListener("click", async () => {
  const field = at("signed");
  field.select();
  try { await navigator.clipboard.writeText(field.value); } catch { document.execCommand("copy"); }
});

// Purge

at("purge").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = new FormData(event.target);
  const what = form.get("what"), text = form.get("text").trim();
  const status = at("purged");
  if (what !== "all" && !text) { status.textContent = "The address or tag is missing."; return; }
  if (what === "all" && !confirm("Remove all results, and the stored bytes of all sources?")) return;
  status.textContent = "…";
  try {
    const answer = await fetch("/purge", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(what === "all" ? { all: true } : { [what]: text }) });
    const result = await answer.json();
    status.textContent = answer.ok ? `${result.purged} results were removed.` : result.reason;
  } catch { status.textContent = "The server does not answer."; }
});

loop();
