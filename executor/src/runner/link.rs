//! The serve side of the link: starts, cancels and signals commands of the runner and learns their ends.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use prost::Message;
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot, watch};

use super::packet;
use super::shell;
use super::spec::{Capabilities, End, EndKind, LinkVersion, Program, Shell, StartSpec, Stdin};
use super::wire::{
    Empty, Event, MAX_BODY_BYTES, MAX_PACKET_BYTES, News, Order, Request, StartBody, StartOrder,
};

/// Orders that may wait for the socket; a caller beyond them waits.
const QUEUED_ORDERS: usize = 64;

/// Why a command was not handed to the runner. Nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No runner is connected. The same start may succeed once one is.
    #[error("no runner is connected")]
    RunnerUnavailable,
    /// The specification breaks a rule of [`StartSpec`].
    #[error("invalid start: {0}")]
    Invalid(&'static str),
    /// A pipe or memory file could not be made, or the kernel passes no more descriptors on for this user.
    #[error("cannot prepare the command's descriptors")]
    Descriptors(#[source] io::Error),
}

/// The connection to one runner. Cheap to clone; the connection closes when it breaks or with [`Link::close`].
#[derive(Clone)]
pub struct Link {
    shared: Arc<Shared>,
}

struct Shared {
    orders: mpsc::Sender<Outgoing>,
    table: Mutex<Table>,
    greeting: watch::Receiver<Greeting>,
    closing: watch::Sender<bool>,
}

#[derive(Default)]
struct Table {
    closed: bool,
    last: u64,
    commands: HashMap<u64, Entry>,
}

/// What the link still owes to one command.
struct Entry {
    handed_over: Instant,
    ended: Option<oneshot::Sender<End>>,
    gone: oneshot::Sender<()>,
    started: watch::Sender<bool>,
    processes: watch::Sender<u32>,
}

#[derive(Clone, Copy)]
enum Greeting {
    Awaited,
    Told(Capabilities),
    Lost,
}

struct Outgoing {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    /// For a start: told once the packet is with the kernel, or that it will not be. If nobody waits for it any more, the
    /// start is cancelled.
    sent: Option<(u64, oneshot::Sender<Result<(), Errno>>)>,
}

/// A command that was handed to the runner. Dropping it ends nothing.
pub struct Running {
    /// Its standard output; end of file once no process holds the other end.
    pub stdout: pipe::Receiver,
    /// Its standard error.
    pub stderr: pipe::Receiver,
    /// Its standard input, for [`Stdin::Pipe`].
    pub stdin: Option<pipe::Sender>,
    /// Becomes true when the program runs; its sender is dropped when nothing of the command lives.
    pub started: watch::Receiver<bool>,
    /// Processes of the command that live, counted every 100 ms.
    pub processes: watch::Receiver<u32>,
    /// The end of the main process.
    pub ended: Ended,
    /// The end of everything the command started.
    pub gone: Gone,
    /// Cancels and signals it.
    pub control: Control,
}

/// Resolves once to the command's end; a broken link is [`EndKind::RunnerLost`].
pub struct Ended {
    end: oneshot::Receiver<End>,
    handed_over: Instant,
}

impl Future for Ended {
    type Output = End;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<End> {
        let since = self.handed_over;
        Pin::new(&mut self.end).poll(cx).map(|end| end.unwrap_or_else(|_| lost(since)))
    }
}

/// Resolves once nothing of the command lives, or once the link is broken: the runner then ends everything.
pub struct Gone(oneshot::Receiver<()>);

impl Future for Gone {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}

/// Reaches one command. Cheap to clone. Orders to a command that is gone do nothing.
#[derive(Clone)]
pub struct Control {
    shared: Arc<Shared>,
    command: u64,
}

impl Control {
    /// Ends the command and everything it started: TERM, 2 s, KILL. The end is told by [`Running::ended`] and
    /// [`Running::gone`]. Idempotent.
    ///
    /// # Errors
    /// [`StartError::RunnerUnavailable`] when the link is broken; the runner then ends the command by itself.
    pub async fn cancel(&self) -> Result<(), StartError> {
        self.shared.order(self.command, Order::Cancel(Empty {})).await
    }

    /// Sends `signal`, 1..=64, to the main process if it still runs.
    ///
    /// # Errors
    /// [`StartError::Invalid`] for another number, [`StartError::RunnerUnavailable`] when the link is broken.
    pub async fn signal(&self, signal: u32) -> Result<(), StartError> {
        if !(1..=64).contains(&signal) {
            return Err(StartError::Invalid("a signal number is 1 to 64"));
        }
        self.shared.order(self.command, Order::Signal(signal)).await
    }
}

impl Link {
    /// Takes over one end of a connected `SOCK_SEQPACKET` pair whose other end a runner holds or will hold.
    ///
    /// Must be called within a tokio runtime, which keeps one task for the link.
    ///
    /// # Errors
    /// Any error of registering the descriptor with the runtime.
    pub fn connect(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        #[expect(unsafe_code, reason = "tokio cannot see that an `OwnedFd` keeps its descriptor")]
        // SAFETY: `as_raw_fd` of an `OwnedFd` is one open descriptor for as long as it is owned, and the `AsyncFd` owns it.
        let socket =
            unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE | Interest::WRITABLE) }?;
        let (orders, queue) = mpsc::channel(QUEUED_ORDERS);
        let (greet, greeting) = watch::channel(Greeting::Awaited);
        let (closing, close) = watch::channel(false);
        let shared = Arc::new(Shared { orders, table: Mutex::default(), greeting, closing });
        tokio::spawn(drive(socket, queue, close, greet, Arc::clone(&shared)));
        Ok(Self { shared })
    }

    /// Hands one command to the runner and returns as soon as it is on its way: whether the program could be run is told by
    /// [`Running::ended`]. If this call is dropped halfway, the command is cancelled.
    ///
    /// # Errors
    /// See [`StartError`]; in every case nothing was started.
    pub async fn start(&self, spec: StartSpec) -> Result<Running, StartError> {
        let start = encode(&spec)?;
        let streams = Streams::new(spec.stdin)?;
        let mut descriptors = vec![start.body, streams.stdout_end, streams.stderr_end];
        let order = StartOrder { stdin: streams.stdin_end.is_some(), text: start.text.is_some() };
        descriptors.extend(streams.stdin_end);
        descriptors.extend(start.text);

        let (ended_in, ended) = oneshot::channel();
        let (gone_in, gone) = oneshot::channel();
        let (started_in, started) = watch::channel(false);
        let (processes_in, processes) = watch::channel(0);
        let handed_over = Instant::now();
        let command = self.shared.enter(Entry {
            handed_over,
            ended: Some(ended_in),
            gone: gone_in,
            started: started_in,
            processes: processes_in,
        })?;
        let bytes = Request { command, order: Some(Order::Start(order)) }.encode_to_vec();
        let (sent, on_its_way) = oneshot::channel();
        let outgoing = Outgoing { bytes, descriptors, sent: Some((command, sent)) };
        let queued = self.shared.orders.send(outgoing).await;
        let sent = if queued.is_ok() { on_its_way.await.ok() } else { None };
        if sent != Some(Ok(())) {
            self.shared.table().commands.remove(&command);
            let refused = sent.and_then(Result::err);
            return Err(refused.map_or(StartError::RunnerUnavailable, self::descriptors));
        }
        Ok(Running {
            stdout: streams.stdout,
            stderr: streams.stderr,
            stdin: streams.stdin,
            started,
            processes,
            ended: Ended { end: ended, handed_over },
            gone: Gone(gone),
            control: Control { shared: Arc::clone(&self.shared), command },
        })
    }

    /// What the runner's kernel can do. Waits for the runner's first message.
    ///
    /// # Errors
    /// [`StartError::RunnerUnavailable`] if the link breaks first or the runner is of another version.
    pub async fn capabilities(&self) -> Result<Capabilities, StartError> {
        let mut greeting = self.shared.greeting.clone();
        let told = greeting.wait_for(|greeting| !matches!(greeting, Greeting::Awaited)).await;
        match told.as_deref() {
            Ok(Greeting::Told(capabilities)) => Ok(*capabilities),
            Ok(Greeting::Awaited | Greeting::Lost) | Err(_) => Err(StartError::RunnerUnavailable),
        }
    }

    /// Waits until the link is broken or closed.
    pub async fn closed(&self) {
        self.shared.orders.closed().await;
    }

    /// Closes the link: the runner ends every command and exits, and each command's end is [`EndKind::RunnerLost`].
    pub fn close(&self) {
        self.shared.closing.send_replace(true);
    }
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, entry: Entry) -> Result<u64, StartError> {
        let mut table = self.table();
        if table.closed {
            return Err(StartError::RunnerUnavailable);
        }
        table.last += 1;
        let command = table.last;
        table.commands.insert(command, entry);
        Ok(command)
    }

    async fn order(&self, command: u64, order: Order) -> Result<(), StartError> {
        let bytes = Request { command, order: Some(order) }.encode_to_vec();
        let outgoing = Outgoing { bytes, descriptors: Vec::new(), sent: None };
        self.orders.send(outgoing).await.map_err(|_| StartError::RunnerUnavailable)
    }

    fn learn(&self, command: u64, news: News) {
        let mut table = self.table();
        let Some(entry) = table.commands.get_mut(&command) else { return };
        match news {
            News::Hello(_) => {}
            News::Started(Empty {}) => {
                entry.started.send_replace(true);
            }
            News::Processes(live) => {
                entry.processes.send_replace(live);
            }
            News::Ended(ended) => {
                if let Some(told) = entry.ended.take() {
                    // Nobody listens when the caller dropped its `Running`.
                    let _ = told.send(ended.into());
                }
            }
            News::Gone(Empty {}) => {
                if let Some(entry) = table.commands.remove(&command) {
                    entry.processes.send_replace(0);
                    let _ = entry.gone.send(());
                }
            }
        }
    }

    /// Every command that was not told its end is lost, and no further one is taken.
    fn lose_all(&self) {
        let mut table = self.table();
        table.closed = true;
        for (_, mut entry) in table.commands.drain() {
            if let Some(told) = entry.ended.take() {
                let _ = told.send(lost(entry.handed_over));
            }
        }
    }
}

fn lost(since: Instant) -> End {
    End { kind: EndKind::RunnerLost, duration: since.elapsed(), survivors_killed: 0, memory_events: false }
}

/// The link's own task. Ends, and closes the socket, when the runner is gone or says what it cannot.
async fn drive(
    socket: AsyncFd<OwnedFd>,
    mut queue: mpsc::Receiver<Outgoing>,
    mut close: watch::Receiver<bool>,
    greet: watch::Sender<Greeting>,
    shared: Arc<Shared>,
) {
    let cause = loop {
        let turn = tokio::select! {
            biased;
            () = asked_to_close(&mut close) => break None,
            received = socket.async_io(Interest::READABLE, |fd| packet::receive(fd).map_err(io::Error::from)) =>
                received.and_then(|packet| take_in(&packet.bytes, &greet, &shared)),
            Some(outgoing) = queue.recv() => tokio::select! {
                biased;
                () = asked_to_close(&mut close) => break None,
                put = put_out(&socket, outgoing) => put,
            },
        };
        match turn {
            Ok(()) => {}
            Err(error) => break Some(error),
        }
    };
    if let Some(error) = cause {
        tracing::warn!(%error, "the link to the runner is broken");
    }
    greet.send_replace(Greeting::Lost);
    queue.close();
    drop(socket);
    shared.lose_all();
}

/// Ends when [`Link::close`] was called; the sender outlives the task, which holds it.
async fn asked_to_close(close: &mut watch::Receiver<bool>) {
    let _ = close.wait_for(|close| *close).await;
}

fn take_in(bytes: &[u8], greet: &watch::Sender<Greeting>, shared: &Shared) -> io::Result<()> {
    if bytes.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let event = Event::decode(bytes).map_err(|_| io::ErrorKind::InvalidData)?;
    match event.news {
        Some(News::Hello(hello)) if hello.version == LinkVersion::CURRENT.0 => {
            greet.send_replace(Greeting::Told(hello.into()));
        }
        Some(News::Hello(_)) | None => return Err(io::ErrorKind::InvalidData.into()),
        Some(news) => shared.learn(event.command, news),
    }
    Ok(())
}

async fn put_out(socket: &AsyncFd<OwnedFd>, outgoing: Outgoing) -> io::Result<()> {
    let descriptors: Vec<BorrowedFd<'_>> = outgoing.descriptors.iter().map(AsFd::as_fd).collect();
    let pushed = push(socket, &outgoing.bytes, &descriptors).await;
    let Some((command, sent)) = outgoing.sent else { return pushed };
    let refused =
        pushed.as_ref().err().and_then(Errno::from_io_error).filter(|errno| concerns_one_packet(*errno));
    if let Some(errno) = refused {
        // If nobody waits any more there is nothing to cancel either.
        let _ = sent.send(Err(errno));
        return Ok(());
    }
    pushed?;
    if sent.send(Ok(())).is_err() {
        let cancel = Request { command, order: Some(Order::Cancel(Empty {})) }.encode_to_vec();
        push(socket, &cancel, &[]).await?;
    }
    Ok(())
}

/// Whether the kernel refused this packet and not the link: every process of the user counts against its limit of descriptors
/// under way (unix(7), ETOOMANYREFS), a command's too.
fn concerns_one_packet(errno: Errno) -> bool {
    matches!(errno, Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM)
}

async fn push(socket: &AsyncFd<OwnedFd>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    debug_assert!(bytes.len() <= MAX_PACKET_BYTES, "orders are small");
    socket
        .async_io(Interest::WRITABLE, |fd| packet::send(fd, bytes, descriptors).map_err(io::Error::from))
        .await
}

struct Streams {
    stdout: pipe::Receiver,
    stdout_end: OwnedFd,
    stderr: pipe::Receiver,
    stderr_end: OwnedFd,
    stdin: Option<pipe::Sender>,
    stdin_end: Option<OwnedFd>,
}

impl Streams {
    fn new(stdin: Stdin) -> Result<Self, StartError> {
        let (stdout_end, stdout) = outward()?;
        let (stderr_end, stderr) = outward()?;
        let (stdin_end, stdin) = match stdin {
            Stdin::Null => (None, None),
            Stdin::Pipe => {
                let (end, sender) = inward()?;
                (Some(end), Some(sender))
            }
        };
        Ok(Self { stdout, stdout_end, stderr, stderr_end, stdin, stdin_end })
    }
}

fn outward() -> Result<(OwnedFd, pipe::Receiver), StartError> {
    let (sender, receiver) = pipe::pipe().map_err(StartError::Descriptors)?;
    Ok((sender.into_blocking_fd().map_err(StartError::Descriptors)?, receiver))
}

fn inward() -> Result<(OwnedFd, pipe::Sender), StartError> {
    let (sender, receiver) = pipe::pipe().map_err(StartError::Descriptors)?;
    Ok((receiver.into_blocking_fd().map_err(StartError::Descriptors)?, sender))
}

struct EncodedStart {
    body: OwnedFd,
    text: Option<OwnedFd>,
}

fn encode(spec: &StartSpec) -> Result<EncodedStart, StartError> {
    let (arguments, text, bash) = match &spec.program {
        Program::Argv(arguments) => {
            check(!arguments.is_empty(), "an argument vector has an entry 0")?;
            check(!arguments.iter().any(|argument| argument.contains(&0)), "an argument has no NUL")?;
            (arguments.clone(), None, false)
        }
        Program::ShellText { shell, text } => {
            check(!text.contains(&0), "a text has no NUL")?;
            let file = packet::sealed("text", &[shell::OPENING, text]).map_err(descriptors)?;
            (Vec::new(), Some(file), *shell == Shell::Bash)
        }
    };
    let (folder_device, folder_inode) = spec.cwd.identity();
    let body = StartBody {
        arguments,
        environment: environment(spec)?,
        bash,
        timeout_millis: spec.timeout.map(millis),
        process_limit: spec.process_limit,
        background: spec.background,
        read_write: paths(&spec.confinement.read_write)?,
        read_only: paths(&spec.confinement.read_only)?,
        folder: spec.cwd.path().as_os_str().as_bytes().to_vec(),
        folder_device,
        folder_inode,
    }
    .encode_to_vec();
    check(body.len() <= MAX_BODY_BYTES, "arguments, environment and paths are at most 16 MiB")?;
    Ok(EncodedStart { body: packet::sealed("start", &[&body]).map_err(descriptors)?, text })
}

fn environment(spec: &StartSpec) -> Result<Vec<Vec<u8>>, StartError> {
    let for_shell = matches!(spec.program, Program::ShellText { .. });
    let mut entries = Vec::with_capacity(spec.env.len());
    for (name, value) in &spec.env {
        check(!name.is_empty() && !name.contains(&b'='), "a variable's name is not empty and has no `=`")?;
        check(!name.contains(&0) && !value.contains(&0), "a variable has no NUL")?;
        if for_shell && shell::RC_VARIABLES.contains(&name.as_slice()) {
            continue;
        }
        entries.push([name, b"=".as_slice(), value].concat());
    }
    Ok(entries)
}

fn paths(paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, StartError> {
    for path in paths {
        check(path.is_absolute() && !path.as_os_str().as_bytes().contains(&0), "a granted path is absolute")?;
    }
    Ok(paths.iter().map(|path| path.as_os_str().as_bytes().to_vec()).collect())
}

fn check(holds: bool, rule: &'static str) -> Result<(), StartError> {
    if holds { Ok(()) } else { Err(StartError::Invalid(rule)) }
}

fn descriptors(errno: Errno) -> StartError {
    StartError::Descriptors(errno.into())
}

/// Rounded up, so that no limit becomes none.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}
