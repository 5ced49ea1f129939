/* What the explorer says of numbers and of designs. */

const whole = (value) => value.toLocaleString("en-US");

/* Three significant digits, whole numbers in full: as words.number. */
function number(value) {
  const size = Math.abs(value);
  if (value === 0 || (size >= 100 && size < 1e7)) return Math.round(value).toLocaleString("en-US");
  if (size >= 1e-3 && size < 100) return value.toFixed(2 - Math.floor(Math.log10(size)));
  return value.toPrecision(3);
}
function percent(value, base) {
  if (!(base > 0)) return "";
  const change = 100 * (value / base - 1);
  const text = Math.abs(change).toFixed(Math.abs(change) >= 9.95 ? 0 : 1);
  return ` (${Number(text) === 0 ? "" : change < 0 ? "−" : "+"}${text} %)`;
}
function hover(head, set, i) {
  const values = data.objectives.map((o) =>
    `<b>${escaped(o.label)} ${number(o[set][i])} ${escaped(o.unit)}</b>${percent(o[set][i], o.baseline)}`);
  const axes = data.axes.map((a) => `${a.name} ${escaped(a.texts[a[set][i]])} ${escaped(a.unit)}`);
  return [head, ...values, ...axes].join("<br>");
}
function designName(i) {
  const chosen = letters.get(i);
  return `Pareto design ${whole(data.number[i])}` + (chosen ? ` = ${chosen.letter}, ${escaped(chosen.name)}` : "");
}
const frontText = Array.from({length: size}, (_, i) => hover(designName(i), "front", i));
const baselineText = data.baseline === null ? "" : [`baseline: ${escaped(data.baseline)}`,
  ...data.objectives.map((o) => `<b>${escaped(o.label)} ${number(o.baseline)} ${escaped(o.unit)}</b>`),
  ...data.axes.map((a) => `${a.name} ${escaped(a.baseline.text)} ${escaped(a.unit)}`)].join("<br>");
const cloudText = data.objectives[0].cloud.length ?
  Array.from({length: data.objectives[0].cloud.length}, (_, i) => hover("feasible design, not Pareto", "cloud", i)) : [];
const infeasibleText = Array.from(data.reasons.codes, (code, i) =>
  hover(`cannot be had: ${escaped(data.reasons.texts[code])}`, "infeasible", i));
