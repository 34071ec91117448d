//! An HTML page that needs no other file, for light and dark, wide and narrow screens.

use std::fmt::Write as _;

use super::plot::SERIES_MAX;

/// Follows a quantile that is the slowest request alone.
pub(crate) const ALONE: &str = "*";

/// What [`ALONE`] means.
pub(crate) const ALONE_TEXT: &str =
    "* this is the slowest request alone: p99 takes 100 requests, p99.9 takes 1,000, p99.99 takes 10,000";

/// A cell of more letters than this is text, which may wrap.
const LONG: usize = 32;

/// A table with more columns than this needs each to be narrow.
const MANY: usize = 8;

const STYLE: &str = include_str!("style.css");

/// A page that is being written.
pub(crate) struct Page {
    html: String,
    /// Whether [`ALONE_TEXT`] is on the page already.
    is_alone_told: bool,
}

impl Page {
    /// A page with this title.
    pub(crate) fn new(title: &str) -> Self {
        let title = escaped(title);
        let mut page = Self { html: String::new(), is_alone_told: false };
        page.push(&format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>"
        ));
        page
    }

    /// The whole text.
    pub(crate) fn end(mut self) -> String {
        self.push("</main>\n</body>\n</html>");
        self.html
    }

    pub(super) fn push(&mut self, html: &str) {
        self.html.push_str(html);
        self.html.push('\n');
    }

    /// A heading.
    pub(crate) fn heading(&mut self, text: &str) {
        self.push(&format!("<h2>{}</h2>", escaped(text)));
    }

    /// A paragraph.
    pub(crate) fn paragraph(&mut self, text: &str) {
        self.push(&format!("<p>{}</p>", prose(text)));
    }

    /// A paragraph of explanation, in softer type.
    pub(crate) fn note(&mut self, text: &str) {
        self.push(&format!("<p class=\"soft\">{}</p>", prose(text)));
    }

    /// A list.
    pub(crate) fn list(&mut self, items: &[String]) {
        let items: Vec<String> = items.iter().map(|item| format!("<li>{}</li>", prose(item))).collect();
        self.push(&format!("<ul>{}</ul>", items.concat()));
    }

    /// A list that is folded away under its name.
    pub(super) fn folded(&mut self, name: &str, items: &[String]) {
        self.push(&format!("<details><summary>{}</summary>", escaped(name)));
        self.list(items);
        self.push("</details>");
    }

    /// A chart with a legend.
    pub(crate) fn chart(&mut self, names: &[(usize, &str)], svg: &str) {
        if !names.is_empty() {
            let mut legend = String::new();
            for (colour, name) in names {
                let colour = colour % SERIES_MAX;
                write!(legend, "<span><i style=\"background:var(--s{colour})\"></i>{}</span>", escaped(name))
                    .expect("a string takes all");
            }
            self.push(&format!("<div class=\"legend\">{legend}</div>"));
        }
        self.push(&format!("<div class=\"wide\">{svg}</div>"));
    }

    /// A table of words, which wrap.
    pub(super) fn words(&mut self, caption: &str, head: &[&str], rows: &[Vec<String>]) {
        self.rows("words", caption, head, rows, prose);
    }

    fn rows(
        &mut self,
        class: &str,
        caption: &str,
        head: &[&str],
        rows: &[Vec<String>],
        text: fn(&str) -> String,
    ) {
        let cells = |cells: &mut dyn Iterator<Item = &str>, tag: &str| -> String {
            let cell = |cell: &str| {
                let class = if LONG < cell.chars().count() { " class=\"long\"" } else { "" };
                format!("<{tag}{class}>{}</{tag}>", text(cell))
            };
            cells.map(cell).collect::<Vec<_>>().concat()
        };
        let head = cells(&mut head.iter().copied(), "th");
        let row =
            |row: &Vec<String>| format!("\n<tr>{}</tr>", cells(&mut row.iter().map(String::as_str), "td"));
        let rows = rows.iter().map(row).collect::<Vec<_>>().concat();
        let caption = escaped(caption);
        self.push(&format!(
            "<div class=\"wide\"><table class=\"{class}\"><caption>{caption}</caption>\n<tr>{head}</tr>{rows}</table></div>"
        ));
    }

    /// A table of figures, followed by [`ALONE_TEXT`] if it needs that first.
    pub(crate) fn table(&mut self, caption: &str, head: &[&str], rows: &[Vec<String>]) {
        let class = if MANY < head.len() { "dense" } else { "figures" };
        self.rows(class, caption, head, rows, escaped);
        if !self.is_alone_told && rows.iter().flatten().any(|cell| cell.ends_with(ALONE)) {
            self.note(&format!("{ALONE_TEXT}."));
            self.is_alone_told = true;
        }
    }

    /// A table of names and their values.
    pub(super) fn facts(&mut self, rows: &[(&str, String)]) {
        let row = |(name, value): &(&str, String)| {
            format!("<tr><td>{}</td><td>{}</td></tr>\n", escaped(name), prose(value))
        };
        let rows = rows.iter().map(row).collect::<Vec<_>>().concat();
        self.push(&format!("<div class=\"wide\"><table class=\"facts\">{rows}</table></div>"));
    }
}

/// Prose as HTML: a number stays on the line of its unit, and text between two backticks is code.
fn prose(text: &str) -> String {
    let mut text = escaped(text);
    for unit in ["µs", "ms", "ns", "%"] {
        for digit in '0'..='9' {
            text = text.replace(&format!("{digit} {unit}"), &format!("{digit}\u{a0}{unit}"));
        }
    }
    let mut html = String::new();
    let parts: Vec<&str> = text.split('`').collect();
    for (index, part) in parts.iter().enumerate() {
        let is_closed = index + 1 < parts.len();
        match (index % 2 == 1, is_closed) {
            (true, true) => write!(html, "<code>{part}</code>").expect("a string takes all"),
            (true, false) => write!(html, "`{part}").expect("a string takes all"),
            (false, _) => html.push_str(part),
        }
    }
    html
}

/// Text with nothing left that is markup.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_outside_is_no_markup() {
        let mut page = Page::new("a <b> & \"c\"");
        page.paragraph("<script>");
        page.list(&["x < y".to_owned()]);
        page.table("c", &["h>"], &[vec!["1 & 2".to_owned()]]);
        let html = page.end();
        for planted in ["<script>", "<b>", "x < y", "1 & 2", "h>&", "\"c\""] {
            assert!(!html.contains(planted), "{planted}");
        }
        assert!(html.contains("&lt;script&gt;") && html.ends_with("</html>\n"));
    }

    #[test]
    fn a_sentence_keeps_numbers_with_their_units_and_marks_code() {
        for (text, html) in [
            ("within 43.6 µs, 0.0 % of it", "within 43.6\u{a0}µs, 0.0\u{a0}% of it"),
            ("for 5 s; of 2 servers", "for 5 s; of 2 servers"),
            ("ask `serve <x>` here", "ask <code>serve &lt;x&gt;</code> here"),
            ("one ` alone", "one ` alone"),
        ] {
            assert_eq!(prose(text), html);
        }
    }

    #[test]
    fn a_page_asks_for_nothing_from_outside() {
        let html = Page::new("x").end();
        for planted in ["http://", "https://", "src=", "href=", "@import", "url("] {
            assert!(!html.contains(planted), "{planted}");
        }
    }
}
