//! The runner's own loop: takes orders, forks supervisors, passes their news on, reaps everything, ends what they leave.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use prost::Message;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::domain;
use super::kernel::{self, Fork, Reaped};
use super::memory::Counter;
use super::packet::{self, Packet};
use super::privilege;
use super::seccomp;
use super::spec::{Capabilities, End, EndKind, NotStarted};
use super::supervisor::{Ground, supervise};
use super::tree;
use super::wire::{Empty, Ended, Event, Hello, News, Order, Request};

/// How much likelier than the runner a command is for the memory killer, in thousandths of memory (proc_pid_oom_score_adj(5)).
const OOM_SCORE_ABOVE_RUNNER: i32 = 200;
const MAX_OOM_SCORE: i32 = 1000;
/// Orphans are looked for again so often until none is left.
const WALK_INTERVAL: Duration = Duration::from_millis(20);
/// After the link closed: so long for supervisors to end their trees, and once more for what remains.
const FAREWELL: Duration = Duration::from_secs(5);

/// The runner, from its start to the close of the link.
pub(super) struct Runner {
    link: OwnedFd,
    signals: OwnedFd,
    ground: Ground,
    confinable: bool,
    supervised: Vec<Supervised>,
    spare: Option<Spare>,
    replenish: bool,
    /// Commands whose supervisor died first; gone once no orphan is left.
    orphaned: Vec<u64>,
    news: VecDeque<Vec<u8>>,
    /// The link is closed.
    leaving: bool,
}

/// A supervisor that waits for its start.
struct Spare {
    pid: i32,
    socket: OwnedFd,
}

struct Supervised {
    command: u64,
    pid: i32,
    /// Closed when everything is to be ended at once, and at the supervisor's own end.
    socket: Option<OwnedFd>,
    ended: bool,
    gone: bool,
    since: Instant,
}

impl Runner {
    /// Gives up what a runner does not need and learns what the kernel can do.
    pub(super) fn new(link: OwnedFd) -> anyhow::Result<Self> {
        kernel::occupy_standard_streams()?;
        kernel::close_all_except(&[link.as_raw_fd()])?;
        rustix::io::fcntl_setfd(&link, rustix::io::FdFlags::CLOEXEC)?;
        kernel::forbid_inspection()?;
        kernel::adopt_orphans()?;
        kernel::forbid_new_privileges()?;
        privilege::renounce()?;
        let filtered = seccomp::install();
        let abi = domain::kernel_abi();
        let scopes = if abi >= domain::SCOPED_ABI { Some(domain::scopes()?) } else { None };
        let counter = Counter::open();
        let capabilities = Capabilities {
            landlock_abi: abi,
            scoped: scopes.is_some(),
            memory_counter: counter.is_some(),
            seccomp: filtered.is_ok(),
        };
        let signals = kernel::receive_signals(&[libc::SIGCHLD, libc::SIGTERM])?;
        let null = std::fs::File::open("/dev/null")?.into();
        let scopes = match scopes {
            Some(scopes) => scopes,
            None => rustix::io::fcntl_dupfd_cloexec(&null, 3)?,
        };
        let ground = Ground {
            runner: kernel::own_pid(),
            abi,
            scopes,
            null,
            counter,
            oom_score: oom_score_of_commands()?,
        };
        let mut runner = Self {
            link,
            signals,
            ground,
            confinable: capabilities.scoped && capabilities.seccomp,
            supervised: Vec::new(),
            spare: None,
            replenish: true,
            orphaned: Vec::new(),
            news: VecDeque::new(),
            leaving: false,
        };
        runner.tell(0, News::Hello(Hello::from(capabilities)));
        Ok(runner)
    }

    /// Serves the link until it closes or SIGTERM comes, then ends everything. True if nothing is left.
    pub(super) fn serve(mut self) -> bool {
        while self.turn() {}
        self.farewell()
    }

    /// False when the link is closed.
    fn turn(&mut self) -> bool {
        self.keep_spare();
        self.wait(true, if self.orphaned.is_empty() { None } else { Some(WALK_INTERVAL) });
        if kernel::drain_signals(&self.signals).contains(&libc::SIGTERM) {
            return false;
        }
        self.hear_supervisors();
        self.reap();
        self.end_orphans();
        self.take_orders() && self.send_news()
    }

    fn wait(&self, link: bool, limit: Option<Duration>) {
        let mut descriptors = vec![PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        if link {
            let room = if self.news.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            descriptors.push(PollFd::from_borrowed_fd(self.link.as_fd(), PollFlags::IN | room));
        }
        let sockets = self.supervised.iter().filter_map(|supervised| supervised.socket.as_ref());
        descriptors.extend(sockets.map(|socket| PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)));
        if let Err(error) = kernel::await_any(&mut descriptors, limit) {
            tracing::error!(%error, "the runner cannot wait");
        }
    }

    fn take_orders(&mut self) -> bool {
        loop {
            match packet::receive(&self.link) {
                Err(Errno::AGAIN) => return true,
                Ok(packet) if !packet.bytes.is_empty() => self.obey(&packet),
                Ok(_) => return false,
                Err(error) => {
                    tracing::error!(%error, "the link cannot be read");
                    return false;
                }
            }
        }
    }

    fn obey(&mut self, packet: &Packet) {
        let Ok(Request { command, order: Some(order) }) = Request::decode(packet.bytes.as_slice()) else {
            tracing::error!("an order makes no sense");
            return;
        };
        match order {
            Order::Start(_) => {
                if let Err(error) = self.start(command, packet) {
                    tracing::error!(command, %error, "a command could not be prepared");
                    self.refuse(command);
                }
            }
            Order::Cancel(Empty {}) | Order::Signal(_) => self.pass_on(command, &packet.bytes),
        }
    }

    /// Passes a start on to a supervisor as it came, unread: the runner never holds what a command is started with.
    fn start(&mut self, command: u64, packet: &Packet) -> anyhow::Result<()> {
        anyhow::ensure!(self.confinable, "the kernel cannot confine signals");
        self.replenish = true;
        let descriptors: Vec<BorrowedFd<'_>> = packet.descriptors.iter().map(AsFd::as_fd).collect();
        loop {
            let (spare, fresh) = match self.spare.take() {
                Some(spare) => (spare, false),
                None => (self.fork_supervisor()?, true),
            };
            match packet::send(&spare.socket, &packet.bytes, &descriptors) {
                Ok(()) => {
                    self.supervised.push(Supervised {
                        command,
                        pid: spare.pid,
                        socket: Some(spare.socket),
                        ended: false,
                        gone: false,
                        since: Instant::now(),
                    });
                    return Ok(());
                }
                // It was killed while it waited.
                Err(_) if !fresh => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Has the next supervisor ready before it is needed. One that dies unused is replaced with the next start only.
    fn keep_spare(&mut self) {
        if !std::mem::take(&mut self.replenish) || self.spare.is_some() || !self.confinable {
            return;
        }
        match self.fork_supervisor() {
            Ok(spare) => self.spare = Some(spare),
            Err(error) => tracing::warn!(%error, "no supervisor in reserve"),
        }
    }

    fn fork_supervisor(&self) -> anyhow::Result<Spare> {
        let kind = SocketType::SEQPACKET;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
        match kernel::fork()? {
            Fork::Child => supervise(&self.ground, &theirs),
            Fork::Parent(pid) => Ok(Spare { pid, socket: ours }),
        }
    }

    fn refuse(&mut self, command: u64) {
        let kind = EndKind::NotStarted(NotStarted::Internal);
        let end = End { kind, duration: Duration::ZERO, survivors_killed: 0, memory_events: false };
        self.tell(command, News::Ended(Ended::from(&end)));
        self.tell(command, News::Gone(Empty {}));
    }

    /// An order that a supervisor does not take means that it cannot be told anything: closing its socket ends everything.
    fn pass_on(&mut self, command: u64, bytes: &[u8]) {
        let Some(supervised) = self.supervised.iter_mut().find(|supervised| supervised.command == command)
        else {
            return;
        };
        let Some(socket) = &supervised.socket else { return };
        if packet::send(socket, bytes, &[]) == Err(Errno::AGAIN) {
            supervised.socket = None;
        }
    }

    fn hear_supervisors(&mut self) {
        for index in 0..self.supervised.len() {
            self.hear(index);
        }
    }

    /// Takes in everything a supervisor has said; its socket closes with its end of file.
    fn hear(&mut self, index: usize) {
        loop {
            let supervised = &mut self.supervised[index];
            let Some(socket) = &supervised.socket else { return };
            let news = match packet::receive(socket) {
                Err(Errno::AGAIN) => return,
                Ok(packet) if !packet.bytes.is_empty() => {
                    Event::decode(packet.bytes.as_slice()).ok().and_then(|event| event.news)
                }
                Ok(_) | Err(_) => {
                    supervised.socket = None;
                    return;
                }
            };
            let Some(news) = news else { continue };
            supervised.ended |= matches!(news, News::Ended(_));
            supervised.gone |= matches!(news, News::Gone(_));
            let command = supervised.command;
            self.tell(command, news);
        }
    }

    fn reap(&mut self) {
        while let Reaped::Child(pid, _) = kernel::reap() {
            self.spare.take_if(|spare| spare.pid == pid);
            let Some(index) = self.supervised.iter().position(|supervised| supervised.pid == pid) else {
                continue;
            };
            self.hear(index);
            let dead = self.supervised.swap_remove(index);
            // In a farewell nobody listens to supervisors any more, and all that is left is ended in any case.
            if dead.gone || self.leaving {
                continue;
            }
            tracing::error!(command = dead.command, "a supervisor died before its command");
            if !dead.ended {
                let kind = EndKind::Signalled(9);
                let end =
                    End { kind, duration: dead.since.elapsed(), survivors_killed: 0, memory_events: false };
                self.tell(dead.command, News::Ended(Ended::from(&end)));
            }
            self.orphaned.push(dead.command);
        }
    }

    fn end_orphans(&mut self) {
        if self.orphaned.is_empty() {
            return;
        }
        match tree::end_all_below(&self.supervisors()) {
            Ok(0) => {
                for command in std::mem::take(&mut self.orphaned) {
                    self.tell(command, News::Gone(Empty {}));
                }
            }
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "the processes of the system cannot be listed"),
        }
    }

    fn supervisors(&self) -> Vec<i32> {
        let spare = self.spare.iter().map(|spare| spare.pid);
        self.supervised.iter().map(|supervised| supervised.pid).chain(spare).collect()
    }

    fn tell(&mut self, command: u64, news: News) {
        self.news.push_back(Event::new(command, news).encode_to_vec());
    }

    fn send_news(&mut self) -> bool {
        while let Some(bytes) = self.news.front() {
            match packet::send(&self.link, bytes, &[]) {
                Ok(()) => drop(self.news.pop_front()),
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
        true
    }

    /// Ends all supervisors, which end their trees, then whatever is left.
    fn farewell(mut self) -> bool {
        self.leaving = true;
        self.spare = None;
        for supervised in &mut self.supervised {
            supervised.socket = None;
        }
        let patience = Instant::now() + FAREWELL;
        while !self.supervised.is_empty() && Instant::now() < patience {
            self.wait(false, Some(WALK_INTERVAL));
            kernel::drain_signals(&self.signals);
            self.reap();
        }
        let patience = Instant::now() + FAREWELL;
        loop {
            if let Err(error) = tree::end_all_below(&[]) {
                tracing::error!(%error, "the processes of the system cannot be listed");
            }
            if reap_all() == Reaped::Empty {
                return true;
            }
            if Instant::now() >= patience {
                return false;
            }
            self.wait(false, Some(WALK_INTERVAL));
            kernel::drain_signals(&self.signals);
        }
    }
}

/// Reaps every child that has ended; says whether others live.
fn reap_all() -> Reaped {
    loop {
        let reaped = kernel::reap();
        if !matches!(reaped, Reaped::Child(..)) {
            return reaped;
        }
    }
}

fn oom_score_of_commands() -> io::Result<Vec<u8>> {
    let own: i32 = std::fs::read_to_string("/proc/self/oom_score_adj")?.trim().parse().unwrap_or(0);
    Ok(own.saturating_add(OOM_SCORE_ABOVE_RUNNER).min(MAX_OOM_SCORE).to_string().into_bytes())
}
