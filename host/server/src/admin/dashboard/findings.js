// Findings about a candidate: the verdict of a shadow and the state of a canary, in words.

const mean = ({ utility, requests }) => (requests > 0 ? utility / requests : null);

function shadowText(shadow) {
  if (shadow.error) {
    return `Refused: ${shadow.error}`;
  }
  if (shadow.windows === 0) {
    return "It has been asked about no window yet.";
  }
  const equal = `${percent(shadow.identical / shadow.windows)} of ${shadow.windows} plans are equal.`;
  const [own, other] = [mean(shadow.active), mean(shadow.shadow)];
  const failed = shadow.failed > 0 ? ` It failed ${shadow.failed} windows.` : "";
  if (own === null || other === null) {
    return equal + failed;
  }
  const gain = other - own;
  const word = Math.abs(gain) < 0.0005 ? "as good" : gain > 0 ? "better" : "worse";
  return `${equal} Where they differ it is ${word}: utility ${other.toFixed(3)} against ${own.toFixed(3)}.${failed}`;
}

function shadowVerdict(shadow) {
  const [own, other] = [mean(shadow.active), mean(shadow.shadow)];
  if (shadow.error || shadow.failed > 0) {
    return "bad";
  }
  if (own === null || other === null || Math.abs(other - own) < 0.0005) {
    return "idle";
  }
  return other > own ? "good" : "warn";
}

// {"promote": "better"} and {"roll-back": "worse"}.
function verdictText(verdict) {
  const [[end, why]] = Object.entries(verdict);
  const word = end === "promote" ? "promoted" : "rolled back";
  return `${word}: ${why.replace("-", " ")}`;
}

function canaryText({ report, runs, settings }) {
  const [low, high] = report.interval;
  const signed = (value) => (value >= 0 ? "+" : "−") + Math.abs(value).toFixed(3);
  const state = runs ? "Runs" : report.verdict ? `Ended, ${verdictText(report.verdict)},` : "Ended";
  const needed = (1 / settings.error).toFixed(0);
  return [
    `${state} after ${span(report.ran_for / 1e6)} with ${percent(settings.share)} of the requests.`,
    `Utility ${signed(report.difference)} (${signed(low)} to ${signed(high)}) over ${report.pairs} rounds,`,
    `evidence ${report.evidence.toFixed(1)} of ${needed}.`,
  ].join(" ");
}

const MEMBERS = ["serving", "baseline", "candidate"];

function memberCells(member, at) {
  const late = member.ended > 0 ? 1 - member.in_time / member.ended : null;
  return [
    MEMBERS[at],
    member.policy,
    member.arrived.toLocaleString("en"),
    percent(late),
    member.quality === null ? "–" : percent(member.quality),
    member.utility === null ? "–" : member.utility.toFixed(3),
    String(member.faults),
  ];
}

const MEMBER_HEADS = ["", "Policy", "Requests", "Violations", "Quality", "Utility", "Faults"];

function makeMembers() {
  const head = element("tr", {}, ...MEMBER_HEADS.map((text) => element("th", { scope: "col" }, text)));
  const body = element("tbody");
  const table = element("table", { class: "members" }, element("thead", {}, head), body);
  table.body = body;
  return table;
}

function updateMembers(table, members) {
  const rows = members.map(memberCells);
  const make = (cells) => element("tr", {}, ...cells.map(() => element("td")));
  const update = (row, cells) => cells.forEach((text, at) => write(row.children[at], text));
  list(table.body, rows, (cells) => cells[0], make, update);
}
