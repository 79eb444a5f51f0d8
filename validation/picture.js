// Writes a plot of a report (--html) as SVG, drawn by the libraries inside the report's own repository:
//
//     node validation/picture.js REPORT.html NUMBER WIDTH > PICTURE.svg
//
// NUMBER counts the plots of the page from 1. docs/predict.svg is plot 2 of the report of the run in README.md, 560 wide.
"use strict";
const { readFileSync } = require("fs");
const { join } = require("path");
const vendor = join(__dirname, "../crates/document/vendor");
// Vega-Lite asks for "vega" by name: it gets the one that lies beside it.
const load = (file, known) => {
  const module = { exports: {} };
  new Function("module", "exports", "require", readFileSync(join(vendor, file), "utf8"))(module, module.exports, name => known[name] ?? require(name));
  return module.exports;
};
const vega = load("vega.min.js", {});
const vegaLite = load("vega-lite.min.js", { vega });

const [report, number, width] = process.argv.slice(2);
const page = readFileSync(report, "utf8");
const plots = [...page.matchAll(/<figure[^>]*data-plot[^]*?<script type="application\/json">([^]*?)<\/script>/g)];
if (!plots[number - 1]) {
  console.error(`${report} has ${plots.length} plots`);
  process.exit(1);
}
const spec = JSON.parse(plots[number - 1][1]);
spec.width = Number(width);
spec.height ??= { step: 34 };
const config = { background: "white", font: "system-ui, sans-serif", view: { stroke: null } };
const compiled = vegaLite.compile({ ...spec, config: { ...config, ...spec.config } }).spec;
new vega.View(vega.parse(compiled), { renderer: "none" }).toSVG().then(svg => process.stdout.write(svg + "\n"));
