//! Tables for people: columns as wide as their widest cell, a rule below the heads.

/// `rows` below `heads`, columns two spaces apart, no spaces at a line's end.
#[must_use]
pub fn render<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heads[column].chars().count()]).max().unwrap_or_default()
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    push(&mut text, &heads.map(str::to_owned), &widths);
    push(&mut text, &widths.map(|width| "-".repeat(width)), &widths);
    for row in rows {
        push(&mut text, row, &widths);
    }
    text
}

/// Like [`render`], with cells of more than `chars_max` broken between words into as many lines as they need.
#[must_use]
pub fn wrapped<const N: usize>(heads: [&str; N], rows: &[[String; N]], chars_max: usize) -> String {
    let lines = |row: &[String; N]| {
        let cells = row.each_ref().map(|cell| broken(cell, chars_max));
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        let line = |at: usize| cells.each_ref().map(|cell| cell.get(at).cloned().unwrap_or_default());
        (0..height).map(line).collect::<Vec<_>>()
    };
    render(heads, &rows.iter().flat_map(lines).collect::<Vec<_>>())
}

/// The words of `text`, as many a line as `chars_max` has room for; a longer word has a line of its own.
fn broken(text: &str, chars_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= chars_max {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

fn push<const N: usize>(text: &mut String, cells: &[String; N], widths: &[usize; N]) {
    let cells: Vec<String> =
        cells.iter().zip(widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
    text.push_str(cells.join("  ").trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_as_wide_as_its_widest_cell() {
        let rows = [["a".to_owned(), "b".to_owned()], ["long".to_owned(), String::new()]];
        assert_eq!(render(["x", "yy"], &rows), "x     yy\n----  --\na     b\nlong\n");
    }

    #[test]
    fn a_cell_that_is_too_long_is_broken_between_words_and_loses_none() {
        let rows = [["one two three".to_owned(), "a".to_owned()], ["unbreakable".to_owned(), String::new()]];
        let table = "x            y\n-----------  -\none two      a\nthree\nunbreakable\n";
        assert_eq!(wrapped(["x", "y"], &rows, 8), table);
        for chars_max in 1..20 {
            assert_eq!(broken("one two three", chars_max).join(" "), "one two three");
        }
    }
}
