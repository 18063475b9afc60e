//! Pictures as PNG: drawn by plotters at four units a pixel with an embedded font (DejaVu Sans), so
//! that no system font is needed, and averaged down to two.

use std::sync::OnceLock;

use plotters::prelude::{BitMapBackend, IntoDrawingArea};
use plotters::style::{FontStyle, register_font};

use super::style::{FONT, Paper, WIDTH, message};

/// Drawn units a pixel; the file has half as many, for sharp screens.
const DRAWN: f64 = 4.0;

/// The bytes of a PNG of so many pixels' height that `draw` draws.
///
/// # Errors
/// What `draw` says.
pub fn png(
    height: f64,
    draw: impl FnOnce(&Paper<BitMapBackend<'_>>) -> Result<(), String>,
) -> Result<Vec<u8>, String> {
    embed_font()?;
    // Even, so that two units make a file's pixel.
    let side = |pixels: f64| 2 * (pixels * DRAWN / 2.0).round() as u32;
    let (width, height) = (side(WIDTH), side(height));
    let mut pixels = vec![0u8; 3 * width as usize * height as usize];
    {
        let paper = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
        draw(&paper)?;
        paper.present().map_err(message)?;
    }
    encode(&halve(&pixels, width as usize), width / 2, height / 2)
}
fn embed_font() -> Result<(), String> {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let register = || register_font(FONT, FontStyle::Normal, dejavu::sans::regular()).is_ok();
    if *FOUND.get_or_init(register) {
        Ok(())
    } else {
        Err("the embedded font cannot be read".into())
    }
}

/// Averages squares of four pixels of RGB.
fn halve(pixels: &[u8], width: usize) -> Vec<u8> {
    let row = 3 * width;
    pixels
        .chunks_exact(2 * row)
        .flat_map(|pair| {
            let (upper, lower) = pair.split_at(row);
            upper.chunks_exact(6).zip(lower.chunks_exact(6))
        })
        .flat_map(|(u, l)| {
            [0, 1, 2].map(|k| {
                let sum = [u[k], u[k + 3], l[k], l[k + 3]].map(u16::from);
                ((sum.iter().sum::<u16>() + 2) / 4) as u8
            })
        })
        .collect()
}

fn encode(pixels: &[u8], width: u32, height: u32) -> Result<Vec<u8>, String> {
    let fail = |e: png::EncodingError| format!("cannot encode the PNG: {e}");
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(fail)?;
    writer.write_image_data(pixels).map_err(fail)?;
    writer.finish().map_err(fail)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_pixels_make_one() {
        let pixels = [0, 10, 255, 4, 10, 255, 0, 30, 255, 0, 30, 255];
        assert_eq!(halve(&pixels, 2), [1, 20, 255]);
    }
}
