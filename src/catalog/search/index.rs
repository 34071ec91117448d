//! The postings: which texts have which words. The only file besides `words` that names the
//! library.
//!
//! A document is one text, an event's or a market's. It has a key (its own), a hit (what is listed
//! if it matches), a heading (title or question) and all its words. Nothing is stored and nothing
//! is scored: the ranking is our own and needs only the postings.
//!
//! A query is answered segment by segment with sets of documents, one bit each: a word's set is
//! decoded from the postings of every dictionary word that matches it, and the sets are
//! intersected, word by word, until nothing is left. A word with typos is matched by an automaton,
//! made when it is the word's turn.

use super::Fault;
use super::words::{self, Edits, Wanted, Word};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use tantivy::DocSet;
use tantivy::fastfield::AliveBitSet;
use tantivy::index::SegmentId;
use tantivy::indexer::IndexWriterOptions;
use tantivy::postings::TermInfo;
use tantivy::query::{DfaWrapper, FuzzyTermQuery};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STRING, Schema, TantivyDocument, TextFieldIndexing, TextOptions,
};
use tantivy::termdict::TermDictionary;
use tantivy::{
    IndexReader, IndexWriter, InvertedIndexReader, ReloadPolicy, SegmentReader, TantivyError, Term,
};

/// What each thread of the library may hold of new documents before it makes a segment of them.
const BUFFER_BYTES: usize = 64 << 20;

/// Seeking one document in postings costs about as much as decoding this many postings.
const POSTINGS_PER_SEEK: usize = 64;

/// The library's name for our way of cutting words.
const ANALYZER: &str = "words";

/// The name of the column of hits and kinds of headings.
const ROW: &str = "row";

/// A text, in the form in which it is searched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Document {
    /// Its own number; the same number replaces it.
    pub(super) key: u32,
    /// The hit that it belongs to.
    pub(super) hit: u32,
    /// The title of a hit, or the question of a market of an event.
    pub(super) heading: String,
    /// All other texts; the heading is searched with them and need not be repeated.
    pub(super) rest: Vec<String>,
    /// Who made it, in lower case.
    pub(super) creators: Vec<String>,
}

/// The part of a text that has all the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The title of the hit.
    Title,
    /// The question of a market of the event.
    Question,
    /// Only the text as a whole.
    Text,
}

/// The postings of every text.
pub(super) struct Index {
    writer: IndexWriter,
    reader: IndexReader,
    fields: Fields,
    /// Whether there is a document with a key.
    known: Vec<bool>,
    stale: bool,
    segments: Vec<Segment>,
}

struct Fields {
    key: Field,
    row: Field,
    heading: Field,
    text: Field,
    creator: Field,
}

/// One of the sets of documents that the library keeps separately.
struct Segment {
    reader: SegmentReader,
    heading: Arc<InvertedIndexReader>,
    text: Arc<InvertedIndexReader>,
    /// Twice the hit of each document, plus one if its heading is a question.
    rows: Arc<[u32]>,
    /// The documents that were not replaced.
    alive: Docs,
}

impl Index {
    /// An empty index, with the library's threads: `writers` that write, one that merges and one
    /// that updates the list of segments. They inherit the caller's priority and CPUs.
    pub(super) fn new(writers: usize) -> Result<Self, Fault> {
        let words = TextFieldIndexing::default()
            .set_tokenizer(ANALYZER)
            .set_index_option(IndexRecordOption::Basic)
            .set_fieldnorms(false);
        let words = TextOptions::default().set_indexing_options(words);
        let mut schema = Schema::builder();
        let fields = Fields {
            key: schema.add_u64_field("key", INDEXED),
            row: schema.add_u64_field(ROW, FAST),
            heading: schema.add_text_field("heading", words.clone()),
            text: schema.add_text_field("text", words),
            creator: schema.add_text_field("creator", STRING),
        };
        let index = tantivy::Index::create_in_ram(schema.build());
        index.tokenizers().register(ANALYZER, words::analyzer());
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(BUFFER_BYTES)
            .num_worker_threads(writers)
            .num_merge_threads(1)
            .build();
        let writer = index.writer_with_options(options)?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Self { writer, reader, fields, known: Vec::new(), stale: false, segments: Vec::new() })
    }

    /// Adds a document, or replaces the one with its key.
    pub(super) fn put(&mut self, document: &Document) -> Result<(), Fault> {
        let fields = &self.fields;
        let place = document.key as usize;
        if self.known.len() <= place {
            self.known.resize(place + 1, false);
        }
        if std::mem::replace(&mut self.known[place], true) {
            self.writer.delete_term(Term::from_field_u64(fields.key, document.key.into()));
        }
        let mut row = TantivyDocument::new();
        row.add_u64(fields.key, document.key.into());
        let is_question = document.key != document.hit;
        row.add_u64(fields.row, 2 * u64::from(document.hit) + u64::from(is_question));
        if !document.heading.is_empty() {
            let heading = words::prepared(&document.heading);
            row.add_text(fields.heading, &heading);
            row.add_text(fields.text, &heading);
        }
        for text in document.rest.iter().filter(|text| !text.is_empty()) {
            row.add_text(fields.text, words::prepared(text));
        }
        for creator in &document.creators {
            row.add_text(fields.creator, creator);
        }
        self.stale = true;
        self.writer.add_document(row)?;
        Ok(())
    }

    /// Lets queries see what was put. Returns whether anything was.
    pub(super) fn refresh(&mut self) -> Result<bool, Fault> {
        if !self.stale {
            return Ok(false);
        }
        self.writer.commit()?;
        self.reader.reload()?;
        self.stale = false;
        // Documents never move within a segment, so what was read of an old segment stays valid.
        let old = self.segments.drain(..).map(|segment| (segment.reader.segment_id(), segment.rows));
        let old: HashMap<SegmentId, Arc<[u32]>> = old.collect();
        for reader in self.reader.searcher().segment_readers() {
            let rows = match old.get(&reader.segment_id()) {
                Some(rows) => Arc::clone(rows),
                None => rows_of(reader)?,
            };
            self.segments.push(Segment {
                heading: reader.inverted_index(self.fields.heading)?,
                text: reader.inverted_index(self.fields.text)?,
                alive: Docs::full(rows.len(), reader.alive_bitset()),
                reader: reader.clone(),
                rows,
            });
        }
        Ok(true)
    }

    /// Calls `found` for every text that has all the words, with its hit and the best part of the
    /// text that has them. A hit may come more than once.
    pub(super) fn with_all(
        &self,
        wanted: &Wanted,
        edits: &Edits,
        mut found: impl FnMut(u32, Part),
    ) -> Result<(), Fault> {
        let mut scratch = Docs::default();
        let mut texts: Vec<Docs> = self.segments.iter().map(|segment| segment.alive.clone()).collect();
        let mut lookups = Vec::new();
        for (word, edits_max) in self.rarest_first(wanted, edits)? {
            let lookup = self.lookup(word, edits_max)?;
            let mut is_left = false;
            for (segment, docs) in self.segments.iter().zip(&mut texts) {
                is_left |= !docs.is_empty() && segment.cut_to_texts_with(&lookup, docs, &mut scratch)?;
            }
            if !is_left {
                return Ok(());
            }
            lookups.push(lookup);
        }
        let mut headed = Docs::default();
        for (segment, docs) in self.segments.iter().zip(&texts) {
            // Headings are part of texts, so only the texts that were found have to be checked.
            headed.copy(docs);
            for lookup in &lookups {
                if headed.is_empty() || !lookup.cut(&segment.heading, &mut headed, &mut scratch)? {
                    break;
                }
            }
            for doc in docs.iter() {
                let row = segment.rows[doc];
                let part = match (headed.contains(doc), row & 1) {
                    (true, 0) => Part::Title,
                    (true, _) => Part::Question,
                    (false, _) => Part::Text,
                };
                found(row >> 1, part);
            }
        }
        Ok(())
    }

    /// The hits that have every word in some of their texts, in order. The numbers of all hits are
    /// below `hits_end`.
    pub(super) fn with_each(
        &self,
        wanted: &Wanted,
        edits: &Edits,
        hits_end: usize,
    ) -> Result<Vec<u32>, Fault> {
        let (mut hits, mut of_word, mut docs) = (Docs::default(), Docs::default(), Docs::default());
        for (place, (word, edits_max)) in self.rarest_first(wanted, edits)?.into_iter().enumerate() {
            let lookup = self.lookup(word, edits_max)?;
            of_word.clear(hits_end);
            for segment in &self.segments {
                docs.clear(segment.docs());
                segment.text_with(&lookup, &mut docs)?;
                docs.cut_with(&segment.alive);
                for doc in docs.iter() {
                    of_word.insert((segment.rows[doc] >> 1) as usize);
                }
            }
            if place == 0 {
                hits.copy(&of_word);
            }
            if !hits.cut_with(&of_word) {
                return Ok(Vec::new());
            }
        }
        Ok(hits.iter().map(|hit| u32::try_from(hit).expect("rows are u32")).collect())
    }

    /// True if any text has this word, or, if it is unfinished, a word that begins with it.
    pub(super) fn has(&self, word: &Word) -> Result<bool, Fault> {
        let lookup = self.lookup(word, 0)?;
        let mut docs = Docs::default();
        for segment in &self.segments {
            docs.clear(segment.docs());
            segment.text_with(&lookup, &mut docs)?;
            if docs.cut_with(&segment.alive) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The hits of texts that name `creator`, in order.
    pub(super) fn of_creator(&self, creator: &str) -> Result<Vec<u32>, Fault> {
        let lookup = Lookup { text: creator.to_owned(), how: How::Exact, headings_only: false };
        let mut docs = Docs::default();
        let mut hits = Vec::new();
        for segment in &self.segments {
            docs.clear(segment.docs());
            lookup.add_to(&*segment.reader.inverted_index(self.fields.creator)?, &mut docs)?;
            docs.cut_with(&segment.alive);
            hits.extend(docs.iter().map(|doc| segment.rows[doc] >> 1));
        }
        hits.sort_unstable();
        hits.dedup();
        Ok(hits)
    }

    /// The words with their edits, the rarest first: the sooner nothing is left, the less has to be
    /// looked up and decoded. How many texts have an unfinished or misspelt word is not known
    /// before the lookup, so such words come last.
    fn rarest_first<'a>(&self, wanted: &'a Wanted, edits: &Edits) -> Result<Vec<(&'a Word, u8)>, Fault> {
        let mut words = Vec::new();
        for (word, edits_max) in wanted.words().iter().zip(edits) {
            let mut texts = u64::MAX;
            if !word.unfinished && *edits_max == 0 {
                texts = 0;
                for segment in &self.segments {
                    let term = segment.text.terms().get(&word.text)?;
                    texts += term.map_or(0, |term| u64::from(term.doc_freq));
                }
            }
            words.push((texts, (word, *edits_max)));
        }
        words.sort_by_key(|(texts, _)| *texts);
        Ok(words.into_iter().map(|(_, word)| word).collect())
    }

    fn lookup(&self, word: &Word, edits_max: u8) -> Result<Lookup, Fault> {
        let near = |is_beginning: bool| {
            let term = Term::from_field_text(self.fields.text, &word.text);
            let query = if is_beginning {
                FuzzyTermQuery::new_prefix(term, edits_max, true)
            } else {
                FuzzyTermQuery::new(term, edits_max, true)
            };
            query.automaton()
        };
        let how = match (word.unfinished, edits_max) {
            (false, 0) => How::Exact,
            (true, 0) => How::Beginning,
            (unfinished, _) => How::Near(near(unfinished)?),
        };
        Ok(Lookup { text: word.text.clone(), how, headings_only: word.begins_headings_only() })
    }
}

/// Which words of a dictionary match a word of the query.
struct Lookup {
    text: String,
    how: How,
    /// True if it counts as a beginning in headings only; elsewhere only the word itself matches.
    headings_only: bool,
}

/// How words match it.
enum How {
    /// The word itself.
    Exact,
    /// Words that begin with it.
    Beginning,
    /// Words, or their beginnings, within a number of edits.
    Near(DfaWrapper),
}

impl Lookup {
    /// Adds the documents whose field `index` has the word.
    fn add_to(&self, index: &InvertedIndexReader, docs: &mut Docs) -> io::Result<()> {
        let terms: &TermDictionary = index.terms();
        match &self.how {
            How::Exact => {
                if let Some(term) = terms.get(&self.text)? {
                    docs.add(index, &term)?;
                }
            }
            How::Beginning => {
                let mut behind = self.text.clone().into_bytes();
                *behind.last_mut().expect("words are not empty") += 1;
                let mut stream = terms.range().ge(&self.text).lt(behind).without_keys().into_stream()?;
                while stream.advance() {
                    docs.add(index, stream.value())?;
                }
            }
            How::Near(automaton) => {
                let mut stream = terms.search(automaton).without_keys().into_stream()?;
                while stream.advance() {
                    docs.add(index, stream.value())?;
                }
            }
        }
        Ok(())
    }
}

impl Lookup {
    /// Keeps the documents of `docs` whose field `index` has the word. Returns whether any is left.
    fn cut(&self, index: &InvertedIndexReader, docs: &mut Docs, scratch: &mut Docs) -> io::Result<bool> {
        if matches!(self.how, How::Exact) {
            let Some(term) = index.terms().get(&self.text)? else {
                docs.0.fill(0);
                return Ok(false);
            };
            if docs.count() * POSTINGS_PER_SEEK < term.doc_freq as usize {
                return docs.cut_by_seeking(index, &term);
            }
        }
        scratch.0.clear();
        scratch.0.resize(docs.0.len(), 0);
        self.add_to(index, scratch)?;
        Ok(docs.cut_with(scratch))
    }
}

impl Segment {
    fn docs(&self) -> usize {
        self.rows.len()
    }

    /// Keeps the documents of `docs` that have the word anywhere. Returns whether any is left.
    fn cut_to_texts_with(&self, lookup: &Lookup, docs: &mut Docs, scratch: &mut Docs) -> io::Result<bool> {
        if !lookup.headings_only {
            return lookup.cut(&self.text, docs, scratch);
        }
        scratch.clear(self.docs());
        self.text_with(lookup, scratch)?;
        Ok(docs.cut_with(scratch))
    }

    /// Adds the documents that have the word anywhere. A short beginning only counts in headings,
    /// because half of all texts have such a word.
    fn text_with(&self, lookup: &Lookup, docs: &mut Docs) -> io::Result<()> {
        if !lookup.headings_only {
            return lookup.add_to(&self.text, docs);
        }
        lookup.add_to(&self.heading, docs)?;
        match self.text.terms().get(&lookup.text)? {
            Some(term) => docs.add(&self.text, &term),
            None => Ok(()),
        }
    }
}

/// The column of a segment, unpacked.
fn rows_of(segment: &SegmentReader) -> Result<Arc<[u32]>, Fault> {
    let column = segment.fast_fields().u64(ROW)?;
    let row = |doc| {
        let row = column.first(doc).expect("every document has a row");
        u32::try_from(row).expect("numbers of rows that fit into memory are far below 2^30")
    };
    Ok((0..segment.max_doc()).map(row).collect())
}

/// A set of numbers from 0 up to a bound: documents of a segment, or hits.
#[derive(Clone, Debug, Default)]
struct Docs(Vec<u64>);

impl Docs {
    /// Becomes the empty set, with room for numbers below `end`.
    fn clear(&mut self, end: usize) {
        self.0.clear();
        self.0.resize(end.div_ceil(64), 0);
    }

    /// All numbers below `end` that are alive; `None` means that all are.
    fn full(end: usize, alive: Option<&AliveBitSet>) -> Self {
        let mut docs = Self::default();
        docs.clear(end);
        for doc in 0..u32::try_from(end).expect("documents have u32 numbers") {
            if alive.is_none_or(|alive| alive.is_alive(doc)) {
                docs.insert(doc as usize);
            }
        }
        docs
    }

    fn copy(&mut self, other: &Self) {
        self.0.clone_from(&other.0);
    }

    fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    fn contains(&self, number: usize) -> bool {
        self.0[number / 64] & (1 << (number % 64)) != 0
    }

    /// Keeps what is also in `other`. Returns whether anything is left.
    fn cut_with(&mut self, other: &Self) -> bool {
        let mut left = 0;
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine &= theirs;
            left |= *mine;
        }
        left != 0
    }

    /// As [`Self::cut_with`], with the documents of a term, looked up one by one.
    fn cut_by_seeking(&mut self, index: &InvertedIndexReader, term: &TermInfo) -> io::Result<bool> {
        let mut postings = index.read_postings_from_terminfo(term, IndexRecordOption::Basic)?;
        let mut is_left = false;
        for (place, word) in self.0.iter_mut().enumerate() {
            let mut left = *word;
            while left != 0 {
                let lowest = left & left.wrapping_neg();
                left ^= lowest;
                let doc = 64 * place + lowest.trailing_zeros() as usize;
                let doc = u32::try_from(doc).expect("documents have u32 numbers");
                let found = if postings.doc() < doc { postings.seek(doc) } else { postings.doc() };
                if found != doc {
                    *word ^= lowest;
                }
            }
            is_left |= *word != 0;
        }
        Ok(is_left)
    }

    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Its numbers, in order.
    fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(place, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let lowest = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(64 * place + lowest)
            })
        })
    }

    /// Adds the documents of a term.
    fn add(&mut self, index: &InvertedIndexReader, term: &TermInfo) -> io::Result<()> {
        let mut postings = index.read_block_postings_from_terminfo(term, IndexRecordOption::Basic)?;
        loop {
            let docs = postings.docs();
            if docs.is_empty() {
                return Ok(());
            }
            for doc in docs {
                self.insert(*doc as usize);
            }
            postings.advance();
        }
    }
}

impl From<TantivyError> for Fault {
    fn from(error: TantivyError) -> Self {
        Self(error.to_string())
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}
