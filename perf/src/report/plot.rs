//! Charts as SVG, drawn by plotters, coloured by the page.
//!
//! A series has a mark (`#0001..`) instead of a colour; the page's style sheet turns the mark into
//! a colour that suits light or dark. Axes of times are logarithmic. The axis of a percentile curve
//! counts nines: 90 %, 99 % and 99.9 % are equally far apart, because the tail is what matters.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::numbers::short_micros;

/// Size of a chart in the SVG's own units; the page scales it.
const SIZE: (u32, u32) = (860, 340);

/// Text of axes and labels.
const INK: RGBColor = RGBColor(0, 0, 1);

/// Lines of the grid.
const GRID: RGBColor = RGBColor(0, 0, 2);

/// The mark that stands for the colour of a series.
fn mark(series: usize) -> RGBColor {
    RGBColor(0, 1, u8::try_from(series % SERIES_MAX).expect("few"))
}

/// The number of colours in the style sheet.
pub(crate) const SERIES_MAX: usize = 6;

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// The number of its colour.
    pub(crate) colour: usize,
    /// Points from left to right; y in microseconds.
    pub(crate) points: Vec<(f64, f64)>,
}

/// What is drawn.
pub(crate) struct Chart<'a> {
    /// What the horizontal axis counts.
    pub(crate) x_name: &'a str,
    /// How its numbers read.
    pub(crate) x_text: &'a dyn Fn(f64) -> String,
    /// Where it begins and ends.
    pub(crate) x: (f64, f64),
    /// At most this many numbers on it.
    pub(crate) x_labels: usize,
    /// The lines.
    pub(crate) series: &'a [Series],
    /// True if points are marked.
    pub(crate) dots: bool,
}

/// The place of a quantile on the axis of nines: 0 for 0, 1 for 0.9, 2 for 0.99.
pub(crate) fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

/// A place on the axis of nines as text.
pub(crate) fn nines_text(place: f64) -> String {
    let whole = place.round();
    if (place - whole).abs() > 0.01 {
        return String::new();
    }
    match whole {
        0.0 => "0 %".to_owned(),
        1.0 => "90 %".to_owned(),
        2.0 => "99 %".to_owned(),
        more => format!("99.{} %", "9".repeat(small(more - 2.0))),
    }
}

/// A small number, rounded; a negative one becomes 0.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
fn small(number: f64) -> usize {
    number.round() as usize
}

/// The powers of ten around all values of all series, in microseconds.
pub(crate) fn decades(series: &[Series]) -> (f64, f64) {
    let values = series.iter().flat_map(|line| line.points.iter().map(|point| point.1.max(0.001)));
    let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
    for value in values {
        (low, high) = (low.min(value), high.max(value));
    }
    if !low.is_finite() {
        return (1.0, 10.0);
    }
    let low = 10_f64.powf(low.log10().floor());
    (low, 10_f64.powf(high.log10().ceil()).max(low * 10.0))
}

impl Chart<'_> {
    /// The chart as an `<svg>` element.
    pub(crate) fn svg(&self) -> Result<String, String> {
        let mut svg = String::new();
        self.draw(&mut svg).map_err(|fault| format!("the chart of {}: {fault}", self.x_name))?;
        // Inside a page, an XML declaration is not allowed.
        let start = svg.find("<svg").unwrap_or(0);
        Ok(svg[start..].trim_end().to_owned())
    }

    fn draw(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        let (low, high) = decades(self.series);
        let text = ("sans-serif", 14).into_font().color(&INK);
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .margin_right(28)
            .x_label_area_size(46)
            .y_label_area_size(70)
            .build_cartesian_2d(self.x.0..self.x.1, (low..high).log_scale())?;
        chart
            .configure_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(INK)
            .label_style(text.clone())
            .axis_desc_style(text.clone())
            .x_desc(self.x_name)
            .x_labels(self.x_labels)
            .x_label_formatter(&|place| (self.x_text)(*place))
            .y_labels(9)
            .y_label_formatter(&|micros| short_micros(*micros))
            .draw()?;
        for line in self.series {
            let colour = mark(line.colour);
            let points = || line.points.iter().map(|&(x, micros)| (x, micros.max(low)));
            chart.draw_series(LineSeries::new(points(), colour.stroke_width(2)))?;
            if self.dots {
                chart.draw_series(points().map(|point| Circle::new(point, 3, colour.filled())))?;
            }
        }
        area.present()?;
        Ok(())
    }
}

/// One row of a bar chart.
pub(crate) struct Bar {
    /// What it is.
    pub(crate) name: String,
    /// Where it starts, in microseconds.
    pub(crate) from: f64,
    /// Where it ends, in microseconds.
    pub(crate) to: f64,
    /// The text after it.
    pub(crate) text: String,
    /// Whether it is the sum of the others, and so has a colour of its own.
    pub(crate) is_whole: bool,
}

/// Bars one below another, each from where it starts: stages, or layers that add up.
pub(crate) fn bars(bars: &[Bar]) -> Result<String, String> {
    let mut svg = String::new();
    draw_bars(&mut svg, bars).map_err(|fault| format!("the chart of bars: {fault}"))?;
    let start = svg.find("<svg").unwrap_or(0);
    Ok(svg[start..].trim_end().to_owned())
}

/// The widths of names at the left of bars and of texts at their right, and the height of a row.
const NAME_WIDTH: i32 = 190;
const TEXT_WIDTH: i32 = 190;
const ROW: i32 = 30;
/// The colour of a bar that is the sum of the others.
const WHOLE: usize = 5;

fn draw_bars(svg: &mut String, bars: &[Bar]) -> Result<(), Box<dyn std::error::Error>> {
    let height = ROW * i32::try_from(bars.len())? + 8;
    let area = SVGBackend::with_string(svg, (SIZE.0, u32::try_from(height)?)).into_drawing_area();
    let most = bars.iter().map(|bar| bar.to).fold(0.001, f64::max);
    let width = f64::from(i32::try_from(SIZE.0)? - NAME_WIDTH - TEXT_WIDTH);
    let place = |micros: f64| NAME_WIDTH + crate::stats::pixels(width * micros / most);
    for (row, bar) in bars.iter().enumerate() {
        let top = 4 + ROW * i32::try_from(row)?;
        let (left, right) = (place(bar.from), place(bar.to).max(place(bar.from) + 1));
        let colour = mark(if bar.is_whole { WHOLE } else { 0 });
        area.draw(&Rectangle::new([(left, top + 4), (right, top + ROW - 4)], colour.filled()))?;
        let text = |anchor| ("sans-serif", 14).into_font().color(&INK).pos(Pos::new(anchor, VPos::Center));
        let middle = top + ROW / 2;
        area.draw(&Text::new(bar.name.clone(), (NAME_WIDTH - 10, middle), text(HPos::Right)))?;
        area.draw(&Text::new(bar.text.clone(), (right + 8, middle), text(HPos::Left)))?;
    }
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nines_have_equal_distances_and_names() {
        for (quantile, place, text) in
            [(0.0, 0.0, "0 %"), (0.9, 1.0, "90 %"), (0.99, 2.0, "99 %"), (0.9999, 4.0, "99.99 %")]
        {
            assert!((nines(quantile) - place).abs() < 1e-9, "{quantile}");
            assert_eq!(nines_text(place), text);
        }
        assert_eq!(nines_text(1.5), "");
    }

    #[test]
    fn an_axis_of_times_ends_at_powers_of_ten_around_them() {
        let series = |values: &[f64]| {
            [Series { colour: 0, points: values.iter().map(|&value| (0.0, value)).collect() }]
        };
        assert_eq!(decades(&series(&[11.0, 990.0])), (10.0, 1_000.0));
        assert_eq!(decades(&series(&[10.0])), (10.0, 100.0));
        assert_eq!(decades(&[]), (1.0, 10.0));
    }

    #[test]
    fn a_chart_is_an_element_with_its_lines() {
        let series = [Series { colour: 3, points: vec![(0.0, 10.0), (1.0, 20.0), (2.0, 90.0)] }];
        let chart = Chart {
            x_name: "percentile",
            x_text: &nines_text,
            x: (0.0, 3.0),
            x_labels: 4,
            series: &series,
            dots: false,
        };
        let svg = chart.svg().unwrap();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"), "{svg}");
        assert!(svg.contains("#000103") && svg.contains("99.9 %") && svg.contains("100 µs"), "{svg}");
    }

    #[test]
    fn bars_carry_their_names_and_the_whole_its_own_colour() {
        let bar = |name: &str, from, to, is_whole| {
            let (name, text) = (name.to_owned(), "x".to_owned());
            Bar { name, from, to, text, is_whole }
        };
        let svg = bars(&[bar("parse", 0.0, 1.0, false), bar("total", 0.0, 27.0, true)]).unwrap();
        for part in ["parse", "total", "#000100", "#000105"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
    }
}
