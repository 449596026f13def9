//! The runtimes that are measured, each in a process of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};

use crate::client::{Target, exchange};

/// Which runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Ours, its log in memory.
    Memory,
    /// Ours, its log in a file.
    Sqlite,
    /// The npm package, its log in memory.
    Npm,
    /// `agui serve`, its log in memory.
    AguiMemory,
    /// `agui serve`, its log in a file.
    AguiSqlite,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "agui, memory",
            Self::Sqlite => "agui, SQLite",
            Self::Npm => "npm 1.69, memory",
            Self::AguiMemory => "`agui serve`, memory",
            Self::AguiSqlite => "`agui serve`, SQLite",
        }
    }
}

/// Where things are.
#[derive(Debug)]
pub(crate) struct Places {
    npm: PathBuf,
    /// A folder for the files of the log.
    scratch: PathBuf,
}

impl Places {
    pub(crate) fn new(npm: &Path) -> Result<Self> {
        let scratch = std::env::temp_dir().join(format!("agui-load-{}", std::process::id()));
        std::fs::create_dir_all(&scratch)?;
        Ok(Self { npm: npm.to_owned(), scratch })
    }

    /// Whether the npm package is there.
    pub(crate) fn has_npm(&self) -> bool {
        self.npm.join("node_modules/copilotkit-runtime-1.69").exists()
    }

    fn fresh_file(&self) -> Result<PathBuf> {
        let folder = self.scratch.join("journal");
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir(&folder)?;
        Ok(folder.join("agui.sqlite"))
    }

    fn command(&self, kind: Kind) -> Result<Command> {
        let here = std::env::current_exe()?;
        let agui = here.with_file_name("agui");
        let file = self.fresh_file()?;
        let mut command = match kind {
            Kind::Memory | Kind::Sqlite => {
                let mut command = Command::new(here);
                command.args(["serve", "--journal"]);
                command
            }
            Kind::Npm => {
                let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../peers/runtime.mjs");
                let mut command = Command::new("node");
                command.arg(script).arg(&self.npm);
                command
            }
            Kind::AguiMemory | Kind::AguiSqlite => {
                ensure!(agui.exists(), "{} is missing: build agui-cli first", agui.display());
                let mut command = Command::new(agui);
                command.args(["serve", "--listen", "127.0.0.1:0", "--journal"]);
                command
            }
        };
        match kind {
            Kind::Memory | Kind::AguiMemory => drop(command.arg("memory:")),
            Kind::Sqlite | Kind::AguiSqlite => drop(command.arg(&file)),
            Kind::Npm => {}
        }
        Ok(command)
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        // What is left is in the system's folder for such things.
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

/// A runtime that answers. It ends with this value.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) target: Target,
    /// From the start of the process to its first answer.
    pub(crate) started: Duration,
}

/// How long a process may take until it answers.
const PATIENCE: Duration = Duration::from_secs(60);

impl Server {
    pub(crate) async fn start(kind: Kind, places: &Places) -> Result<Self> {
        let mut command = places.command(kind)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        let began = Instant::now();
        let mut child = command.spawn().with_context(|| format!("{} cannot start", kind.name()))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let url = async {
            tokio::select! {
                url = url(stdout) => url,
                url = url(stderr) => url,
            }
        };
        let url = tokio::time::timeout(PATIENCE, url).await;
        let url = url.context("the runtime says no URL")??;
        let target = Target::new(&url, "default").await?;
        exchange(target.connect().await?, &target.info()).await?;
        Ok(Self { child, target, started: began.elapsed() })
    }

    /// How much memory the process has of the machine, in bytes.
    pub(crate) fn resident(&self) -> Result<u64> {
        let id = self.child.id().context("the runtime has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"));
        let status = status.context("memory is read from /proc, which Linux has")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next());
        let kib: u64 = kib.context("the process has no VmRSS")?.parse()?;
        Ok(kib * 1024)
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        self.child.kill().await?;
        Ok(())
    }
}

/// The runtime's URL as a server says it, on whichever stream; what comes behind it is read and let
/// go, so that nobody waits for a full pipe.
async fn url(stream: Option<impl AsyncRead + Unpin + Send + 'static>) -> Result<String> {
    let Some(stream) = stream else { bail!("there is no output to read") };
    let mut lines = BufReader::new(stream).lines();
    while let Some(line) = lines.next_line().await? {
        let Some(at) = line.find("http://").filter(|_| line.ends_with("/api/copilotkit")) else {
            continue;
        };
        let url = line[at..].to_owned();
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        return Ok(url);
    }
    // The other stream may have it.
    std::future::pending().await
}
