//! Lists of random catalogs against the plain twin's.

use super::super::super::order::{Begin, Page};
use super::super::super::select::{Between, Filter};
use super::*;

/// A question, in terms that both understand.
#[derive(Clone, Debug)]
struct Question {
    active: Option<bool>,
    closed: Option<bool>,
    archived: Option<bool>,
    featured: Option<bool>,
    cyom: Option<bool>,
    slug: Option<u8>,
    tags: [Option<u8>; 2],
    without: Option<u8>,
    series: Option<u8>,
    recurrence: Option<&'static str>,
    event: Option<u8>,
    creator: Option<u8>,
    /// The least and the most of each.
    volume: [Option<u64>; 2],
    liquidity: [Option<u64>; 2],
    start_min: Option<u8>,
    column: Option<Column>,
    ascending: bool,
    offset: u64,
    limit: usize,
}

fn question() -> impl Strategy<Value = Question> {
    let columns = prop::sample::select(vec![
        Column::Id,
        Column::Slug,
        Column::Title,
        Column::Question,
        Column::StartDate,
        Column::EndDate,
        Column::ClosedTime,
        Column::Volume,
        Column::Volume24hr,
        Column::Liquidity,
    ]);
    let rare = |upto: u8| prop::option::weighted(0.25, 0..upto);
    let flag = || prop::option::weighted(0.3, any::<bool>());
    (
        [(); 5].map(|()| flag()),
        (rare(6), [rare(6), rare(6)], rare(6), rare(3), rare(8), rare(3)),
        (
            [(); 2].map(|()| prop::option::weighted(0.2, 0_u64..40_000_000)),
            [(); 2].map(|()| prop::option::weighted(0.2, 0_u64..400_000)),
            prop::option::weighted(0.2, prop::sample::select(vec!["daily", "weekly", "never"])),
            prop::option::weighted(0.2, 1_u8..28),
        ),
        (prop::option::of(columns), any::<bool>(), 0_u64..6, 1_usize..6),
    )
        .prop_map(
            |(
                flags,
                named,
                (volume, liquidity, recurrence, start_min),
                (column, ascending, offset, limit),
            )| {
                Question {
                    active: flags[0],
                    closed: flags[1],
                    archived: flags[2],
                    featured: flags[3],
                    cyom: flags[4],
                    slug: named.0,
                    tags: named.1,
                    without: named.2,
                    series: named.3,
                    recurrence,
                    event: named.4,
                    creator: named.5,
                    volume,
                    liquidity,
                    start_min,
                    column,
                    ascending,
                    offset,
                    limit,
                }
            },
        )
}

const fn between([min, max]: [Option<u64>; 2]) -> Between {
    Between { min, max }
}

fn is_between(([min, max], found): ([Option<u64>; 2], u64)) -> bool {
    min.is_none_or(|min| min <= found) && max.is_none_or(|max| found <= max)
}

impl Question {
    fn filter(&self, catalog: &Catalog, events: bool) -> Filter {
        let tag = |tag: u8| catalog.shelf(ItemKind::Tag).by_key(&tag.to_string()).into_iter().collect();
        let slug = |slug: u8| {
            let slug = format!("s{slug}");
            if events {
                catalog.events_by_slug(&slug).collect()
            } else {
                catalog.markets_by_slug(&slug).collect()
            }
        };
        let of_event =
            |event: u8| (0..number(catalog.events().len())).filter(|at| *at == u32::from(event)).collect();
        Filter {
            active: self.active,
            closed: self.closed,
            archived: self.archived,
            featured: self.featured,
            cyom: self.cyom,
            only: self.slug.map(slug),
            tags: self.tags.into_iter().flatten().map(tag).collect(),
            without_tags: self.without.map(tag).unwrap_or_default(),
            series: [
                self.series
                    .map(|series| catalog.shelf(ItemKind::Series).by_slug(&format!("x{series}")).collect()),
                self.recurrence.map(|often| catalog.series_by_recurrence(often)),
            ]
            .into_iter()
            .flatten()
            .filter(|_| events)
            .collect(),
            events: self.event.filter(|_| !events).map(of_event),
            creator: self.creator.map(|creator| format!("c{creator}")),
            volume: between(self.volume),
            liquidity: between(self.liquidity),
            start: Between {
                min: self.start_min.map(|day| Moment::parse(&january(day)).expect("a day").0),
                max: None,
            },
            ..Filter::default()
        }
    }

    fn page(&self) -> Page {
        Page {
            columns: self.column.into_iter().collect(),
            direction: if self.ascending { Direction::Ascending } else { Direction::Descending },
            begin: Begin::Offset(self.offset),
            limit: self.limit,
        }
    }

    fn passes(&self, row: &Row, plain: &Plain, events: bool) -> bool {
        let is = |wanted: Option<bool>, found: bool| wanted.is_none_or(|wanted| wanted == found);
        let has = |tag: u8| row.tags.contains(&tag.to_string());
        is(self.active, row.text["active"] == true)
            && is(self.closed, row.closed)
            && is(self.archived, row.text["archived"] == true)
            && is(self.featured, row.text["featured"] == true)
            && is(self.cyom, row.text["cyom"] == true)
            && self.slug.is_none_or(|slug| row.text["slug"] == format!("s{slug}"))
            && self.tags.into_iter().flatten().all(has)
            && !self.without.is_some_and(has)
            && (!events || self.series.is_none_or(|series| row.series == Some(series.to_string())))
            && (!events || self.recurrence.is_none_or(|often| row.recurs(often)))
            && (events
                || self
                    .event
                    .is_none_or(|event| plain.markets[row.number as usize].event == Some(event.into())))
            && self.creator.is_none_or(|creator| row.creators.contains(&format!("C{creator}")))
            && [(self.volume, row.volume), (self.liquidity, row.liquidity)].into_iter().all(is_between)
            && self.start_min.is_none_or(|day| january(day).as_str() <= row.start())
    }

    /// The value that the order goes by, as a text or a number that compares.
    fn value(&self, row: &Row, events: bool) -> Option<(u128, String)> {
        let text = |name: &str| row.text[name].as_str().map(|text| (0, text.to_owned()));
        let number = |number: u64| Some((u128::from(number), String::new()));
        match self.column? {
            Column::Slug => text("slug"),
            Column::Title => text("title").filter(|_| events),
            Column::Question => text("question").filter(|_| !events),
            Column::StartDate => Some((0, row.start().to_owned())),
            Column::EndDate => Some((0, row.end().to_owned())),
            Column::ClosedTime => row.closing.and_then(|time| number(time.0)),
            Column::Volume => number(row.volume),
            Column::Volume24hr => number(row.day),
            Column::Liquidity => number(row.liquidity),
            _ => number(row.id),
        }
    }

    fn answer(&self, plain: &Plain, events: bool) -> Vec<u32> {
        let mut rows: Vec<Row> = if events {
            (0..plain.events.len()).map(|at| plain.event(at)).collect()
        } else {
            (0..plain.markets.len()).map(|at| plain.market(at)).collect()
        };
        rows.retain(|row| self.passes(row, plain, events));
        let turned = |order: Ordering| if self.ascending { order } else { order.reverse() };
        rows.sort_by(|one, other| {
            let first = match (self.value(one, events), self.value(other, events)) {
                (Some(one), Some(other)) => turned(one.cmp(&other)),
                (one, other) => other.is_some().cmp(&one.is_some()),
            };
            first.then(turned(one.id.cmp(&other.id)))
        });
        let skipped = usize::try_from(self.offset).expect("small");
        rows.iter().skip(skipped).take(self.limit).map(|row| row.number).collect()
    }
}

proptest! {
    #[test]
    fn lists_are_what_the_plain_way_finds(
        acts in prop::collection::vec(act(), 0..40),
        questions in prop::collection::vec(question(), 8),
    ) {
        let (catalog, plain) = done(&acts);
        for question in &questions {
            if let Some(creator) = &question.filter(&catalog, true).creator {
                let of = |event: &u32| catalog.event_is_of(catalog.event(*event), creator);
                prop_assert!(catalog.events_of(creator).into_iter().eq((0..number(plain.events.len())).filter(of)));
                let of = |market: &u32| catalog.market_is_of(catalog.market(*market), creator);
                prop_assert!(catalog.markets_of(creator).into_iter().eq((0..number(plain.markets.len())).filter(of)));
            }
            let page = question.page();
            let events = catalog.list_events(&question.filter(&catalog, true), &page, NOW);
            prop_assert_eq!(events, question.answer(&plain, true), "events: {:?}", question);
            let markets = catalog.list_markets(&question.filter(&catalog, false), &page, NOW);
            prop_assert_eq!(markets, question.answer(&plain, false), "markets: {:?}", question);
        }
    }
}
