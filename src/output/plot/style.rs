//! Text and lines placed in pixels, on a canvas that counts in finer units.

use std::fmt::Display;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Width of every picture in pixels, about that of a README column on GitHub.
pub const WIDTH: f64 = 900.0;
/// Plotters' coordinates are whole units. With eight of them a pixel, curves
/// have no visible steps; the SVG's view box scales them back.
const UNITS: f64 = 8.0;
/// The font families of the SVG; the PNG's embedded font goes by the same name.
pub const FONT: &str = "Helvetica, Arial, sans-serif";
/// Plotters' SVG backend writes font sizes divided by this.
const FONT_DIVISOR: f64 = 1.24;
/// What is drawn on: an SVG, or the pixels of a PNG.
pub type Paper<B> = DrawingArea<B, Shift>;

/// A place in pixels from the upper left corner.
pub type Point = (f64, f64);

/// How text looks.
#[derive(Clone, Copy)]
pub struct Face {
    /// Font size in pixels.
    size: f64,
    /// Mean width of a character in pixels, rather too wide: which font the
    /// reader's machine takes is unknown here.
    character: f64,
    style: FontStyle,
    color: RGBColor,
}

pub const TITLE: Face = Face::strong(19.0);
pub const NAME: Face = Face::strong(13.0);
pub const LEGEND: Face = Face::quiet(12.0);
pub const LABEL: Face = Face::quiet(11.0);

impl Face {
    const fn strong(size: f64) -> Self {
        Self {
            size,
            character: 0.68 * size,
            style: FontStyle::Bold,
            color: RGBColor(31, 35, 40),
        }
    }

    const fn quiet(size: f64) -> Self {
        Self {
            size,
            character: 0.6 * size,
            style: FontStyle::Normal,
            color: RGBColor(89, 99, 110),
        }
    }

    /// Estimated width of a text, in pixels.
    pub fn width(self, text: &str) -> f64 {
        text.chars().count() as f64 * self.character
    }

    /// The first characters of a text, as many as fit a width, with an ellipsis
    /// where some are missing. Control characters, which XML forbids, are left
    /// out.
    pub fn fit(self, text: &str, width: f64) -> String {
        let fitting = (width / self.character) as usize;
        let mut clean: Vec<char> = text.chars().filter(|c| !c.is_control()).collect();
        if clean.len() > fitting {
            clean.truncate(fitting.saturating_sub(1));
            clean.push('…');
        }
        clean.into_iter().collect()
    }
}

/// How a line looks; the width is in pixels.
#[derive(Clone, Copy)]
pub struct Pen {
    color: RGBColor,
    width: f64,
}

pub const AXIS: Pen = Pen::new(RGBColor(160, 168, 178), 1.0);
pub const CURVE: Pen = Pen::new(RGBColor(31, 95, 153), 1.5);
pub const MEAN: Pen = Pen::new(RGBColor(200, 78, 37), 1.75);

impl Pen {
    pub const fn new(color: RGBColor, width: f64) -> Self {
        Self { color, width }
    }
}

/// Fill below the curve, inside and outside the 90 % interval.
pub const INTERVAL: RGBColor = RGBColor(143, 188, 225);
pub const TAILS: RGBColor = RGBColor(222, 235, 246);

/// Writes text with its vertical middle at a place.
pub fn text<B: DrawingBackend>(
    canvas: &Paper<B>,
    face: Face,
    content: &str,
    at: Point,
    anchor: HPos,
) -> Result<(), String> {
    let size = face.size * scale(canvas) * FONT_DIVISOR;
    let style = TextStyle::from(FontDesc::new(FontFamily::Name(FONT), size, face.style))
        .color(&face.color)
        .pos(Pos::new(anchor, VPos::Center));
    canvas
        .draw(&Text::new(content.to_owned(), place(canvas, at), style))
        .map_err(message)
}

/// Joins the points by straight lines.
pub fn line<B: DrawingBackend>(
    canvas: &Paper<B>,
    pen: Pen,
    points: &[Point],
) -> Result<(), String> {
    let points: Vec<(i32, i32)> = points.iter().map(|&p| place(canvas, p)).collect();
    let width = (pen.width * scale(canvas)).round().max(1.0);
    canvas
        .draw(&PathElement::new(
            points,
            pen.color.stroke_width(width as u32),
        ))
        .map_err(message)
}

/// Fills the polygon with these corners.
pub fn fill<B: DrawingBackend>(
    canvas: &Paper<B>,
    color: RGBColor,
    corners: &[Point],
) -> Result<(), String> {
    let corners: Vec<(i32, i32)> = corners.iter().map(|&p| place(canvas, p)).collect();
    canvas
        .draw(&Polygon::new(corners, color.filled()))
        .map_err(message)
}

/// Pixels in the units of an SVG's canvas.
pub fn units(pixels: f64) -> i32 {
    (pixels * UNITS).round() as i32
}

/// Units of a canvas in a pixel: every canvas is [`WIDTH`] pixels wide.
fn scale<B: DrawingBackend>(canvas: &Paper<B>) -> f64 {
    f64::from(canvas.dim_in_pixel().0) / WIDTH
}

fn place<B: DrawingBackend>(canvas: &Paper<B>, (x, y): Point) -> (i32, i32) {
    let scale = scale(canvas);
    ((x * scale).round() as i32, (y * scale).round() as i32)
}

/// An error of plotters as text; its type names the backend.
pub fn message(error: impl Display) -> String {
    error.to_string()
}
