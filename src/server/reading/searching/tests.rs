//! What the search thread is told, in which order, and what waiting requests are told.

use super::*;
use crate::catalog::search::Filter;
use crate::domain::{ConditionId, FeeSchedule, Mode, Position, Shares, Tick, TimeMs, TokenId, Word};
use crate::journal::layout::{EventText, ItemText, MarketAdded, MarketMode};
use crate::reader::{PriceSide, Settings, WalletSettings};
use crate::server::connections::Client;
use crate::server::reading::searcher::{Answer, Progress};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

const NOW: TimeMs = TimeMs(1);

/// The loop's side, and a thread's side that does nothing by itself.
struct Rig {
    searching: Searching,
    reader: Reader,
    letters: Receiver<Letter>,
    answers: SyncSender<Answer>,
    progress: Arc<Progress>,
}

impl Rig {
    fn new() -> Self {
        let reader = Reader::new(Settings {
            keccak: |_| [0; 32],
            price_side: PriceSide::Taker,
            exchanges: Vec::new(),
            builder_share_bps: 0,
            wallet: WalletSettings::default(),
        });
        Self::over(reader)
    }

    fn over(reader: Reader) -> Self {
        let (letters, inbox) = sync_channel(LETTERS_MAX);
        let (outbox, answers) = sync_channel(LETTERS_MAX);
        let progress = Arc::new(Progress::default());
        let ends = Ends { letters, answers, progress: Arc::clone(&progress) };
        let searching = Searching::new(ends, &reader);
        Self { searching, reader, letters: inbox, answers: outbox, progress }
    }

    fn says(&mut self, record: impl Into<Record>) {
        let record = record.into();
        let start = self.reader.ledger().end();
        self.reader.apply(start, Position(start.0 + 64), &record).expect("possible");
        self.searching.note(&record, &self.reader);
    }

    /// An event's text is new or has changed.
    fn event(&mut self, event: u32, text: &str) {
        self.says(EventText { time: NOW, event, text: text.into() });
    }

    fn market(&mut self, market: u32, event: Option<u32>, text: &str) {
        let number = u8::try_from(market).expect("few");
        let token = |outcome: u8| TokenId([number * 2 + outcome + 1; 32]);
        self.says(MarketAdded {
            time: NOW,
            market: MarketNo(market),
            event,
            shard_key: event.unwrap_or(market),
            market_id: market.into(),
            condition: ConditionId([number + 1; 32]),
            question: Word([number + 1; 32]),
            tokens: [token(0), token(1)],
            labels: vec!["Yes".into(), "No".into()],
            neg_risk: false,
            tick: Tick::new(100).expect("a tick"),
            min_size: Shares(1),
            fee: FeeSchedule::FREE,
            mode: Mode::Open,
            payout: None,
            text: text.into(),
        });
    }

    fn mode(&mut self, market: u32, mode: Mode) {
        self.says(MarketMode { time: NOW, market: MarketNo(market), mode });
    }

    fn tag(&mut self, item: u32, text: &str) {
        self.says(ItemText { time: NOW, kind: ItemKind::Tag, item, text: text.into() });
    }

    fn asks(&mut self, term: &str) -> bool {
        let job = Box::new(ReadJob {
            origin: 0,
            client: Client { slot: 0, generation: 0 },
            number: 0,
            bytes: term.into(),
            tag: Position(0),
            deadline_ms: 0,
            keep_alive: true,
            answer: Vec::new(),
            toll: crate::server::requests::toll::Toll::default(),
            at: Position(0),
        });
        let query = Query {
            term: term.into(),
            limit_per_type: 1,
            page: 1,
            with_tags: true,
            filter: Filter::default(),
            order: None,
        };
        self.searching.begin(job, query).is_ok()
    }

    /// What the thread finds in its inbox, in words; it takes all of it.
    fn taken(&mut self) -> Vec<String> {
        let mut taken = Vec::new();
        loop {
            self.searching.send(&self.reader);
            let mut came = false;
            for letter in self.letters.try_iter() {
                came = true;
                self.progress.taken.fetch_add(1, Ordering::Release);
                match letter {
                    Letter::News(news) => taken.extend(news.iter().map(said)),
                    Letter::Query { query, .. } => taken.push(format!("{}?", query.term)),
                    Letter::Complete => taken.push("complete".into()),
                    Letter::Stop => unreachable!("nobody stops it here"),
                }
            }
            if !came {
                return taken;
            }
        }
    }

    fn answers(&self, number: u64) {
        self.answers.send((number, Found::default())).expect("the loop lives");
        self.progress.answered.fetch_add(1, Ordering::Release);
    }

    fn done(&mut self) -> Option<(Vec<u8>, bool)> {
        self.searching.next_done().map(|(job, found)| (job.bytes, found.is_some()))
    }
}

fn said(news: &News) -> String {
    match news {
        News::Event { text, tags, .. } => format!("{text} {tags:?}"),
        News::Market { text, weight, .. } => format!("{text} {}", weight.closed),
        News::Tag { tag, names } => {
            let names = names.as_ref().map_or("gone", |[_, label, _]| label);
            format!("tag {tag} {names}")
        }
        News::Weight { hit, weight } => format!("{hit:?} {}", weight.closed),
    }
}

#[test]
fn texts_and_queries_go_in_their_order_and_a_text_only_once_and_newest() {
    let mut rig = Rig::new();
    rig.event(0, r#"{"id":"a"}"#);
    rig.event(1, r#"{"id":"b"}"#);
    assert!(rig.asks("first"));
    rig.event(0, r#"{"id":"a","title":"t"}"#);
    assert!(rig.asks("second"));
    let newest = r#"{"id":"a","title":"t"} []"#;
    assert_eq!(rig.taken(), ["complete", newest, r#"{"id":"b"} []"#, "first?", "second?"]);
    rig.event(0, r#"{"id":"a"}"#);
    assert_eq!(rig.taken(), [r#"{"id":"a"} []"#]);
    assert!(!rig.searching.has_work());
}

#[test]
fn what_is_ranked_by_is_told_before_the_next_query_and_only_once() {
    let mut rig = Rig::new();
    rig.event(0, r#"{"id":"a"}"#);
    rig.market(0, Some(0), r#"{"slug":"m","clobTokenIds":[1,2]}"#);
    rig.market(1, None, r#"{"slug":"n","clobTokenIds":[3,4]}"#);
    assert!(rig.asks("first"));
    let texts = [
        "complete",
        r#"{"id":"a"} []"#,
        r#"{"slug":"m","clobTokenIds":[1,2]} false"#,
        r#"{"slug":"n","clobTokenIds":[3,4]} false"#,
    ];
    assert_eq!(rig.taken(), [&texts[..], &["Event(0) false", "first?"]].concat());
    for mode in [Mode::CancelOnly, Mode::Closed] {
        rig.mode(0, mode);
        rig.mode(1, mode);
    }
    assert_eq!(rig.taken(), [""; 0], "nobody asks");
    assert!(rig.asks("second"));
    assert_eq!(rig.taken(), ["Market(1) true", "Event(0) true", "second?"]);
    assert!(rig.asks("third"));
    assert_eq!(rig.taken(), ["third?"]);
}

#[test]
fn a_tag_is_told_whoever_changed_it() {
    let mut rig = Rig::new();
    rig.event(0, r#"{"id":"a","tags":[{"id":"7","label":"Old"}]}"#);
    let event = r#"{"id":"a","tags":[{"id":"7","label":"Old"}]} [0]"#;
    assert_eq!(rig.taken(), ["complete", event, "tag 0 Old"]);
    rig.tag(0, r#"{"id":"8","label":"By itself"}"#);
    assert_eq!(rig.taken(), ["tag 1 By itself"]);
    rig.tag(1, r#"{"id":"7","label":"New","updatedAt":"2026-01-01T00:00:00Z"}"#);
    assert_eq!(rig.taken(), ["tag 0 New"]);
    rig.event(0, r#"{"id":"a","tags":["Plain"]}"#);
    assert_eq!(rig.taken(), [r#"{"id":"a","tags":["Plain"]} [2]"#, "tag 0 New", "tag 2 Plain"]);
    rig.event(0, r#"{"id":"a"}"#);
    assert_eq!(rig.taken(), [r#"{"id":"a"} []"#, "tag 2 gone"]);
    // A new start sends what is left.
    let mut rig = Rig::over(rig.reader);
    let all = ["tag 1 By itself", "tag 0 New", r#"{"id":"a"} []"#, "complete"];
    assert_eq!(rig.taken(), all);
}

#[test]
fn what_is_on_its_way_is_never_more_than_there_is_room_for() {
    let mut rig = Rig::new();
    let letters = LETTERS_MAX + 1;
    for event in 0..u32::try_from(NEWS_PER_LETTER * letters).expect("few") {
        rig.event(event, &format!("{{\"id\":\"{event}\"}}"));
    }
    // A turn sends only so much, and all turns together only what there is room for.
    assert!(rig.searching.send(&rig.reader));
    assert_eq!(rig.searching.sent, LETTERS_PER_TURN as u64);
    while rig.searching.send(&rig.reader) {}
    assert_eq!(rig.searching.sent, LETTERS_MAX as u64);
    assert!(!rig.searching.has_work());
    assert_eq!(rig.taken().len(), 1 + NEWS_PER_LETTER * letters);
    assert!(!rig.searching.has_work());
}

#[test]
fn a_letter_is_closed_when_it_is_long_enough() {
    let mut rig = Rig::new();
    rig.taken();
    let text = format!("{{\"id\":\"{}\"}}", "x".repeat(BYTES_PER_LETTER / 2));
    for event in 0..5 {
        rig.event(event, &text);
    }
    let before = rig.searching.sent;
    assert_eq!(rig.taken().len(), 5);
    assert_eq!(rig.searching.sent - before, 3, "two texts a letter");
}

#[test]
fn while_the_index_is_built_a_client_is_told_for_how_long() {
    let mut first = Rig::new();
    let news = u32::try_from(NEWS_PER_LETTER).expect("few");
    for event in 0..4 * news {
        first.event(event, &format!("{{\"id\":\"{event}\"}}"));
    }
    let mut rig = Rig::over(first.reader);
    rig.searching.begin_turn(7_000);
    rig.searching.begin_turn(8_000);
    assert_eq!(rig.searching.late(), Late::Building { seconds: 1 }, "nobody can tell yet");
    assert!(rig.asks("early"));
    rig.searching.next_letter(&rig.reader).expect("there is news");
    assert_eq!(rig.searching.late(), Late::Building { seconds: 4 }, "three quarters are left");
    assert!(!rig.asks("hopeless"));
    rig.searching.begin_turn(u64::MAX / 2_000);
    assert_eq!(rig.searching.late(), Late::Building { seconds: RETRY_AFTER_S_MAX });
    rig.searching.begin_turn(8_000);
    assert_eq!(rig.done(), None);
    let taken = rig.taken();
    assert_eq!(taken[taken.len() - 2..], ["complete", "early?"]);
    assert_eq!(rig.searching.late(), Late::Building { seconds: 1 }, "the thread is not there yet");
    rig.progress.complete.store(true, Ordering::Release);
    assert!(rig.searching.is_complete());
    assert_eq!(rig.searching.late(), Late::Busy);
}

#[test]
fn one_search_more_than_may_wait_comes_back() {
    let mut rig = Rig::new();
    for _ in 0..SEARCHES_MAX {
        assert!(rig.asks("x"));
    }
    assert!(!rig.asks("x"));
    rig.taken();
    rig.answers(0);
    assert!(rig.searching.has_work());
    assert_eq!(rig.done(), Some((b"x".to_vec(), true)));
    assert!(rig.asks("x"));
}

#[test]
fn a_search_that_takes_too_long_is_given_up_and_its_late_answer_finds_nobody() {
    let mut rig = Rig::new();
    assert!(rig.asks("early"));
    rig.taken();
    rig.searching.begin_turn(WAIT_MS - 1);
    assert_eq!(rig.done(), None);
    assert!(rig.asks("later"));
    rig.searching.begin_turn(WAIT_MS);
    assert_eq!(rig.done(), Some((b"early".to_vec(), false)));
    rig.answers(0);
    assert_eq!(rig.done(), None);
    assert!(rig.searching.waits());
    rig.answers(1);
    assert_eq!(rig.done(), Some((b"later".to_vec(), true)));
    // One that nobody waits for any more is not even sent.
    assert!(rig.asks("never"));
    rig.searching.begin_turn(3 * WAIT_MS);
    assert_eq!(rig.done(), Some((b"never".to_vec(), false)));
    assert_eq!(rig.taken(), [""; 0]);
    assert!(!rig.searching.waits());
}
