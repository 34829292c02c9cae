"use strict";
// Draws what is in workloads: for each, a timeline of every model, and plots over
// callers and over the share of reads. Figures are drawn when they come into view,
// and again when their width changes.

const families = {
  "thread-per-request": "Whoever waits blocks a thread.",
  "thread-per-object": "A thread for each object: one request after the other.",
  "Synchronizer": "All that are compatible at once; waiting takes no thread, unless that is the caller’s own.",
};
const hues = {"thread-per-request": 20, "thread-per-object": 140, "Synchronizer": 265};
const symbols = ["circle", "square", "triangle", "diamond", "cross", "star", "wye"];
const text = {fontSize: "12px", fontFamily: "inherit", color: "var(--ink)"};

const metrics = [
  {name: "throughput", unit: "operations per second", of: r => r.ops_per_second, band: r => [r.ops_per_second_low, r.ops_per_second_high]},
  {name: "latency, half of the calls below", unit: "µs", of: r => r.p50_ns / 1e3},
  {name: "latency, 99 of 100 calls below", unit: "µs", of: r => r.p99_ns / 1e3},
  {name: "latency, 999 of 1000 calls below", unit: "µs", of: r => r.p999_ns / 1e3},
  {name: "CPU time", unit: "µs per operation", of: r => r.cpu_ns_per_op / 1e3},
  {name: "threads used", unit: "threads, at most at once", of: r => r.threads.used, linear: true},
  {name: "threads blocked", unit: "threads, at most at once", of: r => r.threads.blocked, linear: true},
  {name: "concurrency reached", unit: "bodies at once, on average", of: r => r.threads.mean_running, linear: true},
  {name: "fairness over callers", unit: "Jain's index", of: r => r.fairness, linear: true, top: 1},
];

// The look of a model: the hue is its family's, shade and symbol are its own.
function looks(runs) {
  const count = {}, all = new Map();
  for (const r of runs) {
    const k = count[r.family] = (count[r.family] ?? -1) + 1;
    const color = `oklch(calc(var(--light) + ${k} * var(--step)) 0.17 ${hues[r.family] + 14 * k})`;
    all.set(r.model, {color, symbol: symbols[k % symbols.length]});
  }
  return all;
}

function element(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

// swatch returns a small drawing for a legend.
function swatch(inner, width = 18) {
  const s = element("span", {});
  s.innerHTML = `<svg width="${width}" height="12" viewBox="0 0 ${width} 12" aria-hidden="true">${inner}</svg>`;
  return s.firstChild;
}

function time(ns) {
  if (ns >= 1e9) return `${+(ns / 1e9).toPrecision(3)} s`;
  if (ns >= 1e6) return `${+(ns / 1e6).toPrecision(3)} ms`;
  if (ns >= 1e3) return `${+(ns / 1e3).toPrecision(3)} µs`;
  return `${Math.round(ns)} ns`;
}

// drawn keeps a figure drawn: when it is in view, and again when it is resized.
const seen = new IntersectionObserver(entries => {
  for (const e of entries) if (e.isIntersecting) redraw(e.target);
}, {rootMargin: "400px"});
const sized = new ResizeObserver(entries => {
  for (const e of entries) if (e.target.drawnWidth && e.target.drawnWidth !== e.target.clientWidth) redraw(e.target);
});
function redraw(target, again) {
  const width = target.clientWidth;
  if (!width || (!again && target.drawnWidth === width)) return;
  target.drawnWidth = width;
  target.replaceChildren(...target.draw(width));
}
function drawn(target, draw) {
  target.draw = draw;
  seen.observe(target);
  sized.observe(target);
}
addEventListener("beforeprint", () => document.querySelectorAll("[data-drawn]").forEach(e => redraw(e)));

// states returns the stretches of a timeline's bars: each waits, is blocked (waits
// and holds a thread), or runs.
function states(line, operations) {
  const all = [];
  for (const [caller, op, lane, arrived, held, started, ended] of line.bars) {
    const until = t => t < 0 ? line.ns : t;
    const stretch = (state, from, to, thread) => {
      if (to <= from && state !== "runs") return;
      const what = state === "runs" ? operations[op] : state;
      const title = `caller ${caller + 1}: ${operations[op]}\n${state === "blocked" ? "waits, and blocks thread " + (lane + 1) : state === "waits" ? "waits without a thread" : "runs on thread " + (lane + 1)}, ${time(to - from)}`;
      all.push({from, to, what, title, runs: state === "runs", caller: `c${caller + 1}`, thread: thread ? `t${lane + 1}` : null});
    };
    const hold = Math.min(until(held), until(started));
    stretch("waits", arrived, hold, false);
    stretch("blocked", hold, until(started), true);
    if (started >= 0) stretch("runs", started, until(ended), true);
  }
  return all;
}

const mostRows = 16;

// rows returns the names of the rows that can be shown, and how many cannot.
function rows(letter, count) {
  const shown = Math.max(1, Math.min(count, mostRows));
  return [d3.range(1, shown + 1).map(i => letter + i), Math.max(0, count - mostRows)];
}

// lanes draws one panel of a timeline.
function lanes(bars, row, domain, line, colors, width, label, axis) {
  const inside = bars.filter(b => domain.includes(b[row]));
  const unit = line.ns >= 2e6 ? ["ms", 1e6] : ["µs", 1e3];
  const place = {x1: d => d.from / unit[1], x2: d => d.to / unit[1], y: row};
  return Plot.plot({
    width, height: 14 * domain.length + (axis ? 60 : 28), style: text,
    marginLeft: 30, marginRight: 6, marginTop: 22, marginBottom: axis ? 38 : 4,
    x: {domain: [0, line.ns / unit[1]], label: axis ? `${unit[0]} →` : null, axis: axis ? "bottom" : null, ticks: Math.max(3, Math.round(width / 90)), grid: true},
    y: {domain, label: null, tickSize: 0, padding: 0.18},
    color: colors,
    ariaLabel: label,
    marks: [
      Plot.barX(domain, {x1: 0, x2: line.ns / unit[1], y: d => d, fill: "var(--idle)", fillOpacity: row === "thread" ? 1 : 0.45}),
      Plot.barX(inside.filter(b => !b.runs), {...place, fill: "what"}),
      // Bodies that are too short to be seen are drawn a little longer.
      Plot.barX(inside.filter(b => b.runs), {...place, fill: "what", stroke: "what", strokeWidth: 0.7}),
      Plot.tip(inside, Plot.pointer({x: d => (d.from + d.to) / 2 / unit[1], y: row, fill: "var(--ground)", stroke: "var(--line)", title: "title"})),
      Plot.text([label], {frameAnchor: "top-left", dx: -30, dy: -18, text: d => d, fill: "var(--soft)", fontSize: 12}),
    ],
  });
}

function drawTimeline(w, line) {
  const bars = states(line, w.operations);
  const colors = {domain: ["waits", "blocked", ...w.operations], range: ["var(--waits)", "url(#blocked)", ...w.operations.map((_, i) => `var(--op${i % 3})`)]};
  const used = Math.max(line.fixed, 0, ...line.bars.map(b => b[2] + 1));
  const [threads, moreThreads] = rows("t", used);
  const [callers, moreCallers] = rows("c", w.callers);
  return width => [
    lanes(bars, "thread", threads, line, colors, width, `threads${moreThreads ? `: ${mostRows} of ${used}` : ""}`, false),
    lanes(bars, "caller", callers, line, colors, width, `callers${moreCallers ? `: ${mostRows} of ${w.callers}` : ""}`, true),
  ];
}

function timelines(section, w) {
  const legend = section.querySelector("[data-legend]");
  const box = fill => swatch(`<rect y="1" width="18" height="10" rx="2" fill="${fill}"/>`);
  w.operations.forEach((op, i) => legend.append(element("span", {}, box(`var(--op${i % 3})`), `runs: ${op}`)));
  legend.append(element("span", {}, box("var(--waits)"), "waits, without a thread"));
  legend.append(element("span", {}, box("url(#blocked)"), "waits, and blocks a thread"));
  legend.append(element("span", {}, box("var(--idle)"), "idle"));
  const place = section.querySelector("[data-timelines]");
  if (!w.timelines.length) return;
  section.querySelector("[data-scale]").textContent =
    `The same ${time(w.timelines[0].ns)} of each model: above its threads (t1, t2, …), below the callers (c1, c2, …) whose requests they run.`;
  for (const [family, about] of Object.entries(families)) {
    const lines = w.timelines.filter(l => l.family === family);
    if (!lines.length) continue;
    const column = element("div", {class: "column"}, element("div", {}, element("h4", {}, family), element("p", {class: "details"}, about)));
    place.append(column);
    for (const line of lines) {
      const run = w.runs.find(r => r.model === line.model);
      const target = element("div", {"data-drawn": "timeline"});
      const facts = run.cannot ? `cannot: ${run.cannot}` : `threads ${run.threads.used}${line.own ? " (the callers’)" : ""}, of them blocked ${run.threads.blocked}; bodies at once ${run.threads.running}`;
      column.append(element("figure", {class: "card", "data-model": line.model},
        element("figcaption", {}, line.model, element("span", {}, facts)), target));
      if (line.bars.length) drawn(target, drawTimeline(w, line));
      else target.remove();
    }
  }
}

// lines returns what draws a metric over x.
function lines(points, metric, look, hidden, xOptions) {
  return width => {
    const models = [...look.keys()].filter(m => !hidden.has(m));
    const shown = points.filter(p => !hidden.has(p.model) && p.ops > 0 && (metric.linear || metric.of(p) > 0));
    const [low, high] = d3.extent(shown, metric.of);
    const log = !metric.linear && high > 20 * low;
    return [Plot.plot({
      width, height: Math.max(280, Math.min(380, width * 0.62)), style: text,
      marginLeft: 58, marginRight: 16, marginTop: 28, marginBottom: 42,
      x: xOptions,
      y: {label: `↑ ${metric.unit}`, grid: true, type: log ? "log" : "linear", ...(log ? {ticks: 5, tickFormat: ".2~s"} : {domain: [0, metric.top ?? (high * 1.05 || 1)], tickFormat: ".3~s"})},
      color: {domain: models, range: models.map(m => look.get(m).color)},
      symbol: {domain: models, range: models.map(m => look.get(m).symbol)},
      marks: [
        Plot.ruleY(log ? [] : [0], {stroke: "var(--line)"}),
        // How far the windows differ in which a point was measured.
        ...(metric.band ? [Plot.areaY(shown.filter(p => !log || metric.band(p)[0] > 0), {x: "x", y1: p => metric.band(p)[0], y2: p => metric.band(p)[1], fill: "model", z: "model", fillOpacity: 0.15})] : []),
        Plot.lineY(shown, {x: "x", y: metric.of, stroke: "model", z: "model", strokeWidth: 1.8}),
        Plot.dot(shown, {x: "x", y: metric.of, stroke: "model", symbol: "model", fill: "var(--card)", r: 3.6, strokeWidth: 1.8}),
        Plot.tip(shown, Plot.pointer({x: "x", y: metric.of, fill: "var(--ground)", stroke: "var(--line)", title: p => `${p.model}\n${d3.format(".3~s")(metric.of(p))} ${metric.unit}${metric.band ? `\n${metric.band(p).map(d3.format(".3~s")).join(" to ")} in its windows${p.steady ? "" : ", not steady"}` : ""}`})),
      ],
    })];
  };
}

function plots(section, w) {
  const select = section.querySelector("[data-metric]");
  if (!select) return;
  metrics.forEach((m, i) => select.append(element("option", {value: i}, m.name)));
  const look = looks(w.runs), hidden = new Set();
  const marks = {circle: '<circle cx="11" cy="6" r="4"/>', square: '<rect x="7.5" y="2.5" width="7" height="7"/>', triangle: '<path d="M11 1.5 15.5 9.5h-9z"/>', diamond: '<path d="M11 1 15 6 11 11 7 6z"/>', cross: '<path d="M11 2v8M7 6h8"/>', star: '<path d="M11 1.5l1.3 3 3.2.3-2.4 2.1.7 3.1-2.8-1.7-2.8 1.7.7-3.1-2.4-2.1 3.2-.3z"/>', wye: '<path d="M11 6V11M11 6 7 2.5M11 6l4-3.5"/>'};
  const targets = [];
  const again = () => targets.forEach(t => t());
  for (const [model, {color, symbol}] of look) {
    const input = element("input", {type: "checkbox", checked: ""});
    input.addEventListener("change", () => { input.checked ? hidden.delete(model) : hidden.add(model); again(); });
    section.querySelector("[data-models]").append(element("label", {}, input,
      swatch(`<g fill="var(--ground)" stroke="${color}" stroke-width="1.8"><path d="M0 6h22"/>${marks[symbol]}</g>`, 22), model));
  }
  const ticks = [...new Set(w.by_callers.map(p => p.x))];
  const axes = {
    callers: [w.by_callers, "callers", {type: "log", base: 2, ticks, tickFormat: "d", label: "callers →"}],
    reads: [w.by_read_share ?? [], "share of reads", {domain: [0, 1], ticks: 5, tickFormat: ".0%", label: "share of reads →"}],
  };
  for (const [name, [points, over, x]] of Object.entries(axes)) {
    const target = section.querySelector(`[data-plot="${name}"]`);
    if (!target) continue;
    target.dataset.drawn = "plot";
    const update = () => {
      const metric = metrics[select.value];
      section.querySelector(`[data-title="${name}"]`).textContent = `${metric.name[0].toUpperCase()}${metric.name.slice(1)} over ${over}`;
      target.draw = lines(points, metric, look, hidden, x);
      if (target.drawnWidth) redraw(target, true);
    };
    select.addEventListener("change", update);
    targets.push(update);
    update();
    drawn(target, target.draw);
  }
}

for (const w of workloads) {
  const section = document.querySelector(`[data-workload="${CSS.escape(w.workload)}"]`);
  timelines(section, w);
  plots(section, w);
}
