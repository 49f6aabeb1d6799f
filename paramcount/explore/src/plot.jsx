// A chart of Observable Plot as a component.

import { barX, dot, lineY, plot, ruleX, selectLast, stackX, text } from "@observablehq/plot";
import { useLayoutEffect, useRef } from "preact/hooks";

/** `make(width)` returns the options of a plot; it is drawn again when `of` or the width changes. */
export function Chart({ label, make, of }) {
  const box = useRef(null);
  useLayoutEffect(() => { // before the first paint, so that nothing below moves
    const draw = () => {
      if (!box.current) return;
      const width = Math.max(280, Math.floor(box.current.clientWidth));
      const figure = plot({ width, ...make(width) });
      const svg = figure.matches("svg") ? figure : figure.querySelector(":scope > svg");
      for (const mark of svg.querySelectorAll("[aria-label]")) mark.removeAttribute("aria-label"); // only roles may have one
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", label);
      box.current.replaceChildren(figure);
    };
    draw();
    const observer = new ResizeObserver(draw);
    observer.observe(box.current.parentElement);
    return () => observer.disconnect();
  }, of);
  return (
    <figure>
      <figcaption>{label}</figcaption>
      <div ref={box} />
    </figure>
  );
}

export { barX, dot, lineY, ruleX, selectLast, stackX, text };
