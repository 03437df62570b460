//! A real runner process with a workspace of its own, as root and as nobody.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mooring_executor::runner::{
    Confinement, End, EndKind, Folder, Link, Program, Running, Shell, StartSpec, Stdin,
};
use rustix::fs::{Mode, OFlags, open};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// Nothing that a test waits for takes longer, however busy the machine.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);
const NOBODY: u32 = 65534;

/// Who runs the runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The user that runs the tests.
    Own,
    /// An ordinary user; only root can become one.
    Nobody,
}

impl Identity {
    /// All that this user can be.
    pub(crate) fn all() -> Vec<Self> {
        if rustix::process::getuid().is_root() { vec![Self::Own, Self::Nobody] } else { vec![Self::Own] }
    }
}

/// One runner and one workspace beside another one.
pub(crate) struct World {
    pub(crate) link: Link,
    pub(crate) runner: Child,
    pub(crate) folder: PathBuf,
    /// In the environment of every command of this world, so that survivors can be found.
    pub(crate) mark: String,
    _temporary: TempDir,
}

/// What a command did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) end: End,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    pub(crate) fn new(identity: Identity) -> Self {
        Self::with_command(identity, |program| Command::new(program))
    }

    /// The runner as process 1 of its own PID namespace. Root only.
    pub(crate) fn as_process_one() -> Self {
        Self::with_command(Identity::Own, |program| {
            let mut command = Command::new("unshare");
            command.args(["--pid", "--fork", "--mount-proc"]).arg(program);
            command
        })
    }

    fn with_command(identity: Identity, command: impl FnOnce(&Path) -> Command) -> Self {
        let temporary = tempfile::Builder::new().prefix("runner").tempdir().expect("a temporary folder");
        let folder = temporary.path().canonicalize().expect("it is there");
        for name in ["tree", "home", "tmp", "other", "granted"] {
            fs::create_dir(folder.join(name)).expect("a new folder");
        }
        fs::write(folder.join("other/secret"), "another's").expect("a new file");
        fs::write(folder.join("granted/file"), "shared").expect("a new file");
        let program = reachable_program(&folder);
        if identity == Identity::Nobody {
            fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("own folder");
            for name in ["", "tree", "home", "tmp", "other", "other/secret", "granted", "granted/file"] {
                chown(folder.join(name), Some(NOBODY), Some(NOBODY)).expect("root may");
            }
        }
        let kind = SocketType::SEQPACKET;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).expect("a pair");
        let mut command = command(&program);
        command
            .args(["run", "--link-fd", &theirs.as_raw_fd().to_string()])
            .env_clear()
            .env("PATH", "/usr/bin:/bin");
        command.env("RUNNER_SECRET", "canary-of-the-runner").stdin(Stdio::null());
        if identity == Identity::Nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        rustix::io::fcntl_setfd(&theirs, rustix::io::FdFlags::empty()).expect("own descriptor");
        let runner = command.spawn().expect("the program is there");
        drop(theirs);
        let mark =
            format!("MARK_{}_{}=1", runner.id(), folder.file_name().expect("a name").to_string_lossy());
        let link = Link::connect(ours).expect("a link");
        Self { link, runner, folder, mark, _temporary: temporary }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().expect("UTF-8").to_owned()
    }

    pub(crate) fn spec(&self, program: Program) -> StartSpec {
        let mark = self.mark.split_once('=').expect("a variable");
        let variables = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME", self.path("home")),
            ("TMPDIR", self.path("tmp")),
            ("WORLD", self.path("")),
            (mark.0, mark.1.to_owned()),
        ];
        let names = ["tree", "home", "tmp"].map(|name| self.folder.join(name));
        let [tree, home, tmp] = names;
        let mut confinement = Confinement::of_workspace(tree.clone(), home, tmp);
        confinement.read_only = vec![self.folder.join("granted"), self.folder.join("missing")];
        StartSpec {
            program,
            cwd: folder(&tree),
            env: variables.map(|(name, value)| (name.as_bytes().to_vec(), value.into_bytes())).to_vec(),
            stdin: Stdin::Null,
            timeout: Some(DEADLINE),
            process_limit: None,
            background: false,
            confinement,
        }
    }

    pub(crate) fn shell(&self, text: impl AsRef<[u8]>) -> StartSpec {
        self.spec(Program::ShellText { shell: Shell::Sh, text: text.as_ref().to_vec() })
    }

    pub(crate) fn argv(&self, arguments: &[&str]) -> StartSpec {
        self.spec(Program::Argv(arguments.iter().map(|argument| argument.as_bytes().to_vec()).collect()))
    }

    pub(crate) async fn start(&self, spec: StartSpec) -> Running {
        within(self.link.start(spec)).await.expect("the runner is there")
    }

    /// Runs it to the end of everything it started.
    pub(crate) async fn run(&self, spec: StartSpec) -> Outcome {
        finish(self.start(spec).await).await
    }

    pub(crate) async fn sh(&self, text: impl AsRef<[u8]>) -> Outcome {
        self.run(self.shell(text)).await
    }

    /// Processes of this world's commands, ended ones not counted.
    pub(crate) fn survivors(&self) -> Vec<i32> {
        processes()
            .into_iter()
            .filter(|pid| {
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|entry| entry == self.mark.as_bytes())
            })
            .collect()
    }

    pub(crate) async fn await_no_survivor(&self) {
        await_condition(|| self.survivors().is_empty()).await;
    }

    /// Direct children of the runner: its supervisors, one in reserve included.
    pub(crate) fn supervisors(&self) -> Vec<i32> {
        let runner = i32::try_from(self.runner.id()).expect("a process number");
        processes().into_iter().filter(|pid| parent(*pid) == Some(runner)).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.runner.kill();
        let _ = self.runner.wait();
    }
}

pub(crate) async fn finish(running: Running) -> Outcome {
    let Running { stdout, stderr, ended, gone, .. } = running;
    let (end, stdout, stderr, ()) =
        within(async { tokio::join!(ended, read(stdout), read(stderr), gone) }).await;
    Outcome { end, stdout, stderr }
}

pub(crate) async fn read(mut stream: pipe::Receiver) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.expect("a pipe");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits for one line of output.
pub(crate) async fn line(stream: &mut pipe::Receiver) -> String {
    let mut line = Vec::new();
    within(async {
        loop {
            match stream.read_u8().await.expect("more output") {
                b'\n' => break,
                byte => line.push(byte),
            }
        }
    })
    .await;
    String::from_utf8(line).expect("UTF-8")
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("in time")
}

pub(crate) async fn await_condition(mut condition: impl FnMut() -> bool) {
    let limit = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < limit, "the condition never held");
        tokio::task::yield_now().await;
        std::thread::yield_now();
    }
}

pub(crate) fn exited(code: u8) -> EndKind {
    EndKind::Exited(code)
}

pub(crate) fn folder(path: &Path) -> Folder {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Folder::of(&open(path, flags, Mode::empty()).expect("a folder")).expect("its name and attributes")
}

pub(crate) fn kill(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).expect("a process number");
    rustix::process::kill_process(pid, signal).expect("it lives");
}

fn processes() -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("proc");
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

pub(crate) fn parent(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// The built program where any user can execute it: it may lie in a folder of root's.
fn reachable_program(folder: &Path) -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_mooring-executor"));
    let open_to_all =
        |path: &Path| -> io::Result<bool> { Ok(fs::metadata(path)?.permissions().mode() & 1 == 1) };
    if built.ancestors().all(|path| open_to_all(path).unwrap_or(false)) {
        return built.to_owned();
    }
    let copy = folder.join("mooring-executor");
    fs::copy(built, &copy).expect("room for one program");
    copy
}
