//! Where the server's threads are, as measured and as `serve` would have placed them, and what the server says limits
//! its machine.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thread of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Thread {
    /// Its name.
    pub(crate) name: String,
    /// Its CPU, if it is pinned.
    pub(crate) cpu: Option<usize>,
    /// How it waits for work.
    pub(crate) wait: String,
}

/// The server's word for a limit that comes from loops that sleep.
const WAKE_UPS: &str = "wake-ups";

impl MachineLimit {
    /// Whose time it adds to, as the start of a sentence.
    pub(crate) fn whose(&self) -> &'static str {
        match self.touches.as_deref() {
            Some("p50") => "For every order: ",
            Some("p99") => "For the slow orders: ",
            Some("p99.9") => "For the slowest orders: ",
            Some("durable") => "For durable answers: ",
            Some("reads") => "For reads: ",
            _ => "",
        }
    }

    /// Whether it is the wake-up of loops that sleep.
    pub(crate) fn is_of_waking(&self) -> bool {
        self.kind == WAKE_UPS
    }
}

impl Thread {
    /// Whether it works on orders.
    pub(crate) fn is_trading(&self) -> bool {
        ["outcry-shard", "outcry-ingress"].iter().any(|start| self.name.starts_with(start))
    }

    /// Whether it spins when it has no work, at least for a while.
    pub(crate) fn spins(&self) -> bool {
        self.wait.starts_with("spin")
    }

    /// Whether it only spins: one that sleeps after a while notices nothing of what is taken from it then.
    pub(crate) fn never_sleeps(&self) -> bool {
        self.wait == "spin"
    }

    fn text(&self) -> String {
        let place = self.cpu.map_or_else(|| "on any CPU".to_owned(), |cpu| format!("on CPU {cpu}"));
        format!("{} {place} ({})", self.name, self.wait)
    }
}

/// What limits the machine by the server's own account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MachineLimit {
    /// Its kind, a word of the server's; empty from a server without kinds.
    #[serde(default)]
    pub(crate) kind: String,
    /// Whose time it adds to (`p50`, `p99`, `durable`, `reads`), if the server says.
    #[serde(default)]
    pub(crate) touches: Option<String>,
    /// What it is, with its amount.
    pub(crate) limit: String,
    /// What to buy or to change, if the server says.
    pub(crate) change: Option<String>,
}

/// What the server says that its placement can do, before any load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Planned {
    /// One signature check, measured one after another; for known signers, where they are known.
    pub(crate) check_us: f64,
    /// The rest of an order on the loop that has its connection.
    pub(crate) rest_us: f64,
    /// Orders a second, each with a signature.
    pub(crate) orders_per_s: f64,
    /// The loops that are full first, at that rate.
    pub(crate) full_first: Vec<String>,
    /// What an order takes in the server under light load, without a disk, least and most; includes the wake-up of a
    /// loop that sleeps.
    #[serde(default)]
    pub(crate) median_us: Option<[f64; 2]>,
    /// What a durable answer adds up to in the server, least and most, if it tried the disk.
    #[serde(default)]
    pub(crate) durable_us: Option<[f64; 2]>,
    /// The amount of everything that people ask for: the word for the question, and the amount in a few words.
    #[serde(default)]
    pub(crate) how_much: Vec<(String, String)>,
}

impl Planned {
    /// An order without a disk, and without waking its loop.
    pub(crate) fn order_us(&self) -> f64 {
        self.check_us + self.rest_us
    }

    /// How long waking a loop that sleeps is planned to take; none if no loop sleeps, or if the server does not say.
    pub(crate) fn wake_us(&self) -> Option<f64> {
        let [_, most_us] = self.median_us?;
        Some(most_us - self.order_us()).filter(|us| *us > 0.1)
    }
}

/// What the server's `topology` says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Placement {
    /// Its threads.
    pub(crate) threads: Vec<Thread>,
    /// What limits the machine, the most costly first.
    pub(crate) limits: Vec<MachineLimit>,
    /// What limits the median, the slow orders, orders a second and so on, if the server says.
    pub(crate) answers: Vec<String>,
    /// How many orders a second it can take, if the server says.
    pub(crate) planned: Option<Planned>,
}

/// What `server` says of its threads and its machine under `settings`; nothing if it cannot say.
pub(crate) fn of(server: &Path, settings: &[String]) -> Placement {
    let mut command = Command::new(server);
    command.args(["topology", "--json"]).stderr(Stdio::null());
    for setting in settings {
        command.args(["--set", setting]);
    }
    // A server from before that command is measured all the same.
    command.output().map(|output| parse(&output.stdout)).unwrap_or_default()
}

/// What a durable answer adds up to in the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Durable {
    /// Least and most.
    pub(crate) us: [f64; 2],
    /// What most of it is, in the words of `outcry check`.
    pub(crate) by: String,
    /// What to change first.
    pub(crate) first: String,
    /// What ends others' writes to that disk, if they are felt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stop_writers: Option<String>,
}

/// What `server` says of durable answers with its data in `folder`; none if it cannot say. Takes a second, and writes
/// to the disk during it.
pub(crate) fn durable(server: &Path, settings: &[String], folder: &Path) -> Option<Durable> {
    let mut command = Command::new(server);
    command.args([
        "check",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--data-dir",
    ]);
    command.arg(folder).stderr(Stdio::null());
    for setting in settings {
        command.args(["--set", setting]);
    }
    durable_of(&serde_json::from_slice(&command.output().ok()?.stdout).ok()?)
}

fn durable_of(json: &Value) -> Option<Durable> {
    let word = |key: &str| Some(answer_to(json, "durable")?[key].as_str()?.to_owned());
    let conditions = json["conditions"].as_array().into_iter().flatten();
    let mut failed = conditions.filter(|row| row["condition"] == "io.others" && row["passed"] == false);
    Some(Durable {
        us: amount_us(json, "durable")?,
        by: word("limited_by")?,
        first: word("change_first")?,
        stop_writers: failed.find_map(|row| Some(row["remedy"].as_str()?.to_owned())),
    })
}

fn answer_to<'a>(json: &'a Value, asked: &str) -> Option<&'a Value> {
    json["answers"].as_array()?.iter().find(|answer| answer["asked"] == asked)
}

/// The least and most of the answer to `asked`, if the server says.
fn amount_us(json: &Value, asked: &str) -> Option<[f64; 2]> {
    let answer = answer_to(json, asked)?;
    let [least, most] = [0, 1].map(|index| answer["amount_ns"][index].as_u64().map(crate::stats::as_micros));
    Some([least?, most?])
}

fn parse(json: &[u8]) -> Placement {
    let json: Value = serde_json::from_slice(json).unwrap_or_default();
    let thread = |row: &Value| {
        Some(Thread {
            name: row["thread"].as_str()?.to_owned(),
            cpu: row["cpu"].as_u64().and_then(|cpu| usize::try_from(cpu).ok()),
            wait: row["wait"].as_str()?.to_owned(),
        })
    };
    let array = |key: &str| json[key].as_array().into_iter().flatten();
    let limit = |limit: &Value| {
        let word = |key: &str| limit[key].as_str().map(str::to_owned);
        Some(MachineLimit {
            kind: word("kind").unwrap_or_default(),
            touches: word("touches"),
            // A server from before limits had kinds says them as texts alone.
            limit: word("text").or_else(|| limit.as_str().map(str::to_owned))?,
            change: word("change"),
        })
    };
    Placement {
        threads: array("threads").filter_map(thread).collect(),
        limits: array("limits").filter_map(limit).collect(),
        answers: array("answers").filter_map(answer).collect(),
        planned: planned(&json).map(|planned| Planned { median_us: amount_us(&json, "median"), ..planned }),
    }
}

/// What `capacity` says, if it was measured.
fn planned(json: &Value) -> Option<Planned> {
    let answers = json["answers"].as_array().into_iter().flatten();
    let of_answer = |answer: &Value| {
        Some((answer["asked"].as_str()?.to_owned(), answer["how_much"].as_str()?.to_owned()))
    };
    let how_much = answers.filter_map(of_answer).collect();
    let json = &json["capacity"];
    let us = |key: &str| json[key].as_u64().map(crate::stats::as_micros);
    let rest_us = us("rest_of_order_ns")?;
    let names = json["full_first"].as_array()?.iter().filter_map(Value::as_str);
    Some(Planned {
        check_us: us("order_ns")? - rest_us,
        rest_us,
        orders_per_s: json["orders_per_second"].as_f64()?,
        full_first: names.map(str::to_owned).collect(),
        median_us: None,
        durable_us: None,
        how_much,
    })
}

/// One of `answers` as sentences.
fn answer(json: &Value) -> Option<String> {
    let [title, now, free, bought] = ["title", "now", "free", "bought"].map(|key| json[key].as_str());
    let more =
        |head: &str, text: Option<&str>| text.map_or_else(String::new, |text| format!(" {head}: {text}."));
    Some(format!("{}: {}.{}{}", title?, now?, more("Free", free), more("To buy", bought)))
}

/// The CPUs to which `threads` are pinned, and those of `more`, ascending.
pub(crate) fn cpus(threads: &[Thread], more: &[usize]) -> Vec<usize> {
    let mut cpus: Vec<usize> = threads.iter().filter_map(|thread| thread.cpu).collect();
    cpus.extend(more);
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// Whether a run's threads were not where `serve` would have put them, or waited in another way.
pub(crate) fn differs(measured: &[Thread], left_alone: &[Thread]) -> bool {
    !measured.is_empty() && !left_alone.is_empty() && measured != left_alone
}

/// If the placements differ, a sentence about the threads that do.
pub(crate) fn caution(measured: &[Thread], left_alone: &[Thread]) -> Option<String> {
    if !differs(measured, left_alone) {
        return None;
    }
    let text = |threads: &[Thread], others: &[Thread]| {
        let differing = threads.iter().filter(|thread| !others.contains(thread)).map(Thread::text);
        differing.collect::<Vec<_>>().join(", ")
    };
    Some(format!(
        "Placed for measuring: {}. Users get what `serve` does here by itself: {}",
        text(measured, left_alone),
        text(left_alone, measured)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPOLOGY: &str = r#"{"threads":[{"thread":"outcry-shard0","cpu":0,"wait":"spin"},
        {"thread":"journal","cpu":null,"wait":"blocks"}],
        "limits":[{"kind":"wake-ups","touches":"p50","text":"few cores","cost_ns":16000,"change":"more"},
        {"kind":"disk","touches":"durable","text":"a disk","cost_ns":80000,"change":null}],
        "answers":[{"asked":"a","title":"orders","now":"about 9","amount_ns":[66000,79500],"free":null,"bought":"more"}],
        "capacity":{"signature_ns":25600,"rest_of_order_ns":9700,"order_ns":35300,"orders_per_second":28328,
        "full_first":["outcry-shard0"]}}"#;

    fn json(text: &str) -> Value {
        serde_json::from_str(text).expect("it is well formed")
    }

    #[test]
    fn a_placement_that_serve_would_not_choose_is_named_beside_its_own() {
        let Placement { threads: measured, limits, answers, planned } = parse(TOPOLOGY.as_bytes());
        let planned = planned.expect("it was measured");
        assert_eq!((planned.rest_us, planned.orders_per_s), (9.7, 28_328.0));
        assert!(
            (planned.check_us - 25.6).abs() < 1e-9 && planned.full_first == ["outcry-shard0"],
            "{planned:?}"
        );
        assert_eq!((planned.median_us, planned.wake_us()), (None, None));
        assert_eq!(durable_of(&json(TOPOLOGY)), None);
        let durable = TOPOLOGY.replace(
            "\"asked\":\"a\"",
            "\"asked\":\"durable\",\"limited_by\":\"a disk\",\"change_first\":\"it\"",
        );
        for (condition, stop_writers) in [
            ("{\"condition\":\"io.others\",\"passed\":false,\"remedy\":\"stop\"}", Some("stop".to_owned())),
            ("{\"condition\":\"io.others\",\"passed\":true,\"remedy\":null}", None),
            ("{\"condition\":\"io.free_space\",\"passed\":false,\"remedy\":\"stop\"}", None),
        ] {
            let found = durable.replacen('{', &format!("{{\"conditions\":[{condition}],"), 1);
            let (by, first) = ("a disk".to_owned(), "it".to_owned());
            let expected = Durable { us: [66.0, 79.5], by, first, stop_writers };
            assert_eq!(durable_of(&json(&found)), Some(expected), "{condition}");
        }
        assert_eq!(durable_of(&json(&durable.replace("[66000,79500]", "null"))), None);
        for (median, wake_us) in
            [("[51300,51300]", Some(16)), ("[35300,51300]", Some(16)), ("[35300,35300]", None)]
        {
            let told =
                TOPOLOGY.replace("\"asked\":\"a\"", "\"asked\":\"median\"").replace("[66000,79500]", median);
            let told = parse(told.as_bytes()).planned.expect("it was measured");
            assert_eq!(told.wake_us().map(f64::round), wake_us.map(f64::from), "{median}");
        }
        let untried = TOPOLOGY.replace("35300", "null").replace("28328", "null");
        assert_eq!(parse(untried.as_bytes()).planned, None);
        assert_eq!(answers, ["orders: about 9. To buy: more."]);
        assert_eq!(
            limits.iter().map(MachineLimit::whose).collect::<Vec<_>>(),
            ["For every order: ", "For durable answers: "]
        );
        let said: Vec<_> = limits.iter().map(|row| (row.limit.as_str(), row.change.as_deref())).collect();
        assert_eq!(said, [("few cores", Some("more")), ("a disk", None)]);
        assert!(limits[0].is_of_waking() && !limits[1].is_of_waking(), "{limits:?}");
        assert_eq!((measured.len(), cpus(&measured, &[3, 0])), (2, vec![0, 3]));
        let mut own = measured.clone();
        assert_eq!(caution(&measured, &own), None);
        own[0].wait = "park".to_owned();
        let said = caution(&measured, &own).unwrap();
        assert!(said.contains("measuring: outcry-shard0 on CPU 0 (spin). Users"), "{said}");
        assert!(said.ends_with("`serve` does here by itself: outcry-shard0 on CPU 0 (park)"), "{said}");
        assert_eq!((parse(b"no"), caution(&[], &own)), (Placement::default(), None));
        // A server from before limits had kinds.
        let old = &parse(br#"{"limits":["nothing spins"],"changes":["y"]}"#).limits[0];
        assert_eq!((old.limit.as_str(), &old.change, old.is_of_waking()), ("nothing spins", &None, false));
    }
}
