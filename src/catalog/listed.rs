//! What lists look at of every row, each in an array of its own.
//!
//! A row of the catalog has hundreds of bytes, and a list that no tag, slug or series narrows looks at every row: at a
//! flag or two, and at what orders the list. From here it reads these in sequence, some ten or twenty bytes a row.
//! Whatever changes a row notes it anew; a live number is set alone.

use super::facts::{EventFacts, MarketFacts};
use super::model::{Catalog, day_before};
use super::order::Column;
use super::select::Filter;
use super::value::{Lead, Value, id_value};
use crate::domain::TimeMs;

/// Stands for no number. So the largest that is kept is one less: more than anything here comes to.
const NOTHING: u64 = u64::MAX;

/// The columns whose numbers are kept here. Not among them is the one whose numbers fall as time passes.
const KEPT: [Column; 9] = [
    Column::StartDate,
    Column::EndDate,
    Column::CreationDate,
    Column::CreatedAt,
    Column::UpdatedAt,
    Column::ClosedTime,
    Column::Volume,
    Column::Liquidity,
    Column::Competitive,
];

/// The place of a column's numbers, if they are kept: that of the column in [`KEPT`].
const fn place(column: Column) -> Option<usize> {
    match column {
        Column::StartDate => Some(0),
        Column::EndDate => Some(1),
        Column::CreationDate => Some(2),
        Column::CreatedAt => Some(3),
        Column::UpdatedAt => Some(4),
        Column::ClosedTime => Some(5),
        Column::Volume => Some(6),
        Column::Liquidity => Some(7),
        Column::Competitive => Some(8),
        Column::Id
        | Column::Slug
        | Column::Title
        | Column::Ticker
        | Column::Question
        | Column::Volume24hr => None,
    }
}

const _: () = {
    let mut at = 0;
    while at < KEPT.len() {
        assert!(matches!(place(KEPT[at]), Some(place) if place == at), "a column's place is that in `KEPT`");
        at += 1;
    }
};

/// What filters ask of a row.
#[derive(Clone, Copy, Debug)]
enum Flag {
    Active,
    Closed,
    Archived,
    Featured,
    Cyom,
    Mirror,
}

/// Those flags of a row that are up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flags(u8);

impl Flags {
    fn of<const COUNT: usize>(flags: [(Flag, bool); COUNT]) -> Self {
        Self(flags.into_iter().fold(0, |bits, (flag, is_up)| bits | u8::from(is_up) << flag as u8))
    }
}

/// The flags that a row needs to pass a filter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    among: Flags,
    up: Flags,
}

impl Wanted {
    pub(super) fn of(filter: &Filter) -> Self {
        let flags = [
            (Flag::Active, filter.active),
            (Flag::Closed, filter.closed),
            (Flag::Archived, filter.archived),
            (Flag::Featured, filter.featured),
            (Flag::Cyom, filter.cyom),
            (Flag::Mirror, filter.mirror),
        ];
        Self {
            among: Flags::of(flags.map(|(flag, wanted)| (flag, wanted.is_some()))),
            up: Flags::of(flags.map(|(flag, wanted)| (flag, wanted == Some(true)))),
        }
    }

    fn holds(self, flags: Flags) -> bool {
        flags.0 & self.among.0 == self.up.0
    }
}

/// What is kept of all rows of one kind, by a row's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    flags: Vec<Flags>,
    ids: Vec<u64>,
    /// In the order of [`KEPT`].
    numbers: [Vec<u64>; KEPT.len()],
    /// How the texts of some columns begin.
    texts: Vec<(Column, Vec<Lead>)>,
    /// No trade in the row is later.
    last_trades: Vec<TimeMs>,
}

impl Listed {
    /// No rows, of a kind that has texts in these columns.
    pub(super) fn with_texts(columns: &[Column]) -> Self {
        Self {
            flags: Vec::new(),
            ids: Vec::new(),
            numbers: Default::default(),
            texts: columns.iter().map(|column| (*column, Vec::new())).collect(),
            last_trades: Vec::new(),
        }
    }

    /// Notes a new or changed row: its id if that is a number, and its values.
    fn note<'a>(
        &mut self,
        row: u32,
        flags: Flags,
        id: Option<u64>,
        value: impl Fn(Column) -> Option<Value<'a>>,
    ) {
        put(&mut self.flags, row, flags);
        put(&mut self.ids, row, id.unwrap_or(NOTHING));
        for (column, numbers) in KEPT.into_iter().zip(&mut self.numbers) {
            put(numbers, row, value(column).and_then(Value::number).map_or(NOTHING, below_nothing));
        }
        for (column, leads) in &mut self.texts {
            put(leads, row, Lead::of(value(*column)));
        }
        self.last_trades.resize(self.flags.len(), TimeMs(0));
    }

    /// Sets one number of a row.
    pub(super) fn set(&mut self, row: u32, column: Column, number: u64) {
        let place = place(column).expect("the numbers of this column are kept");
        self.numbers[place][row as usize] = below_nothing(number);
    }

    /// Says that a row may have been traded as late as this.
    pub(super) fn traded(&mut self, row: u32, at: TimeMs) {
        let last = &mut self.last_trades[row as usize];
        *last = at.max(*last);
    }

    /// No trade in a row is later.
    pub(super) fn last_trade(&self, row: u32) -> TimeMs {
        self.last_trades[row as usize]
    }

    /// What was traded in a row in the 24 hours before `now`: `sum`, which is not asked if the last trade tells that it
    /// is nothing.
    fn volume_of_day(&self, row: u32, now: TimeMs, sum: impl FnOnce() -> u64) -> u64 {
        if self.last_trade(row) <= day_before(now) { 0 } else { sum() }
    }

    /// A row's id, if that is a number.
    fn id(&self, row: u32) -> Option<u64> {
        some(self.ids[row as usize])
    }

    /// A row's number in a column of [`KEPT`].
    pub(super) fn number(&self, row: u32, column: Column) -> Option<u64> {
        some(self.numbers[place(column)?][row as usize])
    }

    /// How values of a column begin.
    fn leads(&self, column: Column) -> Leads<'_> {
        if let Some((_, leads)) = self.texts.iter().find(|(texts, _)| *texts == column) {
            return Leads::Texts(leads);
        }
        place(column).map_or(Leads::NotKept, |place| Leads::Numbers(&self.numbers[place]))
    }

    /// Whether a row has the flags that are wanted.
    pub(super) fn has(&self, row: u32, wanted: Wanted) -> bool {
        wanted.holds(self.flags[row as usize])
    }
}

/// How the values of all rows in one column begin, as far as that is kept.
#[derive(Clone, Copy, Debug)]
enum Leads<'a> {
    Numbers(&'a [u64]),
    Texts(&'a [Lead]),
    NotKept,
}

impl Leads<'_> {
    fn of(self, row: u32) -> Option<Lead> {
        match self {
            Self::Numbers(numbers) => Some(Lead::of(some(numbers[row as usize]).map(Value::Number))),
            Self::Texts(leads) => Some(leads[row as usize]),
            Self::NotKept => None,
        }
    }
}

impl Catalog {
    /// Notes for lists what an event is now.
    pub(super) fn note_event(&mut self, number: u32) {
        let event = &self.events[number as usize];
        let facts = &event.facts;
        let EventFacts { inactive, archived, featured, cyom, .. } = *facts;
        let flags = Flags::of([
            (Flag::Active, !inactive),
            (Flag::Closed, event.is_closed()),
            (Flag::Archived, archived),
            (Flag::Featured, featured),
            (Flag::Cyom, cyom),
        ]);
        self.listed_events.note(number, flags, id_value(&facts.id).number(), |column| match column {
            Column::Slug => Value::of_text(&facts.slug),
            Column::Title => Value::of_text(&facts.title),
            Column::Ticker => Value::of_text(&facts.ticker),
            Column::Volume => Some(Value::Number(event.volume())),
            Column::Liquidity => Some(Value::Number(event.liquidity())),
            Column::Competitive => facts.competitive.map(Value::Number),
            date => event.date(date).map(|date| Value::Number(date.0)),
        });
    }

    /// Notes for lists what a market is now.
    pub(super) fn note_market(&mut self, number: u32) {
        let market = &self.markets[number as usize];
        let facts = &market.facts;
        let MarketFacts { inactive, archived, featured, cyom, mirror, .. } = *facts;
        let flags = Flags::of([
            (Flag::Active, !inactive),
            (Flag::Closed, market.is_closed()),
            (Flag::Archived, archived),
            (Flag::Featured, featured),
            (Flag::Cyom, cyom),
            (Flag::Mirror, mirror),
        ]);
        let dates = self.dates_of_market(number);
        self.listed_markets.note(number, flags, Some(market.id), |column| match column {
            Column::Slug => Value::of_text(&facts.slug),
            Column::Question => Value::of_text(&facts.question),
            Column::Volume => Some(Value::Number(market.volume())),
            Column::Liquidity => Some(Value::Number(market.liquidity())),
            Column::Competitive => facts.competitive.map(Value::Number),
            Column::CreationDate => None,
            date => dates.shown(date).map(|date| Value::Number(date.0)),
        });
    }

    /// An event's id as lists are ordered by it.
    pub(super) fn id_of_event(&self, number: u32) -> Value<'_> {
        let of_text = || id_value(&self.event(number).facts.id);
        self.listed_events.id(number).map_or_else(of_text, Value::Number)
    }

    /// A market's id as lists are ordered by it.
    pub(super) fn id_of_market(&self, number: u32) -> Value<'_> {
        Value::Number(self.listed_markets.id(number).unwrap_or_else(|| self.market(number).id))
    }

    /// How events' values in one column begin.
    pub(super) fn leads_of_events(&self, column: Column, now: TimeMs) -> impl Fn(u32) -> Lead {
        let leads = self.listed_events.leads(column);
        move |event| leads.of(event).unwrap_or_else(|| Lead::of(self.value_of_event(event, column, now)))
    }

    /// How markets' values in one column begin.
    pub(super) fn leads_of_markets(&self, column: Column, now: TimeMs) -> impl Fn(u32) -> Lead {
        let leads = self.listed_markets.leads(column);
        move |market| leads.of(market).unwrap_or_else(|| Lead::of(self.value_of_market(market, column, now)))
    }

    /// An event's value in one column.
    pub(super) fn value_of_event(&self, number: u32, column: Column, now: TimeMs) -> Option<Value<'_>> {
        let facts = || &self.event(number).facts;
        match column {
            Column::Id => Some(self.id_of_event(number)),
            Column::Question => None,
            Column::Slug => Value::of_text(&facts().slug),
            Column::Title => Value::of_text(&facts().title),
            Column::Ticker => Value::of_text(&facts().ticker),
            Column::Volume24hr => {
                let sum = || self.volume_of_day(self.event(number), now);
                Some(Value::Number(self.listed_events.volume_of_day(number, now, sum)))
            }
            kept => self.listed_events.number(number, kept).map(Value::Number),
        }
    }

    /// A market's value in one column.
    pub(super) fn value_of_market(&self, number: u32, column: Column, now: TimeMs) -> Option<Value<'_>> {
        let facts = || &self.market(number).facts;
        match column {
            Column::Id => Some(self.id_of_market(number)),
            Column::Title | Column::Ticker => None,
            Column::Slug => Value::of_text(&facts().slug),
            Column::Question => Value::of_text(&facts().question),
            Column::Volume24hr => {
                let sum = || self.market(number).volume_of_day(now);
                Some(Value::Number(self.listed_markets.volume_of_day(number, now, sum)))
            }
            kept => self.listed_markets.number(number, kept).map(Value::Number),
        }
    }
}

fn below_nothing(number: u64) -> u64 {
    number.min(NOTHING - 1)
}

fn some(kept: u64) -> Option<u64> {
    (kept != NOTHING).then_some(kept)
}

/// Puts the value of a row that is there, or of the next one.
fn put<T>(values: &mut Vec<T>, row: u32, value: T) {
    match values.get_mut(row as usize) {
        Some(place) => *place = value,
        None => values.push(value),
    }
}
