//! A block of addresses (RFC 4632, RFC 4291), to see which holds which.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A block in its canonical form: no bit beyond the prefix is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    address: IpAddr,
    prefix: u8,
}

/// A text that is no block.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no block of addresses")]
pub(crate) struct NotABlock(String);

impl Block {
    /// Whether every address of `other` is in this block.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        self.address.is_ipv4() == other.address.is_ipv4()
            && self.prefix <= other.prefix
            && masked(other.address, self.prefix) == self.address
    }
}

impl FromStr for Block {
    type Err = NotABlock;

    fn from_str(text: &str) -> Result<Self, NotABlock> {
        let refused = || NotABlock(text.to_owned());
        let (address, prefix) = text.split_once('/').ok_or_else(refused)?;
        let address: IpAddr = address.parse().map_err(|_| refused())?;
        let prefix: u8 = prefix.parse().map_err(|_| refused())?;
        if prefix > if address.is_ipv4() { 32 } else { 128 } {
            return Err(refused());
        }
        Ok(Self { address: masked(address, prefix), prefix })
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    let prefix = u32::from(prefix);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str) -> Block {
        text.parse().expect("a block")
    }

    #[test]
    fn a_block_holds_what_is_beneath_its_prefix() {
        for (outer, inner, holds) in [
            ("0.0.0.0/0", "169.254.0.0/16", true),
            ("169.254.0.0/16", "169.254.169.254/32", true),
            ("169.254.0.0/16", "169.254.0.0/16", true),
            ("169.254.0.0/16", "169.0.0.0/8", false),
            ("10.0.0.0/8", "11.0.0.0/8", false),
            ("::/0", "fd00:ec2::254/128", true),
            ("::/0", "10.0.0.0/8", false),
            ("0.0.0.0/0", "fe80::/10", false),
        ] {
            assert_eq!(block(outer).contains(&block(inner)), holds, "{outer} {inner}");
        }
    }

    #[test]
    fn a_block_is_written_without_bits_beyond_its_prefix() {
        for (text, written) in [
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("fe80::1/10", "fe80::/10"),
            ("1.2.3.4/32", "1.2.3.4/32"),
            ("1.2.3.4/0", "0.0.0.0/0"),
        ] {
            assert_eq!(block(text).to_string(), written);
        }
    }

    #[test]
    fn what_is_no_block_is_refused() {
        for text in
            ["", "10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0/8", "a/8", "10.0.0.0/-1", "10.0.0.0/8/8"]
        {
            assert!(text.parse::<Block>().is_err(), "{text}");
        }
    }
}
