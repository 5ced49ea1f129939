/* Plots of any two objectives or axes. */

const FRONT_TRACE = 2; /* its place among the traces */
const LETTER = 6.6; /* mean width of a letter of a title [px] */
const plots = state.plots.map((_, k) => byId(`explorer-plot-${k}`));

/* The front without what another design betters in x and y alone; all of its edge is among the designs drawn. */
function edgeOf(x, y) {
  if (!x.sign || !y.sign) return [];
  const order = Array.from({length: size}, (_, i) => i);
  order.sort((i, j) => x.sign * (x.front[i] - x.front[j]) || y.sign * (y.front[i] - y.front[j]));
  let best = Infinity;
  return order.filter((i) => y.sign * y.front[i] < best && ((best = y.sign * y.front[i]), true));
}
/* Where one axis alone varies, a line through the designs along it. */
function lineOf(x, y) {
  const line = {mode: "lines", hoverinfo: "skip", line: {color: GREY, width: 1.2}};
  if (data.axes.length !== 1 || (x.sign !== 0) === (y.sign !== 0)) return {...line, x: [], y: []};
  const points = ["front", "cloud", "infeasible"].flatMap((set) => Array.from(x[set], (v, i) => [v, y[set][i]]));
  if (data.baseline !== null && x.baseline !== null && y.baseline !== null) points.push([x.baseline, y.baseline]);
  points.sort((a, b) => x.sign ? a[1] - b[1] : a[0] - b[0]);
  return {...line, x: points.map((p) => p[0]), y: points.map((p) => p[1])};
}
function traces(x, y) {
  const colours = colouring(), edge = edgeOf(x, y), selected = filtered() ? kept() : null;
  const marker = {size: size > 300 ? 5 : 6, color: FRONT, line: {width: 0.4, color: "white"}};
  if (colours) Object.assign(marker, {color: Array.from(colours[0], shade)});
  const point = (i) => ({x: [x.front[i]], y: [y.front[i]]});
  /* Of dots of at most 6 pixels in one place the last trace answers; larger marks leave the answer to them. */
  const answers = {hovertemplate: "%{text}<extra></extra>"};
  const faint = (opacity) => ({unselected: {marker: {opacity}}});
  const cloud = {size: x.cloud.length > 2000 ? 3 : 5, color: CLOUD, opacity: 0.6};
  const refused = {size: 6, symbol: "x-thin", color: REFUSED, opacity: 0.8, line: {width: 1.4, color: REFUSED}};
  const ring = {size: 15, color: "white", line: {width: 1.5, color: INK}};
  const diamond = {size: 15, symbol: "diamond", color: BASELINE, line: {width: 1.5, color: "white"}};
  /* Where 80 % of measured values would lie, of the baseline and the chosen designs; nothing where none is known. */
  const bar = (o, value, color) => o.interval === null ? {visible: false} : {type: "data", symmetric: false, color,
    thickness: 1, width: 3, array: [(o.interval[1] - 1) * value], arrayminus: [(1 - o.interval[0]) * value]};
  const bars = (xv, yv, color) => ({error_x: bar(x, xv, color), error_y: bar(y, yv, color)});
  const at = {x: [x.baseline], y: [y.baseline], mode: "markers"};
  const base = data.baseline === null || x.baseline === null || y.baseline === null ? [] : [
    {...at, hoverinfo: "skip", marker: diamond, ...bars(x.baseline, y.baseline, BASELINE), ...faint(1)},
    {...at, ...answers, text: [baselineText], marker: {size: 6, opacity: 0}, ...faint(0)},
  ];
  return [
    {x: x.cloud, y: y.cloud, text: cloudText, mode: "markers", marker: cloud, ...answers, ...faint(0.6)},
    edge.length ? {x: edge.map((i) => x.front[i]), y: edge.map((i) => y.front[i]), mode: "lines", hoverinfo: "skip",
      line: {color: INK, width: 1.2, shape: x.sign > 0 ? "hv" : "vh"}} : lineOf(x, y),
    {x: x.front, y: y.front, text: frontText, mode: "markers", marker, selectedpoints: selected, ...answers,
      ...faint(0.05)},
    ...data.chosen.map((c) => ({...point(c.front), text: [c.letter], mode: "markers+text", hoverinfo: "skip",
      ...bars(x.front[c.front], y.front[c.front], GREY),
      textfont: {size: 10, color: INK}, marker: ring, ...faint(1)})),
    ...base,
    {x: x.infeasible, y: y.infeasible, text: infeasibleText, mode: "markers", marker: refused, zorder: -1, ...answers,
      ...faint(0.8)},
  ];
}
/* The title of an axis in lines that fit its length [px], broken between words. */
function titleLines(o, length) {
  const lines = [""], most = Math.max(Math.floor(length / LETTER), 10);
  for (const word of (o.trust ? `${o.title}, ${o.trust}` : o.title).split(" ")) {
    const last = lines[lines.length - 1];
    if (last && last.length + word.length >= most) lines.push(word);
    else lines[lines.length - 1] = last ? `${last} ${word}` : word;
  }
  return lines;
}
function axisLayout(o, lines) {
  return {...o.scale, title: {text: lines.map(escaped).join("<br>"), standoff: 8}, tickangle: 0, showline: true,
    linecolor: GREY, ticks: "outside", ticklen: 4, zeroline: false, gridcolor: GRID};
}
/* The baseline's name beside its diamond, on the worse side, where no front is. */
function pointOut(x, y) {
  const at = (o) => o.scale.type === "log" ? Math.log10(o.baseline) : o.baseline;
  const place = x.place(x.baseline), right = window.innerWidth < 600 ? 0.45 : 0.65;
  const side = place > 0.85 ? -1 : place > right ? 0 : place < 0.25 ? 1 : x.sign || 1;
  return {x: at(x), y: at(y), text: escaped(data.baseline), ax: 34 * side, ay: -38 * (y.sign || 1), arrowcolor: BASELINE,
    arrowwidth: 1.4, arrowhead: 0, standoff: 8, font: {color: BASELINE, size: 12}, bgcolor: "rgba(255,255,255,0.85)",
    borderpad: 2, xanchor: ["right", "center", "left"][side + 1]};
}
/* What is left of the first screen, within bounds. */
function heightOf(plot) {
  const [least, most] = window.innerWidth < 600 ? [300, 340] : [330, 420];
  const left = window.innerHeight - plot.getBoundingClientRect().top - window.scrollY - 4;
  return Math.min(Math.max(left, least), most);
}
let picks = 0; /* boxes and lassos so far: a new number lets plotly forget their outlines */
let drawing = 0; /* plots being drawn: what they say of selections meanwhile is not a reader's doing */
function drawPlot(k) {
  const [x, y] = state.plots[k].map((i) => quantities[i]);
  const named = data.baseline !== null && x.baseline !== null && y.baseline !== null;
  plots[k].setAttribute("aria-label", `plot of ${y.title} over ${x.title}`);
  const height = heightOf(plots[k]), below = titleLines(x, plots[k].clientWidth - 86);
  const beside = titleLines(y, height - 84);
  plots[k].style.height = `${height}px`;
  const margin = {l: 54 + 16 * beside.length, r: 16, t: 30, b: 38 + 16 * below.length};
  const layout = {height, margin, showlegend: false, dragmode: "zoom",
    hovermode: "closest", font: {family: FONT, size: 12, color: INK}, paper_bgcolor: "white", plot_bgcolor: "white",
    hoverlabel: {font: {family: FONT, size: 12}, align: "left", bgcolor: "white"}, xaxis: axisLayout(x, below),
    yaxis: axisLayout(y, beside), annotations: named ? [pointOut(x, y)] : [], selections: [],
    uirevision: state.plots[k].join(" "), selectionrevision: picks};
  drawing += 1;
  const done = () => { drawing -= 1; };
  return Plotly.react(plots[k], traces(x, y), layout, {displaylogo: false, responsive: true}).then(done, done);
}
function listen(k) {
  const pick = (lasso) => {
    if (drawing) return;
    picks += 1;
    state.lasso = lasso;
    setTimeout(changed, 0); /* after plotly has finished with the event */
  };
  plots[k].on("plotly_selected", (event) => {
    if (event) pick(new Set(event.points.map(designAt).filter((i) => i !== null)));
  });
  plots[k].on("plotly_deselect", () => pick(null));
  plots[k].on("plotly_hover", (event) => light(event.points[0]));
  plots[k].on("plotly_unhover", () => light(null));
  plots[k].on("plotly_click", (event) => { const i = designAt(event.points[0]); if (i !== null) openFile(i); });
}
const designAt = (point) => 
  point && point.curveNumber === FRONT_TRACE ? point.pointIndex : null;
function light(point) { state.lit = designAt(point); drawLines(); }
