// Before the first paint: the theme that the reader chose, and no start where the address names another view.
document.documentElement.dataset.theme = (() => { try { return localStorage.getItem("theme") ?? ""; } catch { return ""; } })();
document.documentElement.dataset.start = /^#?(start)?$/.test(location.hash);
