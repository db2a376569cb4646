//! The sockets on which a member listens.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

/// The sockets of a member.
#[derive(Debug)]
pub enum Sockets {
    /// TCP connections: no message is lost while a connection lasts.
    Streams(TcpListener),
    /// UDP datagrams; a message to several members is one datagram to a multicast address.
    Multicast {
        /// Receives datagrams for this member alone.
        own: UdpSocket,
        /// Receives datagrams for the whole group.
        shared: UdpSocket,
        /// The multicast address of the group.
        all: SocketAddrV4,
    },
}

impl Sockets {
    /// Listens for connections at an address of this machine.
    pub fn streams(listen: Ipv4Addr) -> io::Result<Self> {
        Ok(Self::Streams(TcpListener::bind((listen, 0))?))
    }

    /// Listens for datagrams on the interface with the address `listen`, and joins the multicast group `all`
    /// there.
    pub fn multicast(listen: Ipv4Addr, all: SocketAddrV4) -> io::Result<Self> {
        let own = bound(SocketAddrV4::new(listen, 0))?;
        own.set_multicast_if_v4(&listen)?;
        // Datagrams reach only this link; without loopback they do not come back to us.
        own.set_multicast_ttl_v4(1)?;
        own.set_multicast_loop_v4(listen.is_loopback())?;
        let shared = bound(all)?;
        shared.join_multicast_v4(all.ip(), &listen)?;
        Ok(Self::Multicast { own: own.into(), shared: shared.into(), all })
    }

    /// The address at which other members reach this one.
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
