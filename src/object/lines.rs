//! Two texts compared line by line, as `diff -u` shows them. Bounded: texts with very many differences are
//! shown as one removed and one added block instead of the shortest script.

use std::fmt::Write as _;

/// Lines around a change.
const CONTEXT: usize = 3;
/// More differences than this are not searched for the shortest script.
const MAX_DIFFERENCES: usize = 1_000;

/// A line of both texts, of the old one, or of the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Old(&'a str),
    New(&'a str),
}

/// The unified diff of two texts; `None` where they are equal.
pub fn unified(old_name: &str, new_name: &str, old: &str, new: &str) -> Option<String> {
    if old == new {
        return None;
    }
    let lines = script(&split(old), &split(new));
    let mut out = format!("--- {old_name}\n+++ {new_name}\n");
    for (from, to) in hunks(&lines) {
        hunk(&mut out, &lines, from, to);
    }
    Some(out)
}

/// Lines with their line ends, so that a missing last one shows.
fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Ranges of lines to show: each change with its surroundings, joined where they meet.
fn hunks(lines: &[Line<'_>]) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if matches!(line, Line::Same(_)) {
            continue;
        }
        let (from, to) = (at.saturating_sub(CONTEXT), (at + CONTEXT + 1).min(lines.len()));
        match found.last_mut() {
            Some(last) if last.1 >= from => last.1 = to,
            _ => found.push((from, to)),
        }
    }
    found
}

fn hunk(out: &mut String, lines: &[Line<'_>], from: usize, to: usize) {
    let count = |lines: &[Line<'_>], new: bool| {
        let other = |line: &&Line<'_>| match line {
            Line::Same(_) => true,
            Line::Old(_) => !new,
            Line::New(_) => new,
        };
        lines.iter().filter(other).count()
    };
    let range = |new: bool| {
        let (before, length) = (count(&lines[..from], new), count(&lines[from..to], new));
        let start = if length == 0 { before } else { before + 1 };
        if length == 1 { start.to_string() } else { format!("{start},{length}") }
    };
    let _ = writeln!(out, "@@ -{} +{} @@", range(false), range(true));
    for line in &lines[from..to] {
        let (sign, text) = match line {
            Line::Same(text) => (' ', text),
            Line::Old(text) => ('-', text),
            Line::New(text) => ('+', text),
        };
        let _ = write!(out, "{sign}{text}");
        if !text.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// All lines of both texts, old ones before new ones where they differ.
fn script<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_middle, new_middle) = (&old_rest[..old_rest.len() - tail], &new_rest[..new_rest.len() - tail]);
    let mut lines: Vec<Line<'a>> = old[..head].iter().map(|line| Line::Same(line)).collect();
    lines.extend(shortest(old_middle, new_middle).unwrap_or_else(|| {
        let removed = old_middle.iter().map(|line| Line::Old(line));
        removed.chain(new_middle.iter().map(|line| Line::New(line))).collect()
    }));
    lines.extend(old_rest[old_rest.len() - tail..].iter().map(|line| Line::Same(line)));
    lines
}

/// Myers' greedy search; `None` where the texts differ in too many lines.
fn shortest<'a>(old: &[&'a str], new: &[&'a str]) -> Option<Vec<Line<'a>>> {
    let limit = (old.len() + new.len()).min(MAX_DIFFERENCES);
    // The furthest place in `old` on each diagonal, shifted so that the index is never negative.
    let middle = limit + 1;
    let mut furthest = vec![0_usize; 2 * middle + 1];
    let mut history: Vec<Vec<usize>> = Vec::new();
    for edits in 0..=limit {
        history.push(furthest[middle - edits.min(middle)..=middle + edits].to_vec());
        for step in 0..=edits {
            let diagonal = middle + 2 * step - edits;
            let down = step == 0 || (step != edits && furthest[diagonal - 1] < furthest[diagonal + 1]);
            let mut x = if down { furthest[diagonal + 1] } else { furthest[diagonal - 1] + 1 };
            let mut y = (x + middle).checked_sub(diagonal)?;
            while x < old.len() && y < new.len() && old[x] == new[y] {
                x += 1;
                y += 1;
            }
            furthest[diagonal] = x;
            if x >= old.len() && y >= new.len() {
                return Some(backtrack(old, new, &history));
            }
        }
    }
    None
}

/// The way that led to the end, from the furthest places of each round.
fn backtrack<'a>(old: &[&'a str], new: &[&'a str], history: &[Vec<usize>]) -> Vec<Line<'a>> {
    let (mut x, mut y) = (old.len(), new.len());
    let mut lines = Vec::new();
    for (edits, before) in history.iter().enumerate().rev() {
        // `before` holds the diagonals from -edits to edits.
        let at = |diagonal: isize| -> usize {
            let index = diagonal + edits as isize;
            usize::try_from(index).ok().and_then(|index| before.get(index)).copied().unwrap_or(0)
        };
        let diagonal = x as isize - y as isize;
        let reach = edits as isize;
        let down = diagonal == -reach || (diagonal != reach && at(diagonal - 1) < at(diagonal + 1));
        let previous = if down { diagonal + 1 } else { diagonal - 1 };
        let from_x = if edits == 0 { 0 } else { at(previous) };
        let from_y = if edits == 0 { 0 } else { usize::try_from(from_x as isize - previous).unwrap_or(0) };
        while x > from_x && y > from_y {
            x -= 1;
            y -= 1;
            lines.push(Line::Same(old[x]));
        }
        if edits > 0 {
            if down && y > 0 {
                y -= 1;
                lines.push(Line::New(new[y]));
            } else if x > 0 {
                x -= 1;
                lines.push(Line::Old(old[x]));
            }
        }
    }
    lines.reverse();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_its_surroundings() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n";
        let new = "a\nb\nc\nd\nE\nf\ng\nh\ni\nj\nk\nnew\nl\n";
        assert_eq!(
            unified("old", "new", old, new).unwrap(),
            "--- old\n+++ new\n@@ -2,11 +2,12 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n i\n j\n k\n+new\n l\n"
        );
        assert_eq!(unified("old", "new", old, old), None);
    }

    #[test]
    fn empty_texts_and_missing_line_ends() {
        assert_eq!(unified("a", "b", "", "x\n").unwrap(), "--- a\n+++ b\n@@ -0,0 +1 @@\n+x\n");
        assert_eq!(unified("a", "b", "x\n", "").unwrap(), "--- a\n+++ b\n@@ -1 +0,0 @@\n-x\n");
        assert_eq!(
            unified("a", "b", "x\ny", "x\ny\n").unwrap(),
            "--- a\n+++ b\n@@ -1,2 +1,2 @@\n x\n-y\n\\ No newline at end of file\n+y\n"
        );
    }

    /// Each script gives back both texts, whatever they are.
    #[test]
    fn scripts_are_complete() {
        let mut seed = 7_u32;
        let mut random = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % below
        };
        let words = ["a\n", "b\n", "c\n", "d\n"];
        for round in 0..2_000 {
            let mut text =
                |most: u32| -> Vec<&str> { (0..random(most)).map(|_| words[random(4) as usize]).collect() };
            let (old, new) =
                if round == 0 { (vec!["x\n"; 3_000], vec!["y\n"; 3_000]) } else { (text(14), text(14)) };
            let lines = script(&old, &new);
            let only = |mine: bool| -> Vec<&str> {
                lines
                    .iter()
                    .filter_map(|line| match line {
                        Line::Same(text) => Some(*text),
                        Line::Old(text) => mine.then_some(*text),
                        Line::New(text) => (!mine).then_some(*text),
                    })
                    .collect()
            };
            assert_eq!(only(true), old);
            assert_eq!(only(false), new);
        }
    }
}
