//! The main job of local mode from end to end, over the real binaries: `./taskw demo:local`.
//!
//! ```text
//!  person (HTTP API) ─▶ mooring serve --local ─▶ scripted model
//!        │                      └▶ executor halves ─▶ Grep, Read, Edit, go test, git push ─▶ git daemon
//!        └▶ checks of its own: file bytes, `go test`, the commit in the bare repository, the processes that are left
//! ```

mod curl;
mod cut_run;
mod report;
mod whole_run;
mod world;
mod wrong_folder;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;

use crate::fixture::{Harness, HarnessOptions, with_marker};
use crate::model::RunningModel;
use crate::script::Script;
use report::Report;
use world::World;

/// A run with tests in it, on a machine that compiles Go's standard library for the first time.
const RUN_DEADLINE: Duration = Duration::from_mins(5);
/// Anything that takes a few round trips.
const SHORT_DEADLINE: Duration = Duration::from_secs(30);
/// Carried by every command, since local mode gives commands the variables of the harness.
const MARKER: &str = "DEMO_RUN";

/// What the demo's parts work with.
struct Stage {
    report: Report,
    world: World,
    options: HarnessOptions,
    model: Arc<RunningModel>,
}

/// Runs the demo in a new folder below `parent`.
///
/// # Errors
/// The first check that fails. Processes are ended in every case; the folder stays.
pub async fn demonstrate(parent: &Path) -> anyhow::Result<()> {
    let folder = new_folder(parent)?;
    let mut report = Report::new(&folder)?;
    report.say(&format!("Everything of this demo is in {}.", folder.display()))?;
    let script = Script::parse(include_str!("demo/script.yaml")).context("the demo's script")?;
    let model = Arc::new(RunningModel::start(script).await?);
    let outcome = perform(report, Arc::clone(&model), &folder).await;
    // What the model was asked explains most failures.
    std::fs::write(folder.join("model-requests.json"), serde_json::to_vec_pretty(&model.requests())?)?;
    outcome.with_context(|| format!("stopped; {} stays for a look", folder.display()))
}

async fn perform(mut report: Report, model: Arc<RunningModel>, folder: &Path) -> anyhow::Result<()> {
    report.title("Ground")?;
    let world = World::make(folder).await?;
    report.say(
        "A copy of this repository, with its history and a Go module with a bug, and a remote on loopback.",
    )?;
    let name = world.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let marker = format!("marker-{name}");
    let mut options = HarnessOptions::new(&world.tree, &world.state, &model.url()).with(MARKER, &marker);
    options.inherit_variables = true;
    let mut stage = Stage { report, world, options, model };

    let harness = Harness::start(&stage.options).await?;
    stage.report.say(&format!("mooring listens at http://{}.", harness.address()))?;
    let harness = whole_run::perform(&mut stage, harness).await?;
    let harness = curl::perform(&mut stage, harness).await?;
    let session = cut_run::perform(&mut stage, harness).await?;
    wrong_folder::perform(&mut stage, &session).await?;

    stage.report.title("End")?;
    let left: Vec<String> = with_marker(&marker)
        .into_iter()
        .filter(|seen| seen.pid != std::process::id())
        .map(|seen| format!("{} {}", seen.pid, seen.command_line))
        .collect();
    stage.report.check("no process of the demo is left", left.is_empty(), &left.join("; "))?;
    let Stage { mut report, world, .. } = stage;
    world.close().await?;
    report.where_to_look(folder)
}

/// A folder whose name nobody else has. Old ones stay until they are removed.
fn new_folder(parent: &Path) -> anyhow::Result<PathBuf> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).context("clock")?.as_secs();
    let folder = parent.join(format!("{seconds}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    folder.canonicalize().context("canonical folder")
}
