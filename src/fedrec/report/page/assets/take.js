// Tables and figures to take away: tables as CSV or LaTeX (copied, or as a file), figures as SVG files.
"use strict";

(function take() {
  const fileName = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "fedrec";
  const clean = (cell) => cell.textContent.replace(/\s+/g, " ").replace(/[↕↑↓]/g, "").trim();

  function rowsOf(table) {
    const heads = [...table.tHead.rows].map((row) => [...row.cells].map((cell) => ({ text: clean(cell), span: cell.colSpan })));
    const body = [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => ({
      text: clean(cell), best: cell.querySelector("b") !== null,
    })));
    return { heads, body };
  }

  function csv(table) {
    const { heads, body } = rowsOf(table);
    const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    return [heads[heads.length - 1], ...body].map((row) => row.map((cell) => quoted(cell.text)).join(",") + "\n").join("");
  }

  const SIGNS = { "\\": "\\textbackslash{}", "{": "\\{", "}": "\\}", "$": "\\$", "&": "\\&", "#": "\\#", "%": "\\%", "_": "\\_",
    "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "<": "\\textless{}", ">": "\\textgreater{}", "±": "$\\pm$",
    "°": "$^\\circ$", "…": "\\dots{}", "–": "--" };
  const escaped = (text) => [...text].map((sign) => SIGNS[sign] ?? sign).join("");

  function latex(table) {
    const { heads, body } = rowsOf(table);
    const bold = (cell) => {
      if (!cell.best) return escaped(cell.text);
      const [, number, rest] = cell.text.match(/^([-+\d.]*)(.*)$/);
      return `\\textbf{${escaped(number)}}${escaped(rest)}`;
    };
    const over = heads.slice(0, -1).map((row) => row.map((cell) => `\\multicolumn{${cell.span}}{c}{${escaped(cell.text)}}`));
    const lines = [...over, heads[heads.length - 1].map((cell) => escaped(cell.text))];
    const width = lines[lines.length - 1].length;
    return ["% needs \\usepackage{booktabs}", "\\begin{table}", "\\centering",
      `\\caption{${escaped(table.getAttribute("aria-label") || "")}}`, `\\begin{tabular}{l${"r".repeat(width - 1)}}`, "\\toprule",
      ...lines.map((row) => `${row.join(" & ")} \\\\`), "\\midrule",
      ...body.map((row) => `${row.map(bold).join(" & ")} \\\\`), "\\bottomrule", "\\end{tabular}", "\\end{table}", ""].join("\n");
  }

  const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap", "opacity", "paint-order",
    "font-family", "font-size", "font-weight", "text-anchor"];
  function drawing(svg) {
    const copy = svg.cloneNode(true);
    const [from, to] = [[svg, ...svg.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
    const gone = [];
    from.forEach((element, i) => {
      const style = getComputedStyle(element);
      if (style.display === "none" || style.visibility === "hidden") { gone.push(to[i]); return; }
      for (const name of KEPT) to[i].setAttribute(name, style.getPropertyValue(name));
      for (const name of ["class", "tabindex", "data-tip", "data-series", "data-left", "data-right", "data-width"]) to[i].removeAttribute(name);
    });
    gone.forEach((element) => element.remove());
    const [, , width, height] = svg.getAttribute("viewBox").split(" ");
    const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({ width, height, fill: getComputedStyle(document.body).backgroundColor })) paper.setAttribute(name, value);
    copy.prepend(paper);
    for (const [name, value] of Object.entries({ xmlns: "http://www.w3.org/2000/svg", width, height })) copy.setAttribute(name, value);
    return new XMLSerializer().serializeToString(copy);
  }

  function save(text, kind, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: `${kind};charset=utf-8` }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  async function copy(text) {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");  // first: the newer way may wait for a permission that nobody gives a file
    area.remove();
    if (done) return true;
    try { await navigator.clipboard.writeText(text); return true; } catch { return false; }
  }

  function tools(label, entries) {
    const bar = document.createElement("div");
    bar.className = "tools";
    const said = document.createElement("span");
    said.className = "said";
    said.setAttribute("role", "status");
    for (const [text, act] of entries) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.setAttribute("aria-label", `${text}: ${label}`);
      button.addEventListener("click", async () => {
        const done = await act();
        said.textContent = done === false ? "The browser does not allow it." : done || "";
        setTimeout(() => { said.textContent = ""; }, 2500);
      });
      bar.append(button);
    }
    bar.append(said);
    return bar;
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const label = table.getAttribute("aria-label") || "table";
    const name = fileName(`${document.title} ${table.closest("section")?.id ?? ""}`);
    table.closest(".scroll").after(tools(label, [
      ["Copy CSV", async () => (await copy(csv(table))) && "Copied."],
      ["Copy LaTeX", async () => (await copy(latex(table))) && "Copied."],
      ["CSV", () => save(csv(table), "text/csv", `${name}.csv`)],
      ["LaTeX", () => save(latex(table), "application/x-tex", `${name}.tex`)],
    ]));
  }
  for (const figure of document.querySelectorAll("figure")) {
    if (!figure.querySelector("svg.chart")) continue;
    const title = figure.querySelector("figcaption strong")?.textContent ?? "figure";
    const shown = () => [...figure.querySelectorAll("svg.chart")].find((svg) => getComputedStyle(svg).display !== "none");
    figure.append(tools(title, [["SVG", () => save(drawing(shown()), "image/svg+xml", `${fileName(title)}.svg`)]]));
  }
})();
