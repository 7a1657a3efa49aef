//! Faults on request in the calls of the operator's own program: which calls, and what happens to them. A
//! rule is one line of words, such as `conflict update podsets/status times=1`, on the command line and in
//! the palette.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The fault of a call, or of the events of watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call waits so long.
    Delay(Duration),
    /// 409, as if somebody had written in between.
    Conflict,
    /// 429 with so many seconds in `Retry-After`.
    TooManyRequests(u32),
    /// A 5xx.
    ServerError(u16),
    /// The connection ends before anything is done.
    ResetBefore,
    /// The connection ends after it is done: the answer is lost.
    ResetAfter,
    /// Watches get no events for so long, or until the rule is taken away; then all of them. The program's
    /// cache is stale.
    Hold(Option<Duration>),
    /// Watches end at once, again and again for so long.
    Cut(Duration),
    /// Watches end with 410 for so long, so that the program has to list again.
    Expire(Duration),
}

impl Fault {
    /// Returns true if it concerns watches rather than calls.
    pub fn is_of_watches(self) -> bool {
        match self {
            Fault::Hold(_) | Fault::Cut(_) | Fault::Expire(_) => true,
            Fault::Delay(_)
            | Fault::Conflict
            | Fault::TooManyRequests(_)
            | Fault::ServerError(_)
            | Fault::ResetBefore
            | Fault::ResetAfter => false,
        }
    }
}

/// How long watches are cut or expire unless a rule says so.
const MOMENT: Duration = Duration::from_secs(1);

const FAULTS: &str =
    "delay=500ms, conflict, 429, 429=SECONDS, 500, 502, 503, 504, reset, lost, hold, hold=10s, cut, expire";

const VERBS: [&str; 8] = ["get", "list", "create", "update", "patch", "delete", "deletecollection", "write"];

/// Why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleError {
    /// There is no word.
    Empty,
    /// No fault has this name.
    NoFault(String),
    /// The fault takes no value.
    TakesNoValue {
        /// The fault.
        fault: String,
        /// The value behind it.
        value: String,
    },
    /// A value is no time, or one that is too short or too long.
    NoTime(String),
    /// The value of `429=` is no number of seconds.
    NoSeconds,
    /// The value of an option is no number from 1 on.
    NoNumber {
        /// The option.
        option: String,
        /// Its value.
        value: String,
    },
    /// No option has this name.
    NoOption(String),
    /// A word is no resource.
    NoResource(String),
    /// A resource is named already.
    OneTooMany {
        /// The word after it.
        word: String,
        /// The resource.
        resource: String,
    },
    /// A fault of whole watches is to concern some calls only.
    WholeWatches {
        /// The fault as it is written.
        fault: String,
    },
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleError::Empty => write!(f, "a rule begins with a fault: {FAULTS}"),
            RuleError::NoFault(name) => write!(f, "there is no fault `{name}`: {FAULTS} are known"),
            RuleError::TakesNoValue { fault, value } => write!(f, "`{fault}` takes no value (`{value}`)"),
            RuleError::NoTime(value) => {
                write!(f, "`{value}` is no time from 1ms to 1h, such as 500ms or 10s")
            }
            RuleError::NoSeconds => f.write_str("429= takes whole seconds, such as 429=2"),
            RuleError::NoNumber { option, value } => {
                write!(f, "{option} takes a number from 1 on, not `{value}`")
            }
            RuleError::NoOption(name) => {
                write!(f, "`{name}=` is unknown: name=, namespace=, every=, nth= and times= are known")
            }
            RuleError::NoResource(word) => {
                write!(f, "`{word}` is no resource: name it by its plural in small letters, such as podsets")
            }
            RuleError::OneTooMany { word, resource } => {
                let verbs = VERBS.join(", ");
                write!(
                    f,
                    "`{word}` is one word too many: `{resource}` is the resource already; verbs are {verbs}"
                )
            }
            RuleError::WholeWatches { fault } => write!(
                f,
                "`{fault}` concerns whole watches: it takes a resource and nothing more, such as `{fault} pods`"
            ),
        }
    }
}

impl std::error::Error for RuleError {}

/// A fault and the calls that get it. An empty text means all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FaultRule {
    /// The fault.
    pub fault: Fault,
    /// The Kubernetes verb, such as `update`; `write` means every call that is no read.
    pub verb: String,
    /// The plural resource, such as `podsets`; `*` means all.
    pub resource: String,
    /// The subresource, such as `status`; `None` means all, and the object itself.
    pub subresource: Option<String>,
    /// The object's namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// One call in so many, by chance; 1 is each.
    pub every: u32,
    /// Only the call with this number among those that match, from 1 on.
    pub nth: Option<u32>,
    /// How often at most; `None` without end.
    pub times: Option<u32>,
}

impl FaultRule {
    /// Rules to choose from, each with what it shows.
    pub const PRESETS: [(&str, &str); 9] = [
        ("hold", "the cache gets stale: watches deliver nothing until this is taken away"),
        ("hold=5s", "the cache is five seconds behind"),
        ("conflict update */status times=1", "the next update of a status finds that somebody wrote before"),
        ("delay=500ms", "a slow API server"),
        ("429=1 every=3", "one call in three is turned away for a second"),
        ("503 every=3", "one call in three fails"),
        ("lost write every=3", "one write in three is done, but its answer is lost"),
        ("cut", "all watches end, and end again for a second"),
        ("expire", "all watches are too old (410): everything is listed again"),
    ];

    /// A rule for a fault that concerns everything.
    pub fn of(fault: Fault) -> FaultRule {
        FaultRule {
            fault,
            verb: String::new(),
            resource: String::new(),
            subresource: None,
            namespace: String::new(),
            name: String::new(),
            every: 1,
            nth: None,
            times: None,
        }
    }

    fn option(&mut self, key: &str, value: &str) -> Result<(), RuleError> {
        let number = || match value.parse::<u32>() {
            Ok(number @ 1..) => Ok(number),
            Ok(0) | Err(_) => Err(RuleError::NoNumber { option: key.to_owned(), value: value.to_owned() }),
        };
        match key {
            "name" => value.clone_into(&mut self.name),
            "namespace" | "ns" => value.clone_into(&mut self.namespace),
            "every" => self.every = number()?,
            "nth" => self.nth = Some(number()?),
            "times" => self.times = Some(number()?),
            _ => return Err(RuleError::NoOption(key.to_owned())),
        }
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), RuleError> {
        if VERBS.contains(&word) && self.verb.is_empty() {
            word.clone_into(&mut self.verb);
            return Ok(());
        }
        if !self.resource.is_empty() {
            return Err(RuleError::OneTooMany { word: word.to_owned(), resource: self.resource.clone() });
        }
        let (resource, subresource) = match word.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
            None => (word, None),
        };
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.*".contains(c);
        if resource.is_empty() || !resource.chars().all(plain) {
            return Err(RuleError::NoResource(word.to_owned()));
        }
        (self.resource, self.subresource) = (resource.to_owned(), subresource);
        Ok(())
    }
}

fn fault(word: &str) -> Result<Fault, RuleError> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let long = |value: &str| {
        let parsed = value.parse::<SignedDuration>().ok().and_then(|long| Duration::try_from(long).ok());
        parsed
            .map(|long| Duration::from_millis(u64::try_from(long.as_millis()).unwrap_or(u64::MAX)))
            .filter(|long| !long.is_zero() && *long <= Duration::from_secs(3_600))
            .ok_or_else(|| RuleError::NoTime(value.to_owned()))
    };
    let bare = |fault: Fault| match value {
        None => Ok(fault),
        Some(value) => Err(RuleError::TakesNoValue { fault: name.to_owned(), value: value.to_owned() }),
    };
    match name {
        "delay" => Ok(Fault::Delay(long(value.unwrap_or("500ms"))?)),
        "conflict" | "409" => bare(Fault::Conflict),
        "429" => {
            let seconds = value.unwrap_or("1").parse();
            seconds.map(Fault::TooManyRequests).map_err(|_| RuleError::NoSeconds)
        }
        "500" | "502" | "503" | "504" => bare(Fault::ServerError(name.parse().unwrap_or(500))),
        "reset" => bare(Fault::ResetBefore),
        "lost" => bare(Fault::ResetAfter),
        "hold" => Ok(Fault::Hold(value.map(long).transpose()?)),
        "cut" => Ok(Fault::Cut(value.map_or(Ok(MOMENT), long)?)),
        "expire" | "410" => Ok(Fault::Expire(value.map_or(Ok(MOMENT), long)?)),
        _ => Err(RuleError::NoFault(name.to_owned())),
    }
}

impl FromStr for FaultRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let mut words = text.split_whitespace();
        let first = words.next().ok_or(RuleError::Empty)?;
        let mut rule = FaultRule::of(fault(first)?);
        for word in words {
            match word.split_once('=') {
                Some((key, value)) => rule.option(key, value)?,
                None => rule.word(word)?,
            }
        }
        let narrow = !rule.verb.is_empty()
            || rule.subresource.is_some()
            || !rule.name.is_empty()
            || !rule.namespace.is_empty()
            || (rule.every, rule.nth, rule.times) != (1, None, None);
        if rule.fault.is_of_watches() && narrow {
            return Err(RuleError::WholeWatches { fault: first.to_owned() });
        }
        Ok(rule)
    }
}

impl TryFrom<String> for FaultRule {
    type Error = RuleError;

    fn try_from(text: String) -> Result<Self, RuleError> {
        text.parse()
    }
}

impl From<FaultRule> for String {
    fn from(rule: FaultRule) -> String {
        rule.to_string()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let long = |time: &Duration| match time.as_millis() {
            millis if millis % 1_000 == 0 => format!("{}s", millis / 1_000),
            millis => format!("{millis}ms"),
        };
        match self {
            Fault::Delay(time) => write!(f, "delay={}", long(time)),
            Fault::Conflict => f.write_str("conflict"),
            Fault::TooManyRequests(seconds) => write!(f, "429={seconds}"),
            Fault::ServerError(code) => write!(f, "{code}"),
            Fault::ResetBefore => f.write_str("reset"),
            Fault::ResetAfter => f.write_str("lost"),
            Fault::Hold(None) => f.write_str("hold"),
            Fault::Hold(Some(time)) => write!(f, "hold={}", long(time)),
            Fault::Cut(time) => write!(f, "cut={}", long(time)),
            Fault::Expire(time) => write!(f, "expire={}", long(time)),
        }
    }
}

impl fmt::Display for FaultRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fault)?;
        if !self.verb.is_empty() {
            write!(f, " {}", self.verb)?;
        }
        match &self.subresource {
            Some(subresource) => write!(f, " {}/{subresource}", self.resource)?,
            None if self.resource.is_empty() => {}
            None => write!(f, " {}", self.resource)?,
        }
        for (key, value) in [("namespace", &self.namespace), ("name", &self.name)] {
            if !value.is_empty() {
                write!(f, " {key}={value}")?;
            }
        }
        if self.every > 1 {
            write!(f, " every={}", self.every)?;
        }
        for (key, value) in [("nth", self.nth), ("times", self.times)] {
            if let Some(value) = value {
                write!(f, " {key}={value}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_read_as_they_are_written() {
        let texts = [
            "delay=500ms",
            "delay=2s list pods",
            "conflict update podsets/status namespace=default name=demo times=1",
            "429=2 every=3",
            "503 write nth=4",
            "lost create",
            "hold",
            "hold=10s pods",
            "cut=1s",
            "expire=250ms configmaps",
        ];
        for text in texts {
            assert_eq!(text.parse::<FaultRule>().unwrap().to_string(), text);
        }
        for (text, _) in FaultRule::PRESETS {
            text.parse::<FaultRule>().unwrap();
        }
        assert_eq!(
            "409 */status ns=a".parse::<FaultRule>().unwrap().to_string(),
            "conflict */status namespace=a"
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |text: &str| text.parse::<FaultRule>().unwrap_err().to_string();
        assert!(
            wrong("slow").starts_with("there is no fault `slow`: delay=500ms, conflict"),
            "{}",
            wrong("slow")
        );
        assert!(wrong(" ").starts_with("a rule begins with a fault"));
        assert_eq!(wrong("503 every=0"), "every takes a number from 1 on, not `0`");
        assert_eq!(wrong("delay=fast"), "`fast` is no time from 1ms to 1h, such as 500ms or 10s");
        assert!(wrong("hold update").starts_with("`hold` concerns whole watches"));
        assert!(wrong("503 PodSet").starts_with("`PodSet` is no resource"));
        assert!(wrong("503 pods nodes").starts_with("`nodes` is one word too many"));
        assert_eq!(wrong("reset=3"), "`reset` takes no value (`3`)");
        assert!(wrong("503 often=2").starts_with("`often=` is unknown"));
    }
}
