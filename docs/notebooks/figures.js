// Draws the figures of a notebook's page, in the scheme that the site is shown in; again when the reader changes it.
"use strict";
const scheme = () => document.body.dataset.mdColorScheme;

async function draw(figure) {
  const spec = JSON.parse(figure.querySelector("script").textContent);
  // What it was drawn on in the notebook is not what it is drawn on here.
  const config = { ...spec.config, background: "transparent", axis: { gridColor: "rgba(136,136,136,0.27)" } };
  const theme = scheme() === "slate" ? "dark" : undefined;
  await vegaEmbed(figure.querySelector("div"), { ...spec, config }, { renderer: "svg", theme, actions: false });
  figure.dataset.drawn = scheme();
}

const draw_all = () => document.querySelectorAll("figure.vega").forEach(figure => {
  draw(figure).catch(error => { figure.querySelector("div").textContent = "This figure failed to draw: " + error; });
});
new MutationObserver(draw_all).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
draw_all();
