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
}
