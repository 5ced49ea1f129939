/* What the reader turns; then everything is drawn. */

function options(select, entries, value) {
  for (const [key, text] of entries) select.appendChild(new Option(text, key, false, key === value));
}
function choosers() {
  const all = quantities.map((q, i) => [String(i), q.title]);
  state.plots.forEach((pair, k) => [0, 1].forEach((side) => {
    const select = byId(`explorer-${k}-${"xy"[side]}`);
    options(select, all, String(pair[side]));
    select.addEventListener("change", () => {
      const before = pair[side];
      pair[side] = Number(select.value);
      if (pair[0] === pair[1]) {
        pair[1 - side] = before;
        byId(`explorer-${k}-${"yx"[side]}`).value = String(before);
      }
      drawPlot(k);
    });
  }));
  const colours = [["", "one colour"], ...data.objectives.map((o, i) => [`o${i}`, o.title]),
    ...data.axes.map((a, i) => [`a${i}`, a.title])];
  options(byId("explorer-colour"), colours, state.colour);
  byId("explorer-colour").addEventListener("change", (event) => { state.colour = event.target.value; changed(); });
  byId("clear").addEventListener("click", () => {
    state.brushes.clear();
    state.lasso = null;
    drawAxes();
    changed();
  });
}
function changed() {
  drawColourBar();
  drawLines();
  plots.forEach((_, k) => drawPlot(k));
}
choosers();
drawAxes();
drawColourBar();
drawLines();
plots.forEach((_, k) => drawPlot(k).then(() => listen(k)));
let waiting = 0;
window.addEventListener("resize", () => {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(() => { drawAxes(); drawLines(); });
});
