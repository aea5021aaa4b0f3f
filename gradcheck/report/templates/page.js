const form = document.getElementById("filter"), cases = [...document.querySelectorAll("li.case")].map(
  (item) => ({ item, ...item.dataset, text: item.textContent.toLowerCase() }));
const parts = [...form.querySelectorAll(".counts button")];
const chosen = (name) => form.elements[name]?.value ?? "";

function apply() {
  const picked = new Set(parts.filter((part) => part.ariaPressed === "true").map((part) => part.value));
  const text = chosen("text").trim().toLowerCase(), [backend, tag, file] = ["backend", "tag", "file"].map(chosen);
  let count = 0;
  for (const one of cases) {
    const shown = (!picked.size || picked.has(one.status)) && (!backend || one.backend === backend)
      && (!tag || one.tags.split(" ").includes(tag)) && (!file || one.file === file) && one.text.includes(text);
    one.item.hidden = !shown;
    count += shown;
  }
  const active = Boolean(picked.size || text || backend || tag || file);
  for (const box of document.querySelectorAll("main section, details.fold")) {
    box.hidden = !box.querySelector("li.case:not([hidden])");
    if (box.matches("details")) box.open = active;  // matches must not stay folded
  }
  form.elements.count.value = active ? `${count} of ${cases.length} cases` : "";
}

function reveal() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  for (let box = target; box; box = box.parentElement) if (box.matches("details")) box.open = true;
  for (const box of target.querySelectorAll(":scope > details")) box.open = true;
  target.scrollIntoView();
}

let next = 0;  // letters typed quickly start only one search
const soon = () => { cancelAnimationFrame(next); next = requestAnimationFrame(apply); };
form.addEventListener("input", soon);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => { for (const part of parts) part.ariaPressed = "false"; soon(); });
for (const part of parts) {
  part.disabled = false;
  part.addEventListener("click", () => { part.ariaPressed = String(part.ariaPressed !== "true"); apply(); });
}
for (const control of document.querySelectorAll(".by, button.copy")) control.hidden = false;
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.matches("input, select")) return;
  event.preventDefault();
  form.elements.text.focus();
});
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const text = button.value ? new URL(button.value, location).href : button.previousElementSibling.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  } catch {  // only pages from this machine or over https may
    prompt("To copy:", text);
  }
});
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("#failures details:not([open])")];
  for (const box of closed) box.open = true;
});
addEventListener("afterprint", () => { for (const box of closed) box.open = false; });
addEventListener("hashchange", reveal);
reveal();
