// Looks at a report from inside: validation/pages.sh puts this at the head of a copy of each page and shows the copy in a frame of a given width.
// The page's own policy stays in force. What is wrong is told to the frame's parent, one sentence each.
"use strict";
{
  const problems = [];
  const problem = text => { if (!problems.includes(text)) problems.push(text); };
  addEventListener("error", event => problem("a script failed: " + event.message), true);
  addEventListener("unhandledrejection", event => problem("a promise failed: " + event.reason));
  addEventListener("securitypolicyviolation", event => problem(`the policy forbids ${event.violatedDirective} ${event.blockedURI}`));
  // Vega-Lite says this of every plot that fits its width and has bars of a fixed height; what it drops was not asked for.
  const spurious = 'Dropping "fit-y" because spec has discrete height.';
  for (const [level, what] of [["error", "an error"], ["warn", "a warning"]]) {
    console[level] = (...said) => { if (!said.includes(spurious)) problem(`the console has ${what}: ` + said.join(" ")); };
  }

  const pause = ms => new Promise(done => setTimeout(done, ms));
  const title = figure => figure.querySelector("figcaption").textContent.slice(0, 60);
  const failed = figure => figure.textContent.includes("This plot failed to draw");

  // Marks that can be seen: axes, legends and titles are none.
  const marks = figure => [...figure.querySelectorAll("svg g[class*='role-mark'] > *")]
    .filter(mark => mark.tagName !== "g")
    .filter(mark => { const box = mark.getBoundingClientRect(); return box.width > 0 || box.height > 0; });
  const painted = canvas => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some(byte => byte > 0);

  // Contrast of two colours (WCAG 2.2).
  const numbers = colour => (colour.match(/[\d.]+/g) || []).map(Number);
  const luminance = ([r, g, b]) => {
    const linear = byte => { const c = byte / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  };
  function contrast(colour, ground, opacity) {
    const [r, g, b, alpha = 1] = numbers(colour);
    const seen = [r, g, b].map((part, i) => part * alpha * opacity + ground[i] * (1 - alpha * opacity));
    const [high, low] = [luminance(seen), luminance(ground)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  }
  const opacity = element => element ? Number(getComputedStyle(element).opacity) * opacity(element.parentElement) : 1;

  function texts(dark) {
    // What Chromium paints a page with that names no colours.
    const ground = dark ? [18, 18, 18] : [255, 255, 255];
    for (const element of document.querySelectorAll("h1, h2, p, li, caption, th, td, figcaption, pre, label, span, svg text")) {
      if (!element.textContent.trim()) continue;
      const style = getComputedStyle(element);
      // Labels that would lie on others are not shown.
      if (opacity(element) === 0) continue;
      const found = contrast(element.closest("svg") ? style.fill : style.color, ground, opacity(element));
      if (found < 4.5) problem(`text has a contrast of ${found.toFixed(1)}: ${element.textContent.slice(0, 40)}`);
      if (parseFloat(style.fontSize) < 10) problem(`text is ${style.fontSize} high: ${element.textContent.slice(0, 40)}`);
    }
  }

  function plots() {
    for (const figure of document.querySelectorAll("figure[data-plot]")) {
      const [svg, canvas] = [figure.querySelector("svg"), figure.querySelector("canvas")];
      if (failed(figure)) problem(figure.querySelector(".plot").textContent.slice(0, 200));
      else if (!svg && !canvas) problem(`nothing was drawn: ${title(figure)}`);
      else if (svg && marks(figure).length === 0) problem(`a plot without marks: ${title(figure)}`);
      else if (canvas && !painted(canvas)) problem(`an empty canvas: ${title(figure)}`);
      if (svg && /NaN|Infinity/.test(svg.outerHTML.replace(/<text.*?<\/text>/g, ""))) problem(`a mark is nowhere: ${title(figure)}`);
      if (figure.scrollWidth > figure.clientWidth) problem(`a plot is ${figure.scrollWidth} px wide in a column of ${figure.clientWidth}: ${title(figure)}`);
      if (!svg) continue;
      const room = svg.getBoundingClientRect();
      for (const text of svg.querySelectorAll("text")) {
        const box = text.getBoundingClientRect();
        if (box.width > 0 && (box.left < room.left - 2 || box.right > room.right + 2 || box.top < room.top - 2 || box.bottom > room.bottom + 2)) {
          problem(`text is cut off: ${text.textContent.slice(0, 40)} in ${title(figure)}`);
        }
      }
    }
  }

  // What a plot shows: where its marks are and what its texts say.
  const shown = figure => marks(figure).map(mark => mark.outerHTML).join() + figure.querySelector("svg")?.textContent
    + figure.querySelector("canvas")?.toDataURL();

  async function controls() {
    let tried = 0;
    for (const figure of document.querySelectorAll("figure[data-plot]")) {
      for (const input of figure.querySelectorAll("input[type=range], select")) {
        tried += 1;
        const values = input.tagName === "SELECT" ? [...input.options].map(option => option.value) : [input.min, input.max];
        const views = new Set();
        for (const value of values) {
          input.value = value;
          input.dispatchEvent(new Event("input", { bubbles: true }));
          input.dispatchEvent(new Event("change", { bubbles: true }));
          await pause(100);
          views.add(shown(figure));
          if (marks(figure).length === 0 && !figure.querySelector("canvas")) problem(`a plot without marks at ${value}: ${title(figure)}`);
          if (figure.scrollWidth > figure.clientWidth) problem(`a plot is too wide at ${value}: ${title(figure)}`);
        }
        if (views.size < 2) problem(`a control changes nothing: ${title(figure)}`);
      }
    }
    return tried;
  }

  // Every plot can be saved, as either kind of picture. Nothing is downloaded here.
  async function saves() {
    const files = [];
    HTMLAnchorElement.prototype.click = function () { files.push([this.download, this.href]); };
    for (const figure of document.querySelectorAll("figure[data-plot]")) {
      const buttons = [...figure.querySelectorAll(".save button")];
      if (buttons.length !== 2) problem(`a plot cannot be saved: ${title(figure)}`);
      for (const button of buttons) {
        const ending = "." + button.textContent.toLowerCase();
        button.click();
        for (let waited = 0; waited < 50 && !figure.dataset.saved?.endsWith(ending); waited++) await pause(100);
        const [name, url] = files.pop() ?? ["", ""];
        const whole = ending === ".png" ? url.startsWith("data:image/png") && url.length > 1000 : url.startsWith("blob:") || url.startsWith("data:image/svg");
        if (!name.endsWith(ending) || !whole) problem(`a plot is not saved as ${ending}: ${title(figure)}`);
      }
    }
  }

  addEventListener("load", async () => {
    const [width, scheme] = name.split(" ");
    const dark = scheme === "dark";
    const figures = [...document.querySelectorAll("figure[data-plot]")];
    for (let waited = 0; waited < 100 && !figures.every(figure => figure.dataset.drawn || failed(figure)); waited++) await pause(100);
    if (innerWidth !== Number(width)) problem(`the page is ${innerWidth} px wide, not ${width}`);
    if (matchMedia("(prefers-color-scheme: dark)").matches !== dark) problem(`the scheme is not ${scheme}`);
    plots();
    texts(dark);
    const tried = await controls();
    await saves();
    const page = document.scrollingElement;
    if (page.scrollWidth > innerWidth) {
      const wide = [...document.querySelectorAll("body *")].find(element => element.getBoundingClientRect().right > innerWidth && !element.closest(".scroll, figure, pre"));
      problem(`the page is ${page.scrollWidth} px wide in a window of ${innerWidth}: ${wide?.outerHTML.slice(0, 80)}`);
    }
    const sliders = document.querySelectorAll("input[type=range]").length;
    const count = figures.reduce((sum, figure) => sum + marks(figure).length, 0);
    parent.postMessage({ problems, seen: `${figures.length} plots, ${count} marks, ${tried} controls (${sliders} sliders)`, height: page.scrollHeight }, "*");
  });
}
