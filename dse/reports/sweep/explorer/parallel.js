/* Parallel coordinates, brushed. */

const box = byId("parallel"), canvas = byId("parallel-lines"), svg = byId("parallel-axes"), names = byId("parallel-names");
const HEIGHT = 330, TOP = 12, BOTTOM = 12, SIDE = 62, NARROWEST = 84;
const svgNode = (tag, attributes, parent) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return parent.appendChild(node);
};
let width = 0;
const across = (d) => SIDE + d * (width - 2 * SIDE) / Math.max(dimensions.length - 1, 1);
const down = (place) => TOP + (1 - place) * (HEIGHT - TOP - BOTTOM);

function drawAxes() {
  width = Math.max(box.parentElement.clientWidth, 2 * SIDE + NARROWEST * (dimensions.length - 1));
  box.style.width = `${width}px`;
  const ratio = window.devicePixelRatio || 1;
  Object.assign(canvas, {width: width * ratio, height: HEIGHT * ratio});
  Object.assign(canvas.style, {width: `${width}px`, height: `${HEIGHT}px`});
  svg.setAttribute("width", width);
  svg.setAttribute("height", HEIGHT);
  svg.replaceChildren();
  names.replaceChildren();
  const room = Math.min((width - 2 * SIDE) / Math.max(dimensions.length - 1, 1), 2 * SIDE) - 6;
  dimensions.forEach((dimension, d) => { nameOf(dimension, d, room); axisOf(dimension, d); });
}
function nameOf(dimension, d, room) {
  const name = names.appendChild(document.createElement("div"));
  Object.assign(name.style, {left: `${across(d) - room / 2}px`, width: `${room}px`});
  const parts = dimension.title.split(/(?<=[_ ])/);
  const bold = name.appendChild(document.createElement("b"));
  parts.forEach((part) => { bold.append(part); bold.appendChild(document.createElement("wbr")); });
  for (const text of [dimension.unit && `[${dimension.unit}]`, dimension.note]) {
    if (!text) continue;
    const line = name.appendChild(document.createElement("span"));
    text.split(/(?<=[/ ])/).forEach((part) => { line.append(part); line.appendChild(document.createElement("wbr")); });
  }
}
function axisOf(dimension, d) {
  const x = across(d), group = svgNode("g", {}, svg);
  svgNode("line", {x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM, stroke: GREY}, group);
  for (const [place, text] of spaced(dimension.ticks)) {
    svgNode("line", {x1: x - 4, x2: x, y1: down(place), y2: down(place), stroke: GREY}, group);
    const label = svgNode("text", {x: x - 6, y: down(place) + 3.5, "text-anchor": "end"}, group);
    label.textContent = text.length > 9 ? `${text.slice(0, 8)}…` : text;
  }
  const brush = svgNode("rect", {x: x - 8, width: 16, class: "brush", visibility: "hidden"}, group);
  const strip = svgNode("rect", {x: x - 14, width: 28, y: 0, height: HEIGHT, class: "strip", "data-dimension": d,
    tabindex: 0, role: "button", "aria-label": `${dimension.title}: up and down narrow the range kept, escape lets it go`}, group);
  svgNode("title", {}, strip).textContent = `${dimension.title}: drag to keep a range, click to let go`;
  const show = () => {
    const range = state.brushes.get(d);
    brush.setAttribute("visibility", range ? "visible" : "hidden");
    if (!range) return;
    brush.setAttribute("y", down(range[1]));
    brush.setAttribute("height", Math.max(down(range[0]) - down(range[1]), 1));
  };
  show();
  brushing(strip, d, show);
}
/* Ticks at least 14 pixels apart, both ends among them. */
function spaced(ticks) {
  const ordered = [...ticks].sort((a, b) => a[0] - b[0]), last = ordered[ordered.length - 1];
  const shown = [];
  for (const tick of ordered) {
    const room = (other) => Math.abs(down(other[0]) - down(tick[0])) >= 14;
    if (tick === last || ((!shown.length || room(shown[shown.length - 1])) && room(last))) shown.push(tick);
  }
  return shown;
}
function brushing(strip, d, show) {
  let from = null, moved = false;
  const at = (event) => {
    const y = event.clientY - svg.getBoundingClientRect().top;
    return Math.min(Math.max(1 - (y - TOP) / (HEIGHT - TOP - BOTTOM), -0.02), 1.02);
  };
  strip.addEventListener("pointerdown", (event) => {
    from = at(event);
    moved = false;
    strip.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  strip.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const to = at(event);
    moved = moved || Math.abs(to - from) > 0.01;
    if (!moved) return;
    state.brushes.set(d, [Math.min(from, to), Math.max(from, to)]);
    show();
    requestAnimationFrame(drawLines);
  });
  strip.addEventListener("pointerup", () => {
    if (from === null) return;
    from = null;
    if (!moved) state.brushes.delete(d);
    show();
    changed();
  });
  strip.addEventListener("keydown", (event) => {
    const [low, high] = state.brushes.get(d) ?? [-0.02, 1.02];
    if (event.key === "ArrowUp") state.brushes.set(d, [Math.min(low + 0.1, high - 0.02), high]);
    else if (event.key === "ArrowDown") state.brushes.set(d, [low, Math.max(high - 0.1, low + 0.02)]);
    else if (event.key === "Escape") state.brushes.delete(d);
    else return;
    event.preventDefault();
    show();
    changed();
  });
  strip.addEventListener("pointercancel", () => { from = null; show(); changed(); });
}
function drawLines() {
  const pen = canvas.getContext("2d"), ratio = window.devicePixelRatio || 1, colours = colouring();
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, HEIGHT);
  const xs = dimensions.map((_, d) => across(d));
  const line = (at) => {
    pen.beginPath();
    xs.forEach((x, d) => { if (at(d) !== null) pen.lineTo(x, down(at(d))); });
    pen.stroke();
  };
  const design = (i) => line((d) => places[d][i]);
  const keeping = Array.from({length: size}, (_, i) => keeps(i));
  Object.assign(pen, {lineWidth: 1, lineJoin: "round", globalAlpha: 0.6, strokeStyle: DROPPED});
  if (filtered()) for (let i = 0; i < size; i++) if (!keeping[i]) design(i);
  const count = keeping.filter(Boolean).length;
  pen.globalAlpha = count > 1000 ? 0.3 : count > 100 ? 0.5 : 0.8;
  for (let i = 0; i < size; i++) {
    if (!keeping[i]) continue;
    pen.strokeStyle = colours ? shade(colours[0][i]) : FRONT;
    design(i);
  }
  pen.globalAlpha = 1;
  Object.assign(pen, {lineWidth: 2.5, strokeStyle: BASELINE});
  if (data.baseline !== null) line((d) => dimensions[d].baseline);
  Object.assign(pen, {lineWidth: 2, strokeStyle: INK});
  if (state.lit !== null) design(state.lit);
  const all = whole(size), some = count === size ? `all ${all}` : `${whole(count)} of ${all}`;
  byId("kept").textContent = `${some} Pareto designs drawn are kept`;
  byId("clear").hidden = !filtered();
}
