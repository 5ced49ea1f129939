// While the screen is narrow, figures have the layout that they hold for it; else the one that they came with.
(() => {
  const narrow = matchMedia("(max-width: 600px)");
  const figures = [...document.querySelectorAll("script.narrow")].map((script) => {
    const figure = document.getElementById(script.dataset.of);
    return { figure, changes: JSON.parse(script.textContent), wide: JSON.stringify(figure.layout) };
  });
  const fit = () => {
    for (const { figure, changes, wide } of figures) {
      const layout = JSON.parse(wide);
      const height = narrow.matches ? changes.height : layout.height;
      figure.style.height = figure.parentElement.style.height = `${height}px`;
      if (narrow.matches) Plotly.relayout(figure, changes);
      else Plotly.react(figure, figure.data, layout);
    }
  };
  if (narrow.matches) fit();
  narrow.addEventListener("change", fit);
})();
