//! The progress of a torture on standard error: a campaign takes minutes, and its report comes at the end.
//! A terminal has one line, which is written anew, and a line for each finding; anything else gets a line
//! for each scenario, too, and one now and then.

use crate::visible::{err, live_err};
use opdev_event::words::visible_line;
use opdev_torture::{Progress, many};
use std::io::{Result, Write};
use std::time::{Duration, Instant};

/// The line of a terminal is not written more often.
const SHORTEST: Duration = Duration::from_millis(100);
/// Elsewhere nobody waits longer for the next line.
const LONGEST: Duration = Duration::from_secs(30);

/// The progress that was told so far.
pub(super) struct Shown {
    to: Box<dyn Write>,
    /// The columns of a terminal whose last line can be written anew.
    live: Option<usize>,
    began: Instant,
    written: Option<Instant>,
    scenario: String,
    plans: usize,
    tried: usize,
    findings: usize,
}

impl Shown {
    /// Tells it on standard error.
    pub(super) fn to_stderr() -> Shown {
        match live_err() {
            Some((err, columns)) => Shown::to(Box::new(err), Some(columns)),
            None => Shown::to(Box::new(err()), None),
        }
    }

    fn to(to: Box<dyn Write>, live: Option<usize>) -> Shown {
        let scenario = String::new();
        Shown { to, live, began: Instant::now(), written: None, scenario, plans: 0, tried: 0, findings: 0 }
    }

    /// Takes in what happened.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub(super) fn tell(&mut self, progress: &Progress) -> Result<()> {
        match progress {
            Progress::Begun { scenarios: 0 } => Ok(()),
            Progress::Begun { scenarios } => {
                self.step(&format!("{} to learn", many(*scenarios, "scenario", "scenarios")))
            }
            Progress::Learned(learnt) => {
                self.scenario = format!("{} of {}", learnt.scenario, learnt.sample);
                Ok(())
            }
            Progress::Planned { plans } => {
                self.plans += *plans;
                self.step(&format!("{}: {}", self.scenario, many(*plans, "plan", "plans")))
            }
            Progress::Tried { scenario, .. } => {
                self.tried += 1;
                self.now_and_then(scenario)
            }
            Progress::Found(finding) => {
                self.findings += 1;
                self.line(&format!("✗ {}", finding.title()))
            }
            Progress::Done(_) => self.clear(),
        }
    }

    /// A line about a step. A terminal has it until the next one.
    fn step(&mut self, text: &str) -> Result<()> {
        match self.live {
            Some(columns) => self.write_anew(text, columns),
            None => self.line(text),
        }
    }

    fn write_anew(&mut self, text: &str, columns: usize) -> Result<()> {
        self.written = Some(Instant::now());
        let text: String = visible_line(text).chars().take(columns.saturating_sub(1)).collect();
        write!(self.to, "\r{text}\u{1b}[K")?;
        self.to.flush()
    }

    /// A line that stays.
    fn line(&mut self, text: &str) -> Result<()> {
        self.clear()?;
        self.written = Some(Instant::now());
        writeln!(self.to, "{}", visible_line(text))?;
        self.to.flush()
    }

    fn now_and_then(&mut self, scenario: &str) -> Result<()> {
        let pause = if self.live.is_some() { SHORTEST } else { LONGEST };
        if self.written.is_some_and(|written| written.elapsed() < pause) {
            return Ok(());
        }
        let text = format!(
            "{} of {} tried, {} so far, {} s: {scenario}",
            self.tried,
            many(self.plans, "plan", "plans"),
            many(self.findings, "finding", "findings"),
            self.began.elapsed().as_secs()
        );
        self.step(&text)
    }

    /// Takes the line of the terminal away.
    pub(super) fn clear(&mut self) -> Result<()> {
        if self.live.is_some() {
            write!(self.to, "\r\u{1b}[K")?;
            self.to.flush()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use opdev_torture::Learnt;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    fn told(live: Option<usize>) -> String {
        let kept = Kept::default();
        let mut shown = Shown::to(Box::new(kept.clone()), live);
        let learnt =
            Learnt { scenario: "recreate".to_owned(), sample: "db.yaml".to_owned(), ..Learnt::default() };
        let tried = Progress::Tried {
            scenario: "recreate".to_owned(),
            class: "crash".parse().unwrap(),
            plan: String::new(),
            differences: 0,
            took: Duration::ZERO,
        };
        for one in
            [Progress::Begun { scenarios: 1 }, Progress::Learned(learnt), Progress::Planned { plans: 2 }]
        {
            shown.tell(&one).unwrap();
        }
        shown.written = None;
        shown.tell(&tried).unwrap();
        shown.tell(&tried).unwrap();
        shown.clear().unwrap();
        String::from_utf8(kept.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_terminal_has_one_line_that_goes_and_a_file_has_lines_now_and_then() {
        expect![[r#"
            1 scenario to learn
            recreate of db.yaml: 2 plans
            1 of 2 plans tried, 0 findings so far, 0 s: recreate
        "#]]
        .assert_eq(&told(None));
        let live = told(Some(40));
        let shown: Vec<&str> = live.split("\u{1b}[K").collect();
        // The last line has 39 of 40 columns, and goes at the end.
        assert_eq!(
            shown,
            [
                "\r1 scenario to learn",
                "\rrecreate of db.yaml: 2 plans",
                "\r1 of 2 plans tried, 0 findings so far, ",
                "\r",
                ""
            ]
        );
    }
}
