//! The recipes of `dist`: the agent understands their settings, and accepts the place of its socket.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser};
use konklave_agent::Command;
use konklave_agent::config::Settings;
use nix::sys::signal::Signal;

use crate::kit::{Folder, code, output, start, until};

#[derive(Parser)]
#[command(name = "konklave")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn recipe(name: &str) -> String {
    fs::read_to_string(root().join("dist").join(name)).expect("a recipe")
}

/// The settings that these words give an agent.
fn settings(words: &[String]) -> Settings {
    match Cli::try_parse_from(words) {
        Ok(Cli { command: Command::Agent(args) }) => args.settings,
        Ok(_) => panic!("{words:?}: no agent"),
        Err(error) => panic!("{words:?}: {error}"),
    }
}

/// The words of the list that begins after the line `title`, one a line.
fn listed(text: &str, title: &str) -> Vec<String> {
    let after = text.lines().skip_while(|line| line.trim() != title).skip(1);
    let lines = after.map(str::trim).filter(|line| !line.starts_with('#'));
    let words = lines.map_while(|line| line.strip_prefix("- ").map(str::to_owned));
    words.collect()
}

/// The words of a list in brackets that follows `key`.
fn bracketed(text: &str, key: &str) -> Vec<String> {
    let (_, rest) = text.split_once(key).expect("the key is there");
    let (list, _) = rest.split_once(']').expect("a list");
    let words = list.trim().trim_start_matches('[').split(", ");
    words.map(|word| word.trim_matches('"').to_owned()).collect()
}

/// Replaces the variables as the pod of Kubernetes does.
fn in_a_pod(word: &str) -> String {
    word.replace("$(POD)", "konklave-0").replace("$(IP)", "10.1.2.3")
}

/// The arguments of the agent in the pod, and the socket that the other container uses.
fn pod() -> (Vec<String>, String) {
    let text = recipe("kubernetes/konklave.yaml");
    let words = listed(&text, "args:").into_iter().map(|word| in_a_pod(&word));
    let words = std::iter::once("konklave".to_owned()).chain(words).collect();
    let (_, rest) = text.split_once("name: KONKLAVE_SOCKET, value: ").expect("a client's socket");
    (words, rest.split_once(' ').expect("an end").0.to_owned())
}

#[test]
fn settings_of_the_recipes_are_understood() {
    let (words, client) = pod();
    assert!(words.len() > 5, "{words:?}");
    let agent = settings(&words);
    agent.check().expect("they go together");
    let socket = agent.socket.expect("a socket");
    assert_eq!(socket, Path::new(&client), "clients look where the agent listens");
    // Others may write in an `emptyDir` itself.
    let text = recipe("kubernetes/konklave.yaml");
    let folder = socket.parent().expect("a folder").display();
    assert!(!text.contains(&format!("{{ name: run, mountPath: {folder} }}")), "{folder}");
    let work = bracketed(&text, "command: ");
    Cli::try_parse_from(&work).unwrap_or_else(|error| panic!("{work:?}: {error}"));

    let unit = recipe("systemd/konklave-agent.service");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("a command");
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    settings(&words);
    assert!(line.ends_with("--config /etc/konklave/agent.toml"), "{line}");
    // The unit and the container install the program that the documented command builds.
    let docs = fs::read_to_string(root().join("book/en/operate/run.md")).expect("a text");
    let built = "cargo build --profile dist";
    for text in [&unit, &recipe("container/Dockerfile"), &docs] {
        assert!(text.contains(built) && text.contains("target/dist/konklave-agent"), "{text}");
    }
    for text in [&unit, &docs] {
        assert!(
            text.contains("install -m 755 target/dist/konklave-agent /usr/bin/konklave"),
            "{text}"
        );
    }
    let file = Settings::read(&root().join("dist/systemd/agent.toml")).expect("known keys");
    file.check().expect("they go together");

    let image = recipe("container/Dockerfile");
    let words = [bracketed(&image, "ENTRYPOINT "), bracketed(&image, "CMD ")].concat();
    settings(&words);
}

/// Every variable of this project that `command` reads.
fn heeded(command: &clap::Command, into: &mut BTreeSet<String>) {
    let names = command.get_arguments().filter_map(|arg| arg.get_env());
    into.extend(names.map(|name| name.to_string_lossy().into_owned()));
    command.get_subcommands().for_each(|command| heeded(command, into));
}

#[test]
fn variables_of_the_recipes_have_an_effect() {
    let mut known = BTreeSet::from(["KONKLAVE_TOKEN".to_owned()]);
    heeded(&Cli::command(), &mut known);
    for name in
        ["kubernetes/konklave.yaml", "systemd/konklave-agent.service", "container/Dockerfile"]
    {
        let text = recipe(name);
        let words = text.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
        for word in words.filter(|word| word.starts_with("KONKLAVE_")) {
            assert!(known.contains(word), "{name}: {word}");
        }
    }
}

#[test]
fn an_agent_starts_in_the_volume_of_a_pod() {
    let folder = Folder::new();
    let (_, client) = pod();
    // An `emptyDir` is open to everyone, and keeps its group.
    let volume = folder.path().join("run");
    fs::create_dir(&volume).expect("a volume");
    fs::set_permissions(&volume, fs::Permissions::from_mode(0o2777)).expect("its mode");
    let socket = client.strip_prefix("/run/konklave/").expect("it is in the volume");
    let socket = volume.join(socket);
    let mode = |path: &Path| fs::metadata(path).map(|f| f.permissions().mode() & 0o777).ok();
    // The second time the folder is there: a container that was restarted.
    for _ in 0..2 {
        let agent = start(&socket, &["agent", "--dev"]);
        until("it serves", || code(&output(&socket, &["lock", "-w", "9", "a", "--", "true"])) == 0);
        assert_eq!(mode(socket.parent().expect("a folder")), Some(0o700));
        agent.signal(Signal::SIGKILL);
        agent.end();
    }
    // In the volume itself it does not.
    let refused = output(&volume.join("agent.sock"), &["agent", "--dev"]);
    assert_eq!(code(&refused), 78, "{}", String::from_utf8_lossy(&refused.stderr));
}

#[test]
fn key_of_the_documentation_is_private() {
    let folder = Folder::new();
    let text = fs::read_to_string(root().join("book/en/operate/run.md")).expect("a text");
    let line = text.lines().find(|line| line.contains("keys shared")).expect("a recipe");
    let line = line.trim_start_matches("$ ").split(" #").next().expect("a command").trim();
    let words = line.strip_prefix("konklave ").expect("our program");
    let made = std::process::Command::new(env!("CARGO_BIN_EXE_konklave-agent"))
        .args(words.split_whitespace())
        .current_dir(folder.path())
        .status();
    assert!(made.is_ok_and(|status| status.success()), "{line}");
    let facts = fs::metadata(folder.path().join("key")).expect("made");
    assert_eq!((facts.len(), facts.permissions().mode() & 0o777), (65, 0o400));
    // The error of an agent without a key shows the same line.
    let refused = output(&folder.path().join("x.sock"), &["agent", "--listen", "0.0.0.0:0"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains(line), "{said}");
}
