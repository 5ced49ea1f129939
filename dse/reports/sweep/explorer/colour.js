/* The colours of designs, and their bar. */

const VIRIDIS = ["#440154", "#482878", "#3E4989", "#31688E", "#26828E", "#1F9E89", "#35B779", "#6DCD59", "#B4DE2C",
  "#FDE725"];

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
