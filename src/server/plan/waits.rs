//! How each loop and the journal's thread wait, from what `cpu.wait` says.
//!
//! | written | meant |
//! |---|---|
//! | `auto` | with cores to spare, shards spin for a while, then park; so do a feed apart from the reader, and the journal's thread where answers wait for it; the reader parks |
//! | `spin`, `spin-then-park`, `park` | every loop; but the reader's never spins by one word for all |
//! | `shard=spin,ingress=park,feed=park,reader=park` | by role; a role that is not named waits as `auto` says |
//! | `spin,spin,park` | by loop, shards first, then ingress, the feed's, the reader's last |
//! | `journal=spin-then-park` | the journal's thread too, which has to have a CPU of its own then |

use super::topology::Wait;

/// What is known when loops are told how to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loops {
    /// How many there are; the last one carries the reader.
    pub(crate) count: usize,
    /// How many are for ingress alone; they come after the shards'.
    pub(crate) ingress: usize,
    /// Whether the one before the reader's is for the feed alone.
    pub(crate) feed: bool,
    /// Whether there are cores that nobody else needs.
    pub(crate) has_spare_cores: bool,
}

/// How loops and the journal's thread wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waits {
    /// By loop.
    pub(crate) loops: Vec<Wait>,
    /// The journal's thread, while there is nothing to write; none is as `auto` says.
    pub(crate) journal: Option<Wait>,
}

/// The wait of each loop, and of the journal's thread.
pub(crate) fn parse(text: &str, loops: Loops) -> Result<Waits, String> {
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    if words.iter().any(|word| word.contains('=')) {
        return by_role(&words, loops);
    }
    // `park` alone is meant for the journal's thread too.
    let journal = (words == [Wait::Park.text()]).then_some(Wait::Park);
    Ok(Waits { loops: by_loop(&words, loops)?, journal })
}

fn is_reader(index: usize, loops: Loops) -> bool {
    1 < loops.count && index + 1 == loops.count
}

fn is_feed(index: usize, loops: Loops) -> bool {
    loops.feed && index + 2 == loops.count
}

fn by_loop(words: &[&str], loops: Loops) -> Result<Vec<Wait>, String> {
    let count = loops.count;
    if words.len() != 1 && words.len() != count {
        return Err(format!(
            "cpu.wait: names {} loops, there are {count}: shards first, then ingress and the feed if they are apart, \
             the reader's last; or name roles, as in shard=spin,reader=park",
            words.len()
        ));
    }
    (0..count)
        .map(|index| match words.get(index).unwrap_or(&words[0]) {
            // One word for all is meant for the loops that trade, and for a feed apart; the reader's has time.
            &"spin" if words.len() == 1 && is_reader(index, loops) => Ok(Wait::Park),
            word => wait(word, index, loops),
        })
        .collect()
}

fn by_role(words: &[&str], loops: Loops) -> Result<Waits, String> {
    let (mut shard, mut ingress, mut feed, mut reader, mut journal) = (None, None, None, None, None);
    for word in words {
        let Some((role, wait)) = word.split_once('=') else {
            return Err(format!("cpu.wait: {word} names no role; allowed: shard=…, reader=…, or words only"));
        };
        let of_role = match role.trim() {
            "shard" => &mut shard,
            "reader" if 1 < loops.count => &mut reader,
            "reader" => return Err(shared("reader", "the one loop", "shard")),
            "ingress" if 0 < loops.ingress => &mut ingress,
            "ingress" => return Err(shared("ingress", "every shard's loop", "shard")),
            "feed" if loops.feed => &mut feed,
            "feed" if 1 < loops.count => return Err(shared("feed", "the reader's loop", "reader")),
            "feed" => return Err(shared("feed", "the one loop", "shard")),
            "journal" => &mut journal,
            other => {
                return Err(format!(
                    "cpu.wait: got the role {other:?}; allowed: shard, ingress, feed, reader, journal"
                ));
            }
        };
        if of_role.replace(wait.trim()).is_some() {
            return Err(format!("cpu.wait: {} is named twice", role.trim()));
        }
    }
    let of_loop = |index| {
        let of_role = match index + 1 + usize::from(loops.feed) + loops.ingress {
            _ if is_reader(index, loops) => reader,
            _ if is_feed(index, loops) => feed,
            end if end < loops.count => shard,
            _ if loops.ingress == 0 => shard,
            _ => ingress,
        };
        wait(of_role.unwrap_or("auto"), index, loops)
    };
    let journal = match journal {
        None | Some("auto") => None,
        Some(word) => Some(named(word)?),
    };
    Ok(Waits { loops: (0..loops.count).map(of_loop).collect::<Result<_, _>>()?, journal })
}

fn shared(role: &str, with: &str, instead: &str) -> String {
    format!("cpu.wait: {role} shares {with} and waits as it does; say {instead}=…")
}

fn wait(word: &str, index: usize, loops: Loops) -> Result<Wait, String> {
    match word {
        // Spinning is only for cores that nobody else needs: each loop, the journal thread and the
        // rest of the machine must have one left.
        "auto" if loops.has_spare_cores && index + 1 < loops.count => Ok(Wait::SpinThenPark),
        "auto" => Ok(Wait::Park),
        word => named(word),
    }
}

fn named(word: &str) -> Result<Wait, String> {
    let known = Wait::ALL.into_iter().find(|wait| wait.text() == word);
    known.ok_or_else(|| format!("cpu.wait: got {word:?}; allowed: auto, spin, spin-then-park, park"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&[Wait], &str>) {
        let loops = Loops { count: 3, ingress: 0, feed: false, has_spare_cores: true };
        let waits = parse(text, loops).map(|waits| waits.loops);
        assert_eq!(waits, expected.map(<[Wait]>::to_vec).map_err(str::to_owned), "{text}");
    }

    #[test]
    fn one_word_is_for_all_loops_or_one_for_each_or_for_a_role() {
        use Wait::{Park, Spin, SpinThenPark};
        check("auto", Ok(&[SpinThenPark, SpinThenPark, Park]));
        check("spin", Ok(&[Spin, Spin, Park]));
        check("park", Ok(&[Park, Park, Park]));
        check("spin-then-park", Ok(&[SpinThenPark, SpinThenPark, SpinThenPark]));
        check("spin, park, spin", Ok(&[Spin, Park, Spin]));
        check("shard=spin, reader=spin-then-park", Ok(&[Spin, Spin, SpinThenPark]));
        check("reader=spin", Ok(&[SpinThenPark, SpinThenPark, Spin]));
        check("shard=park", Ok(&[Park, Park, Park]));
    }

    #[test]
    fn a_role_that_shares_a_loop_is_refused_with_the_one_to_name() {
        let alone = Loops { count: 1, ingress: 0, feed: false, has_spare_cores: false };
        for role in ["reader", "feed"] {
            let said = format!("cpu.wait: {role} shares the one loop and waits as it does; say shard=…");
            assert_eq!(parse(&format!("{role}=park"), alone), Err(said));
        }
        let said = "cpu.wait: feed shares the reader's loop and waits as it does; say reader=…";
        check("feed=park", Err(said));
        check(
            "ingress=park",
            Err("cpu.wait: ingress shares every shard's loop and waits as it does; say shard=…"),
        );
    }

    #[test]
    fn loops_for_ingress_alone_have_a_word_of_their_own() {
        use Wait::{Park, Spin, SpinThenPark};
        let loops = Loops { count: 4, ingress: 2, feed: false, has_spare_cores: true };
        for (text, expected) in [
            ("shard=spin,ingress=park", [Spin, Park, Park, Park]),
            ("ingress=spin,reader=spin", [SpinThenPark, Spin, Spin, Spin]),
            ("spin", [Spin, Spin, Spin, Park]),
        ] {
            assert_eq!(parse(text, loops).map(|waits| waits.loops), Ok(expected.to_vec()), "{text}");
        }
    }

    #[test]
    fn a_feed_apart_waits_as_a_shard_does_unless_it_has_a_word_of_its_own() {
        use Wait::{Park, Spin, SpinThenPark};
        let loops = Loops { count: 4, ingress: 1, feed: true, has_spare_cores: true };
        for (text, expected) in [
            ("auto", [SpinThenPark, SpinThenPark, SpinThenPark, Park]),
            ("spin", [Spin, Spin, Spin, Park]),
            ("feed=spin", [SpinThenPark, SpinThenPark, Spin, Park]),
            ("shard=spin,ingress=park,feed=park", [Spin, Park, Park, Park]),
            ("reader=spin", [SpinThenPark, SpinThenPark, SpinThenPark, Spin]),
            ("park,park,spin,park", [Park, Park, Spin, Park]),
        ] {
            assert_eq!(parse(text, loops).map(|waits| waits.loops), Ok(expected.to_vec()), "{text}");
        }
        let alone = Loops { count: 3, ingress: 0, ..loops };
        let waits = parse("shard=park,feed=spin", alone).map(|waits| waits.loops);
        assert_eq!(waits, Ok(vec![Park, Spin, Park]));
    }

    #[test]
    fn the_journal_s_thread_waits_as_it_is_told_by_name_or_parks_with_all() {
        use Wait::{Park, Spin, SpinThenPark};
        for (text, expected) in [
            ("auto", None),
            ("park", Some(Park)),
            ("spin", None),
            ("spin,spin,spin", None),
            ("shard=spin", None),
            ("journal=auto", None),
            ("journal=spin-then-park", Some(SpinThenPark)),
            ("shard=park,journal=spin", Some(Spin)),
            ("journal=spin", Some(Spin)),
        ] {
            let loops = Loops { count: 3, ingress: 0, feed: false, has_spare_cores: true };
            assert_eq!(parse(text, loops).map(|waits| waits.journal), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_no_loop_can_do_is_refused_by_its_name() {
        check("sleep", Err("cpu.wait: got \"sleep\"; allowed: auto, spin, spin-then-park, park"));
        check("shard=sleep", Err("cpu.wait: got \"sleep\"; allowed: auto, spin, spin-then-park, park"));
        check(
            "spin,park",
            Err(
                "cpu.wait: names 2 loops, there are 3: shards first, then ingress and the feed if they are apart, \
                 the reader's last; or name roles, as in shard=spin,reader=park",
            ),
        );
        check(
            "shard=spin,park",
            Err("cpu.wait: park names no role; allowed: shard=…, reader=…, or words only"),
        );
        check("shard=spin,shard=park", Err("cpu.wait: shard is named twice"));
        check(
            "admin=park",
            Err("cpu.wait: got the role \"admin\"; allowed: shard, ingress, feed, reader, journal"),
        );
        check(
            "ingress=spin",
            Err("cpu.wait: ingress shares every shard's loop and waits as it does; say shard=…"),
        );
        check("feed=park", Err("cpu.wait: feed shares the reader's loop and waits as it does; say reader=…"));
        check("journal=on", Err("cpu.wait: got \"on\"; allowed: auto, spin, spin-then-park, park"));
    }
}
