//! The templates of a large chart run on several cores: this thread takes them from the front, others from
//! the back, each with its own copy of what templates see. What one of them changes there the later ones have
//! to see; so once that happens anywhere, what the others made is dropped, and this thread goes on alone, as
//! if it had always been.

use super::input::RenderError;
use super::memory::{Output, Outputs};
use super::run::Run;
use super::scope;
use crate::spread;
use opdev_template::{Context, Inputs, Map, Reads, Spent};
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many templates are taken from the back at most.
const AT_ONCE: usize = 8;

/// Returns true if it is worth it, and nobody minds in which order the environment is asked.
pub(super) fn pays(run: &Run<'_>) -> bool {
    let bytes = || run.templates.values().map(|template| template.data.len()).sum::<usize>();
    run.input.parallel && spread::others() > 0 && bytes() >= spread::WORTH
}

/// The output of every template of a list, and its documents as far as they can be read.
pub(super) fn outputs(run: &Run<'_>, paths: &[&str]) -> Result<Outputs, RenderError> {
    let line = Line::new(paths.len());
    let helpers = || vec![(); spread::others()];
    let front = || {
        let mut front = Front { worker: Worker::new(run, paths), made: Vec::with_capacity(paths.len()) };
        let went = front.go(&line);
        (front, went)
    };
    let ((front, went), _) = spread::beside(helpers, |()| Worker::new(run, paths).back(&line), front);
    went?;
    front.finish(&line)
}

/// The templates that nobody has taken yet.
struct Line {
    left: Mutex<Left>,
}

struct Left {
    range: Range<usize>,
    count: usize,
    /// Templates see what others have changed, or one has failed: from here on the order counts.
    alone: bool,
    /// The outputs that were made from the back, and their cost.
    made: Vec<(usize, Arc<Output>)>,
    spent: Spent,
}

impl Line {
    fn new(count: usize) -> Line {
        let left = Left { range: 0..count, count, alone: false, made: Vec::new(), spent: Spent::default() };
        Line { left: Mutex::new(left) }
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn first(&self) -> Option<usize> {
        let mut left = self.left();
        if left.alone {
            left.range.end = left.count;
        }
        left.range.next()
    }

    fn last(&self) -> Option<Range<usize>> {
        let mut left = self.left();
        if left.alone {
            return None;
        }
        let Range { start, end } = left.range;
        let count = ((end - start) / (2 * spread::others() + 1)).clamp(1, AT_ONCE);
        left.range.end = end.saturating_sub(count).max(start);
        (start < end).then_some(left.range.end..end)
    }

    fn is_alone(&self) -> bool {
        self.left().alone
    }

    fn alone(&self) {
        self.left().alone = true;
    }

    fn spent(&self, by: Spent) {
        let mut left = self.left();
        left.spent = left.spent.and(by);
    }

    /// The outputs made from the back, if they count; all together must not take more than one thread may.
    fn take_made(&self, own: Spent) -> Vec<(usize, Arc<Output>)> {
        let mut left = self.left();
        left.alone |= !left.spent.and(own).is_allowed();
        let made = std::mem::take(&mut left.made);
        if left.alone { Vec::new() } else { made }
    }
}

/// Everything that a thread runs templates with; the data is made once it is needed.
struct Worker<'r> {
    run: &'r Run<'r>,
    paths: &'r [&'r str],
    context: Context<'r>,
    data: Vec<Map>,
    writes: Rc<Reads>,
}

impl<'r> Worker<'r> {
    fn new(run: &'r Run<'r>, paths: &'r [&'r str]) -> Worker<'r> {
        let context = Context::new(run.input.env, run.input.compat);
        Worker { run, paths, context, data: Vec::new(), writes: Rc::default() }
    }

    /// Runs a template and reads its documents.
    fn one(&mut self, at: usize) -> Result<Arc<Output>, RenderError> {
        self.sit_down();
        let path = self.paths[at];
        let text = self.run.one(path, &self.data, &mut self.context)?;
        let (impure, wrote) = (self.context.take_impure(), self.writes.take_wrote());
        let output = Output { text, impure, wrote, ..Output::default() };
        // A broken template is told to the reader of its output.
        let _ = output.documents(path, None, self.run.input.compat);
        Ok(Arc::new(output))
    }

    fn sit_down(&mut self) {
        if self.data.is_empty() {
            let Run { scopes, values, input, .. } = self.run;
            let inputs = Inputs { watch: Some((Rc::clone(&self.writes), None)) };
            self.data = scope::data(scopes, values, input, inputs);
        }
    }

    /// Runs the last ones of those that are left, until there are none.
    fn back(mut self, line: &Line) {
        while let Some(range) = line.last() {
            self.stand_before(range.start);
            let mut made = Vec::with_capacity(range.len());
            for at in range {
                match self.one(at) {
                    Ok(output) if !output.wrote && !line.is_alone() => made.push((at, output)),
                    _ => return line.alone(),
                }
            }
            line.left().made.append(&mut made);
        }
        line.spent(self.context.spent());
    }

    /// `.Template` of each chart is what the templates before this one have left there.
    fn stand_before(&mut self, at: usize) {
        self.sit_down();
        let mut charts: Vec<_> = (0..self.data.len()).collect();
        for path in self.paths[..at].iter().rev() {
            let own = self.run.templates[*path].scope;
            if let Some(found) = charts.iter().position(|chart| *chart == own) {
                charts.swap_remove(found);
                self.run.place(path, &self.data);
            }
            if charts.is_empty() {
                break;
            }
        }
    }
}

/// The thread that asked, and what it has made: the first outputs, in their order.
struct Front<'r> {
    worker: Worker<'r>,
    made: Vec<Arc<Output>>,
}

impl Front<'_> {
    /// Runs templates as long as others leave some.
    fn go(&mut self, line: &Line) -> Result<(), RenderError> {
        while self.step(line)? {}
        Ok(())
    }

    /// Runs the next one; whether there was one.
    fn step(&mut self, line: &Line) -> Result<bool, RenderError> {
        let Some(at) = line.first() else { return Ok(false) };
        let output = self.worker.one(at).inspect_err(|_| line.alone())?;
        if output.wrote {
            line.alone();
        }
        self.made.push(output);
        Ok(true)
    }

    /// All outputs, once the others have ended. Where nothing counts of what they made, the rest runs here.
    fn finish(mut self, line: &Line) -> Result<Outputs, RenderError> {
        let from_back = line.take_made(self.worker.context.spent());
        self.go(line)?;
        let made = self.made.into_iter().enumerate().chain(from_back);
        Ok(made.map(|(at, output)| (self.worker.paths[at].to_owned(), output)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::ahead::Ahead;
    use super::super::tests::{Dice, Texts, edit, load, texts, web};
    use super::super::{Capabilities, Compat, Environment, FuncError, render};
    use super::*;
    use crate::engine::input::{ReleaseInfo, RenderInput};
    use expect_test::expect;
    use serde_json::{Value, json};

    /// A world that says the same however often it is asked.
    struct Steady;

    impl Environment for Steady {
        fn now(&self) -> jiff::Timestamp {
            jiff::Timestamp::UNIX_EPOCH
        }

        fn random(&self, buffer: &mut [u8]) {
            buffer.fill(7);
        }

        fn lookup(&self, _: &str, _: &str, _: &str, _: &str) -> Result<Value, FuncError> {
            Ok(json!({}))
        }
    }

    type Made = Result<Vec<(String, String)>, String>;

    fn made(outputs: Result<Outputs, RenderError>) -> Made {
        let text = |(path, output): (String, Arc<Output>)| (path, output.text.clone());
        outputs.map(|made| made.into_iter().map(text).collect()).map_err(|error| error.message)
    }

    /// Renders a chart with one thread, and with two of which one waits after so many templates until the
    /// other has taken all that it takes. The flag is true if any of the latter counted.
    fn both(files: &Texts, user: &Value, compat: Compat, after: usize) -> Option<(Made, Made, bool)> {
        let (chart, capabilities) = (load(files).ok()?, Capabilities::default_for(compat));
        let release = ReleaseInfo::install("rel", "ns");
        let input = RenderInput { compat, ..RenderInput::new(user, release, &capabilities, &Steady) };
        let ((chart, values, _), ahead) =
            Ahead::beside(&chart, &input, || render::prepared(&chart, &input, None), |(chart, ..)| chart)
                .ok()?;
        let run = Run::new(&chart, &values, &input, &ahead).ok()?;
        let paths = run.paths();
        let line = Line::new(paths.len());
        let mut front = Front { worker: Worker::new(&run, &paths), made: Vec::new() };
        let first = (0..after).try_for_each(|_| front.step(&line).map(drop));
        Worker::new(&run, &paths).back(&line);
        let counted = !line.is_alone() && !line.left().made.is_empty();
        let spread = made(first.and_then(|()| front.finish(&line)));
        Some((made(run.all(None, &mut |_, _| {})), spread, counted))
    }

    #[test]
    fn in_whatever_order_templates_run_the_outputs_are_those_of_helms() {
        let (mut counted, mut dropped, mut refused) = (0, 0, 0);
        for seed in 1..=16 {
            let mut dice = Dice(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
            let compat = if seed % 2 == 0 { Compat::V4 } else { Compat::V3 };
            let (mut files, mut values, mut revision) = (web(), json!({}), 1);
            for step in 0..40 {
                if dice.roll(8) == 0 {
                    (files, values) = (web(), json!({}));
                }
                edit(&mut dice, &mut files, &mut values, &mut revision);
                let Some((one, spread, counts)) = both(&files, &values, compat, dice.roll(8)) else {
                    continue;
                };
                assert_eq!(one, spread, "seed {seed}, step {step}\n{values}\n{files:#?}");
                refused += usize::from(one.is_err());
                *(if counts { &mut counted } else { &mut dropped }) += 1;
            }
        }
        assert!(counted > 100 && dropped > 100 && refused > 15, "{counted}, {dropped}, {refused}");
    }

    /// `.Template` stays with a chart until its next template runs, for the charts above it to see.
    #[test]
    fn a_template_sees_what_the_ones_before_it_left() {
        let chart = |name: &str| format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
        let seen = "{{ .Template.Name }} {{ .Subcharts.db.Template.Name }}";
        let files = texts(&[
            ("Chart.yaml", &chart("web")),
            ("templates/a.yaml", seen),
            ("templates/b.yaml", seen),
            ("templates/c.yaml", seen),
            ("charts/db/Chart.yaml", &chart("db")),
            ("charts/db/templates/d.yaml", "d"),
            ("charts/db/templates/e.yaml", "e"),
        ]);
        for after in 0..=5 {
            let (one, spread, counted) = both(&files, &json!({}), Compat::V3, after).unwrap();
            assert_eq!((&one, counted), (&spread, after < 5));
            let text = "web/templates/a.yaml web/charts/db/templates/d.yaml";
            assert!(one.unwrap().contains(&("web/templates/a.yaml".to_owned(), text.to_owned())));
        }
    }

    /// Together the threads may take no more than one may.
    #[test]
    fn what_each_thread_may_take_all_may_take_together() {
        let turns = "{{ range until 1000 }}{{ range until 3000 }}{{ 1 }}{{ end }}{{ end }}";
        let mut files = texts(&[("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")]);
        files.insert("templates/a.yaml".to_owned(), turns.to_owned());
        let (one, spread, counted) = both(&files, &json!({}), Compat::V3, 0).unwrap();
        assert!(one == spread && one.is_ok() && counted);
        files.insert("templates/b.yaml".to_owned(), turns.to_owned());
        let (one, spread, _) = both(&files, &json!({}), Compat::V3, 1).unwrap();
        assert_eq!(one, spread);
        expect![[r#"template: web/templates/a.yaml:1:47: executing "web/templates/a.yaml" at <1>: the templates of one render run for more than 10000000 steps"#]]
        .assert_eq(&one.unwrap_err());
    }
}
