// Light or dark: what the system says until the reader chooses, which is remembered. early.js sets it before the first paint.

const THEMES = ["", "light", "dark"];
const NAMES = { "": "Theme: auto", light: "Theme: light", dark: "Theme: dark" };

/** Make a button change the theme. */
export function connectTheme(button) {
  const root = document.documentElement;
  const show = () => (button.textContent = NAMES[root.dataset.theme] ?? NAMES[""]);
  button.addEventListener("click", () => {
    root.dataset.theme = THEMES[(THEMES.indexOf(root.dataset.theme) + 1) % THEMES.length];
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      // the browser keeps nothing; the theme lasts as long as the page
    }
    show();
  });
  show();
  button.hidden = false;
}
