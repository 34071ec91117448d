// The console's words: units, what is wrong, what is slowest, and how much more a loop could do, as a person would say it.
"use strict";

// What a request has one after the other, then what is measured besides.
const STAGES = {
  recv: "its bytes wait to be looked at", parse: "head and body become fields", auth: "rate limits and the API key's HMAC",
  sign: "the order's signature, at the CPU's speed", queue: "waits for its turn and for other loops",
  match: "the book decides, the log is written", journal: "waits until the log is durable enough",
};
const OTHERS = {
  total: "a trading request, bytes to answer", read: "a read (GET), bytes to answer; no stages",
  send: "answers are written to a socket", turn: "one round of a loop with work",
  away: "a loop that spun had no CPU: others, interrupts, the host",
  write: "the journal's thread writes a batch to the disk", run_delay: "it was ready and had no CPU, for each write",
};

function duration(ns) {
  if (ns === undefined) return "–";
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
    if (ns >= size) return `${(ns / size).toFixed(ns >= 100 * size ? 0 : ns >= 10 * size ? 1 : 2)} ${unit}`;
  }
  return `${Math.round(ns)} ns`;
}

function bytes(count) {
  if (count === undefined) return "–";
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (count >= size) return `${(count / size).toFixed(1)} ${unit}`;
  }
  return `${count} B`;
}

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const whole = (value) => (value === undefined ? "–" : grouped.format(value));
const perSecond = (value) => (value === undefined ? "–" : value < 10 ? value.toFixed(1) : whole(value));
const percent = (share) => (Number.isFinite(share) ? `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %` : "–");
const some = (count, noun) => `${whole(count)} ${noun}${count === 1 ? "" : "s"}`;

// Tables with less than a tenth of their room left; digests give way by themselves.
function fullTables(now) {
  const sizes = now.metrics.get("outcry_table_max") ?? [];
  return sizes.filter(({ labels }) => labels.table !== "digests").flatMap(({ labels: { table: name }, value: max }) =>
    (now.metrics.get(`outcry_${name}`) ?? []).map(({ labels: { loop }, value: taken }) => ({ name, loop, taken, max }))
      .filter(({ taken }) => taken >= 0.9 * max));
}

// What a person would want to be told first; the worst first. Each is a level and a sentence.
function complaints() {
  const found = [];
  const say = (level, text) => found.push({ level, text });
  const { ready, limits } = state;
  const now = state.samples.at(-1);
  if (state.fault) say("bad", `The exchange does not answer: ${state.fault}. What is below is old.`);
  const hangs = ready?.disk === "hangs";
  if (hangs) say("bad", "The disk hangs: a write has not ended for 5 s or more, and what must be durable waits.");
  if (ready && !ready.ready && !hangs) say("bad", "Not ready: the log is being replayed, or the exchange is stopping.");
  if (ready?.ready && ready.mode !== "open") say("warn", `The exchange is ${ready.mode}: not every order is taken.`);
  if (ready?.markets_count) say("warn", `${some(ready.markets_count, "market")} held back by the operator.`);
  if (ready?.ready && !ready.search) say("warn", "The search index is being built; searches are refused until it is done.");
  if (!now) return found;
  const journal = journalNow(now);
  if (journal.fill > 0.5) {
    say(journal.fill > 0.8 ? "bad" : "warn", `The log is ${percent(journal.fill)} full: the disk is slower than the orders.`);
  }
  if (journal.unapplied > 2 ** 20) say("warn", `Reads are ${bytes(journal.unapplied)} of the log behind.`);
  for (const { name, loop, taken, max } of fullTables(now)) {
    say(taken < max ? "warn" : "bad", `sizes.${name}: ${whole(taken)} of ${whole(max)} are taken${loop ? ` on ${loop}` : ""}; without room, orders are refused until a start with a larger size.`);
  }
  if (number(now, "history_unreadable_total")) say("bad", "Part of the history could not be read; see the server's log.");
  const minute = back(60);
  const stalls = (minute ? now.latency : []).map(({ loop }) => [loop, grown(minute, now, "stalls_total", { loop })]);
  const stalled = stalls.filter(([, count]) => count > 0).map(([loop, count]) => `${loop} ${some(count, "time")}`);
  if (stalled.length) say("warn", `Stalls in the last minute: ${stalled.join(", ")}. A turn took over 1 ms, and all clients of its loop waited.`);
  const refused = minute ? grown(minute, now, "limited_requests_total", { what: "refused" }) : 0;
  if (refused > 0) say("warn", `Rate limits refused ${some(refused, "request")} in the last minute.`);
  const warned = minute ? grown(minute, now, "limited_requests_total", { what: "warned" }) : 0;
  if (warned > 0) {
    say("warn", `${some(warned, "request")} in the last minute went over rate limits, which only ${limits?.mode ?? "warn"} here.`);
  }
  for (const part of now.latency) {
    const busy = minute ? rate(minute, now, "duration_seconds_sum", { loop: part.loop, stage: "turn" }) : 0;
    if (busy > 0.9) say("warn", `${part.loop} is busy ${percent(Math.min(busy, 1))} of the time; it cannot do much more.`);
  }
  return found;
}

function slowest() {
  const now = state.samples.at(-1);
  if (!now) return "";
  const minute = back(60);
  const recent = minute && minute !== now && total(since(minute, now, "", "total")) > 0;
  const from = recent ? minute : undefined;
  const seconds = Math.round((now.at - (minute ?? now).at) / 1000);
  const when = !recent ? "Since the start" : seconds < 55 ? `In the last ${some(seconds, "second")}` : "In the last minute";
  const answers = since(from, now, "", "total");
  if (!answers.length) return "No trading request has been answered yet.";
  const parts = Object.keys(STAGES).map((stage) => [stage, since(from, now, "", stage)]);
  const sum = parts.reduce((all, [, counts]) => all + spent(counts), 0);
  const [stage, counts] = parts.reduce((most, part) => (spent(part[1]) > spent(most[1]) ? part : most));
  return `${when} ${some(total(answers), "trading answer")} took ${duration(quantile(answers, 0.5))} at p50 and `
    + `${duration(quantile(answers, 0.99))} at p99. Most of it went to ${stage} (${STAGES[stage]}): `
    + `${percent(spent(counts) / sum)} of the time, ${duration(quantile(counts, 0.5))} at p50.`;
}

// Stages in which a loop works on a trading request; in the others the request waits.
const WORK = ["parse", "auth", "sign", "match"];

// How far the busiest loop is from its limit, by what it did in the last minute.
function room() {
  const now = state.samples.at(-1);
  const minute = now && back(60);
  if (!minute || minute === now) return "";
  const busyOf = ({ loop }) => [rate(minute, now, "duration_seconds_sum", { loop, stage: "turn" }) ?? 0, loop];
  const [busy, loop] = now.latency.map(busyOf).reduce((most, part) => (part[0] > most[0] ? part : most));
  const requests = rate(minute, now, "requests_total", { loop });
  // A loop that hardly works says nothing of one that is full.
  if (busy < 0.02 || !requests) return "";
  const worked = `Busiest is ${loop}: ${percent(busy)} of the time`;
  // Streams, the log and the operator take a loop's time too, and are in no count of requests.
  const known = WORK.reduce((sum, stage) => sum + (rate(minute, now, "duration_seconds_sum", { loop, stage }) ?? 0), 0);
  if (known < busy / 2) {
    return `${worked}. Less than half of that went to the stages of trading requests, so how many more it could do is `
      + "not known.";
  }
  return `${worked} for ${perSecond(requests)} requests a second; of the same kind it could do about `
    + `${whole(requests / busy)}, and from 80 % of that on they wait in line.`;
}
