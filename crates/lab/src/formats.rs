//! Formats that a build may lack, because their libraries take long to build.

use konklave_catalog::Error;
use konklave_tables::Table;

#[cfg(not(all(feature = "parquet", feature = "png")))]
fn lacking(format: &str, feature: &str) -> Error {
    Error::Usage(format!(
        "this program was built without {format}; build it with `--features {feature}`"
    ))
}

/// `table` as Parquet.
#[cfg(feature = "parquet")]
pub(crate) fn parquet(table: &Table) -> Result<Vec<u8>, Error> {
    Ok(table.to_parquet())
}

/// `table` as Parquet: not in this build.
#[cfg(not(feature = "parquet"))]
pub(crate) fn parquet(_: &Table) -> Result<Vec<u8>, Error> {
    Err(lacking("Parquet", "parquet"))
}

/// `svg` as PNG.
#[cfg(feature = "png")]
pub(crate) fn png(svg: &str, scale: f32) -> Result<Vec<u8>, Error> {
    konklave_trace::export::png(svg, scale).map_err(|e| Error::Usage(e.to_string()))
}

/// `svg` as PNG: not in this build.
#[cfg(not(feature = "png"))]
pub(crate) fn png(_: &str, _: f32) -> Result<Vec<u8>, Error> {
    Err(lacking("PNG", "png"))
}

/// `svg` as PDF.
#[cfg(feature = "png")]
pub(crate) fn pdf(svg: &str) -> Result<Vec<u8>, Error> {
    konklave_trace::export::pdf(svg).map_err(|e| Error::Usage(e.to_string()))
}

/// `svg` as PDF: not in this build.
#[cfg(not(feature = "png"))]
pub(crate) fn pdf(_: &str) -> Result<Vec<u8>, Error> {
    Err(lacking("PDF", "png"))
}
