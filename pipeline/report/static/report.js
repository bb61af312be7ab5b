// Draws the charts of a report from the data in the page.

const LABEL_CHARACTERS_MAX = 24;
const LABEL_HEAD = 8;
const CHARACTER_PX = 7;
const TURNED_PX = 22;

// Long labels lose their middle, because topics often begin alike. Those that then look the same are numbered.
function shortened(labels) {
  const tail = LABEL_CHARACTERS_MAX - LABEL_HEAD - 1;
  const cut = labels.map((label) =>
    label.length > LABEL_CHARACTERS_MAX ? `${label.slice(0, LABEL_HEAD)}…${label.slice(-tail)}` : label);
  if (new Set(cut).size === new Set(labels).size) return cut;
  return cut.map((label, index) => `${index + 1}: ${label}`);
}

// Values as they are drawn: with stacked bars each series stands on those before it.
function drawn(spec) {
  if (!spec.stacked) return spec.series.map((each) => each.values);
  const sums = spec.labels.map(() => 0);
  return spec.series.map((each) => each.values.map((value, index) => (sums[index] += value ?? 0)));
}

function legend(spec) {
  const list = document.createElement("ul");
  list.className = "legend";
  spec.series.forEach((each, index) => {
    const item = document.createElement("li");
    const mark = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    mark.setAttribute("viewBox", "0 0 1 1");
    mark.setAttribute("aria-hidden", "true");
    const square = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    square.setAttribute("width", "1");
    square.setAttribute("height", "1");
    square.setAttribute("fill", colourOf(index));
    mark.append(square);
    item.append(mark, each.name);
    list.append(item);
  });
  return list;
}

function colourOf(index) {
  return colour(`--series-${(index % 8) + 1}`);
}

function drawReport(figure) {
  const spec = JSON.parse(figure.querySelector("script").textContent);
  const place = figure.querySelector(".plot");
  const unit = spec.unit === "bytes" ? "bytes" : "";
  const labels = shortened(spec.labels);
  const longest = Math.max(...labels.map((label) => label.length));
  const width = place.clientWidth;
  const isTurned = longest * CHARACTER_PX * labels.length > width - 100;
  const every = Math.max(1, Math.ceil((labels.length * TURNED_PX) / (width - 100)));
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  const paths = spec.line ? undefined : uPlot.paths.bars({ size: [0.7, 90] });
  const values = drawn(spec);
  const series = spec.series.map((each, index) => ({
    label: each.name,
    stroke: colourOf(index),
    fill: spec.line ? undefined : colourOf(index),
    width: spec.line ? 2 : 0,
    points: { show: false },
    paths,
  }));
  if (spec.stacked) {  // the highest sums first: the lower ones cover them
    values.reverse();
    series.reverse();
  }
  place.replaceChildren();
  new uPlot({
    width,
    height: 260 + (isTurned ? longest * 4 : 0),
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: false, range: [-0.6, labels.length - 0.4] },
      y: { range: (plot, least, most) => [0, most > 0 ? most * 1.05 : 1] },
    },
    series: [{}, ...series],
    axes: [
      {
        ...axis,
        grid: { show: false },
        splits: () => labels.map((label, index) => index).filter((index) => index % every === 0),
        values: (plot, ticks) => ticks.map((index) => labels[index]),
        rotate: isTurned ? 45 : 0,
        size: isTurned ? 30 + longest * 5 : 40,
      },
      { ...axis, size: 90, splits: splits(unit), values: (plot, ticks) => ticks.map((tick) => shown(tick, unit)) },
    ],
  }, [labels.map((label, index) => index), ...values], place);
  if (spec.series.length > 1) place.append(legend(spec));
}

function drawReports() {
  for (const figure of document.querySelectorAll("[data-report]")) drawReport(figure);
}

drawReports();
addEventListener("resize", drawReports);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawReports);
