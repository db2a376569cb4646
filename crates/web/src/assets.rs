//! The page and its modules: part of the binary; in debug builds, read from disk each time.

use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "assets/"]
struct Assets;

/// The file that `uri` names; the page itself for `/`.
pub(crate) async fn asset(uri: Uri) -> Response {
    let path = match uri.path().trim_start_matches('/') {
        "" => "index.html",
        path => path,
    };
    let Some(file) = Assets::get(path) else {
        return (StatusCode::NOT_FOUND, "there is nothing here\n").into_response();
    };
    ([(header::CONTENT_TYPE, kind(path))], file.data).into_response()
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_and_modules_are_small() {
        let all = Assets::iter().map(|path| Assets::get(&path).map_or(0, |file| file.data.len()));
        let bytes: usize = all.sum();
        assert!(bytes > 10_000 && bytes <= 300_000, "{bytes} bytes");
    }
}
