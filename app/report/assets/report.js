// Makes the charts, which are drawn already, answer to pointer and keyboard: values, a part enlarged, one operator alone.
"use strict";

const SPAN = 1000;
const charts = JSON.parse(document.getElementById("data").textContent);
document.querySelector(".hint").hidden = false;
for (const [id, chart] of Object.entries(charts)) enliven(document.getElementById(id), chart);

function enliven(figure, chart) {
  const area = figure.querySelector(".area");
  const whole = { x: [chart.x.low, chart.x.high], y: [chart.y.low, chart.y.high] };
  let view = whole;
  let at = null; // the x whose values are shown
  let alone = null; // the operator that is shown alone

  const cursor = made("div", "cursor");
  const chosen = made("div", "chosen");
  const values = made("output", "values");
  const back = made("button", "whole", "Show all");
  values.setAttribute("aria-live", "polite");
  back.type = "button";
  for (const part of [cursor, chosen, values, back]) {
    part.hidden = true;
    area.append(part);
  }
  area.classList.add("live");
  area.tabIndex = 0;
  area.setAttribute("role", "group");
  area.setAttribute("aria-label", "Chart: arrow keys show values, plus and minus zoom, Escape shows all");

  const scale = (axis) => ({ along: axis.log ? Math.log : Number, back: axis.log ? Math.exp : Number });
  const [sx, sy] = [scale(chart.x), scale(chart.y)];
  const shareOn = ({ along }, value, [low, high]) => (along(value) - along(low)) / (along(high) - along(low));
  const place = (value, ends) => shareOn(sx, value, ends);
  const under = (share) => sx.back(sx.along(view.x[0]) + share * (sx.along(view.x[1]) - sx.along(view.x[0])));
  const stops = [...new Set(chart.lines.flatMap((line) => line.x.filter((x, i) => line.y[i] !== null)))].sort((a, b) => a - b);

  // --- Values ---

  function show(x) {
    const seen = stops.filter((stop) => stop >= view.x[0] && stop <= view.x[1]);
    if (!seen.length) return hide();
    const far = (stop) => Math.abs(place(stop, view.x) - place(x, view.x));
    at = seen.reduce((best, stop) => (far(stop) < far(best) ? stop : best));
    const share = place(at, view.x);
    const shown = chart.lines.filter((line) => alone === null || line.colour === alone);
    const rows = shown.map((line) => row(line, share)).filter(Boolean);
    values.replaceChildren(made("b", "", `${chart.x.label} ${written(at, chart.x.unit)}`), ...rows);
    const [side, other, room] = share < 0.5 ? ["left", "right", share] : ["right", "left", 1 - share];
    values.style[side] = `calc(${100 * room}% + 8px)`;
    values.style[other] = "auto";
    values.style.maxWidth = `calc(${100 * (1 - room)}% - 12px)`;
    cursor.style.left = `${100 * share}%`;
    values.hidden = cursor.hidden = false;
  }

  // What a line has at, or beside, a place of the view.
  function row(line, share) {
    const far = line.x.map((x, i) => (line.y[i] === null ? Infinity : Math.abs(place(x, view.x) - share)));
    const index = far.indexOf(Math.min(...far));
    return !(far[index] < 0.015) ? null : made("div", `c${line.colour % 8}`, `${line.name} ${written(line.y[index], chart.y.unit)}`);
  }

  function hide() {
    at = null;
    values.hidden = cursor.hidden = true;
  }

  // --- Zoom ---

  function zoom(low, high) {
    const inside = chart.lines.flatMap((line) => line.y.filter((y, i) => drawable(line.x[i], y) && line.x[i] >= low && line.x[i] <= high));
    if (!inside.length || !(sx.along(high) - sx.along(low) > 1e-9 * (sx.along(whole.x[1]) - sx.along(whole.x[0])))) return;
    const [least, most] = [sy.along(Math.min(...inside)), sy.along(Math.max(...inside))];
    const air = (most - least) * 0.08 || Math.abs(most) * 0.05 || 1;
    look({ x: [low, high], y: [sy.back(least - air), sy.back(most + air)] });
  }

  function look(next) {
    view = next;
    const [left, right] = view.x.map((x) => SPAN * place(x, whole.x));
    const [bottom, top] = view.y.map((y) => SPAN * (1 - shareOn(sy, y, whole.y)));
    figure.querySelector(".curves").setAttribute("viewBox", `${left} ${top} ${right - left} ${bottom - top}`);
    const [across, up] = [marks(view.x, chart.x, chart.x.unit ? 4 : 6), marks(view.y, chart.y, 5)];
    const x = (value) => `${100 * place(value, view.x)}%`;
    const y = (value) => `${100 * (1 - shareOn(sy, value, view.y))}%`;
    figure.querySelector(".grid").replaceChildren(
      ...across.map((v) => drawn("line", { x1: x(v), x2: x(v), y1: 0, y2: "100%" })),
      ...up.map((v) => drawn("line", { x1: 0, x2: "100%", y1: y(v), y2: y(v) })),
    );
    figure.querySelector(".xs").replaceChildren(...across.map((v) => drawn("text", { x: x(v), y: "1em" }, written(v, chart.x.unit))));
    figure.querySelector(".ys").replaceChildren(
      ...up.map((v) => drawn("text", { x: "100%", y: y(v), dy: "0.32em" }, written(v, chart.y.unit))),
    );
    figure.querySelectorAll(".points g").forEach((group, n) => {
      const href = group.firstElementChild?.getAttribute("href"); // a curve of many points has no markers
      if (!href) return;
      const points = chart.lines[n].x.map((v, i) => [v, chart.lines[n].y[i]]).filter(([v, w]) => drawable(v, w));
      group.replaceChildren(...points.map(([v, w]) => drawn("use", { href, x: x(v), y: y(w) })));
    });
    back.hidden = view === whole;
    hide();
  }

  function drawable(x, y) {
    return y !== null && (x > 0 || !chart.x.log) && (y > 0 || !chart.y.log);
  }

  // --- One operator alone ---

  const names = [...figure.querySelectorAll("[data-key]")];
  for (const name of names.length > 1 ? names : []) {
    const button = made("button", "");
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    button.append(...name.childNodes);
    name.append(button);
    button.addEventListener("click", () => {
      const colour = Number(name.dataset.key);
      alone = alone === colour ? null : colour;
      for (const other of names) other.firstElementChild.setAttribute("aria-pressed", Number(other.dataset.key) === alone);
      for (const part of figure.querySelectorAll("[data-line], [data-key]")) {
        part.classList.toggle("off", alone !== null && Number(part.dataset.line ?? part.dataset.key) !== alone);
      }
      hide();
    });
  }

  // --- Pointer and keys ---

  let from = null;
  const shareOf = (event) => {
    const box = area.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  };

  area.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target === back) return;
    from = shareOf(event);
    area.setPointerCapture(event.pointerId);
  });
  area.addEventListener("pointermove", (event) => {
    const to = shareOf(event);
    if (from !== null) {
      chosen.hidden = Math.abs(to - from) < 0.02;
      chosen.style.left = `${100 * Math.min(from, to)}%`;
      chosen.style.width = `${100 * Math.abs(to - from)}%`;
    }
    show(under(to));
  });
  area.addEventListener("pointerup", (event) => {
    if (from === null) return;
    const [low, high] = [from, shareOf(event)].sort((a, b) => a - b);
    from = null;
    chosen.hidden = true;
    if (high - low >= 0.02) zoom(under(low), under(high));
    else show(under(high));
  });
  area.addEventListener("pointercancel", () => {
    from = null;
    chosen.hidden = true;
  });
  area.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && from === null && hide());
  area.addEventListener("dblclick", () => look(whole));
  area.addEventListener("blur", hide);
  back.addEventListener("click", () => look(whole));

  function step(by) {
    const seen = stops.filter((stop) => stop >= view.x[0] && stop <= view.x[1]);
    const next = at === null ? (by > 0 ? 0 : seen.length - 1) : seen.indexOf(at) + by;
    if (seen[next] !== undefined) show(seen[next]);
  }

  function enlarge(factor) {
    const centre = at === null ? 0.5 : place(at, view.x);
    const kept = at;
    const ends = [centre - factor * centre, centre + factor * (1 - centre)].map(under);
    const [low, high] = [Math.max(ends[0], whole.x[0]), Math.min(ends[1], whole.x[1])];
    if (low === whole.x[0] && high === whole.x[1]) look(whole);
    else zoom(low, high);
    if (kept !== null) show(kept);
  }

  const keys = {
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    "+": () => enlarge(0.5),
    "-": () => enlarge(2),
    Escape: () => look(whole),
  };
  area.addEventListener("keydown", (event) => {
    if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
}

// --- Marks and words, as the page has them ---

function marks([low, high], axis, most) {
  if (axis.log) {
    const powers = [];
    for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++) powers.push(p);
    const chosen = (factors) => powers.flatMap((p) => factors.map((f) => f * 10 ** p)).filter((v) => v >= low && v <= high);
    return chosen([1]).length > 2 ? chosen([1]) : chosen([1, 2, 5]);
  }
  const least = Math.max((high - low) / most, axis.unit === "whole" ? 1 : 0);
  const size = 10 ** Math.floor(Math.log10(least));
  const step = size * [1, 2, 5, 10].find((factor) => factor * size >= least);
  const found = [];
  for (let n = Math.ceil(low / step); n <= Math.floor(high / step); n++) found.push(n * step);
  return found;
}

function written(value, unit) {
  if (unit === "share") return `${Number((100 * value).toPrecision(5))} %`;
  if (unit === "count" && value >= 1e3) {
    const [size, name] = value >= 1e6 ? [1e6, "M"] : [1e3, "k"];
    return `${Number((value / size).toPrecision(4))}${name}`;
  }
  if (unit !== "seconds") {
    const size = Math.abs(value);
    if (size >= 1e7 || (size > 0 && size < 1e-7)) return Number(value.toPrecision(4)).toExponential();
    return value.toLocaleString("en", { maximumSignificantDigits: 5 });
  }
  const [size, name] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]].find(([s]) => value >= s) ?? [1e-9, "ns"];
  return `${Number((value / size).toPrecision(3))} ${name}`;
}

function made(name, kind, text = "") {
  const element = document.createElement(name);
  element.className = kind;
  element.textContent = text;
  return element;
}

function drawn(name, attributes, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}
