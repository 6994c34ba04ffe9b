#include "coordinator/report/html_parts.hpp"

namespace leafcutter::coordinator {

std::string_view html_script() {
  // Data reaches the page as text nodes and attributes only, never as markup.
  return R"js(
"use strict";
(function () {
  window.addEventListener("error", function (event) { document.body.dataset.error = event.message; });
  const data = JSON.parse(document.getElementById("data").textContent);
  const rowHeight = 26;

  function element(name, classes, text) {
    const node = document.createElement(name);
    if (classes) node.className = classes;
    if (text !== undefined) node.textContent = text;
    return node;
  }
  function svg(name, attributes) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    return node;
  }
  function button(text, press) {
    const node = element("button", "", text);
    node.type = "button";
    node.addEventListener("click", press);
    return node;
  }

  // --- copying ---
  function copy(text, node) {
    const done = function () {
      node.textContent = "Copied"; node.classList.add("done");
      setTimeout(function () { node.textContent = "Copy"; node.classList.remove("done"); }, 1500);
    };
    const old = function () {
      const area = element("textarea");
      area.value = text; area.style.position = "fixed"; area.style.opacity = "0";
      document.body.appendChild(area); area.select();
      if (document.execCommand("copy")) done();
      area.remove();
    };
    if (navigator.clipboard && window.isSecureContext) navigator.clipboard.writeText(text).then(done, old);
    else old();
  }
  document.addEventListener("click", function (event) {
    const node = event.target.closest(".copy");
    if (node) copy(node.dataset.copy, node);
  });

  // --- swim-lanes ---
  function marker(row, x, group) {
    const y = rowHeight / 2;
    if (row.fault) {
      group.appendChild(svg("path", { class: "bolt", d: "M" + (x + 2) + " " + (y - 10) + "l-8 11h5l-2 9 9-12h-5z" }));
    } else if (row.kind === "exit") {
      group.appendChild(svg("path", { class: "lost", d: "M" + (x - 5) + " " + (y - 5) + "l10 10m0-10l-10 10" }));
    } else if (row.kind === "log" || row.kind === "syscall") {
      group.appendChild(svg("circle", { class: "dot small", cx: x, cy: y, r: 2.5 }));
    } else {
      group.appendChild(svg("circle", { class: row.kind === "ready" ? "dot good" : "dot", cx: x, cy: y, r: 4.5 }));
    }
  }
  function arrow(row, a, b, group) {
    const y = rowHeight / 2, way = b > a ? 1 : -1;
    if (row.fault) {
      group.appendChild(svg("line", { class: "strike", x1: a, y1: y, x2: b, y2: y }));
      marker(row, (a + b) / 2, group);
      return;
    }
    if (row.kind === "close" || row.kind === "connect") {
      group.appendChild(svg("line", { class: "arrow thin", x1: a, y1: y, x2: b, y2: y }));
      return;
    }
    const shape = "arrow" + (row.kind === "reply" ? " dashed" : "");
    group.appendChild(svg("line", { class: shape, x1: a, y1: y, x2: b - way * 7, y2: y }));
    group.appendChild(svg("path", { class: "tip", d: "M" + b + " " + y + "l" + -way * 9 + " -4.5v9z" }));
  }
  function drawing(row, columns, state, step) {
    const width = columns.length * step, group = svg("svg", { width: width, height: rowHeight });
    const x = function (name) { return columns.indexOf(name) * step + step / 2; };
    const over = row.fault ? 4 * rowHeight : 0;  // its text may take several lines; the row cuts what is too long
    for (const name of columns) {
      const shape = "life " + (state[name] || "");
      group.appendChild(svg("line", { class: shape, x1: x(name), y1: -over, x2: x(name), y2: rowHeight + over }));
    }
    const known = function (name) { return name !== undefined && columns.includes(name); };
    if (known(row.from) && known(row.to) && row.from !== row.to) arrow(row, x(row.from), x(row.to), group);
    else if (known(row.at)) marker(row, x(row.at), group);
    else if (known(row.to)) marker(row, x(row.to), group);
    return group;
  }
  function gap(count) {
    return element("div", "gap", "\u22ee " + count + (count === 1 ? " event" : " events") + " not shown");
  }
  function detail(text) {
    let shown = text;
    try { shown = JSON.stringify(JSON.parse(text), null, 1); } catch (cut) { /* cut in size: shown as it is */ }
    return element("pre", "detail", shown);
  }
  function line(row, columns, state, step) {
    const marks = ["fault", "evidence", "parts", "key"].filter(function (mark) { return row[mark]; });
    if (!row.telling && !row.parts) marks.push("quiet");
    const node = element("div", ["row"].concat(marks).join(" "));
    node.appendChild(element("time", "", row.time));
    node.appendChild(drawing(row, columns, state, step));
    const text = element("span", "text");
    text.appendChild(element("span", "lane", row.lane));
    text.appendChild(document.createTextNode(row.text));
    if (row.evidence) text.appendChild(element("span", "tag", "breaks the property"));
    if (row.parts) text.appendChild(element("span", "tag", "parts here"));
    node.appendChild(text);
    node.title = row.kind + " #" + row.seq + " of " + row.lane;
    node.addEventListener("click", function () {
      if (node.nextSibling && node.nextSibling.className === "detail") node.nextSibling.remove();
      else node.after(detail(row.detail));
    });
    return node;
  }
  function lives(row, state) {
    if (row.kind === "start" || row.kind === "ready") state[row.at] = "";
    if (row.kind === "exit") state[row.at] = "down";
  }
  function trace(title, content, only, narrow) {
    const view = element("div", "view");
    const size = content.missing ? "" : ": " + content.shown + " of " + content.total + " events";
    view.appendChild(element("h5", "", title + size));
    if (content.missing) { view.appendChild(element("p", "missing", content.missing)); return view; }
    const step = narrow ? 74 : Math.max(84, Math.min(130, Math.floor(560 / content.columns.length)));
    const head = element("div", "head-row"), names = element("div", "names");
    for (const name of content.columns) {
      const cell = element("span", "", name);
      cell.style.width = step + "px"; cell.title = name;
      names.appendChild(cell);
    }
    head.append(element("span"), names, element("span"));
    view.appendChild(head);
    const state = {};
    for (const row of content.rows) if (row.kind === "start" && state[row.at] === undefined) state[row.at] = "unborn";
    let hidden = 0;
    for (const row of content.rows) {
      hidden += row.gap || 0;
      if (only && !row.telling && !row.parts) { hidden += 1; lives(row, state); continue; }
      if (hidden > 0) view.appendChild(gap(hidden));
      hidden = 0;
      view.appendChild(line(row, content.columns, state, step));
      lives(row, state);
    }
    hidden += content.after || 0;
    if (hidden > 0) view.appendChild(gap(hidden));
    return view;
  }
  function lanes(host, finding) {
    const choice = { side: "failing", only: true };
    const views = element("div", "views"), tools = element("div", "tools"), segments = element("span", "segments");
    const sides = [["failing", "Failing"], ["passing", "Passing neighbour"], ["both", "Side by side"]];
    const buttons = sides.map(function (side) {
      return button(side[1], function () { choice.side = side[0]; show(); });
    });
    const only = button("Only what matters", function () { choice.only = !choice.only; show(); });
    segments.append(...buttons);
    const legend = element("span", "legend");
    legend.append(element("span", "l-fault", "fault"), element("span", "l-proof", "breaks the property"),
                  element("span", "l-parts", "where the runs part"));
    tools.append(element("b", "", "What happened"), segments, only, legend);
    function show() {
      buttons.forEach(function (node, i) { node.setAttribute("aria-pressed", String(sides[i][0] === choice.side)); });
      only.setAttribute("aria-pressed", String(choice.only));
      views.className = "views" + (choice.side === "both" ? " both" : "");
      views.replaceChildren();
      const narrow = choice.side === "both";
      if (choice.side !== "passing") views.appendChild(trace("Failing", finding.failing, choice.only, narrow));
      if (choice.side !== "failing")
        views.appendChild(trace("Passing neighbour", finding.passing, choice.only, narrow));
    }
    host.append(tools, views);
    show();
  }
  for (const finding of data.findings) {
    const host = document.querySelector('.lanes[data-finding="' + CSS.escape(finding.signature) + '"]');
    if (host) lanes(host, finding);
  }

  // --- leaves ---
  const colour = { PASS: "pass", FAIL: "fail", INFRA: "infra", INCONCLUSIVE: "open" };
  function leafRow(leaf) {
    const row = element("tr"), address = element("td"), verdict = element("td");
    const plan = element("td", "", leaf[3]), copying = element("td");
    address.appendChild(element("code", "", leaf[0]));
    verdict.appendChild(element("span", "badge " + colour[leaf[1]], leaf[1]));
    if (leaf[4]) plan.appendChild(element("span", "why", leaf[4]));
    const copier = element("button", "copy", "Copy");
    copier.type = "button"; copier.dataset.copy = "leafcutter replay " + leaf[0]; copier.title = copier.dataset.copy;
    copying.appendChild(copier);
    row.append(address, verdict, element("td", "", leaf[2]), plan, element("td", "number", leaf[6] + " ms"), copying);
    return row;
  }
  function leafList() {
    const host = document.querySelector("#leaves .list"), hint = document.querySelector("#leaves .hint");
    const filters = element("div", "filters"), input = element("input");
    const table = element("table"), body = element("tbody");
    input.type = "search"; input.placeholder = "Filter by address, reason, fault, site or detail";
    input.setAttribute("aria-label", input.placeholder);
    const chosen = new Set();
    let limit = 100;
    filters.appendChild(input);
    for (const verdict of ["FAIL", "INFRA", "INCONCLUSIVE", "PASS"]) {
      const count = data.leaves.filter(function (leaf) { return leaf[1] === verdict; }).length;
      if (count === 0) continue;
      const chip = button(verdict + " " + count, function () {
        if (chosen.has(verdict)) chosen.delete(verdict); else chosen.add(verdict);
        chip.setAttribute("aria-pressed", String(chosen.has(verdict)));
        show();
      });
      chip.setAttribute("aria-pressed", "false");
      filters.appendChild(chip);
    }
    const head = element("thead"), titles = element("tr");
    for (const title of ["Leaf", "Verdict", "Reason", "Plan", "Took", "Replay"])
      titles.appendChild(element("th", title === "Took" ? "number" : "", title));
    head.appendChild(titles);
    table.append(head, body);
    const more = button("Show more", function () { limit += 400; show(); });
    more.className = "more";
    function show() {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = data.leaves.filter(function (leaf) {
        if (chosen.size > 0 && !chosen.has(leaf[1])) return false;
        const text = leaf.slice(0, 6).join(" ").toLowerCase();
        return words.every(function (word) { return text.includes(word); });
      });
      body.replaceChildren(...found.slice(0, limit).map(leafRow));
      more.hidden = found.length <= limit;
      hint.textContent = found.length + " of " + data.leaves.length + " leaves" +
        (data.leaves_left_out > 0 ? "; " + data.leaves_left_out + " more stand in the ledger only" : "");
      host.dataset.found = found.length;
    }
    input.addEventListener("input", show);
    if (location.hash.startsWith("#filter=")) input.value = decodeURIComponent(location.hash.slice(8));
    host.append(filters, table, more);
    show();
  }
  leafList();
  document.body.dataset.ready = "yes";
})();
)js";
}

}  // namespace leafcutter::coordinator
