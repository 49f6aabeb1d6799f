// Numbers and names as people read them.

/** 124439808n as "124,439,808". */
export const formatCount = (n) => n.toString().replace(/\B(?=(\d{3})+$)/g, ",");

/** 124439808n as "124.4M": one decimal, rounded half up. */
export function formatShort(n) {
  for (const [unit, letter] of [[10n ** 12n, "T"], [10n ** 9n, "B"], [10n ** 6n, "M"], [10n ** 3n, "K"]]) {
    if (n >= unit) {
      const tenths = (n * 20n + unit) / (2n * unit);
      return `${tenths / 10n}.${tenths % 10n}${letter}`;
    }
  }
  return n.toString();
}

/** Bytes in decimal units, as on a data sheet: "16.1 GB". */
export function formatBytes(n) {
  for (const [unit, name] of [[10n ** 12n, "TB"], [10n ** 9n, "GB"], [10n ** 6n, "MB"], [10n ** 3n, "kB"]]) {
    if (n >= unit) {
      const tenths = (n * 20n + unit) / (2n * unit);
      return `${formatCount(tenths / 10n)}.${tenths % 10n} ${name}`;
    }
  }
  return `${n} B`;
}

/** A share of a whole in percent: "31.0 %". */
export function formatShare(n, whole) {
  if (whole === 0n) return "";
  const thousandths = (n * 2000n + whole) / (2n * whole);
  return `${thousandths / 10n}.${thousandths % 10n} %`;
}

/** A formula with the values of its names in their place. */
export function fillFormula(formula, sizes) {
  return formula.replace(/[A-Za-z_][A-Za-z0-9_.]*/g, (name) => (name in sizes ? sizes[name].toString() : name));
}
