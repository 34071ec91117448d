// The console's lines, shapes and meters.
"use strict";

function svg(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made;
}

function meter(share) {
  const bar = element("span", undefined, { class: "meter", "aria-hidden": "true" });
  const part = element("i");
  part.style.width = `${Math.min(100, 100 * share)}%`;
  bar.append(part);
  return bar;
}

const LINE_WIDTH = 300; // of the lines' boxes, for the last five minutes

// A line over the last five minutes from 0 to the most of them, its axis, and what it says in words. A sample stands at
// its own time; while none came, as from an exchange that was stopped or to a page that slept, there is no line.
function showLine(id, pick, word, unit = "") {
  const values = state.samples.map(pick);
  const most = Math.max(...values.filter((value) => value !== undefined), 0);
  const now = performance.now();
  let path = "";
  let drawn;
  values.forEach((value, index) => {
    const { at } = state.samples[index];
    if (value !== undefined) {
      const x = LINE_WIDTH * (1 - (now - at) / KEPT_MS);
      const y = 38 - (most ? 36 * (value / most) : 0);
      // A point alone gets a short line, or nobody sees it.
      const from = at - drawn <= STALE_MS ? "" : `M${(x - 0.5).toFixed(1)} ${y.toFixed(1)}`;
      path += `${from}L${x.toFixed(1)} ${y.toFixed(1)}`;
    }
    drawn = value === undefined ? undefined : at;
  });
  const latest = values.at(-1);
  write(id, word(latest));
  write(`${id}-most`, `at most ${word(most || undefined)}`);
  write(`${id}-top`, most ? `${word(most)}${unit}` : "–");
  write(`${id}-zero`, `0${unit || " µs"}`);
  $(`${id}-line`).setAttribute("aria-label", `now ${word(latest)}, at most ${word(most || undefined)} in the last five minutes`);
  $(`${id}-line`).replaceChildren(svg("path", { d: path }));
}

// How durations are spread between 0.1 µs and 100 ms, each step of the same ratio.
function shape(counts) {
  const bins = new Array(48).fill(0);
  for (const [ns, count] of counts) {
    const at = (Math.log10(Math.max(ns, 1)) - 2) / 6;
    bins[Math.min(47, Math.max(0, Math.floor(at * 48)))] += count;
  }
  const most = Math.max(...bins, 1);
  const points = bins.map((bin, index) => `L${index + 0.5} ${(20 - 19 * Math.sqrt(bin / most)).toFixed(1)}`);
  const made = svg("svg", { class: "shape", viewBox: "0 0 48 20", preserveAspectRatio: "none", "aria-hidden": "true" });
  made.append(svg("path", { d: `M0 20${points.join("")}L48 20Z` }));
  return made;
}
