//! One command's own process: it starts the command, keeps its limits, ends its whole tree and proves that it is empty.

mod course;

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use prost::Message;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use self::course::{Course, Move};
use super::domain::Draft;
use super::image::Image;
use super::kernel::{self, Fork, Reaped};
use super::launch::{Failure, Launch, REPORT_BYTES, Step};
use super::memory::Counter;
use super::packet::{self, Packet};
use super::scope::Scope;
use super::spec::{Folder, NotStarted};
use super::tree;
use super::wire::{Empty, Event, MAX_BODY_BYTES, News, Order, Request, StartBody};

/// How often processes are counted.
const CENSUS_INTERVAL: Duration = Duration::from_millis(100);
/// A count that takes long, of a tree without a limit, is followed by so many times as long without one.
const CENSUS_REST: u32 = 4;

/// What the runner made once for all supervisors, which inherit it.
pub(super) struct Ground {
    pub(super) runner: i32,
    pub(super) abi: u32,
    pub(super) scopes: OwnedFd,
    pub(super) null: OwnedFd,
    pub(super) counter: Option<Counter>,
    pub(super) oom_score: Vec<u8>,
}

/// One start as it arrived.
struct Job {
    body: StartBody,
    folder: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    stdin: Option<OwnedFd>,
    text: Option<OwnedFd>,
}

/// All that can be done before the command is known.
struct Ready {
    scope: Scope,
    signals: OwnedFd,
    draft: Draft,
}

/// Prepares itself, waits for one start, and runs that command to the end of everything it started. Called in a fork of the
/// runner, whose descriptors are closed here; `runner` is this supervisor's end of their socket pair.
pub(super) fn supervise(ground: &Ground, runner: &OwnedFd) -> ! {
    let ready = prepare(ground, runner);
    if ready.is_err() {
        // Takes a start that is already there, to refuse it. Any later one finds nobody and goes to a fresh supervisor.
        let _ = rustix::net::shutdown(runner, rustix::net::Shutdown::Read);
    }
    let Some(packet) = await_order(runner) else { kernel::exit_now(0) };
    match ready.and_then(|ready| begin(ground, ready, packet, runner)) {
        Ok(mut supervisor) => supervisor.follow(),
        Err(error) => {
            tracing::error!(error = %format_args!("{error:#}"), "a command could not be prepared");
            tell(runner, News::Ended(course::not_started(NotStarted::Internal)));
        }
    }
    tell(runner, News::Gone(Empty {}));
    kernel::exit_now(0)
}

fn prepare(ground: &Ground, runner: &OwnedFd) -> anyhow::Result<Ready> {
    let kept = [runner, &ground.scopes, &ground.null].map(AsRawFd::as_raw_fd);
    let counter = ground.counter.iter().map(|counter| counter.file().as_raw_fd());
    kernel::close_all_except(&kept.into_iter().chain(counter).collect::<Vec<RawFd>>())?;
    kernel::adopt_orphans()?;
    let scope = Scope::enter(&ground.scopes, ground.runner)?;
    let signals = kernel::receive_signals(&[libc::SIGCHLD])?;
    Ok(Ready { scope, signals, draft: Draft::new(ground.abi)? })
}

/// `None` once the runner is gone or wants no more commands.
fn await_order(runner: &OwnedFd) -> Option<Packet> {
    loop {
        let mut descriptors = [PollFd::from_borrowed_fd(runner.as_fd(), PollFlags::IN)];
        kernel::await_any(&mut descriptors, None).ok()?;
        match packet::receive(runner) {
            Err(Errno::AGAIN) => {}
            received => return received.ok().filter(|packet| !packet.bytes.is_empty()),
        }
    }
}

fn job(packet: Packet) -> anyhow::Result<Job> {
    let Some(Order::Start(start)) = Request::decode(packet.bytes.as_slice())?.order else {
        anyhow::bail!("the first order is no start");
    };
    let mut descriptors = packet.descriptors.into_iter();
    let mut next = || descriptors.next().ok_or(Errno::BADMSG);
    let body = packet::read_sealed(&next()?, MAX_BODY_BYTES)?;
    let (stdout, stderr) = (next()?, next()?);
    let stdin = if start.stdin { Some(next()?) } else { None };
    let text = if start.text { Some(next()?) } else { None };
    let body = StartBody::decode(body.as_slice())?;
    let folder = Folder::told(&body.folder, body.folder_device, body.folder_inode).open();
    let folder = folder.context("the folder to start in")?;
    Ok(Job { body, folder, stdout, stderr, stdin, text })
}

struct Supervisor<'a> {
    runner: &'a OwnedFd,
    ground: &'a Ground,
    scope: Scope,
    signals: OwnedFd,
    /// End of file: the program runs. Taken when known.
    report: Option<OwnedFd>,
    main: i32,
    course: Course,
    kills_at_start: Option<u64>,
    process_limit: Option<u32>,
    next_census: Instant,
    processes: u32,
    /// The runner is gone: nobody to tell, everything to end.
    alone: bool,
}

fn begin<'a>(
    ground: &'a Ground,
    ready: Ready,
    packet: Packet,
    runner: &'a OwnedFd,
) -> anyhow::Result<Supervisor<'a>> {
    let job = job(packet)?;
    let domain = ready.draft.finish(&job.body.read_write, &job.body.read_only)?;
    let image = Image::new(&job.body, job.text.is_some()).ok_or(Errno::INVAL)?;
    let kills_at_start = ground.counter.as_ref().and_then(Counter::read);
    let started = Instant::now();
    let (main, report) = launch(ground, &job, &domain, &image)?;
    let timeout = job.body.timeout_millis.map(Duration::from_millis);
    Ok(Supervisor {
        runner,
        ground,
        scope: ready.scope,
        signals: ready.signals,
        report: Some(report),
        main,
        course: Course::new(started, timeout, job.body.background),
        kills_at_start,
        process_limit: job.body.process_limit,
        next_census: started + CENSUS_INTERVAL,
        processes: 0,
        alone: false,
    })
}

/// Forks the command. Its descriptors are moved out of the way of 0 to 3 first; the copies close with this function.
fn launch(ground: &Ground, job: &Job, domain: &OwnedFd, image: &Image) -> anyhow::Result<(i32, OwnedFd)> {
    let (report, failed) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let stdin = kernel::raised(job.stdin.as_ref().unwrap_or(&ground.null))?;
    let (stdout, stderr) = (kernel::raised(&job.stdout)?, kernel::raised(&job.stderr)?);
    let (cwd, domain, failed) =
        (kernel::raised(&job.folder)?, kernel::raised(domain)?, kernel::raised(&failed)?);
    let text = job.text.as_ref().map(kernel::raised).transpose()?;
    let launch = Launch {
        stdin: stdin.as_raw_fd(),
        stdout: stdout.as_raw_fd(),
        stderr: stderr.as_raw_fd(),
        text: text.as_ref().map(AsRawFd::as_raw_fd),
        cwd: cwd.as_raw_fd(),
        domain: domain.as_raw_fd(),
        report: failed.as_raw_fd(),
        oom_score: &ground.oom_score,
        image,
    };
    match kernel::fork()? {
        Fork::Child => launch.run(),
        Fork::Parent(pid) => Ok((pid, report)),
    }
}

impl Supervisor<'_> {
    /// Follows the command until nothing of it lives.
    fn follow(&mut self) {
        while !self.turn() {}
    }

    /// One look at everything that can happen, in the order that keeps the truth: what has ended before what a clock or the
    /// runner wants. True once nothing is left.
    fn turn(&mut self) -> bool {
        self.wait();
        kernel::drain_signals(&self.signals);
        let empty = self.reap();
        self.hear_launch();
        self.hear_runner();
        let now = Instant::now();
        if !empty {
            self.count(now);
        }
        let (ground, before) = (self.ground, self.kills_at_start);
        if let Some(ended) = self.course.ended(now, empty, || memory_kills_since(ground, before)) {
            self.tell(News::Ended(ended));
        }
        if empty {
            return true;
        }
        match self.course.next_move(now) {
            Move::Wait => {}
            // A stopped process acts on TERM only once it goes on.
            Move::Terminate => {
                self.scope.signal_all(libc::SIGTERM);
                self.scope.signal_all(libc::SIGCONT);
            }
            Move::Kill => self.scope.signal_all(libc::SIGKILL),
        }
        false
    }

    fn wait(&self) {
        let now = Instant::now();
        let until =
            self.course.next_deadline().map_or(self.next_census, |deadline| deadline.min(self.next_census));
        let mut descriptors = vec![PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        if !self.alone {
            descriptors.push(PollFd::from_borrowed_fd(self.runner.as_fd(), PollFlags::IN));
        }
        descriptors
            .extend(self.report.iter().map(|report| PollFd::from_borrowed_fd(report.as_fd(), PollFlags::IN)));
        if let Err(error) = kernel::await_any(&mut descriptors, Some(until.saturating_duration_since(now))) {
            tracing::error!(%error, "cannot wait for a command");
        }
    }

    /// Reaps what has ended. True when there is no child at all, which proves that nothing below lives.
    fn reap(&mut self) -> bool {
        loop {
            match kernel::reap() {
                Reaped::Child(pid, status) if pid == self.main => {
                    self.hear_launch();
                    self.course.main_ended(Instant::now(), status);
                }
                Reaped::Child(_, status) => self.course.other_ended(status),
                Reaped::None => return false,
                Reaped::Empty => return true,
            }
        }
    }

    fn hear_launch(&mut self) {
        let Some(report) = &self.report else { return };
        if !readable(report) {
            return;
        }
        let mut bytes = [0; REPORT_BYTES];
        match rustix::io::read(report, &mut bytes) {
            Ok(0) => self.tell(News::Started(Empty {})),
            Ok(REPORT_BYTES) => self.course.not_started(reason(Failure::from_bytes(bytes))),
            Ok(_) | Err(_) => self.course.not_started(NotStarted::Internal),
        }
        self.report = None;
    }

    fn hear_runner(&mut self) {
        while !self.alone {
            match packet::receive(self.runner) {
                Err(Errno::AGAIN) => return,
                Ok(packet) if !packet.bytes.is_empty() => match Request::decode(packet.bytes.as_slice()) {
                    Ok(Request { order: Some(Order::Cancel(Empty {})), .. }) => self.course.cancel(),
                    Ok(Request { order: Some(Order::Signal(signal)), .. }) => self.signal_main(signal),
                    Ok(Request { order: Some(Order::Start(_)) | None, .. }) | Err(_) => {}
                },
                Ok(_) | Err(_) => {
                    self.alone = true;
                    self.course.abandon();
                }
            }
        }
    }

    fn signal_main(&mut self, signal: u32) {
        let Ok(signal) = i32::try_from(signal) else { return };
        if self.course.main_lives() {
            kernel::signal_child(self.main, signal);
            self.course.note_signal(signal);
        }
    }

    fn count(&mut self, now: Instant) {
        if now < self.next_census {
            return;
        }
        let census = tree::census(self.process_limit);
        let counted = Instant::now();
        self.next_census =
            counted + CENSUS_INTERVAL.max(counted.saturating_duration_since(now) * CENSUS_REST);
        if let Some(limit) = self.process_limit.filter(|_| census.over) {
            self.course.exceed(limit);
        }
        if census.processes != self.processes {
            self.processes = census.processes;
            self.tell(News::Processes(census.processes));
        }
    }

    fn tell(&self, news: News) {
        if !self.alone {
            tell(self.runner, news);
        }
    }
}

fn memory_kills_since(ground: &Ground, before: Option<u64>) -> bool {
    let now = ground.counter.as_ref().and_then(Counter::read);
    matches!((before, now), (Some(before), Some(now)) if now > before)
}

/// Waits for room: the runner always reads. If it is gone, the next look at its socket says so.
fn tell(runner: &OwnedFd, news: News) {
    let bytes = Event::new(0, news).encode_to_vec();
    while packet::send(runner, &bytes, &[]) == Err(Errno::AGAIN) {
        let mut descriptors = [PollFd::from_borrowed_fd(runner.as_fd(), PollFlags::OUT)];
        if kernel::await_any(&mut descriptors, None).is_err() {
            return;
        }
    }
}

fn readable(descriptor: &OwnedFd) -> bool {
    let mut descriptors = [PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN)];
    let polled = kernel::await_any(&mut descriptors, Some(Duration::ZERO));
    polled.is_ok() && !descriptors[0].revents().is_empty()
}

/// execve(2): what its errors say about the program.
fn reason(failure: Failure) -> NotStarted {
    if failure.step != Step::Exec {
        tracing::error!(step = ?failure.step, errno = failure.errno, "a command could not be prepared");
        return NotStarted::Internal;
    }
    match failure.errno {
        libc::ENOENT | libc::ENOTDIR | libc::ENAMETOOLONG | libc::ELOOP => NotStarted::NotFound,
        libc::EACCES
        | libc::EPERM
        | libc::ENOEXEC
        | libc::ELIBBAD
        | libc::EISDIR
        | libc::ETXTBSY
        | libc::EINVAL => NotStarted::NotExecutable,
        libc::E2BIG => NotStarted::TooLarge,
        _ => NotStarted::Internal,
    }
}
