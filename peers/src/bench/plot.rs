//! How is a run shown as a picture? Bars of ratios for one corpus, lines of growth for several.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::summary::{BASE, CorpusReport};
use super::table::short;
use crate::engine::Failure;

/// Of a picture.
pub const WIDTH: u32 = 960;
/// Of a picture.
pub const HEIGHT: u32 = 540;
const COLOURS: [RGBColor; 8] = [
    RGBColor(31, 119, 180),
    RGBColor(255, 127, 14),
    RGBColor(44, 160, 44),
    RGBColor(214, 39, 40),
    RGBColor(148, 103, 189),
    RGBColor(140, 86, 75),
    RGBColor(227, 119, 194),
    RGBColor(127, 127, 127),
];

/// The colour of the nth line.
pub fn colour(index: usize) -> RGBColor {
    COLOURS[index % COLOURS.len()]
}

/// One line of a growth curve: its name, and the p50 in µs by number of records.
pub type Line = (String, Vec<(u64, f64)>);

/// p50 by size for every kind and engine.
pub fn lines(reports: &[CorpusReport]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for report in reports {
        for engine in &report.engines {
            for kind in &engine.kinds {
                let name = format!("{} {}", kind.kind.name(), engine.name);
                let point = (report.corpus.records, kind.us.p50);
                match lines.iter_mut().find(|line| line.0 == name) {
                    Some(line) => line.1.push(point),
                    None => lines.push((name, vec![point])),
                }
            }
        }
    }
    lines.sort_by(|a, b| a.0.cmp(&b.0));
    lines
}

/// Writes the picture.
pub fn draw(path: &Path, reports: &[CorpusReport]) -> Result<(), Failure> {
    let root = SVGBackend::new(path, (WIDTH, HEIGHT)).into_drawing_area();
    let drawn = root.fill(&WHITE).map_err(|error| error.to_string());
    drawn.and_then(|()| match reports {
        [] => Ok(()),
        [one] => bars(&root, one),
        _ => growth(&root, reports),
    })?;
    root.present().map_err(|error| error.to_string())?;
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// One bar: what it is, median and spread.
struct Bar {
    kind: usize,
    engine: usize,
    median: f64,
    low: f64,
    high: f64,
}

fn bars(root: &Area<'_>, report: &CorpusReport) -> Result<(), String> {
    let mut kinds: Vec<&str> = Vec::new();
    let mut bars = Vec::new();
    for (number, engine) in report.engines.iter().enumerate() {
        for kind in &engine.kinds {
            let Some(ratio) = kind.p50_ratio else {
                continue;
            };
            let name = kind.kind.name();
            let at = kinds
                .iter()
                .position(|known| *known == name)
                .unwrap_or(kinds.len());
            if at == kinds.len() {
                kinds.push(name);
            }
            bars.push(Bar {
                kind: at,
                engine: number,
                median: ratio.median,
                low: ratio.low,
                high: ratio.high,
            });
        }
    }
    draw_bars(root, report, &kinds, &bars).map_err(|error| error.to_string())
}

#[expect(clippy::cast_precision_loss, reason = "positions on a picture")]
fn draw_bars(
    root: &Area<'_>,
    report: &CorpusReport,
    kinds: &[&str],
    bars: &[Bar],
) -> Result<(), Box<dyn std::error::Error>> {
    let least = bars.iter().map(|bar| bar.low).fold(0.05, f64::min);
    let most = bars.iter().map(|bar| bar.high).fold(2.0, f64::max);
    let (floor, ceiling) = (least / 2.0, most * 2.0);
    let title = format!(
        "CPU time a query, p50 over {}'s ({} records, log scale, whiskers: spread over passes)",
        BASE.name(),
        report.corpus.records
    );
    let mut chart = ChartBuilder::on(root)
        .caption(title, ("sans-serif", 17))
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(55)
        .build_cartesian_2d(0.0..kinds.len() as f64, (floor..ceiling).log_scale())?;
    let label = |at: &f64| {
        let kind = kinds.iter().enumerate();
        let near = kind.filter(|(index, _)| (*index as f64 + 0.5 - at).abs() < 0.01);
        near.map(|(_, name)| (*name).to_owned())
            .next()
            .unwrap_or_default()
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(2 * kinds.len() + 1)
        .x_label_formatter(&label)
        .y_label_formatter(&|ratio: &f64| short(*ratio))
        .draw()?;
    let width = 0.8 / report.engines.len().max(1) as f64;
    for (number, engine) in report.engines.iter().enumerate() {
        let mine = bars.iter().filter(|bar| bar.engine == number);
        let left = |bar: &Bar| bar.kind as f64 + 0.1 + number as f64 * width;
        let boxes = mine.clone().map(|bar| {
            let corners = [(left(bar), floor), (left(bar) + width * 0.9, bar.median)];
            Rectangle::new(corners, colour(number).filled())
        });
        chart
            .draw_series(boxes)?
            .label(engine.name)
            .legend(move |(x, y)| {
                Rectangle::new([(x, y - 5), (x + 10, y + 5)], colour(number).filled())
            });
        let middle = |bar: &Bar| left(bar) + width * 0.45;
        let whiskers = mine
            .clone()
            .map(|bar| PathElement::new([(middle(bar), bar.low), (middle(bar), bar.high)], BLACK));
        chart.draw_series(whiskers)?;
        let numbers = mine.map(|bar| {
            Text::new(
                short(bar.median),
                (left(bar), bar.high * 1.25),
                ("sans-serif", 12),
            )
        });
        chart.draw_series(numbers)?;
    }
    let even = PathElement::new([(0.0, 1.0), (kinds.len() as f64, 1.0)], BLACK);
    chart.draw_series([even])?;
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    Ok(())
}

/// Chronolith and the base engine: more lines could not be told apart.
fn growth(root: &Area<'_>, reports: &[CorpusReport]) -> Result<(), String> {
    let mut lines = lines(reports);
    let (ours, base) = (" chronolith", format!(" {}", BASE.name()));
    lines.retain(|(name, _)| name.ends_with(ours) || name.ends_with(&base));
    draw_growth(root, &lines).map_err(|error| error.to_string())
}

#[expect(clippy::cast_precision_loss, reason = "positions on a picture")]
fn draw_growth(root: &Area<'_>, lines: &[Line]) -> Result<(), Box<dyn std::error::Error>> {
    let points = || lines.iter().flat_map(|line| &line.1);
    let records = |fold: fn(f64, f64) -> f64, from| points().map(|p| p.0 as f64).fold(from, fold);
    let times = |fold: fn(f64, f64) -> f64, from| points().map(|p| p.1).fold(from, fold);
    let across = records(f64::min, f64::MAX)..records(f64::max, 1.0) * 1.1;
    let up = times(f64::min, f64::MAX) / 1.5..times(f64::max, 1.0) * 1.5;
    let mut chart = ChartBuilder::on(root)
        .caption(
            "CPU time a query by number of records, p50 us, both scales log",
            ("sans-serif", 17),
        )
        .margin(10)
        .x_label_area_size(35)
        .y_label_area_size(55)
        .build_cartesian_2d(across.log_scale(), up.log_scale())?;
    chart
        .configure_mesh()
        .x_labels(6)
        .x_label_formatter(&|records: &f64| format!("{records:.0}"))
        .y_label_formatter(&|us: &f64| short(*us))
        .draw()?;
    // A colour is a kind of query, a thick line is ours.
    let mut kinds: Vec<&str> = Vec::new();
    for (name, points) in lines {
        let (kind, engine) = name.split_once(' ').unwrap_or((name.as_str(), ""));
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
        let number = kinds.iter().position(|known| *known == kind).unwrap_or(0);
        let width = if engine == "chronolith" { 3 } else { 1 };
        let place = |(records, us): &(u64, f64)| (*records as f64, *us);
        let places: Vec<(f64, f64)> = points.iter().map(place).collect();
        let style = colour(number).stroke_width(width);
        let dots = places
            .iter()
            .map(|place| Circle::new(*place, 3, colour(number).filled()));
        chart.draw_series(dots)?;
        chart
            .draw_series(LineSeries::new(places.clone(), style))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 15, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    Ok(())
}
