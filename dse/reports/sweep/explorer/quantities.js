/* What a plot has across and upwards: objectives first, then the axes of the space. */

data.reasons.codes = unpacked(data.reasons.codes, Uint32Array);

/* An axis as a quantity: its values as numbers, words by their places; neither end of it is better. */
function quantityOf(a) {
  const numbers = a.scale ? a.scale.numbers : a.texts.map((_, i) => i);
  const scale = a.scale ? {...a.scale} : {type: "linear", range: [-0.5, a.texts.length - 0.5],
    tickvals: numbers, ticktext: a.texts.map(escaped)};
  delete scale.numbers;
  const values = (codes) => Float32Array.from(codes, (code) => numbers[code]);
  const place = a.baseline === null ? -1 : a.texts.indexOf(a.baseline.text);
  return {label: a.name, title: a.title, unit: a.unit, trust: "", interval: null, sign: 0, scale,
    front: values(a.front), cloud: values(a.cloud), infeasible: values(a.infeasible),
    baseline: a.baseline === null ? null : a.scale ? a.baseline.number : place < 0 ? null : place,
    place: (value) => placeOn(scale, value)};
}
const quantities = [...data.objectives, ...data.axes.map(quantityOf)];
