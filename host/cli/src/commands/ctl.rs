//! `switchyard ctl`: see a running server, and change its policies.
//!
//! `client` asks the admin port at its `address`; `text` and `canary` write its answers for people.

mod address;
mod canary;
mod client;
mod text;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use switchyard_server::admin::{PolicyOrder, PoolReport, Verb};

use self::address::AdminAddress;
use self::canary::CanaryArgs;
use self::client::AdminClient;
use super::failure::Failure;
use super::print;

/// See a running server, swap its policies and roll them back
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard ctl status
  switchyard ctl swap next --token operator.token
  switchyard ctl canary next --share 10% --token operator.token
  switchyard ctl rollback --token operator.token
  switchyard ctl explain 17
  switchyard ctl status --admin https://admin.example.org:8002 --ca ca.pem --token operator.token

Orders need a token: `operators` in [server] names a file with a line `NAME TOKEN` for each operator.
An order holds for the version that `ctl` has seen: if another one serves by then, it is refused. The
version serves after a restart too, since the files of the pool's policy become its files.")]
pub(super) struct CtlArgs {
    /// Address of the server's admin port: ADDRESS:PORT, unix:PATH, or https://HOST:PORT
    #[arg(
        long,
        alias = "server",
        value_name = "ADDR",
        default_value = "127.0.0.1:8002",
        global = true
    )]
    admin: AdminAddress,
    /// File (PEM) with the authority of the server's certificate, for https://
    #[arg(long, value_name = "FILE", global = true)]
    ca: Option<PathBuf>,
    /// File with the operator's token [default: the variable SWITCHYARD_TOKEN]
    #[arg(long, alias = "token-file", value_name = "FILE", global = true)]
    token: Option<PathBuf>,
    /// The pool [default: the only one]
    #[arg(long, value_name = "NAME", global = true)]
    pool: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: CtlCommand,
}

#[derive(Debug, Subcommand)]
enum CtlCommand {
    /// Show policies, requests, workers and shadows
    #[command(after_help = "Examples:\n  switchyard ctl status")]
    Status,
    /// Show the versions that a rollback can name, the latest first
    #[command(after_help = "Examples:\n  switchyard ctl history --pool main")]
    History,
    /// Show swaps and refused versions, the latest last, with the operators who ordered them
    #[command(after_help = "Examples:\n  switchyard ctl events")]
    Events,
    /// Show the models of every worker and the state of every app
    #[command(after_help = "Examples:\n  switchyard ctl models")]
    Models,
    /// Show a decision: requests, batches, their alternatives, and the policy's reasons
    #[command(after_help = "Examples:
  switchyard ctl explain 17
  switchyard ctl explain 17 --request 43
  switchyard ctl explain --request 43")]
    Explain {
        /// The window, as an answer's parameter `window` names it [default: the last one that decided
        /// about the request]
        #[arg(required_unless_present = "request")]
        window: Option<u64>,
        /// Show this request and its batch only
        #[arg(long, value_name = "ID")]
        request: Option<u64>,
    },
    /// Switch to a component of the folder of policies, with its settings and artifacts
    #[command(after_help = "Examples:\n  switchyard ctl swap next --token operator.token")]
    Swap {
        /// Name of the component, without `.wasm`
        policy: String,
    },
    /// Give a candidate a share of the requests, compare it with the policy that serves, and follow the
    /// verdict
    #[command(after_help = "Examples:
  switchyard ctl canary next --token operator.token
  switchyard ctl canary next --share 25% --promote-if not-worse --within 1h --token operator.token

`ctl status` shows its findings. `ctl promote` and `ctl rollback` end it.")]
    Canary(CanaryArgs),
    /// Ask a candidate about the same windows, and compare its plans, which are not carried out
    #[command(after_help = "Examples:
  switchyard ctl shadow next --token operator.token
  switchyard ctl shadow --off --token operator.token

`ctl status` shows its findings. A restart begins with the shadow of the configuration.")]
    Shadow {
        /// Name of the candidate in the folder of policies, without `.wasm`
        #[arg(required_unless_present = "off", conflicts_with = "off")]
        policy: Option<String>,
        /// End the shadow
        #[arg(long)]
        off: bool,
    },
    /// Switch to the candidate of the canary that runs, otherwise to that of the pool's shadow
    #[command(after_help = "Examples:\n  switchyard ctl promote --token operator.token")]
    Promote,
    /// End the canary that runs, otherwise switch to a version that served before: code, settings and
    /// artifacts
    #[command(after_help = "Examples:
  switchyard ctl rollback --token operator.token
  switchyard ctl rollback 1f0c8a --token operator.token")]
    Rollback {
        /// First digits of its hash [default: the version before the current one]
        version: Option<String>,
    },
}

/// Asks the server, or orders, and prints its answer.
pub(super) fn run(args: &CtlArgs) -> Result<(), Failure> {
    let client = AdminClient::new(&args.admin, args.ca.as_deref(), args.token.as_deref())?;
    let ordered = |verb, order| args.order(&client, verb, order);
    match &args.command {
        CtlCommand::Explain { window, request } => {
            let status = client.status()?;
            let pool = args.pool(&status.pools)?;
            let name = &pool.driver.pool;
            let decision = match (window, request) {
                (Some(window), _) => client.decision(name, *window)?,
                (None, Some(request)) => client.decision_about(name, *request)?,
                (None, None) => return Err(Failure::input("name a window or a request")),
            };
            match args.json {
                true => print::json(&decision),
                false => print::line(text::decision(&decision, *request)),
            }
        }
        CtlCommand::Swap { policy } => {
            let policy = Some(policy.clone());
            ordered(
                Verb::Swap,
                PolicyOrder {
                    policy,
                    ..PolicyOrder::default()
                },
            )
        }
        CtlCommand::Canary(canary) => ordered(
            Verb::Canary,
            PolicyOrder {
                policy: Some(canary.policy.clone()),
                canary: Some(canary.settings()),
                ..PolicyOrder::default()
            },
        ),
        CtlCommand::Shadow { policy, .. } => args.shadow(&client, policy.clone()),
        CtlCommand::Promote => ordered(Verb::Promote, PolicyOrder::default()),
        CtlCommand::Rollback { version } => {
            let version = version.clone();
            ordered(
                Verb::Rollback,
                PolicyOrder {
                    version,
                    ..PolicyOrder::default()
                },
            )
        }
        CtlCommand::Status => args.show(&client, text::status),
        CtlCommand::History => args.show(&client, text::history),
        CtlCommand::Events => args.show(&client, text::events),
        CtlCommand::Models => args.show(&client, text::models),
    }
}

// === impl CtlArgs ===

impl CtlArgs {
    /// Prints a part of the status of all pools, or of the one named.
    fn show(
        &self,
        client: &AdminClient,
        text: fn(&[&PoolReport]) -> String,
    ) -> Result<(), Failure> {
        let mut status = client.status()?;
        if self.json {
            if let Some(name) = &self.pool {
                self.pool(&status.pools)?;
                status.pools.retain(|pool| pool.driver.pool == *name);
            }
            return print::json(&status);
        }
        let pools: Vec<&PoolReport> = match &self.pool {
            Some(_) => vec![self.pool(&status.pools)?],
            None => status.pools.iter().collect(),
        };
        if let Some(reason) = &status.waits_for {
            print::line(format_args!("not ready: {reason}"))?;
        }
        print::line(text(&pools).trim_end())
    }

    /// The pool that is named, or the only one.
    fn pool<'a>(&self, pools: &'a [PoolReport]) -> Result<&'a PoolReport, Failure> {
        let names = || {
            let names: Vec<&str> = pools.iter().map(|pool| &*pool.driver.pool).collect();
            names.join(", ")
        };
        match (&self.pool, pools) {
            (None, [only]) => Ok(only),
            (None, _) => Err(Failure::input(format!(
                "--pool is missing: the server has {}",
                names()
            ))),
            (Some(name), _) => {
                let named = pools.iter().find(|pool| pool.driver.pool == *name);
                named.ok_or_else(|| {
                    Failure::input(format!("--pool {name}: the server has {}", names()))
                })
            }
        }
    }

    fn shadow(&self, client: &AdminClient, policy: Option<String>) -> Result<(), Failure> {
        let token = client::token(self.token.as_deref())?;
        let status = client.status()?;
        let name = &self.pool(&status.pools)?.driver.pool;
        let answer = client.shadow(name, policy.clone(), &token)?;
        match (self.json, policy) {
            (true, _) => print::json(&answer),
            (false, Some(policy)) => print::line(format_args!(
                "pool {name}: shadow: {policy} is asked about its windows; `switchyard ctl status` shows its \
                 findings"
            )),
            (false, None) => print::line(format_args!("pool {name}: no shadow")),
        }
    }

    fn order(&self, client: &AdminClient, verb: Verb, order: PolicyOrder) -> Result<(), Failure> {
        let token = client::token(self.token.as_deref())?;
        let status = client.status()?;
        let pool = self.pool(&status.pools)?;
        let active = pool.policies.active.as_ref();
        let order = PolicyOrder {
            expect: active.map(|version| version.hash.clone()),
            ..order
        };
        let swap = client.order(&pool.driver.pool, verb, &order, &token)?;
        match self.json {
            true => print::json(&swap),
            false => {
                let asked = order.policy.as_deref();
                print::line(text::swap(&pool.driver.pool, asked, active, &swap))
            }
        }
    }
}
