//! Answers of an `exec` in a simulated pod, where the user has given them: nothing runs, but an operator that
//! calls its application may go on. Never decides whether a pod can be called.

use std::fmt;
use std::str::FromStr;

/// The answer to the commands that contain a text, or to every command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecAnswer {
    /// Empty for every command.
    command: String,
    outcome: ExecOutcome,
}

/// The outcome that a command seems to have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecOutcome {
    /// Its output.
    pub output: String,
    /// Its exit code.
    pub code: u8,
}

/// A text that is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoExecAnswer;

impl std::error::Error for NoExecAnswer {}

impl fmt::Display for NoExecAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an answer is `ok`, `exit:CODE` with a code of 0 to 255, or a text to print, and may have COMMAND= in front")
    }
}

impl fmt::Display for ExecAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.command)?;
        f.write_str(if self.command.is_empty() { "" } else { "=" })?;
        match &self.outcome {
            ExecOutcome { code: 0, output } if output.is_empty() => f.write_str("ok"),
            ExecOutcome { code: 0, output } => f.write_str(output.trim_end_matches('\n')),
            ExecOutcome { code, .. } => write!(f, "exit:{code}"),
        }
    }
}

impl FromStr for ExecAnswer {
    type Err = NoExecAnswer;

    /// `ok`, `exit:3` or a text to print; in front, perhaps, part of the command and `=`.
    fn from_str(text: &str) -> Result<Self, NoExecAnswer> {
        let (command, word) = text.rsplit_once('=').unwrap_or(("", text));
        if word.is_empty() || (command.is_empty() && text.starts_with('=')) {
            return Err(NoExecAnswer);
        }
        let outcome = match (word, word.strip_prefix("exit:")) {
            ("ok", _) => ExecOutcome::default(),
            (_, Some(code)) => {
                let code = code.parse().map_err(|_| NoExecAnswer)?;
                ExecOutcome { code, ..ExecOutcome::default() }
            }
            _ => ExecOutcome { output: format!("{word}\n"), code: 0 },
        };
        Ok(ExecAnswer { command: command.to_owned(), outcome })
    }
}

/// The answer to a command: that of the longest text in it.
pub fn answer<'a>(answers: &'a [ExecAnswer], command: &str) -> Option<&'a ExecOutcome> {
    let fitting = answers.iter().filter(|answer| command.contains(answer.command.as_str()));
    fitting.max_by_key(|answer| answer.command.len()).map(|answer| &answer.outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_command_that_fits_answers() {
        let texts = ["ok", "redis-cli ping=PONG", "redis-cli=exit:3"];
        let answers: Vec<ExecAnswer> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let of = |command: &str| answer(&answers, command).map(|found| (found.output.as_str(), found.code));
        assert_eq!(of("sh -c redis-cli ping"), Some(("PONG\n", 0)));
        assert_eq!(of("redis-cli info"), Some(("", 3)));
        assert_eq!(of("ls"), Some(("", 0)));
        assert_eq!(answer(&answers[1..], "ls"), None);
        let written: Vec<String> = answers.iter().map(ToString::to_string).collect();
        assert_eq!(written, texts);
        for wrong in ["", "a=", "=ok", "exit:256", "ls=exit:x"] {
            assert_eq!(wrong.parse::<ExecAnswer>(), Err(NoExecAnswer), "{wrong}");
        }
    }
}
