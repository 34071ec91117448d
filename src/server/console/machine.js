// The console's part about the machine: which thread is where, what limits it, and what fails a check. It
// comes from the files of the kernel, looked at again while somebody asks.
"use strict";

// Facts that are conditions as well: where they stand, and how they are called here.
const FACTS = {
  "cpu.steal": "taken by the host", "time.clocksource": "clock source",
  "mem.swap": "swap", "mem.room": "memory", "irq.irqbalance": "irqbalance",
};
const WAITS = { park: "sleeping", spin: "spinning", "spin-then-park": "spinning, then sleeping", blocks: "blocking" };

const cpuOf = (loop) => state.machine?.threads.find(({ thread }) => thread === loop)?.cpu ?? "any";

// What limits the machine most, as a sentence.
function limitWords() {
  const { limits, changes } = state.machine ?? { limits: [] };
  if (!limits.length) return "";
  return `What limits this machine most: ${limits[0]}.${changes[0] ? ` To change: ${changes[0]}.` : ""}`;
}

function showMachine() {
  const { machine } = state;
  if (!machine || machine === state.shownMachine) return;
  state.shownMachine = machine;
  write("machine-when", `as the kernel told it at ${new Date(machine.looked_at_ms).toLocaleTimeString()}`);
  $("machine-limits").replaceChildren(...machine.limits.map((limit, index) => {
    const item = element("li", limit);
    if (machine.changes[index]) item.append(element("small", `Change: ${machine.changes[index]}`));
    return item;
  }));
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

const textCell = (text) => element("td", text, { class: "text" });

function placed({ thread, roles, cpu, core, siblings, node, wait, why, interrupts }) {
  const number = (value) => String(value ?? "any");
  const shared = siblings.length ? `${number(core)} (also cpu ${siblings.join(", ")})` : number(core);
  const made = row(thread, number(cpu), shared, number(node),
    ...[WAITS[wait] ?? wait, roles, why, interrupts.join(", ") || "none"].map(textCell));
  made.dataset.thread = thread;
  return made;
}
