//! kubectl, as the hand of a person.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// One call, on a busy machine; those that wait have a limit of their own.
const DEADLINE: Duration = Duration::from_mins(2);

/// kubectl, and who uses it.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

/// What a call said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Whether it exited with 0.
    pub is_success: bool,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Kubectl {
    /// The program `program`, as the user of `kubeconfig`.
    pub fn new(program: PathBuf, kubeconfig: PathBuf) -> Self {
        Self { program, kubeconfig }
    }

    /// The program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The kubeconfig it uses.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// What it says to `arguments`, with `input` on standard input.
    ///
    /// # Errors
    /// When it cannot be started or does not end in two minutes.
    pub async fn ask(&self, arguments: &[&str], input: &[u8]) -> anyhow::Result<Said> {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("start {}", self.program.display()))?;
        let mut stdin = child.stdin.take().context("its standard input")?;
        let run = async {
            // A program that refuses early does not read on.
            let _ = stdin.write_all(input).await;
            drop(stdin);
            child.wait_with_output().await
        };
        let output = tokio::time::timeout(DEADLINE, run).await;
        let output = output.with_context(|| format!("kubectl {} does not end", arguments.join(" ")))??;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Said {
            is_success: output.status.success(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        })
    }

    /// What it prints to `arguments`.
    ///
    /// # Errors
    /// As [`Kubectl::ask`], and when it fails, with what it said.
    pub async fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.ask(arguments, &[]).await?.expect(arguments)
    }

    /// Applies an object.
    ///
    /// # Errors
    /// As [`Kubectl::run`].
    pub async fn apply(&self, object: &Value) -> anyhow::Result<()> {
        let arguments = ["apply", "-f", "-"];
        let said = self.ask(&arguments, object.to_string().as_bytes()).await?;
        said.expect(&arguments).with_context(|| format!("apply {object}")).map(drop)
    }

    /// A call that is yet to be made.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// The words of such a call.
    pub fn words(&self, arguments: &[&str]) -> Vec<String> {
        let own = [self.program.as_os_str(), "--kubeconfig".as_ref(), self.kubeconfig.as_os_str()];
        let own = own.map(|word| word.to_string_lossy().into_owned());
        own.into_iter().chain(arguments.iter().map(|word| (*word).to_owned())).collect()
    }
}

impl Said {
    fn expect(self, arguments: &[&str]) -> anyhow::Result<String> {
        if !self.is_success {
            bail!("kubectl {}: {}{}", arguments.join(" "), self.stdout, self.stderr.trim());
        }
        Ok(self.stdout)
    }
}
