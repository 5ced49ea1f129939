/* What is chosen and picked, the axes of the parallel coordinates, and the designs that are kept. */

const state = {
  plots: data.plots.map((pair) => [...pair]),
  colour: data.colour === null ? "" : `o${data.colour}`,
  brushes: new Map(), /* dimension -> [low, high], places */
  lasso: null, /* designs picked in a plot, or null */
  lit: null, /* the design under the pointer */
};
const dimensions = [
  ...data.axes.map((a) => ({
    title: a.name, unit: a.unit, place: (i) => a.places[a.front[i]],
    ticks: a.ticks.map((i) => [a.places[i], a.texts[i]]),
    baseline: a.baseline === null ? null : a.scale ? placeOn(a.scale, a.baseline.number) :
      a.places[a.texts.indexOf(a.baseline.text)] ?? null,
  })),
  ...data.objectives.map((o) => ({
    title: o.label, unit: o.unit, note: o.sign > 0 ? "lower is better" : "higher is better",
    place: (i) => o.place(o.front[i]), ticks: objectiveTicks(o.scale),
    baseline: o.baseline === null ? null : o.place(o.baseline),
  })),
];
function objectiveTicks(scale) {
  if (scale.tickvals) return scale.tickvals.map((v, i) => [placeOn(scale, v), scale.ticktext[i]]);
  const [low, high] = scale.range, rough = (high - low) / 6, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((s) => s * power).find((s) => s >= rough);
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  const ticks = [];
  for (let v = Math.ceil(low / step) * step; v <= high; v += step) {
    ticks.push([placeOn(scale, v), v.toLocaleString("en-US", {maximumFractionDigits: digits})]);
  }
  return ticks;
}
const places = dimensions.map((d) => Float32Array.from({length: size}, (_, i) => d.place(i)));

function keeps(i) {
  for (const [d, [low, high]] of state.brushes) if (places[d][i] < low || places[d][i] > high) return false;
  return state.lasso === null || state.lasso.has(i);
}
const filtered = () => state.brushes.size > 0 || state.lasso !== null;
function kept() {
  const found = [];
  for (let i = 0; i < size; i++) if (keeps(i)) found.push(i);
  return found;
}
