/* The GPU file of any design. */

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
