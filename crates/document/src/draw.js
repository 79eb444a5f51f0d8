// Draws every plot as wide as its column allows, in the scheme that the reader's system asks for; again when either changes.
"use strict";
const dark = matchMedia("(prefers-color-scheme: dark)");

// A specification and the views within it.
const views = spec => [spec, ...["layer", "vconcat", "hconcat", "concat"].flatMap(kind => spec[kind] || []).concat(spec.spec || []).flatMap(views)];

// The views whose widths add up to the plot's: it alone, or the parts of one that is made of several.
const parts = spec => spec.vconcat || (spec.spec ? [spec.spec] : [spec]);

// Legends lie above the plot in as many columns as fit, so that they do not take its width.
function place_legends(spec, width) {
  const rows = views(spec).flatMap(view => Array.isArray(view.data?.values) ? view.data.values : []);
  for (const view of views(spec)) {
    for (const channel of ["color", "strokeDash", "shape"]) {
      const encoding = view.encoding?.[channel];
      if (!encoding?.field || encoding.legend === null || encoding.type === "quantitative") continue;
      const longest = Math.max(4, ...rows.map(row => String(row[encoding.field] ?? "").length));
      const limit = Math.min(7 * longest + 10, width - 40, 300);
      encoding.legend = { columns: Math.max(1, Math.floor(width / (limit + 30))), labelLimit: limit, ...encoding.legend };
    }
  }
}

// The specification at a width. `less`: what its parts must give up, as was found by drawing it.
function fitted(source, width, less) {
  const spec = JSON.parse(JSON.stringify(source));
  place_legends(spec, width);
  if (spec.concat) {
    const wide = spec.concat.reduce((sum, view) => sum + view.width + spec.spacing, 0) / Math.ceil(spec.concat.length / spec.columns);
    if (wide > width) spec.columns = Math.max(1, Math.floor(width / (wide / spec.columns)));
    return spec;
  }
  const single = !spec.vconcat && !spec.spec;
  if (spec.columns) spec.columns = Math.max(1, Math.min(spec.columns, Math.floor(width / 250)));
  for (const view of parts(spec)) {
    const square = view.height === view.width;
    const margin = single ? 0 : 70;
    view.width = Math.max(60, Math.min(view.width, Math.floor((width - margin) / (spec.columns || 1))) - less);
    if (square) view.height = view.width;
  }
  for (const view of views(spec)) {
    if (view.mark?.type === "text") view.mark.limit = parts(spec)[0].width;
  }
  if (spec.facet) spec.config = { header: { labelLimit: spec.spec.width } };
  if (single) spec.autosize = { type: "fit-x", contains: "padding" };
  return spec;
}

const config = width => ({
  background: "transparent",
  font: "system-ui, sans-serif",
  view: { stroke: null },
  axis: {
    gridColor: "rgba(136,136,136,0.27)", labelFontSize: 11, titleFontSize: 12, titleLimit: width,
    labelLimit: Math.min(260, Math.round(0.35 * width)), labelSeparation: 6,
  },
  legend: {
    orient: "top", labelFontSize: 11, titleFontSize: 11, symbolStrokeWidth: 2, symbolBaseFillColor: "#888888", symbolBaseStrokeColor: "#888888",
    layout: { top: { direction: "vertical", anchor: "start", margin: 6 } },
  },
  header: { labelFontSize: 12, labelLimit: width - 20 },
  title: { fontSize: 13, anchor: "start", limit: width },
  text: { fontSize: 12, color: dark.matches ? "#fff" : "#000" },
  rule: { color: dark.matches ? "#fff" : "#000" },
});

async function draw(figure) {
  const turn = figure.turn = (figure.turn || 0) + 1;
  const [controls, place] = figure.querySelectorAll("div");
  const source = JSON.parse(figure.querySelector("script").textContent);
  // What the reader has chosen stays chosen.
  for (const param of source.params || []) {
    if (param.bind && figure.view) param.value = figure.view.signal(param.name);
  }
  const width = figure.clientWidth;
  // What a control shows next may have longer labels.
  const spare = source.params ? 12 : 0;
  for (let less = 0, tries = 0; tries < 3; tries++) {
    const spec = fitted(source, width, less);
    controls.replaceChildren();
    const theme = dark.matches ? "dark" : undefined;
    const drawn = await vegaEmbed(place, spec, { renderer: "svg", actions: false, bind: controls, theme, config: config(width) });
    if (figure.turn !== turn) return;
    figure.view = drawn.view;
    const over = (place.querySelector("svg")?.getBoundingClientRect().width ?? 0) - (width - spare);
    if (over <= 0) break;
    less += Math.ceil(over / (spec.columns || 1)) + 1;
  }
  figure.dataset.drawn = width;
  save_links(figure);
}

// The plot as a file, named by its caption: SVG as it is shown, PNG at twice its size, both on white ground as paper is.
function save_links(figure) {
  const place = figure.querySelector(".save");
  if (!place || place.childElementCount) return;
  const name = (figure.querySelector("figcaption")?.textContent ?? "plot").toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 60).replace(/^-|-$/g, "") || "plot";
  place.append("Save as ");
  ["svg", "png"].forEach((type, i) => {
    if (i) place.append(" or ");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = type.toUpperCase();
    button.addEventListener("click", () => save(figure, type, name + "." + type));
    place.append(button);
  });
}

async function save(figure, type, name) {
  const source = JSON.parse(figure.querySelector("script").textContent);
  for (const param of source.params || []) {
    if (param.bind) param.value = figure.view.signal(param.name);
  }
  const ground = { ...config(figure.clientWidth), background: "#fff" };
  for (const part of ["text", "rule"]) ground[part] = { ...ground[part], color: "#000" };
  const holder = document.createElement("div");
  const { view } = await vegaEmbed(holder, fitted(source, figure.clientWidth, 0), { renderer: "svg", actions: false, config: ground });
  const url = await view.toImageURL(type, type === "png" ? 2 : 1);
  view.finalize();
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  figure.dataset.saved = name;
}

const draw_all = () => document.querySelectorAll("figure[data-plot]").forEach(figure => {
  draw(figure).catch(error => { figure.querySelector(".plot").textContent = "This plot failed to draw: " + error; });
});
let waiting;
addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(draw_all, 150);
});
dark.addEventListener("change", draw_all);
draw_all();
