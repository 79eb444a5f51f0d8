// Appended to a copy of a library's page by library.sh: uses the page as a reader would, and says in the title what it
// found. The expected order and differences are worked out here from the JSON alone.
"use strict";
(() => {
  const problems = [];
  const expect = (what, found, wanted) => {
    if (JSON.stringify(found) !== JSON.stringify(wanted))
      problems.push(`${what}: ${JSON.stringify(found)} for ${JSON.stringify(wanted)}`);
  };
  const it = JSON.parse(document.getElementById("data").textContent);
  const at = (w, s) => it.cells.find((cell) => cell.workload === w && cell.system === s);
  const names = () => [...document.querySelectorAll("#matrix tbody th")].map((th) => th.textContent);
  const heading = (text) =>
    [...document.querySelectorAll("#matrix thead button")].find((b) => b.textContent.startsWith(text));
  const set = (id, value) => {
    const input = document.getElementById(id);
    input.value = value;
    input.dispatchEvent(new Event("input"));
  };
  // Sorting by a system's time, upwards and downwards.
  const s = it.systems.findIndex((_, i) => it.workloads.every((_, w) => at(w, i).predicted));
  const order = it.workloads
    .map((_, w) => w)
    .sort((a, b) => at(a, s).predicted.total_ns - at(b, s).predicted.total_ns)
    .map((w) => it.workloads[w].name);
  heading(it.systems[s].name).click();
  expect("sorted", names(), order);
  heading(it.systems[s].name).click();
  expect("sorted downwards", names(), [...order].reverse());
  // Filters.
  set("workloads", it.workloads[0].name);
  expect(
    "filtered",
    names(),
    it.workloads.map((w) => w.name).filter((name) => name.includes(it.workloads[0].name)),
  );
  set("workloads", "");
  set("systems", "nothing is called that");
  expect("no system", document.querySelectorAll("#matrix thead th").length, 1);
  set("systems", "");
  expect("all again", document.querySelectorAll("#matrix thead th").length, it.systems.length + 1);
  // Replays.
  set("measure", "replayed");
  const shown = document.querySelectorAll("#matrix td button").length;
  expect("replays", shown, it.cells.filter((cell) => cell.replayed).length);
  set("measure", "predicted");
  // Two figures of a row, and why they differ: the call whose time differs most comes first.
  const [a, b] = it.systems
    .map((_, i) => i)
    .filter((i) => at(0, i).predicted)
    .slice(-2);
  const click = (i) => {
    const row = [...document.querySelectorAll("#matrix tbody tr")].find(
      (tr) => tr.firstChild.textContent === it.workloads[0].name,
    );
    row.children[i + 1].firstChild.click();
  };
  click(a);
  click(b);
  const time = (i, op) => at(0, i).predicted.by_op.find((o) => o.op === op)?.ns ?? 0;
  const ops = [...new Set([a, b].flatMap((i) => at(0, i).predicted.by_op.map((o) => o.op)))];
  const most = ops.reduce((best, op) =>
    Math.abs(time(b, op) - time(a, op)) > Math.abs(time(b, best) - time(a, best)) ? op : best,
  );
  expect("first call", document.querySelector("#by-op tbody td").textContent, most);
  expect("chosen", document.querySelectorAll("td.chosen").length, 2);
  for (const id of ["by-class", "caches", "facts"])
    if (!document.querySelector(`#${id} tbody tr`)) problems.push(`${id} is empty`);
  document.title = problems.length ? "PROBLEMS " + problems.join("; ") : "PAGE WORKS";
})();
