//! Packets with descriptors over a `SOCK_SEQPACKET` pair, and sealed memory files for what does not fit in one.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create};
use rustix::io::{Errno, pread, write};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::wire::MAX_PACKET_BYTES;

/// Descriptors in one packet at most: body, folder, three streams, text.
const MAX_DESCRIPTORS: usize = 6;

/// One received packet. No bytes means that the other side is gone.
#[derive(Debug, Default)]
pub(super) struct Packet {
    pub(super) bytes: Vec<u8>,
    pub(super) descriptors: Vec<OwnedFd>,
}

/// Sends one packet, whole or not at all, without waiting.
pub(super) fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOBIG);
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    retry(|| sendmsg(&socket, &[IoSlice::new(bytes)], &mut ancillary, flags)).map(drop)
}

/// Receives one packet without waiting. Descriptors arrive close-on-exec.
///
/// A receiver at its own limit of descriptors gets the first ones only (unix(7)), and so the reader of this one packet finds
/// that some are missing; packets after it are whole.
///
/// # Errors
/// `EAGAIN` when none is there, `EMSGSIZE` for a packet that was cut short.
pub(super) fn receive(socket: impl AsFd) -> Result<Packet, Errno> {
    let mut bytes = [0; MAX_PACKET_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = match retry(|| recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags))
    {
        Err(Errno::CONNRESET) => return Ok(Packet::default()),
        other => other?,
    };
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(Errno::MSGSIZE);
    }
    Ok(Packet { bytes: bytes[..received.bytes].to_vec(), descriptors })
}

/// A memory file with these contents that nobody can change any more.
pub(super) fn sealed(name: &str, parts: &[&[u8]]) -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Never to be executed; kernels before 6.3 do not know the flag, later ones may insist on it (sysctl vm.memfd_noexec).
    let file = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(name, flags)?,
        other => other?,
    };
    for part in parts {
        let mut rest = *part;
        while !rest.is_empty() {
            let written = retry(|| write(&file, rest))?;
            rest = &rest[written..];
        }
    }
    fcntl_add_seals(&file, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(file)
}

/// The contents of a sealed memory file of at most `limit` bytes.
///
/// # Errors
/// `EPERM` if it could still change, `EFBIG` above the limit.
pub(super) fn read_sealed(file: &OwnedFd, limit: usize) -> Result<Vec<u8>, Errno> {
    if !fcntl_get_seals(file)?.contains(SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW) {
        return Err(Errno::PERM);
    }
    let size = usize::try_from(fstat(file)?.st_size).map_err(|_| Errno::FBIG)?;
    if size > limit {
        return Err(Errno::FBIG);
    }
    let mut contents = vec![0; size];
    let mut done = 0;
    while done < size {
        match retry(|| pread(file, &mut contents[done..], done as u64))? {
            0 => return Err(Errno::IO),
            read => done += read,
        }
    }
    Ok(contents)
}

fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .expect("a socket pair")
    }

    #[test]
    fn a_packet_arrives_whole_with_its_descriptors() {
        let (ours, theirs) = pair();
        let body = sealed("body", &[b"first, ", b"second"]).expect("a memory file");
        send(&ours, b"hello", &[body.as_fd(), ours.as_fd()]).expect("room for one packet");
        let packet = receive(&theirs).expect("a packet");
        assert_eq!(packet.bytes, b"hello");
        assert_eq!(packet.descriptors.len(), 2);
        assert_eq!(read_sealed(&packet.descriptors[0], 64).expect("sealed"), b"first, second");
    }

    #[test]
    fn an_end_of_file_is_an_empty_packet_and_silence_is_not() {
        let (ours, theirs) = pair();
        assert_eq!(receive(&theirs).err(), Some(Errno::AGAIN));
        drop(ours);
        assert!(receive(&theirs).expect("the end").bytes.is_empty());
    }

    #[test]
    fn a_packet_that_was_cut_is_an_error() {
        let (ours, theirs) = pair();
        send(&ours, &[7; MAX_PACKET_BYTES + 1], &[]).expect("room for one packet");
        assert_eq!(receive(&theirs).err(), Some(Errno::MSGSIZE));
    }

    #[test]
    fn a_body_that_could_still_change_or_is_too_large_is_refused() {
        let open =
            memfd_create("open", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("a memory file");
        assert_eq!(read_sealed(&open, 64), Err(Errno::PERM));
        let large = sealed("large", &[&[1; 65]]).expect("a memory file");
        assert_eq!(read_sealed(&large, 64), Err(Errno::FBIG));
    }
}
