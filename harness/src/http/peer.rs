//! Which user is at the other end of a loopback connection.

use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Both ends of an accepted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// Our address.
    pub(crate) ours: SocketAddr,
    /// The caller's address.
    pub(crate) theirs: SocketAddr,
}

/// The user id that owns the caller's end, as the kernel's socket table says (proc_pid_net(5), `/proc/net/tcp`).
///
/// `None` if the table does not show it as an established socket that a process holds: the owner of an orphan is printed
/// as 0 by older kernels, and 0 must not be believed there.
///
/// # Errors
/// Those of reading the table. It blocks; run it where that is allowed.
pub(crate) fn user_of(ends: Ends) -> io::Result<Option<u32>> {
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        match std::fs::File::open(table) {
            Ok(file) => {
                if let Some(user) = find(BufReader::new(file), ends)? {
                    return Ok(Some(user));
                }
            }
            // A kernel without IPv6 has no second table.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn find(table: impl BufRead, ends: Ends) -> io::Result<Option<u32>> {
    for line in table.lines().skip(1) {
        if let Some(user) = owner(&line?, ends) {
            return Ok(Some(user));
        }
    }
    Ok(None)
}

/// The owner of the socket on this line, if it is the caller's end.
fn owner(line: &str, ends: Ends) -> Option<u32> {
    const ESTABLISHED: &str = "01";
    let mut columns = line.split_ascii_whitespace().skip(1);
    let (local, remote, state) = (columns.next()?, columns.next()?, columns.next()?);
    if state != ESTABLISHED
        || address(local)? != canonical(ends.theirs)
        || address(remote)? != canonical(ends.ours)
    {
        return None;
    }
    // After the state: queues, timer, retransmits, then user, timeout, inode.
    let mut rest = columns.skip(3);
    let user = rest.next()?.parse().ok()?;
    let inode: u64 = rest.nth(1)?.parse().ok()?;
    (inode != 0).then_some(user)
}

/// An IPv4 address in IPv6 clothes is the same end.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Reads `0100007F:1F91`: each 32-bit word in the machine's byte order, the port as a number.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for word in host.as_bytes().chunks(8) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend_from_slice(&word.to_ne_bytes());
    }
    let ip = match bytes.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => return None,
    };
    Some(canonical(SocketAddr::new(ip, port)))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    fn user(line: &str) -> Option<u32> {
        let ends = Ends {
            ours: "127.0.0.1:8081".parse().expect("address"),
            theirs: "127.0.0.1:40000".parse().expect("address"),
        };
        find(format!("{HEAD}{line}\n").as_bytes(), ends).expect("table")
    }

    #[test]
    fn only_an_established_socket_that_a_process_holds_is_believed() {
        assert_eq!(
            user("0: 0100007F:9C40 0100007F:1F91 01 0:0 00:0 0 1000 0 77 1 0 20 4 30 10 -1"),
            Some(1000)
        );
        assert_eq!(user("0: 0100007F:9C40 0100007F:1F91 01 0:0 00:0 0 0 0 0 1 0"), None, "an orphan");
        assert_eq!(user("0: 0100007F:9C40 0100007F:1F91 06 0:0 00:0 0 0 0 77 1 0"), None, "waiting");
        assert_eq!(user("0: 0100007F:1F91 0100007F:9C40 01 0:0 00:0 0 1000 0 77 1 0"), None, "our own end");
        assert_eq!(
            user("0: 0100007F:9C40 0100007F:1F92 01 0:0 00:0 0 1000 0 77 1 0"),
            None,
            "another server"
        );
        assert_eq!(
            user(
                "0: 0000000000000000FFFF00000100007F:9C40 0000000000000000FFFF00000100007F:1F91 01 0:0 00:0 0 9 0 7 1"
            ),
            Some(9),
            "an IPv6 socket that speaks IPv4"
        );
        assert_eq!(user("nonsense"), None);
    }

    #[test]
    fn the_caller_of_a_real_connection_is_the_user_of_this_process() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let client = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
        let (server, theirs) = listener.accept().expect("accept");
        let ends = Ends { ours: server.local_addr().expect("address"), theirs };
        assert_eq!(user_of(ends).expect("table"), Some(rustix::process::getuid().as_raw()));
        drop(client);
    }
}
