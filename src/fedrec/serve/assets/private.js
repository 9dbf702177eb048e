// Everything happens here: search, choice and scores. There is no request, and the page's policy forbids any.
"use strict";

const data = JSON.parse(document.querySelector("script[type='application/json']").textContent);
const n = data.items.length;
const names = data.titles || data.items;
const K = 10;

function unpacked(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Kind(bytes.buffer);
}

// --- the model: scores of all items out of the places of what somebody has
function scoring(model) {
  if (model.kind === "weights") { // the strongest weights into each item
    const sources = unpacked(model.sources, Int32Array);
    const values = unpacked(model.values, Float32Array);
    return (has) => {
      const mine = new Set(has);
      const scores = new Float64Array(n);
      for (let item = 0; item < n; item++) {
        for (let j = item * model.k; j < (item + 1) * model.k; j++) if (mine.has(sources[j])) scores[item] += values[j];
      }
      return scores;
    };
  }
  const [vectors, response, scale, back] = ["vectors", "response", "scale", "back"].map((name) => unpacked(model[name], Float32Array));
  const k = model.k;
  return (has) => {
    const signal = new Float64Array(k);
    for (const item of has) for (let j = 0; j < k; j++) signal[j] += vectors[item * k + j] * scale[item];
    for (let j = 0; j < k; j++) signal[j] *= response[j];
    const scores = new Float64Array(n);
    for (let item = 0; item < n; item++) {
      let sum = 0;
      for (let j = 0; j < k; j++) sum += signal[j] * vectors[item * k + j];
      scores[item] = sum * back[item];
    }
    return scores;
  };
}

const score = scoring(data.model);

function recommended(has) {
  const scores = score(has);
  const mine = new Set(has);
  const order = [];
  for (let item = 0; item < n; item++) if (!mine.has(item) && Number.isFinite(scores[item])) order.push(item);
  order.sort((a, b) => scores[b] - scores[a] || a - b);
  return order.slice(0, K).map((item) => ({ item, score: scores[item] }));
}

// --- the page
const [search, found, chosen, list, empty, clear] = ["search", "found", "chosen", "list", "empty", "clear"].map((id) => document.getElementById(id));
const folded = (text) => text.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "");
const searched = names.map((name) => folded(String(name)));
let has = [];
let shown = [];
let at = -1;

function find(text) {
  const whole = folded(text.trim());
  const words = whole.split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const hits = [];
  for (let item = 0; item < n; item++) {
    if (!has.includes(item) && words.every((word) => searched[item].includes(word))) {
      hits.push([searched[item].startsWith(whole) ? 0 : ` ${searched[item]}`.includes(` ${words[0]}`) ? 1 : 2, item]);
    }
  }
  return hits.sort((a, b) => a[0] - b[0] || a[1] - b[1]).slice(0, 12).map((hit) => hit[1]);
}

function point(place) {
  at = place;
  [...found.children].forEach((row, i) => row.setAttribute("aria-selected", String(i === at)));
  if (at >= 0) { search.setAttribute("aria-activedescendant", found.children[at].id); found.children[at].scrollIntoView({ block: "nearest" }); }
  else search.removeAttribute("aria-activedescendant");
}

function look() {
  shown = find(search.value);
  found.replaceChildren(...shown.map((item, i) => {
    const row = document.createElement("li");
    row.id = `found-${i}`;
    row.setAttribute("role", "option");
    row.textContent = names[item];
    row.addEventListener("pointerdown", (event) => event.preventDefault());
    row.addEventListener("click", () => choose(item));
    return row;
  }));
  found.hidden = !shown.length;
  search.setAttribute("aria-expanded", String(!!shown.length));
  point(shown.length ? 0 : -1);
}

function choose(item) {
  if (!has.includes(item)) has.push(item);
  search.value = "";
  look();
  show();
  search.focus();
}

function show() {
  chosen.replaceChildren(...has.map((item) => {
    const row = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = names[item];
    button.setAttribute("aria-label", `remove ${names[item]}`);
    button.addEventListener("click", () => { has = has.filter((other) => other !== item); show(); search.focus(); });
    row.append(button);
    return row;
  }));
  const best = has.length ? recommended(has) : [];
  const most = Math.max(...best.map((one) => one.score), 1e-12);
  list.replaceChildren(...best.map((one) => {
    const row = document.createElement("li");
    row.dataset.item = data.items[one.item];
    row.append(String(names[one.item]));
    const bar = document.createElement("progress");
    bar.className = "share";
    bar.max = 1;
    bar.value = Math.max(0, one.score / most);
    bar.setAttribute("aria-hidden", "true");
    row.append(bar);
    return row;
  }));
  empty.hidden = clear.hidden = false;
  empty.hidden = has.length > 0;
  clear.hidden = !has.length;
}

search.addEventListener("input", look);
search.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && shown.length) { event.preventDefault(); point((at + step + shown.length) % shown.length); }
  if (event.key === "Enter" && at >= 0) { event.preventDefault(); choose(shown[at]); }
  if (event.key === "Escape") { search.value = ""; look(); }
});
clear.addEventListener("click", () => { has = []; show(); search.focus(); });

(function theme() {
  const button = document.querySelector("header .theme");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const paint = (name) => {
    document.documentElement.dataset.theme = name;
    button.textContent = name === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `switch to ${name === "dark" ? "light" : "dark"} colours`);
  };
  paint(dark.matches ? "dark" : "light");
  dark.addEventListener("change", (event) => paint(event.matches ? "dark" : "light"));
  button.addEventListener("click", () => paint(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  button.hidden = false;
})();
show();
