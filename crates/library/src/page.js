"use strict";
// Everything shown comes from the JSON in the page, as text: no name can be markup.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const cellOf = (w, s) => data.cells[w * data.systems.length + s];
const state = { sort: { by: "name", down: false }, picked: [] };

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}
function digits(x) {
  const size = Math.abs(x);
  return x.toFixed(size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}
function time(ns) {
  const size = Math.abs(ns);
  const [unit, by] =
    size >= 1e9 ? ["s", 1e9] : size >= 1e6 ? ["ms", 1e6] : size >= 1e3 ? ["\u00b5s", 1e3] : ["ns", 1];
  return digits(ns / by) + " " + unit;
}
function bytes(n) {
  const [unit, by] =
    n >= 2 ** 30 ? ["GiB", 2 ** 30] : n >= 2 ** 20 ? ["MiB", 2 ** 20] : n >= 1024 ? ["KiB", 1024] : ["B", 1];
  return digits(n / by) + " " + unit;
}
const count = (n) => Math.round(n).toLocaleString("en");
const share = (x) => (x > 0 ? "+" : "") + digits(x * 100) + " %";

// The figure of a cell: its value to sort by, what is shown, and how much longer than the fastest of its row.
function figure(measure, w, s) {
  const cell = cellOf(w, s),
    p = cell.predicted,
    r = cell.replayed;
  const least = (of) => Math.min(...data.systems.map((_, i) => of(cellOf(w, i)) ?? Infinity));
  const predicted = (c) => c.predicted?.total_ns,
    replayed = (c) => c.replayed?.total_ns;
  const mark = p?.ties_with_fastest ? " =" : "";
  const title = p
    ? `95 % interval ${time(p.low_ns)} to ${time(p.high_ns)}; fastest in ${digits(p.p_fastest * 100)} % of draws`
    : cell.refused || "";
  if (measure === "replayed")
    return r
      ? { value: r.total_ns, text: time(r.total_ns), over: r.total_ns / least(replayed), title: r.target }
      : null;
  if (!p) return null;
  const over = p.total_ns / least(predicted);
  if (measure === "over") return { value: over, text: digits(over) + "\u00d7" + mark, over, title };
  if (measure === "error") {
    if (!r?.total_ns) return null;
    const error = p.total_ns / r.total_ns - 1;
    return {
      value: error,
      text: share(error),
      over: 1 + Math.abs(error),
      title: `predicted ${time(p.total_ns)}, replayed ${time(r.total_ns)}`,
    };
  }
  return { value: p.total_ns, text: time(p.total_ns) + mark, over, title };
}
function matches(list, id) {
  const words = $(id).value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (it) => (it.name + " " + it.facts.map((f) => f.join(" ")).join(" ")).toLowerCase();
  return list.map((_, i) => i).filter((i) => words.every((word) => text(list[i]).includes(word)));
}
function heading(text, by, className) {
  const cell = element("th", undefined, className),
    button = element("button", text);
  const sorted = state.sort.by === by;
  if (sorted) button.textContent += state.sort.down ? " \u2193" : " \u2191";
  cell.setAttribute("aria-sort", sorted ? (state.sort.down ? "descending" : "ascending") : "none");
  cell.scope = "col";
  button.type = "button";
  button.addEventListener("click", () => {
    state.sort = { by, down: sorted && !state.sort.down };
    drawMatrix();
  });
  cell.append(button);
  return cell;
}
function drawMatrix() {
  const measure = $("measure").value,
    systems = matches(data.systems, "systems");
  const by = state.sort.by,
    sign = state.sort.down ? -1 : 1;
  const key = (w) => (by === "name" ? data.workloads[w].name : figure(measure, w, by)?.value);
  const order = (a, b) => {
    const [x, y] = [key(a), key(b)];
    // What has no figure is last, whichever way.
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
    return sign * (x < y ? -1 : x > y ? 1 : 0);
  };
  const workloads = matches(data.workloads, "workloads").sort(order);
  const table = element("table");
  table.id = "matrix";
  const head = table.createTHead().insertRow();
  head.append(heading("workload", "name"), ...systems.map((s) => heading(data.systems[s].name, s, "n")));
  const body = table.createTBody();
  for (const w of workloads) {
    const row = body.insertRow();
    const name = element("th", data.workloads[w].name);
    name.scope = "row";
    name.title = data.workloads[w].facts.map((f) => f.join(": ")).join("\n");
    row.append(name);
    for (const s of systems) {
      const cell = row.insertCell(),
        found = figure(measure, w, s);
      cell.className = "n";
      if (!found) {
        cell.textContent = "\u2013";
        cell.title = cellOf(w, s).refused || "no replay was made here";
        continue;
      }
      const button = element("button", found.text);
      button.type = "button";
      button.title = found.title;
      // A factor of ten has the full colour.
      const strength = Math.min(1, Math.log10(Math.max(1, found.over)));
      cell.style.background = `color-mix(in srgb, #d55e00 ${Math.round(strength * 45)}%, transparent)`;
      if (w === +$("workload").value && [+$("a").value, +$("b").value].includes(s)) cell.classList.add("chosen");
      button.addEventListener("click", () => pick(w, s));
      cell.append(button);
    }
  }
  $("matrix").replaceWith(table);
}
function pick(w, s) {
  state.picked = [...state.picked.filter((p) => p.w === w && p.s !== s), { w, s }].slice(-2);
  $("workload").value = w;
  if (state.picked.length === 2) [$("a").value, $("b").value] = state.picked.map((p) => p.s);
  else if (+$("b").value !== s) $("a").value = s;
  drawAll();
}
// Rows of two columns of figures, the greatest difference first.
function compare(id, caption, headings, rows, names) {
  const table = element("table");
  table.id = id;
  if (rows.length) {
    table.createCaption().textContent = caption;
    const head = table.createTHead().insertRow();
    for (const [i, text] of [...headings, names[0], names[1], "B less A", ""].entries()) {
      const cell = element("th", text, i >= headings.length && text ? "n" : "");
      cell.scope = "col";
      head.append(cell);
    }
    const most = Math.max(...rows.map((row) => Math.abs(row.b - row.a)), 1e-9);
    const body = table.createTBody();
    rows.sort((x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a));
    for (const row of rows.slice(0, 25)) {
      const line = body.insertRow();
      for (const text of row.what) line.append(element("td", text, text.length > 30 ? "long" : ""));
      for (const text of [row.show(row.a), row.show(row.b), row.show(row.b - row.a)])
        line.append(element("td", text, "n"));
      const bar = element("span", undefined, row.b < row.a ? "bar less" : "bar");
      bar.style.width = (Math.abs(row.b - row.a) / most) * 8 + "rem";
      line.insertCell().append(bar);
    }
  }
  $(id).replaceWith(table);
}
function joined(a, b, keyOf, valueOf) {
  const rows = new Map();
  for (const [side, list] of [
    ["a", a],
    ["b", b],
  ])
    for (const it of list) {
      const key = keyOf(it);
      if (!rows.has(key)) rows.set(key, { a: 0, b: 0, first: it });
      rows.get(key)[side] += valueOf(it);
    }
  return [...rows.values()];
}
function drawWhy() {
  const w = +$("workload").value,
    [i, j] = [+$("a").value, +$("b").value];
  const [a, b] = [cellOf(w, i), cellOf(w, j)],
    names = [data.systems[i].name, data.systems[j].name];
  const missing = [a, b].findIndex((cell) => !cell.predicted);
  if (i === j || missing >= 0) {
    $("why").textContent =
      i === j ? "Choose two systems that differ." : `${names[missing]}: ${[a, b][missing].refused}`;
    for (const id of ["by-op", "by-class", "caches", "facts"]) $(id).replaceChildren();
    return;
  }
  const [p, q] = [a.predicted, b.predicted];
  const faster = p.total_ns <= q.total_ns ? 0 : 1,
    ratio = Math.max(p.total_ns, q.total_ns) / Math.min(p.total_ns, q.total_ns);
  const overlap = p.low_ns <= q.high_ns && q.low_ns <= p.high_ns;
  const limit = (it) => (it.data_cache_bytes ? bytes(it.data_cache_bytes) : "no limit");
  let text = `${data.workloads[w].name}: ${names[0]} ${time(p.total_ns)}, ${names[1]} ${time(q.total_ns)}; `;
  text += `${names[faster]} is predicted to be ${digits(ratio)} times as fast`;
  text += overlap ? "; their intervals overlap." : ".";
  if (a.replayed && b.replayed) text += ` Replayed: ${time(a.replayed.total_ns)} and ${time(b.replayed.total_ns)}.`;
  $("why").textContent = text;
  const ops = joined(
    p.by_op,
    q.by_op,
    (op) => op.op,
    (op) => op.ns,
  );
  compare(
    "by-op",
    "By call.",
    ["Call", "Calls"],
    ops.map((r) => ({ ...r, what: [r.first.op, count(r.first.calls)], show: time })),
    names,
  );
  const classes = joined(
    p.by_class,
    q.by_class,
    (c) => c[0],
    (c) => c[3],
  );
  compare(
    "by-class",
    "By elementary call.",
    ["Elementary call", "Meaning"],
    classes.map((r) => ({ ...r, what: [r.first[0], r.first[1]], show: time })),
    names,
  );
  const words = {
    page_hits: "pages read that were cached",
    page_misses: "pages read that were not",
    pages_dirtied: "pages made dirty",
    pages_written_back: "pages written back by age or amount",
    pages_forced: "dirty pages evicted",
    name_hits: "names that were cached",
    name_misses: "names that were not",
    negative_hits: "absent names that were cached",
    negative_misses: "absent names that were not",
    pages_dirty_at_end: "dirty pages left at the end",
  };
  const caches = Object.keys(words).map((name) => ({
    a: p.cache[name],
    b: q.cache[name],
    what: [words[name]],
    show: count,
  }));
  compare(
    "caches",
    `Caches: the data cache has ${limit(p)} in A and ${limit(q)} in B.`,
    ["What"],
    caches,
    names,
  );
  const table = element("table");
  table.id = "facts";
  table.createCaption().textContent = "The two systems.";
  const head = table.createTHead().insertRow();
  for (const text of ["", ...names]) head.append(element("th", text));
  const body = table.createTBody();
  const facts = [i, j].map((s) => new Map(data.systems[s].facts));
  for (const what of new Set([...facts[0].keys(), ...facts[1].keys()])) {
    const row = body.insertRow();
    row.append(element("th", what), ...facts.map((f) => element("td", f.get(what) ?? "")));
  }
  $("facts").replaceWith(table);
}
function drawAll() {
  drawMatrix();
  drawWhy();
}
for (const [w, workload] of data.workloads.entries()) $("workload").append(new Option(workload.name, w));
for (const id of ["a", "b"])
  for (const [s, system] of data.systems.entries()) $(id).append(new Option(system.name, s));
if (data.systems.length > 1) $("b").value = 1;
const replays = data.cells.filter((cell) => cell.replayed).length;
$("about").textContent =
  `${data.workloads.length} workloads and ${data.systems.length} systems: ` +
  `${data.cells.filter((c) => c.predicted).length} predictions and ${replays} replays. ` +
  `Predicted by fsage ${data.version} from cold caches, calls as fast as possible, seed ${data.seed}. ` +
  "Times are the sum of the calls' latencies.";
for (const id of ["measure", "workloads", "systems"]) $(id).addEventListener("input", drawMatrix);
for (const id of ["workload", "a", "b"]) $(id).addEventListener("input", drawAll);
drawAll();
