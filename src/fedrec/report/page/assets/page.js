// Interaction only: every table and figure is already in the page, and reads well without this.
"use strict";

(function theme() {
  const root = document.documentElement;
  const button = document.querySelector(".theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let kept = null;
  try { kept = localStorage.getItem("fedrec-theme"); } catch { /* a page from a mail may have no storage */ }
  const show = (name) => {
    root.dataset.theme = name;
    button.textContent = name === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `switch to ${name === "dark" ? "light" : "dark"} colours`);
  };
  show(kept || (system.matches ? "dark" : "light"));
  system.addEventListener("change", (event) => { if (!kept) show(event.matches ? "dark" : "light"); });
  button.addEventListener("click", () => {
    kept = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("fedrec-theme", kept); } catch { /* then it lasts as long as the page */ }
    show(kept);
  });
  button.hidden = false;
})();

// What came later than the page takes the place of what a bound element shows: by the element, what does that.
const renewals = new WeakMap();
const dress = (element, as) => { for (const { name, value } of as.attributes) element.setAttribute(name, value); };

// --- tables: a click on a heading sorts by it; numbers by value, cells without one always last
function bindTable(table) {
  const body = table.tBodies[0];
  let original = [...body.rows];
  const arrange = () => {
    const head = table.querySelector("thead th[aria-sort]");
    const rows = head ? sorted(original, head) : original;
    const held = document.activeElement;
    rows.forEach((row, i) => { if (body.rows[i] !== row) body.insertBefore(row, body.rows[i] ?? null); });
    if (body.contains(held)) held.focus({ preventScroll: true });  // a row that is moved loses the focus
  };
  for (const head of table.querySelectorAll("thead th[data-column]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const numeric = head.dataset.kind === "number";
      const next = { null: numeric ? "descending" : "ascending", descending: numeric ? "ascending" : null,
        ascending: numeric ? null : "descending" }[now];
      for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
      if (next) head.setAttribute("aria-sort", next);
      arrange();
    });
  }
  renewals.set(table, (now) => {
    const link = (row) => row.querySelector("a[href]")?.getAttribute("href");
    const kept = new Map(original.filter(link).map((row) => [link(row), row]));
    original = [...now.tBodies[0].rows].map((row) => {
      const old = kept.get(link(row));
      if (!old) return row;
      [...old.cells].slice(1).forEach((cell) => cell.remove());  // not the first: its link may have the focus
      old.append(...[...row.cells].slice(1));
      return old;
    });
    const held = body.contains(document.activeElement);
    const rows = new Set(original);
    [...body.rows].forEach((row) => { if (!rows.has(row)) row.remove(); });
    arrange();
    if (held && !body.contains(document.activeElement)) table.closest(".scroll").focus({ preventScroll: true });
  });
}

function sorted(rows, head) {
  const numeric = head.dataset.kind === "number";
  const sign = head.getAttribute("aria-sort") === "ascending" ? 1 : -1;
  const column = Number(head.dataset.column);
  const value = (row) => {
    const cell = row.cells[column];
    if (!numeric) return cell.textContent.toLowerCase();
    return cell.dataset.v === undefined ? NaN : Number(cell.dataset.v);
  };
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (!numeric) return sign * x.localeCompare(y);
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    return sign * (x - y);
  });
}
document.querySelectorAll("table.sortable").forEach(bindTable);

// --- figures: the value under the pointer
const digits = (value) => (Math.abs(value) >= 100 ? value.toFixed(1) : value.toFixed(4));

function tipOf(figure) {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  figure.append(tip);
  return {
    show(title, rows, x, y) {
      tip.replaceChildren();
      const heading = document.createElement("b");
      heading.textContent = title;
      tip.append(heading);
      for (const [name, text, cls] of rows) {
        const row = document.createElement("span");
        row.className = "row " + (cls || "");
        const label = document.createElement("em");
        label.textContent = name;
        if (cls) row.append(document.createElement("i"));
        row.append(label, text);
        tip.append(row);
      }
      tip.hidden = false;
      const box = figure.getBoundingClientRect();
      const left = x - box.left + 14 + tip.offsetWidth > box.width ? x - box.left - tip.offsetWidth - 14 : x - box.left + 14;
      tip.style.left = `${Math.max(0, left)}px`;
      tip.style.top = `${Math.max(0, y - box.top - tip.offsetHeight / 2)}px`;
    },
    hide() { tip.hidden = true; },
  };
}

function bindCurves(figure) {
  const block = figure.querySelector("script[type='application/json']");
  let data = JSON.parse(block.textContent);
  const tip = tipOf(figure);
  const hidden = new Set();
  const afresh = [];  // what each chart does when other data has come
  for (const svg of figure.querySelectorAll("svg.chart")) {
    const place = (round) => {
      const { left, right } = svg.dataset;
      const [first, last] = [data.rounds[0], data.rounds[data.rounds.length - 1]];
      return Number(left) + (Number(right) - Number(left)) * (last > first ? (round - first) / (last - first) : 0);
    };
    let at = data.rounds.length - 1;
    let shown = null;
    const show = (clientY) => {
      const guide = svg.querySelector(".guide");
      const box = svg.getBoundingClientRect();
      const x = place(data.rounds[at]);
      guide.setAttribute("x1", x);
      guide.setAttribute("x2", x);
      guide.style.visibility = "visible";
      const rows = data.series.map((s, i) => [s.name, s.values[at], s.cls, i])
        .filter(([, value, , i]) => value !== null && !hidden.has(i)).sort((a, b) => b[1] - a[1])
        .map(([name, value, cls]) => [name, digits(value), cls]);
      tip.show(`round ${data.rounds[at]}`, rows, box.left + x * box.width / Number(svg.dataset.width), clientY ?? box.top + box.height / 2);
      shown = { round: data.rounds[at], clientY };
    };
    const hide = () => {
      svg.querySelector(".guide").style.visibility = "hidden";
      tip.hide();
      shown = null;
    };
    afresh.push(() => {
      const round = shown?.round ?? Infinity;
      at = Math.max(0, data.rounds.findLastIndex((one) => one <= round));  // of many rounds not each is kept
      if (shown) show(shown.clientY);
    });
    const point = (event) => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) * Number(svg.dataset.width) / box.width;
      let best = Infinity;
      data.rounds.forEach((round, i) => { const far = Math.abs(place(round) - x); if (far < best) { best = far; at = i; } });
      show(event.clientY);
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("focus", () => { if (svg.matches(":focus-visible")) show(); });
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, Home: -data.rounds.length, End: data.rounds.length }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      at = Math.min(data.rounds.length - 1, Math.max(0, at + step));
      show();
    });
  }
  for (const key of figure.querySelectorAll(".key")) {
    const mine = () => figure.querySelectorAll(`g[data-series="${key.dataset.series}"]`);
    key.addEventListener("click", () => {
      const off = key.getAttribute("aria-pressed") === "true";
      key.setAttribute("aria-pressed", String(!off));
      off ? hidden.add(Number(key.dataset.series)) : hidden.delete(Number(key.dataset.series));
      mine().forEach((g) => g.classList.toggle("hidden", off));
    });
    const alone = (on) => figure.querySelectorAll("g[data-series]").forEach((g) =>
      g.classList.toggle("fade", on && g.dataset.series !== key.dataset.series));
    key.addEventListener("pointerenter", () => alone(true));
    key.addEventListener("pointerleave", () => alone(false));
  }
  renewals.set(figure, (now) => {
    figure.querySelector("figcaption").replaceWith(now.querySelector("figcaption"));
    block.textContent = now.querySelector("script[type='application/json']").textContent;
    data = JSON.parse(block.textContent);
    const drawn = now.querySelectorAll("svg.chart");
    figure.querySelectorAll("svg.chart").forEach((svg, i) => {
      dress(svg, drawn[i]);
      svg.replaceChildren(...drawn[i].childNodes);
      for (const series of hidden) svg.querySelectorAll(`g[data-series="${series}"]`).forEach((g) => g.classList.add("hidden"));
    });
    afresh.forEach((renew) => renew());
  });
}
document.querySelectorAll("figure.curves").forEach(bindCurves);

for (const figure of document.querySelectorAll("figure.points")) {
  const tip = tipOf(figure);
  for (const mark of figure.querySelectorAll("[data-tip]")) {
    const show = () => {
      const box = mark.getBoundingClientRect();
      const [title, ...rows] = JSON.parse(mark.dataset.tip);
      tip.show(title, rows, box.left + box.width / 2, box.top + box.height / 2);
    };
    mark.addEventListener("pointerenter", show);
    mark.addEventListener("pointerdown", show);
    mark.addEventListener("pointerleave", tip.hide);
    mark.addEventListener("focus", show);
    mark.addEventListener("blur", tip.hide);
  }
}

window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
