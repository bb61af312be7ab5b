// How charts write numbers and colour lines: the console's, and those of the pipeline's pages.

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function binary(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? value.toFixed(0) : value.toFixed(1)} ${units[unit]}`;
}

function shown(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit.startsWith("bytes")) return binary(value) + unit.slice("bytes".length);
  const isWhole = value >= 10 || Number.isInteger(value);
  return `${isWhole ? Math.round(value).toLocaleString("en") : value.toFixed(1)} ${unit}`.trim();
}

// Round ticks: powers of two for bytes, of ten for others.
function splits(unit) {
  if (!unit.startsWith("bytes")) return undefined;
  return (plot, axis, least, most) => {
    let step = 1;
    while (most / step > 5) step *= 2;
    const ticks = [];
    for (let tick = 0; tick <= most; tick += step) ticks.push(tick);
    return ticks;
  };
}
