"use strict";
// Draws what is in page: the heat map's other figures, timelines, and curves. Figures are drawn when
// they come into view, and again when their width or window changes.

const SVG = "http://www.w3.org/2000/svg";
const [OBJECT, OP, NUMBER, LANE, ARRIVED, HELD, STARTED, ENDED, LEFT, BY, WAITS] = Array(11).keys();
const laneHeight = 16, laneGap = 3, mostLanes = 16, marginLeft = 30, marginRight = 6, axisHeight = 20, stripHeight = 62, overviewHeight = 24;

function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}
function shape(parent, name, attributes = {}, text) {
  const e = document.createElementNS(SVG, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  parent.append(e);
  return e;
}
const units = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
const unitOf = ns => units.find(([, n]) => Math.abs(ns) >= n) ?? units[3];
function time(ns) {
  const [unit, n] = unitOf(ns);
  return `${+(ns / n).toPrecision(3)} ${unit}`;
}
const color = op => `var(--op${op % 6})`;
const said = document.querySelector("[data-said]"), tip = document.querySelector("[data-tip]");

// Figures are drawn when in view, and again when resized.
const seen = new IntersectionObserver(entries => {
  for (const e of entries) if (e.isIntersecting) redraw(e.target);
}, {rootMargin: "500px"});
const sized = new ResizeObserver(entries => {
  for (const e of entries) if (e.target.drawnWidth && e.target.drawnWidth !== e.target.clientWidth) redraw(e.target);
});
function redraw(target, again) {
  const width = target.clientWidth;
  if (!width || (!again && target.drawnWidth === width)) return;
  target.drawnWidth = width;
  target.draw(width);
}
function drawn(target, draw) {
  target.draw = draw;
  target.dataset.drawn = "";
  seen.observe(target);
  sized.observe(target);
}
addEventListener("beforeprint", () => document.querySelectorAll("[data-drawn]").forEach(e => redraw(e, true)));

// The heat map.
const heat = document.querySelector("[data-heat]");
if (heat) {
  const choice = document.querySelector("[data-figure]");
  choice.addEventListener("change", () => {
    const figure = page.result.figures[choice.value];
    document.querySelector("[data-figure-about]").textContent = `${figure.about} ${figure.scale}`;
    [...heat.tBodies].forEach((body, row) => body.rows[0].querySelectorAll("td").forEach((cell, column) => {
      const {text, more, good} = figure.cells[row][column];
      cell.style.setProperty("--good", good);
      cell.replaceChildren(element("b", {}, text), " ", element("span", {}, more));
    }));
  });
}

// The legend.
function swatch(draw, text) {
  const span = element("span"), svg = shape(span, "svg", {width: 26, height: 14, viewBox: "0 0 26 14", "aria-hidden": "true"});
  draw(svg);
  span.append(text);
  return span;
}
const used = new Set(page.sections.flatMap(s => (s.panels ?? []).flatMap(p => p.requests.flatMap(r => p.reasons ? r[WAITS].map(w => w[1]) : [0]))));
const legend = document.querySelector("[data-legend]");
page.causes.forEach((name, i) => {
  if (used.has(i)) legend.append(swatch(svg => shape(svg, "rect", {y: 4.5, width: 26, height: 5, rx: 1, fill: `var(--cause${i})`}), i ? `waits: ${name}` : "waits (the reason is not known)"));
});
// request says which request it is, in words.
function request(panel, i) {
  const r = panel.requests[i];
  return `${panel.objects.length > 1 ? panel.objects[r[OBJECT]] + ": " : ""}${panel.operations[r[OP]]}${r[NUMBER] ? ` #${r[NUMBER]}` : ""}`;
}
// waitEnds returns when a request has stopped to wait.
const waitEnds = (panel, r) => r[STARTED] >= 0 ? r[STARTED] : r[ENDED] >= 0 ? r[ENDED] : panel.length;
const ends = (panel, r) => r[ENDED] >= 0 ? r[ENDED] : panel.length;
// stretches returns how a request waited: from, to, cause, text, and for which others.
function stretches(panel, r) {
  const until = waitEnds(panel, r);
  if (!r[WAITS].length) return until - r[ARRIVED] >= (panel.reasons ? 1000 : 1) ? [{from: r[ARRIVED], to: until, cause: 0, text: "the reason is not known", others: []}] : [];
  return r[WAITS].map(([from, cause, text, ...others], k) => ({from, to: k + 1 < r[WAITS].length ? r[WAITS][k + 1][0] : until, cause, text: panel.texts[text], others}));
}
// story says what happened to a request, in lines.
function story(panel, i) {
  const r = panel.requests[i], lines = [];
  const all = stretches(panel, r);
  all.forEach((s, k) => lines.push({color: `var(--cause${s.cause})`, text: `waited ${time(s.to - s.from)}: ${s.text}`}));
  if (all.length && r[HELD] >= 0 && r[HELD] < waitEnds(panel, r)) lines.push({color: "var(--blocked)", text: `blocked a thread for ${time(waitEnds(panel, r) - r[HELD])} of that`});
  if (r[BY] >= 0) lines.push({text: `started when ${request(panel, r[BY])} had ended`});
  if (r[LEFT]) lines.push({text: "left without having run"});
  else if (r[STARTED] < 0) lines.push({text: "still waits at the end of the picture"});
  else lines.push({color: color(r[OP]), text: r[ENDED] < 0 ? "still runs at the end of the picture" : `ran for ${time(r[ENDED] - r[STARTED])}`});
  return lines.length > 9 ? [...lines.slice(0, 4), {text: `… ${lines.length - 8} more reasons …`}, ...lines.slice(-4)] : lines;
}

const blocks = p => p.requests.some(r => r[HELD] >= 0 && r[HELD] < waitEnds(p, r));
if (page.sections.some(s => s.panels?.some(blocks))) legend.append(swatch(svg => {
  shape(svg, "rect", {y: 2, width: 26, height: 10, rx: 1, fill: "var(--cause2)"});
  shape(svg, "rect", {y: 2, width: 26, height: 10, fill: "url(#hatch)"});
}, "waits, and blocks a thread"));

// load returns how many requests wait, and how many of them block a thread, as steps [at, waiting, blocked].
function load(panel) {
  const changes = [];
  for (const r of panel.requests) {
    const until = waitEnds(panel, r);
    if (until <= r[ARRIVED]) continue;
    changes.push([r[ARRIVED], 1, 0], [until, -1, 0]);
    if (r[HELD] >= 0 && r[HELD] < until) changes.push([r[HELD], 0, 1], [until, 0, -1]);
  }
  changes.sort((a, b) => a[0] - b[0]);
  const steps = [[0, 0, 0]];
  for (const [at, w, b] of changes) {
    const last = steps[steps.length - 1];
    if (last[0] === at) { last[1] += w; last[2] += b; } else steps.push([at, last[1] + w, last[2] + b]);
  }
  return steps;
}

// ticks returns round times in a window, and how to write them.
function ticks(from, length, width) {
  const rough = length / Math.max(2, Math.floor(width / 80)), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(n => n * power).find(s => s >= rough);
  const [unit, n] = unitOf(from + length);
  const all = [];
  for (let at = Math.ceil(from / step) * step; at <= from + length; at += step) all.push([at, `${+((at) / n).toFixed(6)} ${unit}`]);
  return all;
}

class Timeline {
  constructor(part, panel, figure) {
    Object.assign(this, {part, panel, figure, target: figure.querySelector("[data-lanes]"), marked: -1, pinned: false});
    this.load = load(panel);
    const t = this.target;
    t.addEventListener("pointermove", e => { if (e.pointerType !== "touch") this.point(e); });
    t.addEventListener("pointerdown", e => this.point(e));
    t.addEventListener("pointerleave", () => { if (document.activeElement !== t) this.mark(-1); else tip.hidden = true; });
    t.addEventListener("blur", () => this.mark(-1));
    t.addEventListener("keydown", e => this.key(e));
    const details = figure.querySelector("[data-requests]");
    details.addEventListener("toggle", () => this.table(details));
    drawn(t, width => this.draw(width));
  }

  visible() {
    const {from, window} = this.part;
    return this.panel.requests.map((r, i) => i).filter(i => {
      const r = this.panel.requests[i];
      return r[ARRIVED] < from + window && ends(this.panel, r) > from;
    });
  }

  draw(width) {
    const {panel, part} = this, {from, window, lanes} = part;
    const inner = width - marginLeft - marginRight;
    const x = this.x = at => marginLeft + Math.max(-0.02, Math.min(1.02, (at - from) / window)) * inner;
    const magnified = window < part.length;
    const top = this.top = magnified ? overviewHeight + 16 : 4;
    const bottom = top + lanes * (laneHeight + laneGap);
    const stripTop = bottom + 22, height = stripTop + stripHeight + axisHeight;
    const svg = document.createElementNS(SVG, "svg");
    this.svg = svg;
    for (const [k, v] of Object.entries({width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true"})) svg.setAttribute(k, v);
    const clip = shape(shape(svg, "clipPath", {id: `clip${part.index}-${panel.name.replace(/\W/g, "_")}`}), "rect", {x: marginLeft, y: 0, width: inner, height}).parentNode.id;
    if (magnified) this.overview(svg, inner);
    for (const [at, label] of ticks(from, window, inner)) {
      shape(svg, "line", {x1: x(at), x2: x(at), y1: top, y2: stripTop + stripHeight, stroke: "var(--line)"});
      const end = x(at) > width - 30;
      shape(svg, "text", {x: end ? width : x(at), y: height - 5, fill: "var(--soft)", "text-anchor": end ? "end" : x(at) < marginLeft + 12 ? "start" : "middle"}, label);
    }
    const bars = shape(svg, "g", {"clip-path": `url(#${clip})`});
    let hidden = 0;
    for (const i of this.visible()) panel.requests[i][LANE] < lanes ? this.bar(bars, i) : hidden++;
    if (!bars.childElementCount && !hidden) {
      const first = panel.requests[0]?.[ARRIVED] ?? 0, last = Math.max(...panel.requests.map(r => ends(panel, r)));
      shape(svg, "text", {x: marginLeft + inner / 2, y: top + 22, "text-anchor": "middle", fill: "var(--soft)"}, last < from ? `nothing any more: it ended at ${time(last)}` : `nothing yet: it begins at ${time(first)}`);
    }
    this.strip(svg, clip, stripTop, width);
    this.arrows = shape(svg, "g", {});
    if (part.allArrows) for (const i of this.visible()) if (panel.requests[i][LANE] < lanes) this.follow(this.arrows, i, true);
    this.marks = shape(svg, "g", {});
    this.target.replaceChildren(svg);
    if (hidden) this.target.append(element("p", {class: "details"}, `${hidden} more requests in flight than there are lines: the curve below counts them.`));
    if (this.marked >= 0) this.mark(this.marked, this.keyboard);
    const details = this.figure.querySelector("[data-requests]");
    if (details.open) this.table(details);
  }

  // overview draws how many requests wait in all of the recording, and where the window is.
  overview(svg, inner) {
    const {part} = this, x = at => marginLeft + at / part.length * inner, most = Math.max(1, part.most);
    shape(svg, "rect", {x: marginLeft, y: 0, width: inner, height: overviewHeight, fill: "var(--cold)", rx: 3});
    const columns = Math.floor(inner), peak = new Array(columns).fill(0);
    this.load.forEach(([at, n], k) => {
      const to = k + 1 < this.load.length ? this.load[k + 1][0] : at;
      for (let c = Math.floor(at / part.length * columns); c <= Math.min(columns - 1, to / part.length * columns); c++) peak[c] = Math.max(peak[c], n);
    });
    let d = `M${marginLeft} ${overviewHeight}`;
    peak.forEach((n, c) => { const y = (overviewHeight - n / most * (overviewHeight - 2)).toFixed(1); d += `L${marginLeft + c} ${y}H${marginLeft + c + 1}`; });
    shape(svg, "path", {d: d + `V${overviewHeight}Z`, fill: "var(--waiting)", opacity: 0.6});
    const x1 = x(part.from), x2 = Math.max(x1 + 3, x(part.from + part.window));
    shape(svg, "rect", {x: x1, y: 0, width: x2 - x1, height: overviewHeight, fill: "none", stroke: "var(--ink)", "stroke-width": 1.5});
    shape(svg, "path", {d: `M${x1} ${overviewHeight}L${marginLeft} ${overviewHeight + 14}H${marginLeft + inner}L${x2} ${overviewHeight}Z`, fill: "var(--line)", opacity: 0.5});
    const area = shape(svg, "rect", {x: marginLeft, y: 0, width: inner, height: overviewHeight, fill: "transparent", style: "cursor: ew-resize"});
    const move = e => part.show((e.clientX - svg.getBoundingClientRect().left - marginLeft) / inner * part.length - part.window / 2);
    area.addEventListener("pointerdown", e => { e.stopPropagation(); move(e); });
  }

  bar(parent, i) {
    const {panel, x, top} = this, r = panel.requests[i], y = top + r[LANE] * (laneHeight + laneGap);
    const g = shape(parent, "g", {"data-i": i});
    for (const s of stretches(panel, r)) {
      for (const [from, to, held] of r[HELD] < 0 || r[HELD] >= s.to ? [[s.from, s.to]] : [[s.from, Math.max(s.from, r[HELD])], [Math.max(s.from, r[HELD]), s.to, true]]) {
        const x1 = x(from), w = x(to) - x1;
        if (w <= 0) continue;
        const box = {x: x1, y: held ? y + 3 : y + 5.5, width: Math.max(0.5, w), height: held ? 10 : 5};
        shape(g, "rect", {...box, fill: `var(--cause${s.cause})`, class: "wait"});
        if (held) shape(g, "rect", {...box, fill: "url(#hatch)", class: "wait"});
      }
    }
    if (r[STARTED] >= 0) {
      const x1 = x(r[STARTED]), w = Math.max(1, x(ends(panel, r)) - x1), name = panel.operations[r[OP]];
      shape(g, "rect", {x: x1, y, width: w, height: laneHeight, rx: Math.min(2, w / 2), fill: color(r[OP]), class: "run"});
      if (w > name.length * 6.6 + 6) shape(g, "text", {x: x1 + w / 2, y: y + 12, fill: "#fff", "text-anchor": "middle", "pointer-events": "none"}, name);
    }
    shape(g, "rect", {x: x(r[ARRIVED]), y, width: Math.max(2, x(ends(panel, r)) - x(r[ARRIVED])), height: laneHeight, fill: "transparent", class: "hit"});
  }

  // strip draws how many requests wait, and how many threads are blocked.
  strip(svg, clip, top, width) {
    const {part, x} = this, {from, window} = part, most = Math.max(1, part.most);
    const y = n => top + stripHeight - n / most * stripHeight;
    const path = k => {
      let d = "", level = 0;
      for (const s of this.load) {
        if (s[0] > from + window) break;
        const px = x(s[0]).toFixed(1);
        d += d ? `H${px}V${y(s[k]).toFixed(1)}` : `M${px} ${y(s[k])}`;
        level = s[k];
      }
      return d + `H${x(Math.min(part.length, from + window * 1.01)).toFixed(1)}`;
    };
    const g = shape(svg, "g", {"clip-path": `url(#${clip})`});
    shape(g, "path", {d: `M${x(from)} ${y(0)}${path(1).replace("M", "L")}V${y(0)}Z`, fill: "var(--waiting)", opacity: 0.45});
    shape(g, "path", {d: path(2), fill: "none", stroke: "var(--blocked)", "stroke-width": 1.8});
    shape(svg, "line", {x1: marginLeft, x2: width - marginRight, y1: y(0), y2: y(0), stroke: "var(--soft)"});
    for (const n of most > 1 ? [0, most] : [0, 1]) shape(svg, "text", {x: marginLeft - 5, y: y(n) + 4, "text-anchor": "end", fill: "var(--soft)"}, n);
    shape(svg, "rect", {x: marginLeft, y: top - 15, width: 12, height: 9, fill: "var(--waiting)", opacity: 0.6});
    shape(svg, "text", {x: marginLeft + 16, y: top - 6, fill: "var(--soft)"}, "waiting");
    shape(svg, "rect", {x: marginLeft + 68, y: top - 11, width: 12, height: 2, fill: "var(--blocked)"});
    shape(svg, "text", {x: marginLeft + 84, y: top - 6, fill: "var(--soft)"}, "blocked threads");
  }

  // spot returns where a request's bar is at a time.
  spot(i, at) {
    const r = this.panel.requests[i], half = laneHeight / 2;
    const t = Math.max(r[ARRIVED], Math.min(at, ends(this.panel, r)));
    return [this.x(t), this.top + Math.min(r[LANE], this.part.lanes - 0.6) * (laneHeight + laneGap) + half];
  }

  // follow draws arrows from a request's waits to what it waited for; or, if they are many, only to
  // what let it start.
  follow(parent, i, faint) {
    const {panel, part} = this, r = panel.requests[i], inWindow = at => at >= part.from && at <= part.from + part.window;
    const arrow = (from, to, extra = "") => {
      const [x1, y1] = from, [x2, y2] = to, dx = x2 - x1, dy = y2 - y1;
      if (Math.hypot(dx, dy) < 6) return;
      const down = dy > 0 ? 1 : -1, off = dy ? down * (laneHeight / 2) : 0;
      shape(parent, "path", {class: `arrow ${faint ? "faint" : ""} ${extra}`, d: `M${x1} ${y1}C${x1 + 14} ${y1 + dy * 0.4} ${x2 + 14} ${y2 - dy * 0.4} ${x2} ${y2 - off}`});
    };
    if (!faint) for (const s of stretches(panel, r)) {
      const at = Math.max(s.from, part.from);
      if (s.to <= part.from || !inWindow(at)) continue;
      const middle = (at + Math.min(s.to, part.from + part.window)) / 2;
      for (const other of s.others.slice(0, 8)) arrow(this.spot(i, middle), this.spot(other, middle));
    }
    if (r[BY] >= 0 && inWindow(r[STARTED]) && inWindow(ends(panel, panel.requests[r[BY]]))) {
      arrow(this.spot(i, r[STARTED]), this.spot(r[BY], ends(panel, panel.requests[r[BY]])), "follows");
    }
  }

  // mark shows what happened to a request; none if that is -1.
  mark(i, keyboard) {
    this.marked = i;
    this.keyboard = keyboard;
    this.marks?.replaceChildren();
    if (i < 0 || !this.svg) { tip.hidden = true; return; }
    const {panel} = this, r = panel.requests[i], lines = story(panel, i);
    const [x1, y] = this.spot(i, r[ARRIVED]), [x2] = this.spot(i, ends(panel, r));
    shape(this.marks, "rect", {x: x1 - 1, y: y - laneHeight / 2 - 1.5, width: Math.max(4, x2 - x1 + 2), height: laneHeight + 3, rx: 3, fill: "none", class: "marked"});
    this.follow(this.marks, i);
    tip.replaceChildren(element("b", {}, request(panel, i)), ...lines.map(l => {
      const line = element("div", {}, ...(l.color ? [element("i", {style: `background: ${l.color}`})] : []), l.text);
      return line;
    }));
    tip.hidden = false;
    if (keyboard) {
      const box = this.svg.getBoundingClientRect();
      this.place(box.left + Math.min(Math.max(x1, 0), box.width - 40), box.top + y + 16);
      said.textContent = `${request(panel, i)}: ${lines.map(l => l.text).join("; ")}.`;
    }
  }

  // place puts the tip near a point, on the screen.
  place(left, top) {
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(left + 12, innerWidth - box.width - 8))}px`;
    tip.style.top = `${top + 14 + box.height < innerHeight ? top + 14 : Math.max(4, top - box.height - 40)}px`;
  }

  point(e) {
    const g = e.target.closest?.("[data-i]");
    if (!g) { this.mark(-1); return; }
    if (+g.dataset.i !== this.marked) this.mark(+g.dataset.i);
    this.place(e.clientX, e.clientY);
  }

  key(e) {
    const {part} = this, all = this.visible().filter(i => this.panel.requests[i][LANE] < part.lanes), at = all.indexOf(this.marked);
    const to = {ArrowRight: at + 1, ArrowLeft: at < 0 ? all.length - 1 : at - 1, Home: 0, End: all.length - 1}[e.key];
    if (to !== undefined) {
      if (to >= 0 && to < all.length) this.mark(all[to], true);
      else part.show(part.from + (to < 0 ? -0.5 : 0.5) * part.window);
    } else if (e.key === "Enter" && this.marked >= 0) {
      const r = this.panel.requests[this.marked], last = r[WAITS].at(-1), other = last?.[3] ?? (r[BY] >= 0 ? r[BY] : undefined);
      if (other === undefined) return;
      const o = this.panel.requests[other];
      if (ends(this.panel, o) < part.from || o[ARRIVED] > part.from + part.window) part.show(o[ARRIVED]);
      this.mark(other, true);
    } else if (e.key === "+" || e.key === "=") part.zoom(0.5);
    else if (e.key === "-") part.zoom(2);
    else if (e.key === "Escape") this.mark(-1);
    else return;
    e.preventDefault();
  }

  // table shows the requests of the window as a table.
  table(details) {
    details.querySelector(".scroll")?.remove();
    if (!details.open) return;
    const {panel} = this, body = element("tbody");
    for (const i of this.visible().slice(0, 200)) {
      const r = panel.requests[i];
      body.append(element("tr", {}, element("th", {scope: "row"}, request(panel, i)), element("td", {}, time(r[ARRIVED])), element("td", {}, time(waitEnds(panel, r) - r[ARRIVED])),
        element("td", {class: "text"}, stretches(panel, r).map(s => s.text).join("; ") || "–"), element("td", {}, r[STARTED] >= 0 ? time(ends(panel, r) - r[STARTED]) : "–")));
    }
    const head = element("thead", {}, element("tr", {}, ...["request", "arrived", "waited", "why", "ran"].map(t => element("th", {scope: "col", ...(t === "why" ? {class: "text"} : {})}, t))));
    details.append(element("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Requests"}, element("table", {class: "figures"}, head, body)));
  }
}

// Part is a section: its timelines share the window.
class Part {
  constructor(section, data, index) {
    Object.assign(this, {section, data, index, allArrows: false});
    const panels = data.panels.filter(p => p.requests.length);
    if (!panels.length) { section.querySelector("[data-window]")?.remove(); return; }
    this.length = Math.max(...panels.map(p => p.length));
    this.window = Math.min(this.length, Math.max(...panels.map(p => p.window)));
    this.from = Math.max(0, Math.min(this.length - this.window, Math.min(...panels.map(p => p.from))));
    this.lanes = Math.min(mostLanes, Math.max(...panels.map(p => 1 + Math.max(...p.requests.map(r => r[LANE])))));
    this.timelines = data.panels.map((p, j) => [p, section.querySelector(`[data-panel="${j}"]`)]).filter(([p]) => p.requests.length).map(([p, figure]) => {
      const t = new Timeline(this, p, figure);
      return t;
    });
    this.most = Math.max(...this.timelines.map(t => Math.max(...t.load.map(s => s[1]))));
    if (!data.columns) for (const t of this.timelines) t.part = Object.assign(Object.create(this), {root: this, lanes: Math.min(mostLanes, 1 + Math.max(...t.panel.requests.map(r => r[LANE]))), most: Math.max(1, ...t.load.map(s => s[1]))});
    const controls = section.querySelector("[data-window]");
    this.slider = controls.querySelector("[data-from]");
    this.span = controls.querySelector("[data-span]");
    controls.querySelectorAll("[data-zoom]").forEach(b => b.addEventListener("click", () => this.zoom(+b.dataset.zoom)));
    this.slider.addEventListener("input", () => this.show(this.slider.value / 1000 * (this.length - this.window)));
    controls.querySelector("[data-arrows]").addEventListener("change", e => { this.allArrows = e.target.checked; this.again(); });
    const operations = section.querySelector("[data-operations]"), names = data.columns ? panels[0].operations.map((name, op) => [name, op]) : [];
    const ran = new Set(panels.flatMap(p => p.requests.map(r => r[OP])));
    for (const [name, op] of names) if (ran.has(op)) operations.append(this.runs(name, op));
    if (!data.columns) for (const t of this.timelines) {
      const own = new Set(t.panel.requests.map(r => r[OP]));
      const line = element("div", {class: "legend"}, ...t.panel.operations.map((name, op) => [name, op]).filter(([, op]) => own.has(op)).map(([name, op]) => this.runs(name, op)));
      t.figure.querySelector("figcaption").append(line);
    }
    this.say();
  }

  runs(name, op) { return swatch(svg => shape(svg, "rect", {y: 1, width: 26, height: 12, rx: 2, fill: color(op)}), `runs: ${name}`); }

  say() {
    this.slider.disabled = this.window >= this.length;
    this.slider.value = this.slider.disabled ? 0 : 1000 * this.from / (this.length - this.window);
    const root = this.window < this.length ? `${time(this.window)} of ${time(this.length)}, magnified from where the frame is; all panels show the same` : `all ${time(this.length)}; all panels show the same`;
    this.span.textContent = root;
  }

  again() { this.timelines.forEach(t => redraw(t.target, true)); }

  show(from) {
    const root = this.root ?? this;
    root.from = Math.max(0, Math.min(root.length - root.window, from));
    root.say();
    root.again();
  }

  zoom(by) {
    const root = this.root ?? this, middle = root.from + root.window / 2;
    root.window = Math.max(200, Math.min(root.length, root.window * by));
    root.show(middle - root.window / 2);
  }
}

// Curves.
const hue = ["--family0", "--family1", "--family2", "--family3"];
const symbols = ["circle", "square", "triangle", "diamond", "cross", "star", "wye"];

function looks(curves) {
  const count = {}, all = new Map();
  for (const c of curves) {
    const k = count[c.family] = (count[c.family] ?? -1) + 1;
    all.set(c.name, {color: k ? `color-mix(in oklab, var(${hue[c.family]}), var(--ink) ${k * 22}%)` : `var(${hue[c.family]})`, symbol: symbols[c.family % symbols.length], dash: ["", "5 3", "1.5 3", "8 3 2 3", "3 5"][k % 5]});
  }
  return all;
}

function curves(target, chart, series) {
  return width => {
    const look = looks(series.curves), names = [...look.keys()];
    const points = series.curves.flatMap(c => c.points.map(p => ({...p, name: c.name}))).filter(p => !series.log || p.y > 0);
    const longest = Math.max(...names.map(n => n.length));
    const x = {
      log: {type: "log", base: 2, ticks: [...new Set(points.map(p => p.x))], tickFormat: "d", label: `${chart.x.label} (log scale) →`},
      share: {domain: [0, 1], ticks: 5, tickFormat: ".0%", label: `${chart.x.label} →`},
      slower: {type: "log", domain: [1, 0.001], axis: null, label: `${chart.x.label} (log scale of those slower) →`},
    }[chart.x.kind];
    const shares = [0.5, 0.1, 0.01, 0.001], powers = series.log ? d3.range(-3, 10).map(n => 10 ** n).filter(n => n >= Math.min(...points.map(p => p.y)) / 2 && n <= Math.max(...points.map(p => p.y)) * 2) : [];
    const highest = Math.max(...points.map(p => Math.max(p.y, p.high || 0)), 0);
    const marginRight = Math.min(12 + longest * 7.2, width * 0.36);
    const plot = Plot.plot({
      width, height: Math.max(260, Math.min(340, width * 0.6)), style: {fontSize: "12px", fontFamily: "inherit", color: "var(--ink)"},
      marginLeft: 52, marginRight, marginTop: 30, marginBottom: 40, ariaLabel: `${chart.name}: ${series.name}`,
      x, y: {label: `↑ ${series.unit}${series.log ? " (log scale)" : ""}`, grid: true, nice: series.log, type: series.log ? "log" : "linear", ...(series.log ? {ticks: powers.length > 1 ? powers : 5, tickFormat: ".2~s"} : {domain: [0, series.top || highest * 1.05 || 1], tickFormat: ".3~s", ticks: 5})},
      marks: [
        Plot.ruleY(series.log ? [] : [0], {stroke: "var(--line)"}),
        ...(chart.x.kind === "slower" ? [Plot.axisX(shares, {text: shares.map(s => `${+(100 * (1 - s)).toFixed(1)} %`), label: x.label})] : []),
        Plot.areaY(points.filter(p => p.high > 0 && (!series.log || p.low > 0)), {x: "x", y1: "low", y2: "high", z: "name", fill: p => look.get(p.name).color, fillOpacity: 0.16}),
        ...names.map(n => Plot.lineY(points.filter(p => p.name === n), {x: "x", y: "y", stroke: look.get(n).color, strokeWidth: 2, strokeDasharray: look.get(n).dash})),
        ...(chart.x.kind === "slower" ? [] : names.map(n => Plot.dot(points.filter(p => p.name === n), {x: "x", y: "y", stroke: look.get(n).color, symbol: look.get(n).symbol, fill: "var(--card)", r: 3.4, strokeWidth: 1.8}))),
        Plot.tip(points, Plot.pointer({x: "x", y: "y", fill: "var(--ground)", stroke: "var(--soft)", title: p => `${p.name}\n${d3.format(".3~s")(p.y)} ${series.unit}${p.note ? `\n${p.note}` : ""}`})),
      ],
    });
    target.replaceChildren(plot);
    // Labels at the ends of the curves, apart from each other.
    const svg = plot.matches("svg") ? plot : plot.querySelector("svg:last-of-type"), xs = plot.scale("x"), ys = plot.scale("y");
    const labels = names.map(n => points.filter(p => p.name === n).at(-1)).filter(Boolean).map(p => ({name: p.name, x: xs.apply(p.x), y: ys.apply(p.y)})).sort((a, b) => a.y - b.y);
    labels.forEach((l, i) => { l.at = i ? Math.max(l.y, labels[i - 1].at + 14) : l.y; });
    const over = labels.length ? labels.at(-1).at - (+svg.getAttribute("height") - 40) : 0;
    if (over > 0) for (let i = labels.length - 1, limit = labels.at(-1).at - over; i >= 0; i--, limit -= 14) labels[i].at = Math.min(labels[i].at, limit);
    for (const l of labels) {
      const c = look.get(l.name).color, edge = width - marginRight;
      shape(svg, "path", {d: `M${l.x + 5} ${l.y}L${edge + 8} ${l.at}`, stroke: c, "stroke-width": 1, fill: "none", opacity: 0.6});
      shape(svg, "text", {x: edge + 10, y: l.at + 4, fill: c, "font-weight": 600, "text-anchor": "start", class: "end"}, l.name);
    }
  };
}

function charts(section, data) {
  const select = section.querySelector("[data-series]");
  if (!select) return;
  const names = [...new Set(data.charts.filter(c => c.series.length > 1).flatMap(c => c.series.map(s => s.name)))];
  names.forEach(n => select.append(element("option", {}, n)));
  if (names.length < 2) select.parentNode.hidden = true;
  data.charts.forEach((chart, j) => {
    const figure = section.querySelector(`[data-chart="${j}"]`), target = figure.querySelector("[data-plot]"), details = figure.querySelector("[data-values]");
    const current = () => chart.series.find(s => s.name === select.value) ?? chart.series[0];
    const update = () => {
      const s = current();
      figure.querySelector("[data-title]").textContent = `${s.name[0].toUpperCase()}${s.name.slice(1)} ${chart.name}${s.band ? `; bands: ${s.band}` : ""}`;
      target.draw = curves(target, chart, s);
      if (target.drawnWidth) redraw(target, true);
      values();
    };
    const values = () => {
      details.querySelector(".scroll")?.remove();
      if (!details.open) return;
      const s = current(), xs = [...new Set(s.curves.flatMap(c => c.points.map(p => p.x)))];
      const head = element("thead", {}, element("tr", {}, element("th", {scope: "col"}, chart.x.label), ...s.curves.map(c => element("th", {scope: "col"}, c.name))));
      const write = {log: x => x, share: x => `${100 * x} %`, slower: x => `${+(100 * (1 - x)).toFixed(1)} %`}[chart.x.kind];
      const rows = xs.map(x => element("tr", {}, element("th", {scope: "row"}, `${write(x)}`), ...s.curves.map(c => {
        const p = c.points.find(p => p.x === x);
        return element("td", {}, p ? d3.format(".3~s")(p.y) : "–");
      })));
      details.append(element("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": s.name}, element("table", {class: "figures"}, head, element("tbody", {}, ...rows))));
    };
    details.addEventListener("toggle", values);
    select.addEventListener("change", update);
    update();
    drawn(target, width => target.draw(width));
    target.draw = curves(target, chart, current());
  });
}

page.sections.forEach((data, i) => {
  const section = document.querySelector(`[data-section="${i}"]`);
  if (data.panels?.length) new Part(section, data, i);
  if (data.charts?.length) charts(section, data);
});
