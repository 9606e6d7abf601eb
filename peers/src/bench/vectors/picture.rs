//! How is a run shown as a picture? Recall against time, one line an engine: all rows, and what
//! else was asked as points of the chosen knobs.

use std::path::Path;

use plotters::prelude::*;

use super::report::{Point, Report};
use crate::bench::plot::{HEIGHT, WIDTH, colour};
use crate::bench::summary::median;
use crate::bench::table::short;
use crate::engine::Failure;

/// Writes the picture.
pub fn draw(path: &Path, report: &Report, target: f64) -> Result<(), Failure> {
    let root = SVGBackend::new(path, (WIDTH, HEIGHT)).into_drawing_area();
    let drawn = root.fill(&WHITE).map_err(|error| error.to_string());
    drawn.and_then(|()| lines(&root, report, target).map_err(|error| error.to_string()))?;
    root.present().map_err(|error| error.to_string())?;
    Ok(())
}

fn place(point: &Point) -> Option<(f64, f64)> {
    Some((median(point.p50_us.iter().copied()).max(0.1), point.recall?))
}

fn lines(
    root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    report: &Report,
    target: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let places = || {
        let points = report.engines.iter().flat_map(|engine| &engine.points);
        points.filter_map(place)
    };
    let least = places().map(|at| at.0).fold(f64::MAX, f64::min).min(1e9);
    let most = places().map(|at| at.0).fold(1.0, f64::max);
    let floor = places().map(|at| at.1).fold(target, f64::min);
    let title = format!(
        "recall@10 by CPU time a query, p50 us, log scale ({} rows; line: all rows, rings: filters)",
        report.rows
    );
    let mut chart = ChartBuilder::on(root)
        .caption(title, ("sans-serif", 17))
        .margin(10)
        .x_label_area_size(35)
        .y_label_area_size(55)
        .build_cartesian_2d((least / 1.5..most * 1.5).log_scale(), floor - 0.01..1.005)?;
    chart
        .configure_mesh()
        .x_label_formatter(&|us: &f64| short(*us))
        .draw()?;
    for (number, engine) in report.engines.iter().enumerate() {
        let all = engine.points.iter().filter(|point| point.kind == "all");
        let all: Vec<_> = all.filter_map(place).collect();
        let style = colour(number).stroke_width(2);
        let dots = all.iter();
        chart.draw_series(dots.map(|at| Circle::new(*at, 3, colour(number).filled())))?;
        chart
            .draw_series(LineSeries::new(all.clone(), style))?
            .label(engine.name.as_str())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 15, y)], style));
        let kinds = report.kinds().into_iter().filter(|kind| *kind != "all");
        let rings = kinds.filter_map(|kind| {
            let at = place(engine.chosen(kind, target)?)?;
            Some((kind.to_owned(), at))
        });
        for (kind, at) in rings.collect::<Vec<_>>() {
            chart.draw_series([Circle::new(at, 4, colour(number))])?;
            chart.draw_series([Text::new(kind, at, ("sans-serif", 11))])?;
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    Ok(())
}
