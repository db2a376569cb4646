//! The workbench from outside: what it answers, and what a person sees of it.

mod api;
mod browser;
mod server;
