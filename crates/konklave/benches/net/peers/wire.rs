//! Common parts of the peers' protocols: connections, and bytes in network order.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// A connection to a server on this machine.
pub(super) fn call(port: u16, patience: Duration) -> io::Result<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    Ok(stream)
}

/// An error for an unexpected answer.
pub(super) fn strange(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// The program of this name, if it is installed.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    let places = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&places).chain(["/usr/sbin".into()]);
    places.map(|place| place.join(name)).find(|file| file.is_file())
}

/// Sends a message with its length in front.
pub(super) fn send(stream: &mut TcpStream, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], body].concat())
}

/// Receives such a message.
pub(super) fn receive(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > 1 << 20 {
        return Err(strange(format!("a message of {length} bytes")));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}
