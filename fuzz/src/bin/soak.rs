//! `soak yaml|template|chart|go|http|pull SECONDS [SEED]` mutates seeds and runs an entry function on each
//! until the time is over. A panic, a case of more than ten seconds of work or more than 2 GiB of memory ends
//! it with the input written to `artifacts`.

use opdev_fuzz::random::Random;
use opdev_fuzz::{entry, generate, http, pull};
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

/// Bytes that mean something to one of the readers.
const TOKENS: [&str; 44] = [
    "{{",
    "}}",
    "{{-",
    "-}}",
    "range",
    "end",
    "if",
    "else",
    "with",
    "define \"a\"",
    "template \"a\"",
    "include \"a\" .",
    "tpl",
    "until 100000000",
    "repeat 1000000000 \"x\"",
    "list",
    "dict",
    "set",
    "|",
    "(",
    ")",
    "$",
    ".",
    ":=",
    "\"",
    "`",
    "[",
    "]",
    "{",
    "}",
    ": ",
    "- ",
    "&a ",
    "*a",
    "<<: ",
    "\n",
    "\n  ",
    "!!",
    "%",
    "\\",
    "9223372036854775807",
    "1e999",
    "../",
    "\0",
];

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let (kind, seconds) = match arguments.get(1..3) {
        Some([kind, seconds]) => (kind.clone(), seconds.parse::<u64>()?),
        _ => return Err("usage: soak yaml|template|chart|go|http|pull SECONDS [SEED]".into()),
    };
    let seed = arguments.get(3).map_or(Ok(1), |seed| seed.parse())?;
    let current: Arc<Mutex<Vec<u8>>> = Arc::default();
    let ran = Arc::new(AtomicU64::new(0));
    watch(&kind, &current, &ran);
    let mut random = Random::new(seed);
    let seeds = if kind == "go" { generate::go::seeds() } else { Vec::new() };
    let begun = Instant::now();
    let (mut count, mut slowest) = (0u64, Duration::ZERO);
    while begun.elapsed().as_secs() < seconds {
        let input = match kind.as_str() {
            "go" => generate::go::text(&seeds, count, &mut random),
            "http" => generate::http::request(&mut random),
            _ => input(&kind, &mut random),
        };
        if kind == "http" {
            // A stack that overflows ends the process without a word.
            std::fs::create_dir_all("artifacts")?;
            std::fs::write("artifacts/http-current", &input)?;
        }
        if let Ok(mut current) = current.lock() {
            current.clone_from(&input);
        }
        let at = Instant::now();
        let run = || match kind.as_str() {
            "yaml" => entry::yaml(&input),
            "template" => entry::template(&input),
            "go" => entry::go(&input),
            "http" => http::request(&input),
            "pull" => pull::pull(&input),
            _ => entry::chart(&input),
        };
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
            keep(&kind, &input, "panic")?;
            return Err("a panic".into());
        }
        slowest = slowest.max(at.elapsed());
        count += 1;
        ran.store(count, Ordering::Relaxed);
    }
    writeln!(
        std::io::stdout(),
        "{kind}: {count} inputs in {seconds} s, slowest {slowest:?}, peak {} MiB",
        memory("VmHWM") >> 10
    )?;
    Ok(())
}

/// Ends the program when one input takes too long or too much.
fn watch(kind: &str, current: &Arc<Mutex<Vec<u8>>>, ran: &Arc<AtomicU64>) {
    let (kind, current, ran) = (kind.to_owned(), Arc::clone(current), Arc::clone(ran));
    std::thread::spawn(move || {
        let (mut last, mut since) = (0, worked());
        loop {
            std::thread::sleep(Duration::from_millis(100));
            let now = ran.load(Ordering::Relaxed);
            if now != last {
                (last, since) = (now, worked());
            }
            let large = memory("VmRSS") > 2 << 20;
            if large || worked() > since + 10 {
                let input = current.lock().map(|input| input.clone()).unwrap_or_default();
                let _ = keep(&kind, &input, if large { "memory" } else { "hang" });
                std::process::exit(2);
            }
        }
    });
}

/// Seconds that the process has worked, however busy the machine is.
fn worked() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() / 100
}

/// A line of the process's status, in KiB.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

fn keep(kind: &str, input: &[u8], what: &str) -> Result<(), Failure> {
    std::fs::create_dir_all("artifacts")?;
    let path = format!("artifacts/{kind}-{what}-{}", std::process::id());
    std::fs::write(&path, input)?;
    writeln!(std::io::stderr(), "{what}: input kept in {path}")?;
    Ok(())
}

fn input(kind: &str, random: &mut Random) -> Vec<u8> {
    let seed = random.next();
    let mut bytes = match kind {
        "yaml" => generate::yaml::text(seed).into_bytes(),
        "pull" => generate::pull::text(random),
        "template" => {
            let case = generate::case("template", seed);
            let text = case.pointer("/files/templates~1NOTES.txt").and_then(serde_json::Value::as_str);
            let values = case.get("values").and_then(serde_json::Value::as_str);
            format!("{}\0{}", text.unwrap_or_default(), values.unwrap_or_default()).into_bytes()
        }
        _ => archive(random),
    };
    for _ in 0..random.below(6) {
        mutate(random, &mut bytes);
    }
    if kind == "chart" && random.chance(70) { zipped(&bytes) } else { bytes }
}

fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    let at = random.below(bytes.len() + 1);
    match random.below(6) {
        0 if at < bytes.len() => bytes[at] = random.next() as u8,
        1 if at < bytes.len() => {
            bytes.remove(at);
        }
        2 => {
            let token = random.pick(&TOKENS);
            bytes.splice(at..at, token.bytes());
        }
        3 => {
            let token = random.pick(&TOKENS).repeat(1 + random.below(400));
            bytes.splice(at..at, token.into_bytes());
        }
        4 => bytes.truncate(at),
        _ => {
            let from = random.below(bytes.len() + 1);
            let piece = bytes[at.min(from)..at.max(from)].to_vec();
            bytes.splice(at..at, piece);
        }
    }
}

/// A tar archive of a chart, with strange names and sizes now and then; not compressed yet.
fn archive(random: &mut Random) -> Vec<u8> {
    let mut tar = Vec::new();
    let names = [
        "x/Chart.yaml",
        "x/values.yaml",
        "x/templates/a.yaml",
        "x/charts/y/Chart.yaml",
        "../evil",
        "/abs",
        "x/../../y",
        "x/templates/_h.tpl",
        "x/crds/c.yaml",
        "C:\\x",
        "x\\..\\y",
        "x/values.schema.json",
        "x/charts/z.tgz",
    ];
    for i in 0..=random.below(6) {
        let name = if i == 0 { names[0] } else { random.pick(&names) };
        let mut data = match name {
            "x/Chart.yaml" | "x/charts/y/Chart.yaml" => b"apiVersion: v2\nname: x\nversion: 0.1.0\n".to_vec(),
            "x/values.schema.json" => br##"{"$ref": "#/x", "type": "object"}"##.to_vec(),
            _ => generate::yaml::text(random.next()).into_bytes(),
        };
        if random.chance(10) {
            mutate(random, &mut data);
        }
        let said = if random.chance(5) { random.next() as usize % (1 << 33) } else { data.len() };
        let mut header = [0u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(b"0000644\0");
        header[124..136].copy_from_slice(format!("{said:011o}\0").as_bytes());
        header[136..148].copy_from_slice(b"00000000000\0");
        header[156] = random.one(b"00000012xgLK5");
        header[257..265].copy_from_slice(b"ustar\x0000");
        header[148..156].copy_from_slice(b"        ");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        tar.extend_from_slice(&header);
        tar.extend_from_slice(&data);
        tar.resize(tar.len().div_ceil(512) * 512, 0);
    }
    tar.resize(tar.len() + 1024, 0);
    if random.chance(3) {
        tar.resize(tar.len() + (64 << 20), 0);
    }
    tar
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}
