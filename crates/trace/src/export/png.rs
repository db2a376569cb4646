//! A picture as points: the SVG, rendered with a font that we bring along, so that it looks the
//! same on every machine, a bare one too.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, fontdb};

/// DejaVu Sans, reduced to European scripts, arrows and mathematics; free, see `assets/DejaVu.txt`.
const FONTS: [&[u8]; 2] = [
    include_bytes!("../../assets/DejaVuSans.subset.ttf"),
    include_bytes!("../../assets/DejaVuSans-Bold.subset.ttf"),
];

/// No picture has more points: 400 MB of memory.
const MOST_POINTS: f64 = 1e8;

/// The reason why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The SVG is none.
    #[error("the picture is no SVG: {0}")]
    NoSvg(String),
    /// It would need too much memory.
    #[error(
        "a picture of {width} by {height} points is too large; show less of the run, or take SVG"
    )]
    TooLarge {
        /// Its width.
        width: u64,
        /// Its height.
        height: u64,
    },
    /// The points could not be written down.
    #[error("the picture cannot be encoded: {0}")]
    Encoding(String),
}

/// `svg` with its text in our font.
pub(super) fn read(svg: &str) -> Result<usvg::Tree, PngError> {
    let mut fonts = fontdb::Database::new();
    FONTS.iter().for_each(|font| fonts.load_font_data(font.to_vec()));
    fonts.set_sans_serif_family("DejaVu Sans");
    let options = usvg::Options {
        fontdb: Arc::new(fonts),
        font_family: "DejaVu Sans".into(),
        ..usvg::Options::default()
    };
    usvg::Tree::from_str(svg, &options).map_err(|e| PngError::NoSvg(e.to_string()))
}

/// `svg` as PNG on a light ground, with `scale` points for each of its units.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, PngError> {
    let tree = read(svg)?;
    let (width, height) = (tree.size().width() * scale, tree.size().height() * scale);
    let (width, height) = (width.ceil(), height.ceil());
    let too_large = PngError::TooLarge { width: width as u64, height: height as u64 };
    if f64::from(width) * f64::from(height) > MOST_POINTS {
        return Err(too_large);
    }
    let Some(mut points) = Pixmap::new(width as u32, height as u32) else { return Err(too_large) };
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut points.as_mut());
    points.encode_png().map_err(|e| PngError::Encoding(e.to_string()))
}
