// The console's part about the machine: which thread is where, what limits it, and what fails a check. It
// comes from the kernel's files, which are read again while somebody asks.
"use strict";

// Facts that are conditions as well: where they stand, and how they are called here.
const FACTS = {
  "cpu.steal": "taken by the host", "time.clocksource": "clock source",
  "mem.swap": "swap", "mem.room": "memory", "irq.irqbalance": "irqbalance",
};
const WAITS = { park: "sleeping", spin: "spinning", "spin-then-park": "spinning, then sleeping", blocks: "blocking" };

// Whose time a limit adds to.
const MARKS = {
  p50: "every order:", p99: "slow orders:", "p99.9": "the slowest orders:", durable: "durable answers:", reads: "reads:",
};

const cpuOf = (loop) => state.machine?.threads.find(({ thread }) => thread === loop)?.cpu ?? "any";

// What limits the machine most, as a sentence.
function limitWords() {
  const [first] = state.machine?.limits ?? [];
  if (!first) return "";
  return `What limits this machine most: ${first.text}.${first.change ? ` To change: ${first.change}.` : ""}`;
}

function showMachine() {
  const { machine } = state;
  if (!machine || machine === state.shownMachine) return;
  state.shownMachine = machine;
  write("machine-when", `as the kernel told it at ${new Date(machine.looked_at_ms).toLocaleTimeString()}`);
  showLimitsOf(machine);
  const facts = machine.summary.map((line) => line.split(/: (.*)/s).slice(0, 2));
  const named = machine.conditions.filter(({ condition }) => FACTS[condition]);
  const more = named.map(({ condition, current }) => [FACTS[condition], current.replace(/^not readable: /, "not known: ")]);
  const policy = ["placement", `policy ${machine.policy}, ${some(machine.shards, "shard")}`];
  fill("machine-facts", [...facts, policy, ...more].map(([name, value]) => row(name, element("td", value, { class: "text" }))));
  fill("threads", machine.threads.map(placed));
  const failed = machine.conditions.filter(({ passed }) => passed === false);
  write("failed-count", `${some(failed.length, "condition")} of ${machine.conditions.length} not met`);
  fill("failed", failed.map(({ condition, severity, current, required, costs, remedy }) =>
    row(condition, ...[costs ?? "–", remedy ?? "–", current, required, severity.toLowerCase()].map(textCell))));
}

// A list of what was found; that nothing was is a sentence.
function showLimitsOf({ limits }) {
  const changeOf = ({ change }) => (change ? [element("small", `Change: ${change}`)] : []);
  const [none] = limits.filter(({ kind }) => kind === "none");
  $("machine-none").replaceChildren(...(none ? [`${sentence(none.text)}.`, ...changeOf(none)] : []));
  $("machine-limits").replaceChildren(...limits.filter((limit) => limit !== none).map((limit) => {
    const item = element("li");
    const mark = MARKS[limit.touches];
    if (mark) item.append(element("b", mark, { class: "mark" }), " ");
    item.append(limit.text, ...changeOf(limit));
    return item;
  }));
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const textCell = (text) => element("td", text, { class: "text" });

function placed({ thread, roles, cpu, core, siblings, node, wait, why, interrupts }) {
  const number = (value) => String(value ?? "any");
  const shared = siblings.length ? `${number(core)} (also cpu ${siblings.join(", ")})` : number(core);
  const made = row(thread, number(cpu), shared, number(node),
    ...[WAITS[wait] ?? wait, roles, why, interrupts.join(", ") || "none"].map(textCell));
  made.dataset.thread = thread;
  return made;
}
