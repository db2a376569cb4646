//! The workbench from outside: the answers of its server, and the page in a browser.

mod api;
mod browser;
mod server;
