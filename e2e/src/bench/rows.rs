//! The rows: what is done, beside what, and what is wanted of it.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use mooring_proto::v1::{
    ArgumentVector, AttachRequest, GlobRequest, GrepRequest, ReadRequest, StartRequest, TransferEnd,
    WriteHeader, WriteRequest, attach_response::Event, command_end::End, start_request::Program,
};
use sha2::{Digest as _, Sha256};
use tonic_health::pb::HealthCheckRequest;

use super::corpus;
use super::measure::{Samples, interleaved};
use super::pair::{Answering, Pair};
use super::table::{Goal, Row, Side};
use crate::fixture::binary;

const PAGE: usize = 4096;

/// From the start of both halves to the first answer, and what the serving half holds in memory once it is bound.
pub(super) async fn start_and_memory(folder: &Path) -> anyhow::Result<[Row; 2]> {
    const WARM: usize = 2;
    let program = binary("mooring-executor")?;
    let (mut ours, mut reference, mut memory) = (Samples::default(), Samples::default(), Vec::new());
    for round in 0..WARM + 20 {
        let start = Instant::now();
        let answering = Answering::start().await?;
        let first_answer = start.elapsed();
        let pair = answering.bind(folder).await?;
        memory.push(pair.serve_rss_kib()?);
        pair.stop().await?;
        let start = Instant::now();
        spawn_and_wait(Command::new(&program).arg("--version"))?;
        if round >= WARM {
            ours.push(first_answer);
            reference.push(start.elapsed());
        }
    }
    memory.sort_unstable();
    let start = Row::new("executor start to first RPC", "ms", Side::millis(&ours))
        .beside("`mooring-executor --version` as a process", &reference)
        .wants(Goal::AtMost(50.0));
    let mib = |percent: usize| {
        let value =
            memory.get((memory.len() * percent / 100).min(memory.len() - 1)).copied().unwrap_or_default();
        u32::try_from(value).map(|kib| f64::from(kib) / 1024.0)
    };
    let held = Side { p50: mib(50)?, p99: mib(99)?, n: memory.len() };
    let memory = Row::new("executor idle resident memory (serve)", "MiB", held).wants(Goal::AtMost(10.0));
    Ok([start, memory])
}

/// `true` through CommandService, followed to its end.
pub(super) async fn start_true(pair: &Pair) -> anyhow::Result<Row> {
    let ours = async || {
        let program = Program::Argv(ArgumentVector { arguments: vec![b"true".as_slice().into()] });
        let request =
            StartRequest { context: Some(pair.context()), program: Some(program), ..StartRequest::default() };
        let started = pair.commands().start(request).await.context("start")?.into_inner();
        let attach = AttachRequest {
            context: Some(pair.context()),
            command_id: started.command_id,
            ..AttachRequest::default()
        };
        let mut stream = pair.commands().attach(attach).await.context("attach")?.into_inner();
        while let Some(frame) = stream.message().await.context("attach")? {
            if let Some(Event::End(end)) = frame.event {
                if end.end != Some(End::Exited(0)) {
                    bail!("`true` ended as {:?}", end.end);
                }
                return Ok(());
            }
        }
        bail!("no end of `true`")
    };
    let reference = async || spawn_and_wait(&mut Command::new("true"));
    let (ours, reference) = interleaved(30, 500, ours, reference).await?;
    Ok(Row::new("`true` through CommandService", "ms", Side::millis(&ours))
        .beside("spawn and wait of `true` in this process", &reference)
        .wants(Goal::Above { p50: 0.5, p99: 3.0 }))
}

/// A file of 4 KiB through FileService.
pub(super) async fn read_4k(pair: &Pair) -> anyhow::Result<Row> {
    std::fs::write(pair.tree().join("read.bin"), vec![b'r'; PAGE])?;
    let ours = async || read(pair, "read.bin").await;
    let reference = async || {
        let request = HealthCheckRequest { service: String::new() };
        pair.health().check(request).await.context("health")?;
        Ok(())
    };
    let (ours, reference) = interleaved(100, 2_000, ours, reference).await?;
    Ok(Row::new("Read 4 KiB through FileService", "ms", Side::millis(&ours))
        .beside("a unary no-op RPC on the same channel", &reference)
        .wants(Goal::RatioAtMost(1.3)))
}

/// 4 KiB atomically over a file through FileService.
pub(super) async fn write_4k(pair: &Pair, folder: &Path) -> anyhow::Result<Row> {
    let mut number = 0_u64;
    let ours = async || {
        number += 1;
        let content = page(number);
        let end = TransferEnd { total_bytes: PAGE as u64, sha256: Sha256::digest(&content).to_vec().into() };
        let header = WriteHeader { context: Some(pair.context()), path: "write.bin".to_owned() };
        let frame = WriteRequest { header: Some(header), content: content.into(), end: Some(end) };
        pair.files().write(futures::stream::iter([frame])).await.context("write")?;
        Ok(())
    };
    let mut round = 0_u64;
    let reference = async || {
        round += 1;
        let mut file = std::fs::File::create(folder.join("reference.tmp"))?;
        file.write_all(&page(round))?;
        file.sync_all()?;
        std::fs::rename(folder.join("reference.tmp"), folder.join("reference.bin"))?;
        std::fs::File::open(folder)?.sync_all()?;
        Ok(())
    };
    let (ours, reference) = interleaved(20, 300, ours, reference).await?;
    Ok(Row::new("Write 4 KiB atomically through FileService", "ms", Side::millis(&ours))
        .beside("write, fsync, rename, fsync of the folder", &reference)
        .wants(Goal::RatioAtMost(1.5)))
}

/// Grep and Glob over a large tree, beside `rg` and `fd` where they are installed.
pub(super) async fn search(pair: &Pair) -> anyhow::Result<[Row; 2]> {
    let files = corpus::make(&pair.tree().join("corpus"))?;
    let grep = async || {
        let request = GrepRequest {
            context: Some(pair.context()),
            pattern: corpus::NEEDLE.to_owned(),
            path: "corpus".to_owned(),
            max_matches: 10_000,
            max_bytes: 1_048_576,
            ..GrepRequest::default()
        };
        let found = pair.files().grep(request).await.context("grep")?.into_inner().matches.len();
        corpus::expect_needles(found)
    };
    let glob = async || {
        let request = GlobRequest {
            context: Some(pair.context()),
            pattern: "**/*.rs".to_owned(),
            path: "corpus".to_owned(),
            max_paths: 100_000,
            ..GlobRequest::default()
        };
        let found = pair.files().glob(request).await.context("glob")?.into_inner().paths.len();
        corpus::expect_rust_files(found)
    };
    let root = pair.tree().join("corpus");
    let rg = searcher(&["rg"], &["-n", corpus::NEEDLE], &root);
    // Debian calls the program `fdfind`.
    let fd = searcher(&["fd", "fdfind"], &["--glob", "*.rs"], &root);
    let grep_row = against(&format!("Grep over {files} files"), grep, rg).await?;
    let glob_row = against(&format!("Glob over {files} files"), glob, fd).await?;
    Ok([grep_row, glob_row])
}

async fn against(
    name: &str,
    mut ours: impl AsyncFnMut() -> anyhow::Result<()>,
    reference: Result<(String, Command), String>,
) -> anyhow::Result<Row> {
    match reference {
        Ok((what, mut command)) => {
            let reference = async || spawn_and_wait(&mut command);
            let (ours, reference) = interleaved(2, 15, ours, reference).await?;
            let row = Row::new(name, "ms", Side::millis(&ours)).beside(&what, &reference);
            Ok(row.wants(Goal::RatioAtMost(1.0)))
        }
        Err(missing) => {
            let mut samples = Samples::default();
            for _ in 0..15 {
                let start = Instant::now();
                ours().await?;
                samples.push(start.elapsed());
            }
            Ok(Row::new(name, "ms", Side::millis(&samples)).without_reference(&missing))
        }
    }
}

/// The first of the names that is installed, as a process into a pipe, or the sentence that it is missing.
fn searcher(names: &[&str], arguments: &[&str], root: &Path) -> Result<(String, Command), String> {
    let is_there =
        |name: &&&str| Command::new(**name).arg("--version").stdout(Stdio::null()).status().is_ok();
    let Some(program) = names.iter().find(is_there) else {
        return Err(format!("`{}` is not installed", names.join("` or `")));
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root);
    Ok((format!("`{program}` as a process into a pipe"), command))
}

async fn read(pair: &Pair, path: &str) -> anyhow::Result<()> {
    let request = ReadRequest { context: Some(pair.context()), path: path.to_owned(), range: None };
    let mut stream = pair.files().read(request).await.context("read")?.into_inner();
    let mut bytes = 0;
    while let Some(frame) = stream.message().await.context("read")? {
        bytes += frame.content.len();
    }
    if bytes != PAGE {
        bail!("read {bytes} bytes");
    }
    Ok(())
}

/// Runs to the end with its output through a pipe; a failure is no sample.
fn spawn_and_wait(command: &mut Command) -> anyhow::Result<()> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("{command:?} ended as {}", output.status);
    }
    Ok(())
}

/// 4 KiB that differ from round to round.
fn page(round: u64) -> Vec<u8> {
    round.to_le_bytes().repeat(PAGE / 8)
}

impl Side {
    pub(super) fn millis(samples: &Samples) -> Self {
        let millis = |time: Duration| time.as_secs_f64() * 1_000.0;
        Self { p50: millis(samples.percentile(50)), p99: millis(samples.percentile(99)), n: samples.len() }
    }
}

impl Row {
    pub(super) fn beside(self, what: &str, samples: &Samples) -> Self {
        self.with_reference(what, Side::millis(samples))
    }
}
