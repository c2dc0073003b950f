//! The contenders as processes, all on the same core.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::load::Target;
use super::model::Model;
use super::process::{Process, free_ports};
use super::request::{Dialect, numbers};

/// For a server to load its models and, here, to measure them.
const START_MAX: Duration = Duration::from_secs(240);
/// A server that starts may take a request and never answer.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// A server that can be raced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Inline,
    /// This server, with the zoo of this name.
    Own(&'static str),
    /// `graphs.py` of this peer.
    Python(&'static str, Dialect),
    TextEmbeddings,
}

pub(crate) const CONTENDERS: [Contender; 7] = [
    Contender {
        name: "inline",
        kind: Kind::Inline,
    },
    Contender {
        name: "switchyard, kernels",
        kind: Kind::Own("kernels"),
    },
    Contender {
        name: "switchyard, onnxruntime",
        kind: Kind::Own("graphs"),
    },
    Contender {
        name: "Triton's Python backend",
        kind: Kind::Python("triton", Dialect::Graphs),
    },
    Contender {
        name: "mlserver",
        kind: Kind::Python("mlserver", Dialect::Mlserver),
    },
    Contender {
        name: "litserve",
        kind: Kind::Python("litserve", Dialect::Litserve),
    },
    Contender {
        name: "text-embeddings-inference",
        kind: Kind::TextEmbeddings,
    },
];

/// Where everything is.
pub(crate) struct Place<'a> {
    /// The folder that `zoo::write` has filled.
    pub(crate) models: &'a Path,
    /// onnxruntime.
    pub(crate) library: &'a Path,
    pub(crate) policy: &'a str,
}

/// A contender that answers.
pub(crate) struct Running {
    pub(crate) target: Target,
    _process: Process,
}

// === impl Contender ===

impl Contender {
    /// Why it cannot be raced on this machine.
    pub(crate) fn missing(&self) -> Option<String> {
        let peer = match self.kind {
            Kind::Inline | Kind::Own(_) => return None,
            Kind::Python(peer, _) => peer,
            Kind::TextEmbeddings => {
                let binary = text_embeddings();
                let why = || format!("no {}, see tests/peers/README.md", binary.display());
                return (!binary.exists()).then(why);
            }
        };
        let python = interpreter(peer);
        let mut import = Command::new(&python);
        let import = import
            .args(["-c", "import onnxruntime"])
            .stderr(Stdio::null());
        let has_it = import.status().is_ok_and(|status| status.success());
        let why = || {
            format!(
                "{} has no onnxruntime, see tests/peers/README.md",
                python.display()
            )
        };
        (!has_it).then(why)
    }

    /// Starts it on the core that the calling thread is pinned to, and waits for the answers of all models.
    pub(crate) fn start(&self, place: &Place<'_>) -> Running {
        // Triton takes three in a row.
        let port = free_ports(3);
        let (mut command, dialect) = match self.kind {
            Kind::Inline => {
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.args(["inline", &port.to_string()]);
                command.arg(place.library).arg(place.models.join("onnx"));
                (command, Dialect::Graphs)
            }
            Kind::Own(zoo) => {
                let dialect = match zoo {
                    "kernels" => Dialect::Texts,
                    _ => Dialect::Graphs,
                };
                (place.own(zoo, port), dialect)
            }
            Kind::Python(peer, dialect) => {
                let script = root().join("tests/peers").join(peer).join("graphs.py");
                let mut command = Command::new(interpreter(peer));
                command.arg(script).arg(port.to_string());
                command.arg(place.models.join("onnx"));
                command.env("LD_LIBRARY_PATH", library_folder(peer));
                // They log every model and request.
                command.stderr(Stdio::null());
                (command, dialect)
            }
            Kind::TextEmbeddings => {
                let mut command = Command::new(text_embeddings());
                command.arg("--model-id").arg(place.models.join("tei"));
                command.args(["--pooling", "mean", "--hostname", "127.0.0.1"]);
                command.args(["--port", &port.to_string()]);
                command.args(["--prometheus-port", &(port + 1).to_string()]);
                command.env("ORT_DYLIB_PATH", place.library);
                (command, Dialect::Embeddings)
            }
        };
        command.env("RUST_LOG", "warn");
        let mut process = Process::start(&mut command).unwrap();
        let began = Instant::now();
        let target = Target { port, dialect };
        let models = dialect.models().iter();
        while models.clone().any(|model| target.answer(*model).is_err()) {
            assert!(!process.has_ended(), "{} has ended", self.name);
            let waited = began.elapsed();
            assert!(waited < START_MAX, "{} does not start", self.name);
            std::thread::sleep(Duration::from_millis(50));
        }
        Running {
            target,
            _process: process,
        }
    }
}

// === impl Target ===

impl Target {
    /// The answer to the model's first request.
    ///
    /// # Errors
    /// There is none, or another one.
    pub(crate) fn answer(self, model: Model) -> Result<Vec<f32>, String> {
        let request = self.dialect.request(model, &model.drawn()[0], ANSWER_MAX);
        let refused = |error: std::io::Error| error.to_string();
        let mut connection = Connection::open(self.port).map_err(refused)?;
        let answer = connection
            .ask(&request, Some(ANSWER_MAX))
            .map_err(refused)?;
        match answer.is_ok {
            true => numbers(answer.json_bytes, &answer.body),
            false => Err(String::from_utf8_lossy(&answer.body).into_owned()),
        }
    }
}

// === impl Place ===

impl Place<'_> {
    /// This server on a zoo, with one worker of one thread.
    fn own(&self, zoo: &str, port: u16) -> Command {
        let folder = self.models.join(format!("server-{zoo}"));
        std::fs::create_dir_all(&folder).unwrap();
        let apps = Model::ALL.map(|model| {
            let [name, zoo] = [model.name(), &self.models.join(zoo).display().to_string()];
            let slo_ms = model.deadline().as_secs_f64() * 1e3;
            format!("[[app]]\nname = \"{name}\"\nzoo = \"{zoo}\"\nslo_ms = {slo_ms:?}\n")
        });
        let config = format!(
            r#"[server]
http = "127.0.0.1:{port}"
admin = "127.0.0.1:{admin}"
onnxruntime = "{library}"
{apps}
[[worker]]
name = "cpu"
threads = 1
memory_mb = 2048
[[pool]]
name = "main"
apps = ["resnet50", "minilm", "mlp"]
workers = ["cpu"]
policy = "{policy}"
[policies]
dir = "{policies}"
cache = "{folder}/compiled"
[profile]
dir = "{folder}/profiles"
"#,
            admin = port + 1,
            library = self.library.display(),
            apps = apps.concat(),
            policy = self.policy,
            policies = policies().display(),
            folder = folder.display(),
        );
        let file = folder.join("switchyard.toml");
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchyard"));
        command.args(["serve", "--config"]).arg(file);
        command
    }
}

/// Where components are: as the environment says, or where `cargo xtask plugins` puts them.
fn policies() -> PathBuf {
    let named = std::env::var_os("SWITCHYARD_POLICIES");
    named.map_or_else(|| root().join("target/policies"), PathBuf::from)
}

fn text_embeddings() -> PathBuf {
    let named = std::env::var_os("SWITCHYARD_TEI");
    let built = || root().join("target/tei/release/text-embeddings-router");
    named.map_or_else(built, PathBuf::from)
}

fn interpreter(peer: &str) -> PathBuf {
    root().join("target").join(peer).join("bin/python")
}

/// The folder of a Python's own library, which Triton's processes load.
fn library_folder(peer: &str) -> String {
    let ask = "import sysconfig; print(sysconfig.get_config_var('LIBDIR'))";
    let output = Command::new(interpreter(peer)).args(["-c", ask]).output();
    String::from_utf8(output.unwrap().stdout)
        .unwrap()
        .trim()
        .to_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
