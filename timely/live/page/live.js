// The page: receives what changes as events, keeps the numbers, and draws them.

import { elkGraph, picture, standing } from "/page/graph.mjs";

const $ = id => document.getElementById(id);
const elk = new ELK({ workerUrl: "/page/vendor/elk-worker.min.js" });
const RUNS = 0, TIME = 1, IN = 2, OUT = 3, QUEUED = 4, ROWS = 5, BYTES = 6;
const MANY = 60; // with more nodes than this, inner scopes begin closed
const KEPT_SECONDS = 120;
const NEW_MILLISECONDS = 10000; // for so long after it has opened, the page turns to larger dataflows by itself

const flows = new Map(); // by number: shape, totals and rates of nodes, frontiers, epochs, what holds it
let shown = null, isPicked = false, opened = 0, chosen = null, closed = new Set(), scale = 0, stands = [], members = new Map(), drawing = 0;
let seconds = 0, order = TIME, workers = [], nowMatches = [], matchAt = -1, plot = null;

// Numbers for people

const short = n => {
  if (!n) return "0";
  const units = ["", "k", "M", "G", "T"];
  let unit = 0;
  while (Math.abs(n) >= 999.5 && unit < 4) { n /= 1000; unit++; }
  return (unit && n < 99.5 ? n.toFixed(1) : Math.round(n)) + units[unit];
};
const rate = n => `${n > 0 && n < 10 ? n.toFixed(1) : short(n)}/s`;
const share = part => `${(100 * part).toFixed(part > 0 && part < 0.0995 ? 1 : 0)} %`;
const bytes = n => n < 1000 ? `${n} B` : `${short(n)}B`;
const lasting = ns => ns < 1e6 ? `${(ns / 1e3).toFixed(0)} µs` : ns < 1e9 ? `${(ns / 1e6).toFixed(ns < 1e7 ? 1 : 0)} ms` : `${(ns / 1e9).toFixed(1)} s`;

// What arrives

function shape(data) {
  const nodes = data.nodes.length;
  if (flows.has(data.dataflow)) forget(data.dataflow); // of an earlier run, and shown until now
  const zeros = () => Array.from({ length: nodes }, () => [0, 0, 0, 0, 0, 0, 0]);
  flows.set(data.dataflow, { shape: data, totals: zeros(), rates: zeros(), frontiers: new Map(), epochs: [], held: [], over: false });
  const option = new Option(`${data.dataflow}: ${data.name}`, data.dataflow);
  $("dataflow").append(option);
  if (shown === null || shown === data.dataflow || flows.get(shown).over || (!isPicked && isBetter(data.dataflow))) show(data.dataflow);
}

const size = key => flows.get(key).shape.nodes.length;
/** Whether a dataflow has more to show than the one that is shown, of which there is little, or which nobody has looked at yet. */
const isBetter = key => size(key) > size(shown) && (size(shown) < 2 || performance.now() - opened < NEW_MILLISECONDS);

/** Rows of a node and its seven numbers, from base64 of 64-bit integers. */
function* rows(text) {
  const numbers = new BigInt64Array(Uint8Array.from(atob(text), character => character.charCodeAt(0)).buffer);
  for (let at = 0; at < numbers.length; at += 8) yield Array.from(numbers.subarray(at, at + 8), Number);
}

function tick(data) {
  const span = data.is_first ? 0 : data.seconds - seconds;
  seconds = data.seconds;
  workers = data.workers;
  for (const [key, flow] of flows) {
    const found = data.dataflows[key];
    for (const each of flow.rates) each.fill(0);
    for (const [node, ...row] of rows(found?.rows || "")) {
      const before = flow.totals[node];
      if (span > 0) flow.rates[node] = row.map((total, column) => (total - before[column]) / span);
      flow.totals[node] = row;
    }
    for (const [text, ...nodes] of found?.frontiers || []) for (const node of nodes) flow.frontiers.set(node, text);
    if (found?.frontiers?.length) flow.held = [];
    if (found?.held) flow.held = found.held;
    flow.epochs.push([seconds, ...(found?.epochs ? found.epochs.slice(1).map(ns => ns / 1e6) : [null, null, null])]);
    while (flow.epochs.length && flow.epochs[0][0] < seconds - KEPT_SECONDS) flow.epochs.shift();
  }
  for (const key of data.over) {
    const flow = flows.get(key);
    if (!flow || flow.over) continue;
    flow.over = true;
    for (const option of $("dataflow").options) if (+option.value === key) option.text += " (complete)";
  }
  for (const key of data.gone) if (key !== shown) forget(key);
  addNotes(data.notes);
  refresh();
}

function forget(key) {
  flows.delete(key);
  for (const option of [...$("dataflow").options]) if (+option.value === key) option.remove();
}

function refresh() {
  if (document.hidden) return;
  showWorkers();
  const flow = flows.get(shown);
  if (!flow) return;
  paint(flow);
  showOperators(flow);
  showLatency(flow);
  showHeld(flow);
  showDetail(flow);
  const busy = workers.length ? workers.reduce((sum, each) => sum + each[3], 0) / workers.length : 0;
  $("summary").textContent = `${workers.length} worker${workers.length === 1 ? "" : "s"}, ${share(busy)} busy, ${Math.floor(seconds)} s`;
}

// The graph

function show(key) {
  shown = key;
  chosen = null;
  $("dataflow").value = key;
  const { shape } = flows.get(key);
  closed = new Set();
  if (shape.nodes.length > MANY) shape.scopes.forEach((scope, number) => { if (scope.parent >= 0) closed.add(number); });
  draw(true);
}

async function draw(fit, focus) {
  const number = ++drawing, flow = flows.get(shown);
  stands = standing(flow.shape, closed);
  members = new Map();
  stands.forEach((id, node) => members.has(id) ? members.get(id).push(node) : members.set(id, [node]));
  const late = setTimeout(() => { $("layout-note").textContent = "arranging"; }, 300);
  let laid;
  try {
    laid = await elk.layout(elkGraph(flow.shape, closed));
  } catch (error) {
    $("layout-note").textContent = `the graph cannot be arranged: ${error.message || error}`;
    return;
  } finally { clearTimeout(late); }
  if (number !== drawing) return;
  $("layout-note").textContent = "";
  const made = picture(flow.shape, laid);
  $("graph").innerHTML = made.text;
  $("graph").dataset.width = made.width;
  $("graph").dataset.height = made.height;
  if (fit || !scale) fitScale(0.8); else zoom(scale);
  const first = $("graph").querySelector(focus ? `[data-id="${focus}"]` : ".box");
  if (first) { first.tabIndex = 0; if (focus) first.focus(); }
  refresh();
}

function zoom(to) {
  scale = Math.min(3, Math.max(0.1, to));
  const svg = $("graph").querySelector("svg");
  if (!svg) return;
  svg.setAttribute("width", $("graph").dataset.width * scale);
  svg.setAttribute("height", $("graph").dataset.height * scale);
}

/** Show all of the graph, or at first no smaller than can be read. */
function fitScale(least = 0.1) {
  const box = $("graph"), room = 0.98;
  zoom(Math.max(least, Math.min(1.1, room * box.clientWidth / box.dataset.width, room * box.clientHeight / box.dataset.height)));
}

/** Return the numbers of a box together: those of its nodes, of which only operators have a time. */
function together(flow, id) {
  const totals = [0, 0, 0, 0, 0, 0, 0], rates = [0, 0, 0, 0, 0, 0, 0];
  for (const node of members.get(id) || []) for (let column = 0; column < 7; column++) {
    totals[column] += flow.totals[node][column];
    rates[column] += flow.rates[node][column];
  }
  return { totals, rates, busy: rates[TIME] / 1e9 / Math.max(1, workers.length) };
}

function paint(flow) {
  for (const box of $("graph").querySelectorAll(".node")) {
    const id = box.dataset.id, { totals, rates, busy } = together(flow, id);
    const node = id[0] === "n" ? flow.shape.nodes[+id.slice(1)] : null;
    box.querySelector(".heat").style.fillOpacity = (0.85 * Math.min(1, busy)).toFixed(3);
    box.classList.toggle("queued", totals[QUEUED] > 0);
    box.classList.toggle("chosen", id === `n${chosen}`);
    const lines = [], second = [];
    lines.push(rate(rates[IN] || rates[OUT]));
    if (!node || node.kind === "operator") lines.push(share(busy));
    if (totals[QUEUED]) second.push(`${short(totals[QUEUED])} queued`);
    if (totals[ROWS]) second.push(`${short(totals[ROWS])} rows`);
    const frontier = node && flow.frontiers.get(+id.slice(1));
    if (frontier !== undefined && frontier !== null) second.push(frontier === "done" ? "done" : `at ${frontier.length > 12 ? frontier.slice(0, 11) + "…" : frontier}`);
    const [top, bottom] = [box.querySelector(".rate"), box.querySelector(".more")];
    if (top && top.textContent !== lines.join(" · ")) top.textContent = lines.join(" · ");
    if (bottom && bottom.textContent !== second.join(" · ")) bottom.textContent = second.join(" · ");
  }
  for (const line of $("graph").querySelectorAll("path.edge")) {
    const flowing = line.dataset.edges.split(" ").some(number => {
      const edge = flow.shape.edges[+number];
      return flow.rates[edge.source][OUT] > 0 || flow.rates[edge.target][IN] > 0;
    });
    line.classList.toggle("flowing", flowing);
  }
}

function act(box) {
  const id = box.dataset.id;
  if (id[0] === "s") {
    const number = +id.slice(1);
    if (closed.has(number)) closed.delete(number); else closed.add(number);
    draw(false, id);
  } else choose(+id.slice(1));
}

function choose(node) {
  chosen = node;
  if (node === null) { $("detail-panel").hidden = true; }
  refresh();
}

/** Move the focus to the nearest box in a direction. */
function step(from, key) {
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  const middle = box => { const r = box.getBoundingClientRect(); return [r.left + r.width / 2, box.matches(".node") ? r.top + r.height / 2 : r.top + 10]; };
  const [x, y] = middle(from);
  let best = null, least = Infinity;
  for (const box of $("graph").querySelectorAll(".box")) {
    if (box === from) continue;
    const [u, v] = middle(box), along = (u - x) * dx + (v - y) * dy, aside = Math.abs((u - x) * dy) + Math.abs((v - y) * dx);
    if (along <= 1) continue;
    const cost = along + 2 * aside;
    if (cost < least) { least = cost; best = box; }
  }
  if (best) focusBox(best);
}

function focusBox(box) {
  for (const each of $("graph").querySelectorAll('.box[tabindex="0"]')) each.tabIndex = -1;
  box.tabIndex = 0;
  box.focus({ preventScroll: true });
  box.scrollIntoView({ block: "nearest", inline: "nearest" });
}

$("graph").addEventListener("click", event => {
  const box = event.target.closest(".box");
  if (box) { focusBox(box); act(box); }
});
$("graph").addEventListener("keydown", event => {
  const box = event.target.closest(".box");
  if (!box) return;
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(box); }
  else if (event.key.startsWith("Arrow")) { event.preventDefault(); step(box, event.key); }
});

// The tables

function cells(row, ...texts) {
  while (row.cells.length < texts.length) row.insertCell();
  texts.forEach((text, place) => { if (row.cells[place].textContent !== String(text)) row.cells[place].textContent = text; });
  return row;
}

function showWorkers() {
  const body = $("workers").tBodies[0];
  while (body.rows.length > workers.length) body.deleteRow(-1);
  workers.forEach(([index, process, pid, busy, records, queued, doing, line, silent], place) => {
    let row = body.rows[place];
    if (!row) {
      row = body.insertRow();
      for (let each = 0; each < 5; each++) row.insertCell();
      row.cells[1].innerHTML = '<span class="bar-of"><i></i></span><span></span>';
      row.cells[2].className = row.cells[3].className = "n";
      row.cells[4].className = "text";
    }
    row.classList.toggle("silent", silent > 0);
    row.cells[0].textContent = index;
    row.title = `process ${process}, pid ${pid}`;
    row.cells[1].querySelector("i").style.width = `${100 * busy}%`;
    row.cells[1].lastChild.textContent = share(busy);
    row.cells[2].textContent = rate(records);
    row.cells[3].textContent = short(queued);
    row.cells[4].textContent = silent > 0 ? `no answer for ${silent.toFixed(0)} s` : doesShortly(doing, line);
    row.cells[4].title = line ? `${doing}, at ${line}` : doing;
  });
}

const SHORTLY = { "has nothing to do and waits for messages": "waits", "moves messages and progress": "steps", "is in the program": "program" };
const lastPart = line => line.split("/").pop();
const doesShortly = (doing, line) => {
  const operator = /^operator '(.*)' \(built/.exec(doing);
  return (operator ? operator[1] : SHORTLY[doing] || doing) + (line ? `, ${lastPart(line)}` : "");
};
const COLUMNS = [["operator", null], ["time", TIME], ["in/s", IN], ["out/s", OUT], ["runs/s", RUNS], ["queued", QUEUED], ["rows", ROWS], ["bytes", BYTES]];

function headOperators() {
  const row = $("operators").tHead.rows[0];
  for (const [name, column] of COLUMNS) {
    const cell = document.createElement("th");
    cell.scope = "col";
    if (column === null) cell.textContent = name;
    else {
      cell.className = "n";
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.addEventListener("click", () => { order = column; refresh(); });
      cell.append(button);
    }
    row.append(cell);
  }
}

function showOperators(flow) {
  const value = node => order >= QUEUED ? flow.totals[node][order] : flow.rates[node][order];
  const found = [];
  flow.shape.nodes.forEach((node, number) => { if (flow.totals[number].some(each => each)) found.push(number); });
  found.sort((a, b) => value(b) - value(a) || flow.totals[b][TIME] - flow.totals[a][TIME] || a - b);
  found.length = Math.min(found.length, 60);
  [...$("operators").tHead.rows[0].cells].forEach((cell, place) => {
    if (COLUMNS[place][1] === order) cell.setAttribute("aria-sort", "descending"); else cell.removeAttribute("aria-sort");
  });
  const body = $("operators").tBodies[0];
  while (body.rows.length > found.length) body.deleteRow(-1);
  found.forEach((number, place) => {
    let row = body.rows[place];
    if (!row) {
      row = body.insertRow();
      row.className = "go";
      row.tabIndex = 0;
      for (let each = 0; each < COLUMNS.length; each++) row.insertCell().className = each ? "n" : "text";
      row.addEventListener("click", () => choose(+row.dataset.node));
      row.addEventListener("keydown", event => { if (event.key === "Enter") choose(+row.dataset.node); });
    }
    row.dataset.node = number;
    row.classList.toggle("chosen", number === chosen);
    const node = flow.shape.nodes[number], rates = flow.rates[number], totals = flow.totals[number];
    row.title = node.origin;
    const time = node.kind === "operator" ? share(rates[TIME] / 1e9 / Math.max(1, workers.length)) : "";
    cells(row, node.name, time, rate(rates[IN]), rate(rates[OUT]), rate(rates[RUNS]), short(totals[QUEUED]), short(totals[ROWS]), bytes(totals[BYTES]));
  });
}

let asking = false;

async function showDetail(flow) {
  if (chosen === null) return;
  const node = flow.shape.nodes[chosen], asked = chosen;
  if (asking) return;
  asking = true;
  let rows = [];
  try {
    const answer = await fetch(`/node?dataflow=${shown}&node=${chosen}`);
    if (answer.ok) rows = await answer.json();
  } catch { /* the run has ended: what is shown stays */ } finally { asking = false; }
  if (asked !== chosen) return;
  $("detail-panel").hidden = false;
  $("detail-title").textContent = node.name;
  const most = Math.max(1, ...rows.map(row => row[1 + TIME])), records = Math.max(1, ...rows.map(row => row[1 + IN]));
  const mean = rows.reduce((sum, row) => sum + row[1 + IN], 0) / Math.max(1, rows.length);
  const skew = rows.length > 1 && mean > 0 ? `, the busiest worker has ${(records / mean).toFixed(1)} times the mean` : "";
  const frontier = flow.frontiers.get(chosen);
  const about = document.createElement("div");
  about.innerHTML = '<p class="origin"></p><div class="scroll"><table><thead><tr><th>worker</th><th>time</th><th>records in</th><th class="n">out</th><th class="n">queued</th><th class="n">rows</th><th class="n">bytes</th></tr></thead><tbody></tbody></table></div>';
  const path = [];
  for (let scope = node.scope; scope >= 0; scope = flow.shape.scopes[scope].parent) path.unshift(flow.shape.scopes[scope].name);
  about.querySelector(".origin").textContent = `${path.join("/")}${node.origin ? `, built at ${node.origin}` : ""}${node.kind === "in line" ? ", runs in line" : ""}${frontier ? `, frontier ${frontier}` : ""}${skew}`;
  const body = about.querySelector("tbody");
  for (const [worker, ...row] of rows) {
    const made = body.insertRow();
    cells(made, worker, "", "", short(row[OUT]), short(row[QUEUED]), short(row[ROWS]), bytes(row[BYTES]));
    for (const [place, part, text] of [[1, row[TIME] / most, lasting(row[TIME])], [2, row[IN] / records, short(row[IN])]]) {
      made.cells[place].innerHTML = '<span class="bar-of"><i></i></span><span></span>';
      made.cells[place].querySelector("i").style.width = `${100 * part}%`;
      made.cells[place].lastChild.textContent = text;
    }
    for (let place = 3; place < 7; place++) made.cells[place].className = "n";
  }
  $("detail").replaceChildren(...about.childNodes);
}

// Latency

function showLatency(flow) {
  const panel = $("latency"), width = panel.clientWidth;
  const columns = [0, 1, 2, 3].map(place => flow.epochs.map(each => each[place]));
  const last = [...flow.epochs].reverse().find(each => each[1] !== null);
  $("latency-note").textContent = last ? `median ${lasting(last[1] * 1e6)}, 99 % within ${lasting(last[2] * 1e6)}` : "no epoch has ended yet";
  const dark = document.documentElement.dataset.theme === "dark";
  if (plot && plot.width === width && plot.dark === dark) { plot.setData(columns); return; }
  if (plot) plot.destroy();
  const style = getComputedStyle(document.documentElement), colour = name => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
  const line = { spanGaps: true, points: { show: false } };
  plot = new uPlot({
    width, height: 190, cursor: { show: false }, legend: { live: false },
    scales: { x: { time: false }, y: { range: (_, low, high) => [0, (high || 1) * 1.1] } },
    axes: [{ ...axis, values: (_, ticks) => ticks.map(each => `${each} s`) }, { ...axis, size: 64, values: (_, ticks) => ticks.map(each => lasting(each * 1e6)) }],
    series: [{}, { label: "median", stroke: colour("--accent"), width: 2, ...line },
      { label: "99 %", stroke: colour("--warn"), width: 1.5, ...line },
      { label: "longest", stroke: colour("--soft"), width: 1, dash: [4, 3], ...line }],
  }, columns, panel);
  plot.dark = dark;
}

// Who holds it, and warnings

function showHeld(flow) {
  $("held-panel").hidden = !flow.held.length || flow.over;
  const list = $("held");
  if (list.dataset.text === flow.held.join("\n")) return;
  list.dataset.text = flow.held.join("\n");
  list.replaceChildren(...flow.held.map(line => { const item = document.createElement("li"); item.textContent = line; return item; }));
}

function addNotes(notes) {
  if (!notes.length) return;
  $("notes").querySelector(".none")?.remove();
  for (const [at, process, kind, text] of notes) {
    const item = document.createElement("li"), name = document.createElement("b"), when = document.createElement("time");
    when.textContent = new Date(at * 1000).toLocaleTimeString();
    name.textContent = kind;
    item.append(when, name, text + (workers.some(each => each[1]) ? ` (process ${process})` : ""));
    $("notes").prepend(item);
  }
  while ($("notes").children.length > 200) $("notes").lastChild.remove();
}

// Controls

function find(next) {
  const text = $("find").value.trim().toLowerCase(), flow = flows.get(shown);
  for (const box of $("graph").querySelectorAll(".found")) box.classList.remove("found");
  if (!text || !flow) { nowMatches = []; return; }
  nowMatches = flow.shape.nodes.map((node, number) => [node, number]).filter(([node]) => `${node.name} ${node.origin}`.toLowerCase().includes(text)).map(([, number]) => number);
  $("layout-note").textContent = nowMatches.length ? `${nowMatches.length} found` : "not found";
  for (const node of nowMatches) $("graph").querySelector(`[data-id="${stands[node]}"]`)?.classList.add("found");
  if (next && nowMatches.length) {
    matchAt = (matchAt + 1) % nowMatches.length;
    const node = nowMatches[matchAt];
    for (let scope = flow.shape.nodes[node].scope; scope >= 0; scope = flow.shape.scopes[scope].parent) closed.delete(scope);
    choose(node);
    draw(false, `n${node}`);
  }
}

function theme(to) {
  document.documentElement.dataset.theme = to;
  localStorage.setItem("timely-theme", to);
  refresh();
}
const switchTheme = () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");

$("theme").addEventListener("click", switchTheme);
$("help").addEventListener("click", () => $("keys").showModal());
$("close-detail").addEventListener("click", () => choose(null));
$("dataflow").addEventListener("change", event => { isPicked = true; show(+event.target.value); });
$("find").addEventListener("input", () => { matchAt = -1; find(false); });
$("find").addEventListener("keydown", event => {
  if (event.key === "Enter") find(true);
  else if (event.key === "Escape") { event.target.value = ""; find(false); $("graph").querySelector('[tabindex="0"]')?.focus(); }
});
$("expand").addEventListener("click", () => { closed = new Set(); draw(true); });
$("collapse").addEventListener("click", () => { flows.get(shown)?.shape.scopes.forEach((scope, number) => { if (scope.parent >= 0) closed.add(number); }); draw(true); });
$("larger").addEventListener("click", () => zoom(scale * 1.25));
$("smaller").addEventListener("click", () => zoom(scale / 1.25));
$("fit").addEventListener("click", () => fitScale());
document.addEventListener("keydown", event => {
  if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const does = { "/": () => $("find").focus(), "?": () => $("keys").showModal(), t: switchTheme, "+": () => zoom(scale * 1.25), "-": () => zoom(scale / 1.25), 0: () => fitScale(), g: () => $("graph").querySelector('[tabindex="0"]')?.focus(), Escape: () => choose(null) }[event.key];
  if (does && !$("keys").open) { event.preventDefault(); does(); }
});
document.addEventListener("visibilitychange", refresh);
window.addEventListener("resize", refresh);

// Begin

const preferred = localStorage.getItem("timely-theme");
document.documentElement.dataset.theme = preferred || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
headOperators();

function connect() {
  const source = new EventSource("/stream");
  source.addEventListener("open", () => {
    flows.clear();
    $("dataflow").replaceChildren();
    $("notes").replaceChildren(Object.assign(document.createElement("li"), { className: "none", textContent: "none" }));
    shown = null;
    opened = performance.now();
    $("connection").textContent = "live";
    $("connection").className = "live";
  });
  source.addEventListener("shape", event => shape(JSON.parse(event.data)));
  source.addEventListener("tick", event => tick(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    $("connection").textContent = "no connection: the run has ended, or restarts";
    $("connection").className = "lost";
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  });
}
connect();
