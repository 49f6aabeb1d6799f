// Copies: of a text, of a number with all of its digits.

import { formatCount } from "./format.js";

/** Whether the browser took the text to its clipboard. */
export async function copyText(content) {
  try {
    await navigator.clipboard.writeText(content);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = content;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/**
 * What is copied has all digits of the numbers that the page shows in short, and so has what a click on one of them copies.
 * `tell` is given a sentence about it.
 */
export function connectCopies(tell) {
  addEventListener("click", (event) => {
    const number = event.target.closest?.("[data-copy]");
    if (!number || !getSelection().isCollapsed) return;
    copyText(number.dataset.copy).then((done) =>
      tell(done ? `Copied ${formatCount(number.dataset.copy)}` : "The browser did not allow copying"),
    );
  });
  addEventListener("copy", (event) => {
    const selection = getSelection();
    if (selection.isCollapsed || event.target.closest?.("input, textarea")) return;
    const copy = document.createElement("div");
    copy.append(selection.getRangeAt(0).cloneContents());
    const numbers = copy.querySelectorAll("[data-copy]");
    const ancestor = selection.getRangeAt(0).commonAncestorContainer;
    const inside = (ancestor.closest ? ancestor : ancestor.parentElement)?.closest("[data-copy]");
    if (inside) copy.textContent = inside.dataset.copy;
    else if (!numbers.length) return;
    numbers.forEach((number) => (number.textContent = number.dataset.copy));
    copy.style.position = "fixed";
    document.body.append(copy); // innerText needs a layout, for the tabs between cells
    event.clipboardData.setData("text/plain", copy.innerText);
    copy.remove();
    event.preventDefault();
  });
}
