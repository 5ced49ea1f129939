/* The explorer of a page: plots of any two objectives, coloured by a third, linked to parallel coordinates. Its data
   come from findings_explorer.py as JSON; it loads nothing. Text from the data enters HTML through textContent or
   escaped(). */
"use strict";
(() => {
  const INK = "#222222", GREY = "#666666", GRID = "#E8E8E8", CLOUD = "#C9CED6";
  const BASELINE = "#D55E00", FRONT = "#0072B2", DROPPED = "#E4E6EA";
  const VIRIDIS = ["#440154", "#482878", "#3E4989", "#31688E", "#26828E", "#1F9E89", "#35B779", "#6DCD59", "#B4DE2C",
    "#FDE725"];
  const FONT = getComputedStyle(document.body).fontFamily;
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("explorer-data").textContent);

  /* --- Columns ------------------------------------------------------------------------------------------------- */

  function unpacked(text, Kind) {
    return new Kind(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  }
  for (const o of data.objectives) {
    o.front = unpacked(o.front, Float32Array);
    o.cloud = unpacked(o.cloud, Float32Array);
    o.title = o.unit ? `${o.label} [${o.unit}]` : o.label;
    o.place = (value) => placeOn(o.scale, value);
  }
  for (const a of data.axes) {
    a.front = unpacked(a.front, Uint32Array);
    a.cloud = unpacked(a.cloud, Uint32Array);
    a.title = a.unit ? `${a.name} [${a.unit}]` : a.name;
    a.places = a.texts.map((text, i) => a.scale ? placeOn(a.scale, a.scale.numbers[i]) : (i + 0.5) / a.texts.length);
  }
  data.number = unpacked(data.number, Uint32Array);
  for (const line of data.files.lines) line.codes = unpacked(line.codes, Uint32Array);
  const size = data.number.length;
  const letters = new Map(data.chosen.map((c) => [c.front, c]));

  /* Place on an axis, 0 (low end) to 1. */
  function placeOn(scale, value) {
    const at = scale.type === "log" ? Math.log10(value) : value;
    return (at - scale.range[0]) / (scale.range[1] - scale.range[0]);
  }

  /* --- Words --------------------------------------------------------------------------------------------------- */

  const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
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

  /* --- State --------------------------------------------------------------------------------------------------- */

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

  /* --- Colour -------------------------------------------------------------------------------------------------- */

  /* What colours designs: [place 0 to 1 of each, title, low text, high text], or null for one colour. */
  function colouring() {
    if (state.colour === "") return null;
    const index = Number(state.colour.slice(1));
    if (state.colour[0] === "a") {
      const a = data.axes[index], last = Math.max(a.texts.length - 1, 1);
      return [Float32Array.from(a.front, (code) => code / last), a.title, a.texts[0], a.texts[a.texts.length - 1]];
    }
    const o = data.objectives[index], log = o.scale.type === "log";
    const at = Float32Array.from(o.front, (v) => log ? Math.log10(v) : v);
    const low = at.reduce((a, b) => Math.min(a, b), Infinity), high = at.reduce((a, b) => Math.max(a, b), -Infinity);
    const text = (v) => number(log ? 10 ** v : v);
    return [at.map((v) => high > low ? (v - low) / (high - low) : 0.5), o.title, text(low), text(high)];
  }
  function shade(place) {
    const at = Math.min(Math.max(place, 0), 1) * (VIRIDIS.length - 1), i = Math.min(Math.floor(at), VIRIDIS.length - 2);
    const part = (hex, k) => parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16);
    const mix = [0, 1, 2].map((k) => Math.round(part(VIRIDIS[i], k) + (at - i) * (part(VIRIDIS[i + 1], k) - part(VIRIDIS[i], k))));
    return `rgb(${mix.join(",")})`;
  }
  function drawColourBar() {
    const colours = colouring(), bar = byId("colour-bar");
    const inks = colours === null ? [FRONT, FRONT, FRONT] : [VIRIDIS[1], VIRIDIS[5], VIRIDIS[8]];
    byId("key-front").querySelectorAll("circle").forEach((circle, i) => circle.setAttribute("fill", inks[i]));
    bar.hidden = colours === null;
    if (colours === null) return;
    bar.querySelector(".low").textContent = colours[2];
    bar.querySelector(".high").textContent = colours[3];
    bar.querySelector(".ramp").style.background = `linear-gradient(to right, ${VIRIDIS.join(",")})`;
  }

  /* --- Plots --------------------------------------------------------------------------------------------------- */

  const FRONT_TRACE = 2; /* its place among the traces */
  const plots = state.plots.map((_, k) => byId(`explorer-plot-${k}`));

  /* The front without what another design betters in x and y alone; all of its edge is among the designs drawn. */
  function edgeOf(x, y) {
    const order = Array.from({length: size}, (_, i) => i);
    order.sort((i, j) => x.sign * (x.front[i] - x.front[j]) || y.sign * (y.front[i] - y.front[j]));
    let best = Infinity;
    return order.filter((i) => y.sign * y.front[i] < best && ((best = y.sign * y.front[i]), true));
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
    const ring = {size: 15, color: "white", line: {width: 1.5, color: INK}};
    const diamond = {size: 15, symbol: "diamond", color: BASELINE, line: {width: 1.5, color: "white"}};
    /* Where 80 % of measured values would lie, of the baseline and the chosen designs; nothing where none is known. */
    const bar = (o, value, color) => o.interval === null ? {visible: false} : {type: "data", symmetric: false, color,
      thickness: 1, width: 3, array: [(o.interval[1] - 1) * value], arrayminus: [(1 - o.interval[0]) * value]};
    const bars = (xv, yv, color) => ({error_x: bar(x, xv, color), error_y: bar(y, yv, color)});
    const at = {x: [x.baseline], y: [y.baseline], mode: "markers"};
    const base = data.baseline === null ? [] : [
      {...at, hoverinfo: "skip", marker: diamond, ...bars(x.baseline, y.baseline, BASELINE), ...faint(1)},
      {...at, ...answers, text: [baselineText], marker: {size: 6, opacity: 0}, ...faint(0)},
    ];
    return [
      {x: x.cloud, y: y.cloud, text: cloudText, mode: "markers", marker: cloud, ...answers, ...faint(0.6)},
      {x: edge.map((i) => x.front[i]), y: edge.map((i) => y.front[i]), mode: "lines", hoverinfo: "skip",
        line: {color: INK, width: 1.2, shape: x.sign > 0 ? "hv" : "vh"}},
      {x: x.front, y: y.front, text: frontText, mode: "markers", marker, selectedpoints: selected, ...answers,
        ...faint(0.05)},
      ...data.chosen.map((c) => ({...point(c.front), text: [c.letter], mode: "markers+text", hoverinfo: "skip",
        ...bars(x.front[c.front], y.front[c.front], GREY),
        textfont: {size: 10, color: INK}, marker: ring, ...faint(1)})),
      ...base,
    ];
  }
  function axisLayout(o) {
    const scale = {...o.scale};
    if (!scale.tickvals && scale.range[1] >= 1000) scale.tickformat = ",~f";
    return {...scale, title: {text: escaped(o.trust ? `${o.title}, ${o.trust}` : o.title), standoff: 8}, tickangle: 0, showline: true, linecolor: GREY,
      ticks: "outside", ticklen: 4, zeroline: false, gridcolor: GRID};
  }
  /* The baseline's name beside its diamond, on the worse side, where no front is. */
  function pointOut(x, y) {
    const at = (o) => o.scale.type === "log" ? Math.log10(o.baseline) : o.baseline;
    const side = x.place(x.baseline) > 0.75 ? -1 : x.place(x.baseline) < 0.25 ? 1 : x.sign;
    return {x: at(x), y: at(y), text: escaped(data.baseline), ax: 34 * side, ay: -38 * y.sign, arrowcolor: BASELINE,
      arrowwidth: 1.4, arrowhead: 0, standoff: 8, font: {color: BASELINE, size: 12}, bgcolor: "rgba(255,255,255,0.85)",
      borderpad: 2, xanchor: side > 0 ? "left" : "right"};
  }
  let picks = 0; /* boxes and lassos so far: a new number lets plotly forget their outlines */
  let drawing = 0; /* plots being drawn: what they say of selections meanwhile is not a reader's doing */
  function drawPlot(k) {
    const [x, y] = state.plots[k].map((i) => data.objectives[i]);
    const layout = {height: 470, margin: {l: 70, r: 16, t: 30, b: 54}, showlegend: false, dragmode: "zoom",
      hovermode: "closest", font: {family: FONT, size: 12, color: INK}, paper_bgcolor: "white", plot_bgcolor: "white",
      hoverlabel: {font: {family: FONT, size: 12}, align: "left", bgcolor: "white"}, xaxis: axisLayout(x),
      yaxis: axisLayout(y), annotations: data.baseline === null ? [] : [pointOut(x, y)], selections: [],
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

  /* --- Parallel coordinates ------------------------------------------------------------------------------------ */

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
    const strip = svgNode("rect", {x: x - 14, width: 28, y: 0, height: HEIGHT, class: "strip", "data-dimension": d}, group);
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

  /* --- Design files -------------------------------------------------------------------------------------------- */

  function fileOf(i) {
    const lines = data.files.lines.map((line) => `${line.name} = ${line.literals[line.codes[i]]}`);
    return [data.files.head.replace("{number}", data.number[i]), ...lines].join("\n") + "\n";
  }
  /* By a selected field, which works in a page opened from a file in every browser; else by the clipboard's interface. */
  async function copy(text) {
    const field = document.createElement("textarea");
    field.value = text;
    (byId("file").open ? byId("file") : document.body).appendChild(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    if (done) return true;
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return false;
    }
  }
  function openFile(i) {
    byId("file-name").innerHTML = designName(i);
    byId("file-text").textContent = fileOf(i);
    byId("file-said").textContent = "";
    byId("file").showModal();
  }
  byId("file-copy").addEventListener("click", async () => {
    const done = await copy(byId("file-text").textContent);
    byId("file-said").textContent = done ? "copied" : "select the text and press Ctrl+C";
  });
  byId("file-close").addEventListener("click", () => byId("file").close());
  document.addEventListener("click", async (event) => { /* the tables may stand after this script */
    const button = event.target.closest("button[data-front]");
    if (!button) return;
    const i = data.number.indexOf(Number(button.dataset.front) + 1);
    if (!await copy(fileOf(i))) { openFile(i); return; }
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });

  /* --- Controls ------------------------------------------------------------------------------------------------ */

  function options(select, entries, value) {
    for (const [key, text] of entries) select.appendChild(new Option(text, key, false, key === value));
  }
  function choosers() {
    const objectives = data.objectives.map((o, i) => [String(i), o.title]);
    state.plots.forEach((pair, k) => [0, 1].forEach((side) => {
      const select = byId(`explorer-${k}-${"xy"[side]}`);
      options(select, objectives, String(pair[side]));
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
})();
