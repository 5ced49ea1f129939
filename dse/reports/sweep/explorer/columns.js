/* The data as columns: values of the designs, on the front and not, and their places on an axis; shared inks. */

const INK = "#222222", GREY = "#666666", GRID = "#E8E8E8", CLOUD = "#C9CED6", REFUSED = "#A3AAB5";
const BASELINE = "#D55E00", FRONT = "#0072B2", DROPPED = "#E4E6EA";
const FONT = getComputedStyle(document.body).fontFamily;
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("explorer-data").textContent);

function unpacked(text, Kind) {
  return new Kind(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
}
for (const o of data.objectives) {
  o.front = unpacked(o.front, Float32Array);
  o.cloud = unpacked(o.cloud, Float32Array);
  o.infeasible = unpacked(o.infeasible, Float32Array);
  o.title = o.unit ? `${o.label} [${o.unit}]` : o.label;
  o.place = (value) => placeOn(o.scale, value);
}
for (const a of data.axes) {
  a.front = unpacked(a.front, Uint32Array);
  a.cloud = unpacked(a.cloud, Uint32Array);
  a.infeasible = unpacked(a.infeasible, Uint32Array);
  a.title = a.unit ? `${a.name} [${a.unit}]` : a.name;
  a.places = a.texts.map((text, i) => a.scale ? placeOn(a.scale, a.scale.numbers[i]) : (i + 0.5) / a.texts.length);
}
data.number = unpacked(data.number, Uint32Array);
for (const line of data.files.lines) line.codes = unpacked(line.codes, Uint32Array);
const size = data.number.length;
const letters = new Map(data.chosen.map((c) => [c.front, c]));

const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

/* Place on an axis, 0 (low end) to 1. */
function placeOn(scale, value) {
  const at = scale.type === "log" ? Math.log10(value) : value;
  return (at - scale.range[0]) / (scale.range[1] - scale.range[0]);
}
