//! Where a member listens: connections, or datagrams to one and to all.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

/// The sockets of a member.
#[derive(Debug)]
pub enum Sockets {
    /// It takes connections: nothing is lost while they last.
    Streams(TcpListener),
    /// What it says to many is one datagram to a multicast address.
    Multicast {
        /// What is for this member alone.
        own: UdpSocket,
        /// What is for all.
        shared: UdpSocket,
        /// Where all are reached.
        all: SocketAddrV4,
    },
}

impl Sockets {
    /// Listens for connections at an address of this machine.
    pub fn streams(listen: Ipv4Addr) -> io::Result<Self> {
        Ok(Self::Streams(TcpListener::bind((listen, 0))?))
    }

    /// Listens for datagrams on the interface that has the address `listen`, and joins the group `all`
    /// there.
    pub fn multicast(listen: Ipv4Addr, all: SocketAddrV4) -> io::Result<Self> {
        let own = bound(SocketAddrV4::new(listen, 0))?;
        own.set_multicast_if_v4(&listen)?;
        // To the others on the same link, and not to ourselves.
        own.set_multicast_ttl_v4(1)?;
        own.set_multicast_loop_v4(listen.is_loopback())?;
        let shared = bound(all)?;
        shared.join_multicast_v4(all.ip(), &listen)?;
        Ok(Self::Multicast { own: own.into(), shared: shared.into(), all })
    }

    /// Where it is reached.
    pub fn address(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Streams(listener) => listener.local_addr(),
            Self::Multicast { own, .. } => own.local_addr(),
        }
    }
}

fn bound(address: SocketAddrV4) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    if address.ip().is_multicast() {
        // Members on one machine share the port of the group.
        socket.set_reuse_address(true)?;
    }
    socket.bind(&SocketAddr::V4(address).into())?;
    Ok(socket)
}
