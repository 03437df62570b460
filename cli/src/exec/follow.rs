//! Following a command by offset.

use std::io::{self, Write as _};

use mooring_proto::v1::attach_response::Event;
use mooring_proto::v1::{AttachRequest, AttachResponse, CommandEnd, OutputFrame, OutputGap, Stream};
use tonic::Streaming;

use super::line::{Attempts, Verdict, judge};
use super::start::Command;
use crate::error::Error;
use crate::gateway::Gateway;

/// How following ended.
#[derive(Debug, PartialEq)]
pub(crate) enum Ended {
    /// The command's own end.
    End {
        /// How.
        end: CommandEnd,
        /// Bytes of its output that were not kept until they were read.
        lost: u64,
    },
    /// The executor that knew it is gone.
    Lost,
    /// Nobody reads our standard output any more.
    NobodyReads,
}

/// How far each stream was written to our own outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Offsets {
    stdout: u64,
    stderr: u64,
    /// Bytes that were no longer kept.
    lost: u64,
}

/// What an event asks for.
#[derive(Debug, PartialEq)]
enum Step {
    Write(Stream, Vec<u8>),
    End(CommandEnd),
    Nothing,
}

/// Writes a command's output as it comes until its end, taking it up again where it broke.
///
/// # Errors
/// [`Error::Output`], a refusal, and whatever lasts longer than patience.
pub(crate) async fn follow(gateway: &Gateway, command: &Command) -> Result<Ended, Error> {
    let mut offsets = Offsets::default();
    let mut attempts = Attempts::new();
    loop {
        let request = AttachRequest {
            context: Some(command.context.clone()),
            command_id: command.id.clone(),
            stdout_offset: offsets.stdout,
            stderr_offset: offsets.stderr,
            no_follow: false,
        };
        let error = match gateway.commands().attach(request).await {
            Ok(answer) => match read(answer.into_inner(), &mut offsets, &mut attempts).await? {
                Read::Ended(ended) => return Ok(ended),
                Read::Broke(error) => error,
            },
            Err(status) => Error::from(status),
        };
        match judge(error) {
            Verdict::Again(error) => attempts.pause(gateway, error).await?,
            Verdict::Lost => return Ok(Ended::Lost),
            Verdict::Refused(error) => return Err(error),
        }
    }
}

enum Read {
    Ended(Ended),
    Broke(Error),
}

async fn read(
    mut events: Streaming<AttachResponse>,
    offsets: &mut Offsets,
    attempts: &mut Attempts,
) -> Result<Read, Error> {
    loop {
        let event = match events.message().await {
            Ok(Some(message)) => message.event,
            Ok(None) => return Ok(Read::Broke(Error::Broken("it ended before the command did".to_owned()))),
            Err(status) => return Ok(Read::Broke(status.into())),
        };
        attempts.heard();
        match offsets.take(event) {
            Step::Write(stream, content) => match tokio::task::block_in_place(|| write(stream, &content)) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Ok(Read::Ended(Ended::NobodyReads));
                }
                written => written.map_err(Error::Output)?,
            },
            Step::End(end) => return Ok(Read::Ended(Ended::End { end, lost: offsets.lost })),
            Step::Nothing => {}
        }
    }
}

fn write(stream: Stream, content: &[u8]) -> io::Result<()> {
    if stream == Stream::Stderr {
        let mut out = io::stderr().lock();
        return out.write_all(content).and_then(|()| out.flush());
    }
    let mut out = io::stdout().lock();
    out.write_all(content).and_then(|()| out.flush())
}

impl Offsets {
    /// Takes an event. Bytes that were written already are not written again, whatever an executor sends.
    fn take(&mut self, event: Option<Event>) -> Step {
        match event {
            Some(Event::Output(frame)) => {
                let stream = frame.stream();
                let OutputFrame { offset, content, .. } = frame;
                let at = self.of(stream);
                let end = offset.saturating_add(content.len() as u64);
                let n_known = usize::try_from(at.saturating_sub(offset)).unwrap_or(usize::MAX);
                *at = end.max(*at);
                match content.get(n_known..) {
                    Some(new) if !new.is_empty() => Step::Write(stream, new.to_vec()),
                    Some(_) | None => Step::Nothing,
                }
            }
            Some(Event::Gap(gap)) => {
                let stream = gap.stream();
                let OutputGap { from, to, .. } = gap;
                let at = self.of(stream);
                let n_lost = to.saturating_sub(from.max(*at));
                *at = to.max(*at);
                self.lost = self.lost.saturating_add(n_lost);
                Step::Nothing
            }
            Some(Event::End(end)) => Step::End(end),
            None => Step::Nothing,
        }
    }

    fn of(&mut self, stream: Stream) -> &mut u64 {
        match stream {
            Stream::Stderr => &mut self.stderr,
            Stream::Stdout | Stream::Unspecified => &mut self.stdout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(stream: Stream, offset: u64, content: &str) -> Event {
        let content = content.as_bytes().to_vec().into();
        Event::Output(OutputFrame { stream: stream.into(), offset, content })
    }

    #[test]
    fn each_byte_is_written_once_whatever_comes_again() {
        let mut offsets = Offsets::default();
        let mut take = |event| offsets.take(Some(event));
        let write = |stream, text: &str| Step::Write(stream, text.as_bytes().to_vec());
        assert_eq!(take(output(Stream::Stdout, 0, "abc")), write(Stream::Stdout, "abc"));
        assert_eq!(take(output(Stream::Stderr, 0, "x")), write(Stream::Stderr, "x"));
        assert_eq!(take(output(Stream::Stdout, 1, "bc")), Step::Nothing);
        assert_eq!(take(output(Stream::Stdout, 2, "cde")), write(Stream::Stdout, "de"));
        assert_eq!(take(output(Stream::Stdout, 0, "a")), Step::Nothing);
        assert_eq!(take(output(Stream::Stdout, u64::MAX, "f")), write(Stream::Stdout, "f"));
    }

    #[test]
    fn what_is_no_longer_kept_is_counted_once() {
        let mut offsets = Offsets::default();
        let gap = |from, to| Some(Event::Gap(OutputGap { stream: Stream::Stdout.into(), from, to }));
        for _ in 0..2 {
            assert_eq!(offsets.take(gap(0, 2048)), Step::Nothing);
        }
        assert_eq!(offsets, Offsets { stdout: 2048, stderr: 0, lost: 2048 });
    }
}
