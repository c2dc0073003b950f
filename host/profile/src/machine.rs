//! The machine that a profile belongs to.

use serde::{Deserialize, Serialize};

/// Fingerprint of a machine: the facts that latencies depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Model of the processor. Virtual machines often hide the marketing name, so family, model
    /// and stepping are part of it if the system tells them.
    pub cpu: String,
    /// Cores this process may use.
    pub cores: u32,
    /// Instruction set.
    pub arch: String,
    /// Operating system.
    pub os: String,
}

// === impl Machine ===

impl Machine {
    /// The machine this runs on.
    pub fn detect() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            cpu: cpu_model(),
            cores: cores as u32,
            arch: std::env::consts::ARCH.to_owned(),
            os: std::env::consts::OS.to_owned(),
        }
    }

    /// The machine of imported profiles. It equals no real machine, so a server refuses them.
    pub fn elsewhere() -> Self {
        Self {
            cpu: "elsewhere (imported)".to_owned(),
            cores: 1,
            arch: "unknown".to_owned(),
            os: "unknown".to_owned(),
        }
    }

    /// Name of its profile in a folder of profiles, such as `intel-r-xeon-r-2c-x86-64.json`.
    pub fn file_name(&self) -> String {
        let words = format!("{} {}c {} {}", self.cpu, self.cores, self.arch, self.os);
        let slug: Vec<String> = words
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_ascii_lowercase)
            .collect();
        format!("{}.json", slug.join("-"))
    }
}

#[cfg(target_os = "linux")]
fn cpu_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    parse_cpuinfo(&text).unwrap_or_else(unknown_cpu)
}

#[cfg(target_os = "macos")]
fn cpu_model() -> String {
    std::process::Command::new("sysctl")
        .args(["-n", "machdep.cpu.brand_string"])
        .output()
        .ok()
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(unknown_cpu)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn cpu_model() -> String {
    // Windows sets it for every process.
    std::env::var("PROCESSOR_IDENTIFIER").unwrap_or_else(|_| unknown_cpu())
}

fn unknown_cpu() -> String {
    "unknown".to_owned()
}

/// Names the first processor of a `/proc/cpuinfo`: x86 gives a model name, ARM only numbers.
#[cfg(any(target_os = "linux", test))]
fn parse_cpuinfo(text: &str) -> Option<String> {
    let field = |wanted: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == wanted).then(|| value.trim().to_owned())
        })
    };
    let numbers = |labels: &[(&str, &str)]| -> Vec<String> {
        labels
            .iter()
            .filter_map(|(wanted, label)| Some(format!("{label} {}", field(wanted)?)))
            .collect()
    };
    if let Some(name) = field("model name") {
        let rest = numbers(&[
            ("cpu family", "family"),
            ("model", "model"),
            ("stepping", "stepping"),
        ]);
        return Some(if rest.is_empty() {
            name
        } else {
            format!("{name} ({})", rest.join(" "))
        });
    }
    let rest = numbers(&[
        ("CPU implementer", "implementer"),
        ("CPU part", "part"),
        ("CPU variant", "variant"),
    ]);
    (!rest.is_empty()).then(|| rest.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_x86_and_arm() {
        let x86 = "processor\t: 0\ncpu family\t: 6\nmodel\t\t: 167\nmodel name\t: Some CPU\n\
                   stepping\t: 1\nprocessor\t: 1\nmodel\t\t: 9\n";
        assert_eq!(
            parse_cpuinfo(x86).as_deref(),
            Some("Some CPU (family 6 model 167 stepping 1)")
        );
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(
            parse_cpuinfo(arm).as_deref(),
            Some("implementer 0x41 part 0xd0c")
        );
        assert_eq!(parse_cpuinfo("nothing\n"), None);
    }

    #[test]
    fn names_a_file() {
        let machine = Machine {
            cpu: "Intel(R) Xeon(R) Processor".to_owned(),
            cores: 2,
            arch: "x86_64".to_owned(),
            os: "linux".to_owned(),
        };
        assert_eq!(
            machine.file_name(),
            "intel-r-xeon-r-processor-2c-x86-64-linux.json"
        );
    }
}
