//! The page and its modules, compiled into the binary.

use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

/// The files of `assets/`, each by its name.
macro_rules! assets {
    ($($name:literal)*) => {
        const ASSETS: &[(&str, &[u8])] =
            &[$(($name, include_bytes!(concat!("../assets/", $name)).as_slice())),*];
    };
}

assets! {
    "api.js" "diagram.js" "dom.js" "form.js" "graph.js" "i18n.js" "icon.svg" "index.html" "inspector.js" "live.js"
    "main.js" "model.js" "pages.js" "share.js" "style.css"
}

/// The file that `uri` names; the page itself for `/`.
pub(crate) async fn asset(uri: Uri) -> Response {
    let path = match uri.path().trim_start_matches('/') {
        "" => "index.html",
        path => path,
    };
    let Some((_, data)) = ASSETS.iter().find(|(name, _)| *name == path) else {
        return (StatusCode::NOT_FOUND, "there is nothing here\n").into_response();
    };
    ([(header::CONTENT_TYPE, kind(path))], *data).into_response()
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
        let bytes: usize = ASSETS.iter().map(|(_, data)| data.len()).sum();
        assert!(bytes > 10_000 && bytes <= 300_000, "{bytes} bytes");
    }

    #[test]
    fn every_file_of_the_folder_is_part_of_the_binary() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/assets")).unwrap();
        let mut files: Vec<String> =
            folder.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        files.sort();
        assert_eq!(files, ASSETS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}
