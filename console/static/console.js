// Charts over time. Each figure names the address of its samples: two arrays, seconds since 1970 and values.
// `colour`, `shown` and `splits` are in axes.js.

const REPEAT_MS = 15000;
function draw(figure, data) {
  const unit = figure.dataset.unit;
  const place = figure.querySelector(".plot");
  const latest = figure.querySelector(".latest");
  const known = data[1].filter((value) => value !== null);
  if (known.length < 2) {
    latest.textContent = "The chart begins with the second sample, within half a minute.";
    return;
  }
  const numbers = minutes(data).map(([time, value]) => row(time, shown(value, unit)));
  figure.querySelector("tbody").replaceChildren(...numbers);
  latest.textContent = `Now ${shown(known.at(-1), unit)}, at most ${shown(Math.max(...known), unit)} in the time shown.`;
  const width = place.clientWidth;
  if (figure.plot && figure.plot.width === width) {
    figure.plot.setData(data);
    return;
  }
  if (figure.plot) figure.plot.destroy();
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  figure.plot = new uPlot({
    width,
    height: 180,
    legend: { show: false },
    scales: { y: { range: (plot, least, most) => [0, most > 0 ? most * 1.1 : 1] } },
    series: [{}, { stroke: colour("--bar-1"), fill: `${colour("--bar-1")}33`, width: 2, points: { show: false } }],
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    axes: [{ ...axis, space: 90, values: clock }, { ...axis, size: room, splits: splits(unit), values: (plot, ticks) => ticks.map((tick) => shown(tick, unit)) }],
  }, data, place);
}

// The width of the values beside the curve: the longest one is not cut off.
function room(plot, values) {
  return 16 + 7 * Math.max(6, ...(values ?? []).map((each) => each.length));
}

// The latest sample of each minute, the newest first: what the curve shows, for those who do not see it.
function minutes([times, values]) {
  const found = new Map();
  times.forEach((time, index) => {
    if (values[index] !== null) found.set(new Date(time * 1000).toISOString().slice(0, 16).replace("T", " "), values[index]);
  });
  return [...found].reverse();
}

function row(time, value) {
  const made = document.createElement("tr");
  made.insertCell().textContent = time;
  const number = made.insertCell();
  number.className = "number";
  number.textContent = value;
  return made;
}

// UTC, as every other time of the pages.
function clock(plot, ticks, axis, space, step) {
  return ticks.map((tick) => new Date(tick * 1000).toISOString().slice(11, step < 60 ? 19 : 16));
}

async function update(figure) {
  const answer = await fetch(figure.dataset.chart, { headers: { Accept: "application/json" } });
  if (answer.ok) draw(figure, await answer.json());
}

function updateAll() {
  if (document.hidden) return;
  for (const figure of document.querySelectorAll("[data-chart]")) {
    update(figure).catch((error) => {
      figure.querySelector(".latest").textContent = `No new samples: ${error.message}`;
    });
  }
}

updateAll();
setInterval(updateAll, REPEAT_MS);
addEventListener("resize", updateAll);
document.addEventListener("visibilitychange", updateAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const figure of document.querySelectorAll("[data-chart]")) {
    if (figure.plot) figure.plot.destroy();
    figure.plot = undefined;
  }
  updateAll();
});

// The newest segments are at the right end of a picture that is wider than the screen.
for (const picture of document.querySelectorAll(".segments")) picture.scrollLeft = picture.scrollWidth;

// A list that a stream of server-sent events fills: `rows` are rows of the table, `progress` a sentence, `end` the end.

function follow(section) {
  const rows = section.querySelector("[data-rows]");
  const progress = section.querySelector("[data-progress]");
  const button = section.querySelector("[data-stop]");
  const most = Number(section.dataset.most);
  const pause = button.textContent;
  let source = null;

  function stop(sentence) {
    if (source) source.close();
    source = null;
    if (sentence) progress.textContent = `${sentence} ${progress.textContent}`;
    if (button.dataset.resume) button.textContent = button.dataset.resume;
    else button.disabled = true;
  }

  function start() {
    progress.textContent = "";
    button.textContent = pause;
    source = new EventSource(section.dataset.stream);
    source.addEventListener("rows", (event) => {
      const parsed = document.createElement("template");
      parsed.innerHTML = event.data;
      const fresh = [...parsed.content.querySelectorAll("tr")];
      if ("newestFirst" in section.dataset) rows.prepend(...fresh.reverse());
      else rows.append(...fresh);
      while (rows.children.length > most) rows.lastElementChild.remove();
    });
    source.addEventListener("progress", (event) => { progress.textContent = event.data; });
    source.addEventListener("end", () => stop("Done."));
    source.addEventListener("error", () => stop("The connection has ended."));
  }

  button.addEventListener("click", () => { if (source) stop("Stopped."); else start(); });
  start();
}

for (const section of document.querySelectorAll("[data-stream]")) follow(section);
