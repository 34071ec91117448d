//! How texts become words, and which words are close enough.
//!
//! | text | words |
//! |---|---|
//! | `Beyoncé & Jay-Z` | beyonce jay z |
//! | `ÅRSTA, Straße, İmamoğlu` | arsta strasse imamoglu |
//! | `GPT-5.1?` | gpt 5 1 |
//! | `東京2026` | 東 京 2026 |
//!
//! Accents are dropped if they follow their letter, or are part of a Latin one. Scripts that are written without
//! blanks are searched letter by letter.

use std::borrow::Cow;
use tantivy::tokenizer::{
    AsciiFoldingFilter, LowerCaser, RemoveLongFilter, SimpleTokenizer, TextAnalyzer, TokenStream,
};

/// A word of this many letters may have one typo, one of twice as many two.
const LETTERS_PER_TYPO: usize = 4;

/// The most edits that the library's automata take.
const TYPOS_MAX: u8 = 2;

/// Letters of the longest word that may have typos: what is near a longer one takes megabytes to describe.
const LETTERS_MAX: usize = 32;

/// Beginnings with fewer letters are only matched in titles and questions.
const BEGINNING_LETTERS_MIN: usize = 3;

/// Words longer than any search term are not worth keeping.
const WORD_BYTES_MAX: usize = super::TERM_BYTES_MAX;

/// Cuts a text into words; the same for texts and for queries.
pub(super) fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(WORD_BYTES_MAX + 1))
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .build()
}

/// A text as [`analyzer`] needs it: without loose accents, and with the letters of some scripts set apart.
pub(super) fn prepared(text: &str) -> Cow<'_, str> {
    let is_special = |letter| is_loose_accent(letter) || stands_alone(letter) || letter == DOTTED_I;
    if text.is_ascii() || !text.contains(is_special) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() * 2);
    for letter in text.chars() {
        if stands_alone(letter) {
            out.extend([' ', letter, ' ']);
        } else if letter == DOTTED_I {
            out.push('I');
        } else if !is_loose_accent(letter) {
            out.push(letter);
        }
    }
    Cow::Owned(out)
}

/// In lower case an i with a loose accent.
const DOTTED_I: char = 'İ';

const fn is_loose_accent(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}')
}

/// Kana and Han.
const fn stands_alone(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// The words of `text`, in order.
pub(super) fn words(text: &str) -> Vec<String> {
    let text = prepared(text);
    let mut analyzer = analyzer();
    let mut stream = analyzer.token_stream(&text);
    let mut words = Vec::new();
    while let Some(token) = stream.next() {
        words.push(token.text.clone());
    }
    words
}

/// The words of `text` with a blank between them: what titles are compared by.
pub(super) fn folded(text: &str) -> String {
    words(text).join(" ")
}

/// One word of a query.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Word {
    /// The word.
    pub(super) text: String,
    /// True for the last word, which may be only the beginning of one.
    pub(super) unfinished: bool,
    letters: usize,
}

impl Word {
    /// True if it may be a beginning, but is so short that it counts as one in headings only.
    pub(super) const fn begins_headings_only(&self) -> bool {
        self.unfinished && self.letters < BEGINNING_LETTERS_MIN
    }

    /// True if `word` is at most `edits_max` edits from this one, or begins so if this one is unfinished.
    fn fits(&self, word: &str, edits_max: u8) -> bool {
        match (edits_max, self.unfinished) {
            (0, false) => word == self.text,
            (0, true) => word.starts_with(&self.text),
            _ => {
                // Every letter too many or too few is an edit, so the length rules out most words.
                let (letters, edits_max) = (word.chars().count(), usize::from(edits_max));
                let is_near = self.letters <= letters + edits_max
                    && (self.unfinished || letters <= self.letters + edits_max);
                is_near && edits(&self.text, word, self.unfinished) <= edits_max
            }
        }
    }
}

/// How many edits each word of a query may be away from a match, in the order of the words.
pub(super) type Edits = Vec<u8>;

/// The words of a query.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    folded: String,
    words: Vec<Word>,
}

impl Wanted {
    /// The words of `term`, each once.
    pub(super) fn new(term: &str) -> Self {
        let all = words(term);
        let folded = all.join(" ");
        let mut words: Vec<Word> = Vec::new();
        let count = all.len();
        for (place, text) in all.into_iter().enumerate() {
            // A text that has the whole word has it as a beginning too.
            if words.iter().all(|word| word.text != text) {
                let letters = text.chars().count();
                words.push(Word { text, unfinished: place + 1 == count, letters });
            }
        }
        Self { folded, words }
    }

    /// True if there is nothing to look for.
    pub(super) const fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The words.
    pub(super) fn words(&self) -> &[Word] {
        &self.words
    }

    /// The words with a blank between them, each as often as it was asked for.
    pub(super) fn folded(&self) -> &str {
        &self.folded
    }

    /// No edits for any word.
    pub(super) fn no_edits(&self) -> Edits {
        vec![0; self.words.len()]
    }

    /// As many edits for each word as it may have typos.
    pub(super) fn edits_max(&self) -> Edits {
        self.words.iter().map(|word| typos_max(&word.text)).collect()
    }

    /// 0 if `title`, which is folded, is the whole query, 1 if it begins with the query, else 2.
    pub(super) fn title_tier(&self, title: &str) -> u8 {
        match title.strip_prefix(&self.folded) {
            Some("") => 0,
            Some(_) => 1,
            None => 2,
        }
    }

    /// True if every word is among `words`, within its edits.
    pub(super) fn all_in(&self, words: &[String], edits: &Edits) -> bool {
        let mut wanted = self.words.iter().zip(edits);
        wanted.all(|(wanted, edits_max)| words.iter().any(|word| wanted.fits(word, *edits_max)))
    }
}

/// How many typos a word may have.
pub(super) fn typos_max(word: &str) -> u8 {
    let letters = word.chars().count();
    if LETTERS_MAX < letters || word.contains(|letter: char| letter.is_ascii_digit()) {
        return 0;
    }
    u8::try_from(letters / LETTERS_PER_TYPO).unwrap_or(TYPOS_MAX).min(TYPOS_MAX)
}

/// The fewest edits that make `wanted` from `word`, or from a beginning of it if the wanted word is
/// unfinished. No letter is edited twice.
pub(super) fn edits(wanted: &str, word: &str, unfinished: bool) -> usize {
    let (wanted, word): (Vec<char>, Vec<char>) = (wanted.chars().collect(), word.chars().collect());
    // Row i, column j: the edits between the first i letters of `word` and j of `wanted`.
    let columns = wanted.len() + 1;
    let mut rows: Vec<Vec<usize>> = vec![(0..columns).collect()];
    for (above, letter) in word.iter().enumerate() {
        let mut row = vec![above + 1];
        for column in 1..columns {
            let change = usize::from(wanted[column - 1] != *letter);
            let mut fewest =
                (rows[above][column - 1] + change).min(rows[above][column] + 1).min(row[column - 1] + 1);
            let swapped = 0 < above
                && 1 < column
                && wanted[column - 1] == word[above - 1]
                && wanted[column - 2] == *letter;
            if swapped {
                fewest = fewest.min(rows[above - 1][column - 2] + 1);
            }
            row.push(fewest);
        }
        rows.push(row);
    }
    let whole = rows[word.len()][columns - 1];
    if !unfinished {
        return whole;
    }
    rows.iter().map(|row| row[columns - 1]).min().unwrap_or(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_lose_case_accents_and_marks() {
        for (text, folded_text) in [
            ("Beyoncé & Jay-Z", "beyonce jay z"),
            ("ÅRSTA, Straße", "arsta strasse"),
            ("İmamoğlu, İ", "imamoglu i"),
            ("Beyonce\u{301} again", "beyonce again"),
            ("GPT-5.1?", "gpt 5 1"),
            ("$100k", "100k"),
            ("東京2026", "東 京 2026"),
            ("Привет, МИР", "привет мир"),
            ("  ", ""),
            ("???", ""),
        ] {
            assert_eq!(folded(text), folded_text, "{text}");
        }
    }

    #[test]
    fn edits_are_letters_too_many_too_few_changed_or_swapped() {
        for (wanted, word, whole, begun) in [
            ("trump", "trump", 0, 0),
            ("trmp", "trump", 1, 1),
            ("truump", "trump", 1, 1),
            ("tromp", "trump", 1, 1),
            ("turmp", "trump", 1, 1),
            ("tru", "trump", 2, 0),
            ("bticoi", "bitcoin", 2, 1),
            ("", "abc", 3, 0),
            ("abc", "", 3, 3),
            ("ca", "abc", 3, 1),
        ] {
            assert_eq!(edits(wanted, word, false), whole, "{wanted} for {word}");
            assert_eq!(edits(wanted, word, true), begun, "{wanted} for the beginning of {word}");
        }
    }

    #[test]
    fn short_words_and_numbers_are_meant_as_they_are() {
        for (word, typos) in
            [("etf", 0), ("gold", 1), ("bitcoin", 1), ("ethereum", 2), ("interoperability", 2), ("2025", 0)]
        {
            assert_eq!(typos_max(word), typos, "{word}");
        }
        assert_eq!([32, 33].map(|letters| typos_max(&"a".repeat(letters))), [2, 0]);
    }
}
