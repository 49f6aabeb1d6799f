// Numbers and names as people read them.

/** 124439808n as "124,439,808". */
export const formatCount = (n) => n.toString().replace(/\B(?=(\d{3})+$)/g, ",");

const LETTERS = [["T", 10n ** 12n], ["B", 10n ** 9n], ["M", 10n ** 6n], ["K", 10n ** 3n]];
const BYTES = [[" TB", 10n ** 12n], [" GB", 10n ** 9n], [" MB", 10n ** 6n], [" kB", 10n ** 3n]];

/** Three significant digits, or all of those before the point, rounded half up, as the command line has them. */
function scale(n, units) {
  const i = units.findIndex(([, size]) => n >= size);
  if (i < 0) return null;
  let [unit, size] = units[i];
  let decimals = 2n;
  const round = () => (n * 10n ** decimals * 2n + size) / (2n * size);
  while (decimals > 0n && round() >= 1000n) decimals -= 1n;
  let rounded = round();
  if (rounded >= 1000n && i > 0) [unit, rounded, decimals] = [units[i - 1][0], 100n, 2n]; // 999.9M is 1.00B
  const digits = rounded.toString();
  const whole = digits.slice(0, digits.length - Number(decimals));
  return (decimals ? `${whole}.${digits.slice(-Number(decimals))}` : formatCount(rounded)) + unit;
}

/** 124439808n as "124M". */
export const formatShort = (n) => scale(n, LETTERS) ?? n.toString();

/** Bytes in decimal units, as on a data sheet: "16.1 GB". */
export const formatBytes = (n) => scale(n, BYTES) ?? `${n} B`;

/** A share of a whole in percent: "31.0%". */
export function formatShare(n, whole) {
  if (whole === 0n) return "";
  const thousandths = (n * 2000n + whole) / (2n * whole);
  return `${thousandths / 10n}.${thousandths % 10n}%`;
}

/** A formula with the values of its names in their place. */
export function fillFormula(formula, sizes) {
  return formula.replace(/[A-Za-z_][A-Za-z0-9_.]*/g, (name) => (name in sizes ? formatCount(sizes[name]) : name));
}
