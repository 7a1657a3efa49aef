//! Unpacks a chart archive (gzip over tar) into a `FileSet`, with Helm's checks of the names in it.

use super::error::ChartError;
use super::file_set::FileSet;
use std::cell::Cell;
use std::io::Read;

/// The largest total size of an archive's files, in bytes.
const LIMIT: u64 = 100 * 1024 * 1024;
/// The largest size of one file in an archive, in bytes.
const FILE_LIMIT: u64 = 5 * 1024 * 1024;
/// More files than this are no chart. Helm has no such limit.
const MOST: usize = 50_000;
const BLOCK: usize = 512;

/// The largest total size of archives in a chart: an archive may hold itself.
#[derive(Debug)]
pub(super) struct Budget(Cell<u64>);

impl Budget {
    pub(super) fn new() -> Budget {
        Budget(Cell::new(10 * LIMIT))
    }
}

/// The files of a `.tgz`, without the folder that holds them all.
pub(super) fn unpack(data: &[u8], budget: &Budget) -> Result<FileSet, ChartError> {
    let mut tar = Vec::new();
    let left = budget.0.get();
    if left == 0 {
        return Err(ChartError::new("the charts packed in this chart are larger than 1 GiB together"));
    }
    flate2::read::MultiGzDecoder::new(data)
        .take(LIMIT + 1)
        .read_to_end(&mut tar)
        .map_err(|error| ChartError::new(format!("gzip: {error}")))?;
    // Also an empty archive counts.
    budget.0.set(left.saturating_sub(tar.len() as u64 + LIMIT / 100));
    if tar.len() as u64 > LIMIT {
        return Err(ChartError::new("decompressed chart is larger than the maximum size 104857600"));
    }
    let mut files = FileSet::new();
    for (name, content) in entries(&tar)? {
        let path = inside(&name)?;
        if content.len() as u64 > FILE_LIMIT {
            return Err(ChartError::new(format!(
                "decompressed chart file {name:?} is larger than the maximum file size {FILE_LIMIT}"
            )));
        }
        files.insert(path, content);
    }
    if files.is_empty() {
        return Err(ChartError::new("no files in chart archive"));
    }
    Ok(files)
}

/// The path inside the archive's one folder. As in Helm, backslashes part a name that has one.
fn inside(name: &str) -> Result<String, ChartError> {
    let delimiter = if name.contains('\\') { '\\' } else { '/' };
    let (first, rest) = name.split_once(delimiter).unwrap_or((name, ""));
    let rest = rest.replace(delimiter, "/");
    if rest.starts_with('/') {
        return Err(ChartError::new("chart illegally contains absolute paths"));
    }
    let mut clean: Vec<&str> = Vec::new();
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." if clean.last().is_some_and(|last| *last != "..") => drop(clean.pop()),
            part => clean.push(part),
        }
    }
    let path = clean.join("/");
    if path.is_empty() {
        return Err(ChartError::new(format!(
            "chart illegally contains content outside the base directory: {name:?}"
        )));
    }
    if path.starts_with("..") {
        return Err(ChartError::new("chart illegally references parent directory"));
    }
    if matches!(path.as_bytes(), [drive, b':', b'/', ..] if drive.is_ascii_alphabetic()) {
        return Err(ChartError::new("chart contains illegally named files"));
    }
    if first == "Chart.yaml" {
        return Err(ChartError::new("chart yaml not in base directory"));
    }
    Ok(path)
}

/// Names and contents of a tar's files (ustar, GNU long names, pax paths). A link is an empty file, as in
/// Helm: nothing is read through it.
fn entries(tar: &[u8]) -> Result<Vec<(String, Vec<u8>)>, ChartError> {
    let broken = || ChartError::new("archive/tar: invalid tar header");
    let mut found = Vec::new();
    let mut long_name: Option<String> = None;
    let mut at = 0;
    while at + BLOCK <= tar.len() {
        let header = &tar[at..at + BLOCK];
        if header.iter().all(|b| *b == 0) {
            break;
        }
        // Links, devices and folders have no content, whatever size they name.
        let is_bare = matches!(header[156], b'1'..=b'6');
        let size = number(&header[124..136]).ok_or_else(broken)?;
        let size = if is_bare { 0 } else { size };
        let start = at + BLOCK;
        let end = start.checked_add(size).filter(|end| *end <= tar.len()).ok_or_else(broken)?;
        let content = &tar[start..end];
        at = start + size.div_ceil(BLOCK) * BLOCK;
        match header[156] {
            b'L' => long_name = Some(text(content)),
            b'x' => long_name = pax_path(content).or(long_name),
            0 | b'0'..=b'4' | b'6' | b'7' => {
                let name = long_name.take().unwrap_or_else(|| header_name(header));
                if found.len() == MOST {
                    return Err(ChartError::new(format!("the chart archive has more than {MOST} files")));
                }
                found.push((name, content.to_vec()));
            }
            b'g' => {}
            _ => long_name = None,
        }
    }
    Ok(found)
}

fn header_name(header: &[u8]) -> String {
    let name = text(&header[..100]);
    let prefix = text(&header[345..500]);
    if header[257..262] == *b"ustar" && header[262] == 0 && !prefix.is_empty() {
        format!("{prefix}/{name}")
    } else {
        name
    }
}

fn text(field: &[u8]) -> String {
    let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

fn number(field: &[u8]) -> Option<usize> {
    if field[0] & 0x80 != 0 {
        return field[1..].iter().try_fold(0usize, |n, b| n.checked_mul(256)?.checked_add(usize::from(*b)));
    }
    let digits = text(field);
    let digits = digits.trim();
    if digits.is_empty() { Some(0) } else { usize::from_str_radix(digits, 8).ok() }
}

/// The `path` record of a pax header.
fn pax_path(mut content: &[u8]) -> Option<String> {
    while !content.is_empty() {
        let space = content.iter().position(|b| *b == b' ')?;
        let length: usize = std::str::from_utf8(&content[..space]).ok()?.parse().ok()?;
        let record = content.get(space + 1..length.checked_sub(1)?)?;
        if let Some(path) = record.strip_prefix(b"path=") {
            return Some(String::from_utf8_lossy(path).into_owned());
        }
        content = content.get(length..)?;
    }
    None
}
