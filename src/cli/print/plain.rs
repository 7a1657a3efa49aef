//! One clear line per fact. Objects, queue lengths and pauses are levels, not facts: they have no line.

use jiff::Timestamp;
use opdev_event::{
    BuildChanged, BuildState, Event, Held, HeldChange, KindHealth, Leaving, Level, LogLine, LoopFound,
    Notice, OnExit, Outcome, ProcessChanged, ProcessState, Protection, Reconcile, ReleaseStep, Released,
    ReloadFailed, ReloadSettled, RequestFinished, RequestOutcome, RuleFinding, ShadowDecision, ShadowRun,
    SourcesChanged, Started, TrustAnswer, TrustAnswered, TrustAsked, TypeChanged, Verdict, Weight, words,
};

/// The beginning of a line that belongs to the one above it.
const BELOW: &str = "\n             ";

/// The event as one line without colours and without a line break; `None` where it is no fact worth a line.
pub fn plain(event: &Event) -> Option<String> {
    let (at, text) = match event {
        Event::Started(started) => (Some(started.at), self::started(started)),
        Event::SourcesChanged(sources) => (Some(sources.at), self::sources(sources)),
        Event::ReloadFailed(failed) => (Some(failed.at), reload_failed(failed)),
        Event::ReloadSettled(settled) => (Some(settled.at), reload_settled(settled, "live")),
        Event::TypeChanged(changed) => (Some(changed.at), type_changed(changed)),
        Event::ShadowRun(run) => (Some(run.at), shadow_run(run)),
        Event::Held(held) => (Some(held.at), self::held(held)),
        Event::Released(released) => (Some(released.at), self::released(released)),
        Event::HoldChanged { on: true } => (None, "hold       saved charts need your answer".to_owned()),
        Event::HoldChanged { on: false } => (None, "hold       saved charts go live at once".to_owned()),
        Event::Disturbed { rules } if rules.is_empty() => {
            (None, "faults     none is injected any more".to_owned())
        }
        Event::Disturbed { rules } => {
            let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
            (None, format!("faults     {}", rules.join(", ")))
        }
        Event::TrustAsked(asked) => (Some(asked.at), trust_asked(asked)),
        Event::TrustAnswered(answered) => (Some(answered.at), trust_answered(answered)),
        // It has been printed when it ended.
        Event::Reconciled(reconcile) if reconcile.process.as_ref().is_some_and(|process| process.told_again) => {
            return None;
        }
        Event::Reconciled(reconcile) => (Some(reconcile.at), reconciled(reconcile)),
        Event::Log(line) => (Some(line.at), log(line)),
        Event::LogDropped { lines } => (None, format!("log        {lines} lines dropped")),
        Event::RequestFinished(request) => (Some(request.at), finished(request)),
        Event::LoopFound(found) => (Some(found.at), loop_found(found)),
        Event::FindingOpened(finding) => (Some(finding.first), finding_opened(finding)),
        Event::FindingClosed(finding) => {
            let at = finding.ended.as_ref().map_or(finding.last, |ended| ended.at);
            (Some(at), finding_closed(finding))
        }
        Event::Noticed(notice) => (Some(notice.at), noticed(notice)),
        Event::ProtectionChanged(changed) => {
            let word = match changed.protection {
                Protection::Local => "clearly local",
                Protection::Confirmed => "unlocked, opdev writes",
                Protection::ReadOnly => "read-only",
            };
            (Some(changed.at), format!("protection {word}"))
        }
        Event::BuildChanged(build) => (Some(build.at), self::build(build)),
        Event::ProcessChanged(run) => (Some(run.at), self::process(run)),
        Event::Leaving(leaving) => (None, self::leaving(leaving)),
        Event::Stopping { reason } => (None, format!("stopping   {}", words::one_line(reason))),
        Event::ObjectSeen(_)
        | Event::UnrelatedSeen(_)
        | Event::ObjectGone(_)
        | Event::ReconcileStarted(_)
        | Event::QueueChanged(_)
        | Event::PodLog(_)
        | Event::PausesChanged { .. }
        | Event::DraftChanged(_)
        | Event::UndoChanged { .. }
        // The screen alone starts one, and shows it.
        | Event::BackgroundChanged(_)
        // Its beginning and its end have a line each.
        | Event::FindingCounted(_)
        // A notice tells of each, with the rule.
        | Event::RulesMissing { .. }
        // Its beginning and its end are notices.
        | Event::ConnectionChanged(_)
        // A notice tells of each, and the answer of a request what became of it.
        | Event::CopiesChanged(_)
        | Event::PathsListed(_)
        | Event::FilesListed { .. }
        | Event::ValuesExplained(_)
        | Event::KindsServed { .. }
        | Event::TableChanged { .. }
        | Event::RowRead(_)
        | Event::RequestStarted(_) => return None,
        Event::PreferencesChanged(preferences) => match preferences.problems.first() {
            Some(problem) => (Some(preferences.at), format!("settings   {}", words::diagnostic(problem))),
            None => return None,
        },
    };
    Some(shown(at, &text))
}

/// A line with its time. Names in files and answers of servers are whatever somebody wrote: only lines below
/// a notice are lines.
pub(super) fn shown(at: Option<Timestamp>, text: &str) -> String {
    let lines: Vec<String> = text.split(BELOW).map(words::visible_line).collect();
    format!("{} {}", time(at), lines.join(BELOW))
}

fn trust_asked(asked: &TrustAsked) -> String {
    let wants: Vec<String> =
        asked.unanswered.iter().map(|one| format!("{one} ({})", one.setting())).collect();
    format!(
        "trust      the project is not trusted to {}; nothing new of its files is used until you run `opdev trust` and save \
         a file",
        wants.join("; ")
    )
}

fn trust_answered(answered: &TrustAnswered) -> String {
    let word = match answered.answer {
        _ if answered.permissions.is_empty() => {
            return "trust      nothing waits for an answer any more".to_owned();
        }
        TrustAnswer::Once => "allowed until opdev ends",
        TrustAnswer::Trust => "trusted",
        TrustAnswer::Refuse => "refused",
    };
    let what: Vec<String> = answered.permissions.iter().map(ToString::to_string).collect();
    format!("trust      {word}: {}", what.join("; "))
}

/// UTC, to the millisecond; as wide as ever where an event has no time.
fn time(at: Option<Timestamp>) -> String {
    match at {
        Some(at) => {
            let at = at.to_zoned(jiff::tz::TimeZone::UTC);
            let millis = at.subsec_nanosecond() / 1_000_000;
            format!("{}.{millis:03}Z", at.strftime("%Y-%m-%dT%H:%M:%S"))
        }
        None => " ".repeat("2026-01-01T00:00:00.000Z".len()),
    }
}

fn leaving(leaving: &Leaving) -> String {
    let word = match leaving.how {
        OnExit::Leave => "left",
        OnExit::Uninstall => "gone",
        OnExit::Release => "released",
    };
    let left = leaving.left.iter().take(5).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let waits = if left.is_empty() { String::new() } else { format!("; still there: {left}") };
    let done = (leaving.total as usize).saturating_sub(leaving.left.len());
    let spared = leaving.spared.iter().take(5).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let more = leaving.spared.len().saturating_sub(5);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let spared =
        if spared.is_empty() { spared } else { format!("; not this operator's, and spared: {spared}{more}") };
    format!("leaving    {done} of {} {word}{waits}{spared}", leaving.total)
}

fn started(started: &Started) -> String {
    let cluster = &started.cluster;
    let name = if cluster.embedded { "the embedded control plane" } else { cluster.name.as_str() };
    let namespace = if started.all_namespaces { "all namespaces" } else { started.namespace.as_str() };
    let mut text = format!(
        "started    {} on {name} {}, namespace: {namespace}, API ready in {}",
        started.project,
        cluster.version,
        words::took(started.api_ready)
    );
    if let Some(kubeconfig) = &started.kubeconfig {
        text.push_str(&format!(", kubeconfig: {kubeconfig}"));
    }
    text
}

fn loop_found(found: &LoopFound) -> String {
    let paused = if found.paused { "; paused" } else { "" };
    format!("loop       {}: {}{paused}", found.object, words::one_line(&found.to_string()))
}

fn finding_opened(finding: &RuleFinding) -> String {
    let place = finding.place.as_ref().map_or_else(String::new, |place| format!("; at {place}"));
    let shown = if finding.since > 0 { format!(" #{}", finding.since) } else { String::new() };
    format!(
        "finding    {} {} {}{shown}: {}{place}; fix: {} (opdev explain {})",
        finding.severity.sign(),
        finding.title,
        finding.object,
        words::one_line(&finding.why),
        words::one_line(&finding.fix),
        finding.rule
    )
}

fn finding_closed(finding: &RuleFinding) -> String {
    let how = finding.ended.as_ref().map_or("it is over", |ended| ended.how.as_str());
    let times = finding.times;
    format!("finding    ✓ {} {}: {how} (×{times})", finding.title, finding.object)
}

/// What serves. Why a kind does not, or not in its newest version, is told where it failed.
fn sources(sources: &SourcesChanged) -> String {
    let kinds = sources.kinds.iter().map(|kind| match &kind.health {
        KindHealth::Serving => format!("{} ({})", kind.gvk.kind, kind.source),
        KindHealth::Stale { .. } => format!("{} ({}, last working version)", kind.gvk.kind, kind.source),
        KindHealth::Disabled { .. } => format!("{} ({}, disabled)", kind.gvk.kind, kind.source),
        KindHealth::Process { program } => format!("{} (reconciled by {program})", kind.gvk.kind),
        KindHealth::Shown { why } => format!("{} ({}, not reconciled: {why})", kind.gvk.kind, kind.source),
    });
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    let kinds = if kinds.is_empty() { "no kinds".to_owned() } else { kinds };
    let mut text = format!("sources    {} live: {kinds}", sources.sources);
    if !sources.files.is_empty() {
        let what = if sources.removed { "removed" } else { "saved" };
        text.push_str(&format!("; {what}: {}", sources.files.join(", ")));
    }
    for diagnostic in &sources.diagnostics {
        text.push_str(&format!("; {}", words::diagnostic(diagnostic)));
    }
    text
}

fn reload_failed(failed: &ReloadFailed) -> String {
    let problems = failed.diagnostics.iter().map(|diagnostic| {
        let said = match &diagnostic.hint {
            Some(hint) => format!("{} ({})", words::diagnostic(diagnostic), words::one_line(hint)),
            None => words::diagnostic(diagnostic),
        };
        // A build of which no place is known has said more than that it failed.
        match &diagnostic.excerpt {
            Some(last) if failed.build && diagnostic.place.is_none() => {
                let lines = last.lines().map(|line| format!("{BELOW}{line}"));
                said + &lines.collect::<String>()
            }
            _ => said,
        }
    });
    let goes_on =
        if failed.build { "a program that runs goes on" } else { "the last working version keeps running" };
    format!("reload     failed, {goes_on}: {}", problems.collect::<Vec<_>>().join("; "))
}

fn build(build: &BuildChanged) -> String {
    let saved =
        if build.files.is_empty() { String::new() } else { format!("; saved: {}", build.files.join(", ")) };
    let how = match &build.state {
        BuildState::Building => "runs".to_owned(),
        BuildState::Built { took } => format!("succeeded in {}", words::took(*took)),
        BuildState::Broken { took } => format!("failed after {}", words::took(*took)),
    };
    format!("build      {} {how}{saved}", build.build)
}

fn process(run: &ProcessChanged) -> String {
    let how = match &run.state {
        ProcessState::Waiting { why } => format!("waits for {why}"),
        ProcessState::Running { .. } if run.breakpoint.is_some() => {
            let place = run.breakpoint.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("stands at a breakpoint, {place}; nothing is reconciled until it goes on")
        }
        ProcessState::Running { pid, files, since_save } => {
            let start = if run.starts > 1 { format!("start {}, ", run.starts) } else { String::new() };
            let saved = match files.is_empty() {
                true => String::new(),
                false => format!("; {} saved → started in {}", words::files(files), words::took(*since_save)),
            };
            format!("runs ({start}pid {pid}, traced: {}){saved}", words::traced(run.traced))
        }
        ProcessState::Restarting { exit, after } => {
            format!("has stopped: {}; started again in {}", words::exit(exit), words::took(*after))
        }
        ProcessState::Failed { exit } => {
            let hint =
                exit.hint.as_ref().map_or_else(String::new, |hint| format!(" ({})", words::one_line(hint)));
            format!("does not run: {}{hint}; the next save starts it again", words::exit(exit))
        }
        ProcessState::Ended { exit } => {
            format!("has ended: {}; the next save starts it again", words::exit(exit))
        }
    };
    format!("process    {} {how}", run.program)
}

/// `state` is the result of the save.
pub(super) fn reload_settled(settled: &ReloadSettled, state: &str) -> String {
    let files = if settled.files.is_empty() { "all files".to_owned() } else { words::files(&settled.files) };
    let objects =
        if settled.objects == 1 { "1 object".to_owned() } else { format!("{} objects", settled.objects) };
    let failed = if settled.failed > 0 { format!(", {} failed", settled.failed) } else { String::new() };
    format!("reload     {files} saved → {state} in {} ({objects}{failed})", words::took(settled.took))
}

fn type_changed(changed: &TypeChanged) -> String {
    let files = if changed.files.is_empty() {
        "CRD".to_owned()
    } else {
        format!("{} saved → CRD", words::files(&changed.files))
    };
    let what = if changed.created { "created" } else { "live" };
    let mut text = format!("type       {}: {files} {what} in {}", changed.name, words::took(changed.took));
    for finding in changed.findings.iter().filter(|finding| finding.weight > Weight::Info) {
        text.push_str(&format!("; {}", words::finding(finding)));
    }
    text.push_str(&hurts(&changed.objects, 0));
    text
}

fn hurts(objects: &[opdev_event::Hurt], more: u32) -> String {
    let mut text: String = objects.iter().map(|hurt| format!("; {}", words::hurt(hurt))).collect();
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    text
}

fn shadow_run(run: &ShadowRun) -> String {
    let decision = match run.decision {
        ShadowDecision::Switched => "it takes over",
        ShadowDecision::Held => "it needs your answer",
        ShadowDecision::Refused => "refused, the older reconciler keeps running",
    };
    format!("dry run    {} on {} in {}; {decision}", run.kind.kind, words::shadow(run), words::took(run.took))
}

fn held(held: &Held) -> String {
    let goes_on = match held.change {
        HeldChange::Type => "the CRD stays as it is",
        HeldChange::Reconciler => "the older reconciler keeps running",
        HeldChange::Chart => "the older chart keeps running",
    };
    let findings: String =
        held.findings.iter().map(|finding| format!("; {}", words::finding(finding))).collect();
    format!(
        "held       {}: {}{findings}{}; {goes_on}: undo the edit, or let the change through on the screen",
        held.id,
        words::one_line(&held.why),
        hurts(&held.objects, held.more)
    )
}

fn released(released: &Released) -> String {
    let how = match released.verdict {
        Verdict::Applied => "let through",
        Verdict::Discarded => "discarded; what serves goes on serving",
        Verdict::Undone => "undone, nothing waits any more",
    };
    format!("released   {}: {how}", released.id)
}

fn reconciled(reconcile: &Reconcile) -> String {
    let counts = words::counts(reconcile);
    let counts = if counts.is_empty() { counts } else { format!(" ({counts})") };
    let mut text = format!(
        "reconciled {} {} in {}{counts}: {}",
        reconcile.object,
        words::result(reconcile),
        words::took(reconcile.took),
        words::causes(&reconcile.causes)
    );
    if let (Outcome::Failed, Some(failure)) = (reconcile.outcome, &reconcile.failure) {
        let chain = failure.chain.iter().map(|cause| words::one_line(cause)).collect::<Vec<_>>();
        let place = failure.diagnostic.as_ref().and_then(|diagnostic| diagnostic.place.as_ref());
        let place = place.map_or_else(String::new, |place| format!("{place}: "));
        text.push_str(&format!("; attempt {}: {place}{}", failure.attempt, chain.join(": ")));
    }
    for release in reconcile.releases.iter().filter(|release| release.step != ReleaseStep::Installed) {
        text.push_str(&format!("; {}", words::release(release)));
    }
    if let Some(words) = &reconcile.waiting {
        text.push_str(&format!("; waits: {}", words::one_line(words)));
    }
    if let Some(requeue) = reconcile.requeue.as_ref().filter(|_| reconcile.outcome != Outcome::Unchanged) {
        text.push_str(&format!(
            "; again in {} ({})",
            words::took(requeue.after),
            words::one_line(requeue.reason.words())
        ));
    }
    match reconcile.process.as_ref().map_or(0, |process| process.disturbed_calls.len()) {
        0 => {}
        1 => text.push_str("; a fault was injected into one call"),
        calls => text.push_str(&format!("; faults were injected into {calls} calls")),
    }
    for finding in reconcile.process.iter().flat_map(|process| &process.findings) {
        text.push_str(&format!("; warning: {}", words::one_line(&finding.message)));
    }
    text
}

fn log(line: &LogLine) -> String {
    format!("log        {} {}: {}", words::level(line.level), line.target, words::one_line(&line.message))
}

fn finished(request: &RequestFinished) -> String {
    let took = words::took(request.took);
    match &request.outcome {
        RequestOutcome::Done { summary, warnings } => {
            let warnings = warnings.iter().map(|warning| format!("; warning: {}", words::one_line(warning)));
            format!("done       {} in {took}: {summary}{}", request.what, warnings.collect::<String>())
        }
        RequestOutcome::Failed { message, hint } => {
            let hint = hint.as_ref().map_or_else(String::new, |hint| format!(" ({})", words::one_line(hint)));
            format!("refused    {} after {took}: {}{hint}", request.what, words::one_line(message))
        }
        RequestOutcome::Cancelled { message } => {
            format!("cancelled  {} after {took}: {}", request.what, words::one_line(message))
        }
    }
}

fn noticed(notice: &Notice) -> String {
    let word = match notice.level {
        Level::Error => "error     ",
        Level::Warn => "warning   ",
        Level::Info | Level::Debug | Level::Trace => "notice    ",
    };
    let about = notice.object.as_ref().map_or_else(String::new, |object| format!("{object}: "));
    let mut lines = notice.hint.as_deref().map(words::lines).unwrap_or_default().into_iter();
    let hint = lines.next().map_or_else(String::new, |hint| format!(" ({hint})"));
    let below: String = lines.map(|line| format!("{BELOW}{line}")).collect();
    format!("{word} {about}{}{hint}{below}", words::one_line(&notice.message))
}
