//! The words of a report, explained for readers who have never seen the server.

use crate::summary::{Stage, Summary};

/// Every stage that the server names, in the order in which a request passes them, with its
/// meaning.
const STAGES: [(&str, &str); 11] = [
    (
        "recv",
        "the loop takes its bytes from the kernel until it looks at them (behind others on its connection, from when \
         theirs came); how long they lay in the kernel before, no stage says",
    ),
    ("parse", "head and body become fields"),
    ("auth", "rate limits, and the HMAC of the API key"),
    ("sign", "the order's signature is checked: arithmetic, at the CPU's speed; a cancel has none"),
    ("queue", "it waits for its turn behind other requests, and for the shard of another loop"),
    ("match", "the book decides, and the decision is written into the log"),
    (
        "journal",
        "its answer waits until the log is as safe as `journal.durability` asks: `durable` waits for the disk",
    ),
    ("total", "all of these together, from its bytes to its answer"),
    ("read", "a read (GET), from its bytes to its answer"),
    ("send", "answers are written to a socket"),
    ("turn", "one round of a loop over all that waits for it"),
];

/// Why reads are not in the tables of stages.
pub(crate) const READS: &str = "Reads (GET) have no stages: of a read the server keeps one time, from its bytes to its answer (stage `read` of `/metrics`).";

/// Words that appear in sentences.
const WORDS: [(&str, &str); 9] = [
    ("p50, p99, p99.9", "half, 99 of 100, 999 of 1,000 took at most this long; p50 is the median"),
    (
        "loop",
        "one thread of the server with all its work: a shard's, an ingress loop, the feed's, or the reader's",
    ),
    (
        "shard",
        "has the books of some markets, and unless `cpu.ingress` is set the connections that trade as well",
    ),
    ("reader", "answers reads, and feeds streams unless `cpu.feed` is set; there is one"),
    ("journal", "the thread that writes the log of all decisions to the disk"),
    (
        "spin, park",
        "a loop that spins never sleeps and takes its whole CPU; one that parks is woken for an order, some 16 µs",
    ),
    (
        "committed, durable",
        "what an answer waits for: a log in shared memory, which survives the process, or one on the disk, which \
         survives the machine",
    ),
    (
        "gap",
        "a moment in which a thread that only spins did not run: the host, an interrupt or another thread had its CPU",
    ),
    (
        "nobody is charged",
        "neither a program nor the host has that time on its account: what is longer than half a millisecond the host took, \
         for interrupts are shorter",
    ),
];

/// The meaning of each of `stages`.
pub(crate) fn stages(stages: &[Stage]) -> Vec<String> {
    let named = |name: &str| stages.iter().any(|stage| stage.stage == name);
    STAGES.iter().filter(|(name, _)| named(name)).map(|(name, what)| format!("`{name}`: {what}.")).collect()
}

/// The meaning of the other words.
pub(crate) fn words() -> Vec<String> {
    WORDS.iter().map(|(word, what)| format!("{word}: {what}.")).collect()
}

/// Whether a run had reads, which have no stages.
pub(crate) fn has_reads(summary: &Summary) -> bool {
    summary.class("read").is_some_and(|times| times.stages.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Quantiles;

    #[test]
    fn only_the_stages_that_are_there_are_explained() {
        let stage = |name: &str| Stage { stage: name.to_owned(), time: Quantiles::default() };
        let said = stages(&[stage("sign"), stage("journal"), stage("unheard of")]);
        assert_eq!(said.len(), 2);
        assert!(
            said[0].starts_with("`sign`: the order's signature") && said[1].starts_with("`journal`: "),
            "{said:?}"
        );
    }
}
