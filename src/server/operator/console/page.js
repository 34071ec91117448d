// The console: asks the listener that it came from once a second, keeps five minutes of answers, and
// shows them. Data becomes text nodes and attributes only; the page's policy refuses anything else.
//
//   ask     one round of questions, and the token
//   memory  samples of the last minutes, and differences between two of them
//   show    one function for each part of the page; the machine's is in machine.js, lines and
//           shapes are in charts.js, and what is wrong or slowest is said in words.js
"use strict";

const EVERY_MS = 1000;
const PATIENCE_MS = 5000;
const KEPT_MS = 300 * EVERY_MS; // samples of rates: five minutes
const KEPT_WHOLE = 61; // samples with all buckets: what the longest window needs
const RARELY = 10; // rounds between two questions whose answers hardly change
const LEVELS = 12; // of a side; those past them are shown as a sum
const STALE_MS = 4 * EVERY_MS;
const TOKEN = "outcry.token";

const $ = (id) => document.getElementById(id);

// ---- ask

// An answer that was no success, as an error that has its status.
const refused = (status, text) => Object.assign(new Error(text), { status });

async function ask(path) {
  const token = sessionStorage.getItem(TOKEN);
  const answer = await fetch(path, {
    cache: "no-store",
    credentials: "omit",
    headers: token ? { Authorization: `Bearer ${token}` } : {},
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  if (answer.ok || path === "/ready") return answer;
  let text = `${answer.status}`;
  try {
    text = (await answer.json()).error;
  } catch { /* its status has to do */ }
  throw refused(answer.status, text);
}

const json = async (path) => (await ask(path)).json();
const state = {
  round: 0, samples: [], machine: null, limits: null, ready: null, book: null, market: "", outcome: 0,
  bookWords: "", answeredAt: 0, fault: "",
};

async function round() {
  try {
    state.ready = await json("/ready");
    state.fault = "";
    if (!$("door").hidden && !sessionStorage.getItem(TOKEN)) return;
    const rarely = state.round % RARELY === 0;
    // The first answer is nothing: it is looked up for the next one.
    if (rarely || !state.machine) state.machine = (await json("/machine")) ?? state.machine;
    if (rarely) state.limits = await json("/limits");
    const metrics = await (await ask("/metrics")).text();
    remember(parseMetrics(metrics), await json("/debug/latency?counts=true"));
    // During a recovery there are no books, and everything else is there.
    if (state.ready.ready || state.ready.disk === "hangs") {
      if (rarely) showMarkets(await json("/books"));
      await readBook();
      state.round += 1;
    }
    state.answeredAt = performance.now();
    [$("door").hidden, $("inside").hidden] = [true, false];
  } catch (error) {
    if (error.status === 401) closeDoor();
    else state.fault = error.status ? error.message : "no answer";
  }
}

async function readBook() {
  const { market } = state;
  if (!market) return;
  let [book, words] = [null, ""];
  try {
    book = await json(`/books/${encodeURIComponent(market)}`);
  } catch (error) {
    if (!error.status || error.status === 401) throw error;
    words = error.message;
  }
  // Another one was picked meanwhile, and the next round is about that.
  if (state.market !== market) return;
  [state.book, state.bookWords] = [book, words];
  if (book) state.market = String(book.marketId);
}

function closeDoor() {
  const tried = sessionStorage.getItem(TOKEN) !== null;
  sessionStorage.removeItem(TOKEN);
  $("door-words").textContent = tried ? "That is not this exchange's token." : "";
  $("inside").hidden = true;
  if ($("door").hidden || tried) {
    $("door").hidden = false;
    $("token").focus();
  }
}

// ---- memory

// Prometheus' text as a map from names to rows of labels and value.
function parseMetrics(text) {
  const metrics = new Map();
  for (const line of text.split("\n")) {
    const found = /^([a-z_]+)(?:\{(.*)\})? ([0-9.]+)$/.exec(line);
    if (!found) continue;
    const labels = {};
    for (const [, name, value] of (found[2] ?? "").matchAll(/([a-z_]+)="([^"]*)"/g)) labels[name] = value;
    if (!metrics.has(found[1])) metrics.set(found[1], []);
    metrics.get(found[1]).push({ labels, value: Number(found[3]) });
  }
  return metrics;
}

// The sum of a metric's rows that have these labels; undefined where there is none.
function number(sample, name, labels = {}) {
  const rows = (sample?.metrics.get(`outcry_${name}`) ?? []).filter((row) =>
    Object.entries(labels).every(([label, value]) => row.labels[label] === value));
  return rows.length ? rows.reduce((sum, row) => sum + row.value, 0) : undefined;
}

function remember(metrics, latency) {
  const sample = { at: performance.now(), metrics, latency };
  const before = state.samples.at(-1);
  // A process that began anew counts from nothing: what was seen of the other is not compared with it. Neither is what
  // was seen during a recovery, when the log has no positions yet: they do not begin at nothing.
  const isAnew = before && number(sample, "answers_total") < number(before, "answers_total");
  if (isAnew || number(before, "claimed_position") === undefined) state.samples = [];
  const last = state.samples.at(-1);
  sample.rate = last ? rate(last, sample, "requests_total") : undefined;
  sample.late = last ? quantile(since(last, sample, "", "total"), 0.99) : undefined;
  state.samples.push(sample);
  while (sample.at - state.samples[0].at > KEPT_MS) state.samples.shift();
  const old = state.samples.at(-1 - KEPT_WHOLE);
  if (old) old.metrics = old.latency = undefined;
}

// The sample from this many seconds ago, or the oldest that is whole; undefined for "the start".
function back(seconds) {
  const now = state.samples.at(-1);
  return state.samples.find((sample) => sample.latency && sample.at >= now.at - seconds * 1000 - EVERY_MS / 2);
}

function rate(from, to, name, labels) {
  const seconds = (to.at - from.at) / 1000;
  const [more, less] = [number(to, name, labels), number(from, name, labels)];
  return seconds > 0 && more !== undefined ? (more - (less ?? 0)) / seconds : undefined;
}

const grown = (from, to, name, labels) => (number(to, name, labels) ?? 0) - (number(from, name, labels) ?? 0);

// The buckets of one stage of a loop, or of all ("") together, that were counted between two samples;
// `from` undefined means since the start. Shortest first.
function since(from, to, loop, stage) {
  const counts = new Map();
  const add = (sample, sign) => {
    for (const part of sample?.latency ?? []) {
      if (loop && part.loop !== loop) continue;
      for (const [ns, count] of part.stages[stage]?.counts ?? []) {
        counts.set(ns, (counts.get(ns) ?? 0) + sign * count);
      }
    }
  };
  add(to, 1);
  add(from, -1);
  return [...counts].filter(([, count]) => count > 0).sort(([one], [other]) => one - other);
}

const total = (counts) => counts.reduce((sum, [, count]) => sum + count, 0);
const spent = (counts) => counts.reduce((sum, [ns, count]) => sum + ns * count, 0);

function quantile(counts, share) {
  const rank = Math.max(1, Math.ceil(total(counts) * share));
  let seen = 0;
  for (const [ns, count] of counts) {
    seen += count;
    if (seen >= rank) return ns;
  }
  return undefined;
}

// ---- show

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made;
}

function write(id, text) {
  // What stays the same is left alone, so that screen readers are not told of it again.
  if ($(id).textContent !== text) $(id).textContent = text;
}

function row(heading, ...cells) {
  const made = element("tr");
  const head = element("th", heading instanceof Node ? undefined : heading, { scope: "row" });
  if (heading instanceof Node) head.append(heading);
  made.append(head);
  for (const cell of cells) made.append(cell instanceof Node ? cell : element("td", cell));
  return made;
}

const fill = (id, rows) => $(id).tBodies[0].replaceChildren(...rows);

function showWords() {
  const wrong = complaints();
  const items = wrong.length ? wrong : state.samples.length ? [{ level: "good", text: "Nothing is wrong with the exchange." }] : [];
  // Beside what is read out when it changes: this changes every second.
  write("slow", slowest());
  write("room", state.samples.length ? room() : "");
  write("limit", limitWords());
  if (!items.length) items.push({ text: state.ready ? "Everything else wants the operator's token." : "Asking the exchange…" });
  const list = $("words");
  if ([...list.children].map((item) => item.textContent).join() !== items.map((item) => item.text).join()) {
    list.replaceChildren(...items.map(({ level, text }) => element("li", text, level ? { "data-level": level } : {})));
  }
  const level = wrong.some((item) => item.level === "bad") ? "bad" : wrong.length ? "warn" : "good";
  $("verdict").dataset.level = state.samples.length || wrong.length ? level : "";
}

function showFacts() {
  const { ready, fault } = state;
  const now = state.samples.at(-1);
  write("state", fault ? "no answer" : !ready ? "asking…" : ready.ready ? "ready" : "not ready");
  write("mode", ready?.mode ?? "–");
  write("durability", ready?.durability ?? "–");
  write("connections", whole(number(now, "connections")));
  write("resting", whole(number(now, "resting_orders")));
}

function showStages() {
  const now = state.samples.at(-1);
  const loop = $("stages-loop").value;
  const seconds = Number($("stages-window").value);
  const from = seconds ? back(seconds) : undefined;
  const counted = (names) => Object.entries(names).map(([stage, what]) => ({ stage, what, counts: since(from, now, loop, stage) }));
  const parts = counted(STAGES);
  const sum = parts.reduce((all, { counts }) => all + spent(counts), 0);
  const most = Math.max(...parts.map(({ counts }) => spent(counts)));
  const rows = [...parts, ...counted(OTHERS)].map(({ stage, what, counts }, index) => {
    const share = element("td");
    if (index < parts.length && sum) {
      share.append(meter(spent(counts) / sum), element("span", percent(spent(counts) / sum), { class: "value" }));
    }
    const picture = element("td", undefined, { class: "note" });
    if (counts.length) picture.append(shape(counts));
    const longest = from ? counts.at(-1)?.[0] : longestEver(now, loop, stage);
    // A bucket is named by its longest duration, and no duration was longer than the longest.
    const durations = [0.5, 0.9, 0.99, 0.999, 1].map((part) => (counts.length ? Math.min(quantile(counts, part), longest) : undefined));
    const made = row(element("span", stage, { title: what }), element("td", what, { class: "word what" }), share, picture, whole(total(counts)), ...durations.map(duration));
    made.dataset.stage = stage;
    if (index < parts.length && sum && spent(counts) === most) made.classList.add("most");
    if (stage === "total") made.classList.add("whole");
    return made;
  });
  fill("stages", rows);
}

const longestEver = (sample, loop, stage) =>
  Math.max(...sample.latency.map((part) => (!loop || part.loop === loop ? part.stages[stage]?.max_ns ?? 0 : 0)));

function showLoops() {
  const now = state.samples.at(-1);
  const minute = back(60);
  const names = now.latency.map((part) => part.loop);
  // The journal's thread writes, and has no turns.
  const loops = now.latency.filter((part) => part.stages.turn).map((part) => part.loop);
  const rows = loops.map((loop) => {
    const turns = since(minute === now ? undefined : minute, now, loop, "turn");
    const made = row(loop, String(cpuOf(loop)), perSecond(rate(minute, now, "requests_total", { loop })),
      percent(rate(minute, now, "duration_seconds_sum", { loop, stage: "turn" })),
      ...["loop_connections", "undecided_requests", "questions_in_flight", "resting_orders"].map((name) => whole(number(now, name, { loop }))),
      whole(number(now, "stalls_total", { loop })), duration(quantile(turns, 0.5)), duration(quantile(turns, 0.99)));
    made.dataset.loop = loop;
    return made;
  });
  fill("loops", rows);
  const select = $("stages-loop");
  if (select.options.length !== names.length + 1) {
    select.replaceChildren(select.options[0], ...names.map((name) => element("option", name, { value: name })));
  }
}

function journalNow(sample) {
  const at = (name) => number(sample, `${name}_position`);
  const [size, room] = [number(sample, "log_bytes"), number(sample, "log_room_bytes")];
  const claimed = at("claimed");
  return {
    claimed, durable: at("durable"), marked: at("marked"), acknowledged: at("acknowledged"), applied: at("applied"), size, room,
    fill: size ? 1 - room / size : undefined,
    unsynced: claimed - at("durable"), unapplied: at("marked") - at("applied"),
  };
}

function showJournal() {
  const now = state.samples.at(-1);
  const journal = journalNow(now);
  const behind = (count) => (Number.isFinite(count) ? (count > 0 ? `${bytes(count)} behind` : "level") : "–");
  const full = element("td");
  full.append(meter(journal.fill ?? 0), element("span", percent(journal.fill), { class: "value" }));
  const minute = back(60);
  const rows = [
    ["claimed", row("written up to", whole(journal.claimed), `${bytes(Math.round(rate(minute, now, "claimed_position") ?? 0))}/s`)],
    ["durable", row("on disk up to", whole(journal.durable), behind(journal.unsynced))],
    ["marked", row("may be told up to", whole(journal.marked), "")],
    ["acknowledged", row("told up to", whole(journal.acknowledged), "")],
    ["applied", row("reads know up to", whole(journal.applied), behind(journal.unapplied))],
    ["fill", row("log in use", full, `of ${bytes(journal.size)}`)],
    ["room", row("room for new frames", bytes(journal.room), "")],
  ];
  fill("journal", rows.map(([name, made]) => Object.assign(made, { id: `journal-${name}` })));
}

function showLimits() {
  const now = state.samples.at(-1);
  const words = { waited: "held back, then answered", refused: "refused with 429", warned: "over a limit, and only told so" };
  write("limits-mode", state.limits ? `mode ${state.limits.mode}; requests since the start` : "");
  fill("limits", (now.metrics.get("outcry_limited_requests_total") ?? []).map(({ labels, value }) =>
    row(words[labels.what] ?? labels.what, whole(value))));
}

function showMarkets({ count, markets }) {
  const select = $("market");
  const options = markets.map(({ marketId, question, liveOrders }) =>
    element("option", `${question} (${some(liveOrders, "order")})`, { value: marketId }));
  if (count > markets.length) options.push(element("option", `… and ${whole(count - markets.length)} more, by id`, { value: "", disabled: "" }));
  if (document.activeElement !== select) {
    select.replaceChildren(...options);
    if (!state.market && markets.length) state.market = String(markets[0].marketId);
  }
  if (!markets.length) state.bookWords = "There is no market yet.";
}

function showBook() {
  const { book } = state;
  if (!book) {
    write("book-words", state.bookWords);
    fill("book", []);
    return;
  }
  if ($("outcomes").dataset.market !== state.market) showOutcomes(book);
  choose(book);
  const side = book.outcomes[state.outcome].book;
  const decimals = side.tick_size.split(".")[1]?.length ?? 0;
  const priced = (text) => Number(text).toFixed(decimals);
  const [bids, asks] = [side.bids, side.asks].map((levels) => [...levels].reverse());
  const [bid, ask] = [bids[0], asks[0]].map((level) => (level ? Number(level.price) : undefined));
  const spread = bid !== undefined && ask !== undefined ? priced(ask - bid) : "none: one side is empty";
  write("book-words", `${book.question} Mode ${book.mode}, price step ${side.tick_size}, `
    + `last price ${side.last_trade_price || "none"}, spread ${spread}.`);
  const shown = [...asks.slice(0, LEVELS), ...bids.slice(0, LEVELS)];
  const most = Math.max(...shown.map((level) => Number(level.size)), 0);
  const level = (isBid) => ({ price, size }) => {
    const cell = element("td");
    const bar = element("i", undefined, { "aria-hidden": "true" });
    bar.style.width = `${(100 * Number(size)) / most}%`;
    cell.append(bar, element("span", shares(size)));
    const made = element("tr");
    const middle = element("th", priced(price), { scope: "row" });
    made.append(...(isBid ? [cell, middle, element("td")] : [element("td"), middle, cell]));
    made.dataset.side = isBid ? "bid" : "ask";
    return made;
  };
  fill("book", [
    ...rest(asks, "sellers"), ...asks.slice(0, LEVELS).map(level(false)).reverse(), note(`spread ${spread}`),
    ...bids.slice(0, LEVELS).map(level(true)), ...rest(bids, "buyers"),
  ]);
}

const shares = (size) => Number(size).toLocaleString("en-US", { maximumFractionDigits: 6 });

function note(text) {
  const made = element("tr", undefined, { class: "gap" });
  made.append(element("td", text, { colspan: 3 }));
  return made;
}

// The sum of the levels past those that are shown.
function rest(levels, whose) {
  const behind = levels.slice(LEVELS);
  const sum = behind.reduce((all, { size }) => all + Number(size), 0);
  return behind.length ? [note(`${some(behind.length, "level")} more of ${whose}, ${shares(sum)} shares`)] : [];
}

// Shows in the list which market is open, whether or not the list has it.
function choose({ marketId, question, liveOrders }) {
  const select = $("market");
  if (document.activeElement === select) return;
  if (![...select.options].some((option) => option.value === state.market)) {
    select.prepend(element("option", `${question} (${some(liveOrders, "order")})`, { value: marketId }));
  }
  select.value = state.market;
}

function showOutcomes(book) {
  const choices = book.outcomes.map(({ outcome }, index) => {
    const label = element("label", outcome);
    const input = element("input", undefined, { type: "radio", name: "outcome", value: index });
    input.checked = index === state.outcome;
    label.prepend(input, " ");
    return label;
  });
  $("outcomes").replaceChildren($("outcomes").firstElementChild, ...choices);
  $("outcomes").dataset.market = book.marketId;
}

function show() {
  showFacts();
  showWords();
  if (!state.samples.length) return;
  showLine("rate", (sample) => sample.rate, perSecond, "/s");
  showLine("late", (sample) => sample.late, duration);
  showLoops();
  showStages();
  showMachine();
  showJournal();
  showLimits();
  showBook();
  $("inside").classList.toggle("stale", performance.now() - state.answeredAt > STALE_MS);
}

function listen() {
  $("door").addEventListener("submit", (event) => {
    event.preventDefault();
    // What no header can carry is no token either.
    sessionStorage.setItem(TOKEN, $("token").value.trim().replace(/[^\x21-\x7e]/g, "?"));
    $("token").value = "";
    step();
  });
  const look = async (market) => {
    // Until its book is there, none is shown: it would be another market's.
    Object.assign(state, { market, outcome: 0, book: null, bookWords: "Asking the exchange…" });
    delete $("outcomes").dataset.market;
    show();
    await step();
  };
  $("market").addEventListener("change", () => look($("market").value));
  $("picker").addEventListener("submit", (event) => {
    event.preventDefault();
    if ($("market-id").value.trim()) look($("market-id").value.trim());
  });
  $("outcomes").addEventListener("change", (event) => {
    state.outcome = Number(event.target.value);
    show();
  });
  for (const id of ["stages-loop", "stages-window"]) $(id).addEventListener("change", show);
}

// One round at a time: one that is asked for while another runs follows it.
let running = Promise.resolve();
function step() {
  running = running.then(round).then(show);
  return running;
}

async function live() {
  await step();
  setTimeout(live, EVERY_MS);
}

listen();
live();
