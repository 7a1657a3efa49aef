//! The templates of a large chart are parsed on other cores while its dependencies and values are made ready,
//! where the cache knows none yet.

use super::input::RenderInput;
use super::{run, scope};
use crate::chart::{Chart, Content};
use crate::spread;
use opdev_template::{Compat, ParseCache, ParsedText, TemplateSet, kept_text, on_deep_stack};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, OnceLock};

/// The parsed templates of a chart.
pub(super) struct Ahead {
    cache: Arc<ParseCache>,
    parsed: BTreeMap<String, (Content, ParsedText)>,
}

/// A template that waits for a thread.
struct Waiting {
    path: String,
    data: Content,
    parsed: OnceLock<ParsedText>,
}

impl Ahead {
    /// Does what has to be done before templates run, which also says which charts take part. Templates are
    /// parsed meanwhile, and on this thread afterwards; what does not parse is told to who wants it.
    pub(super) fn beside<T, E>(
        chart: &Chart,
        input: &RenderInput<'_>,
        prepare: impl FnOnce() -> Result<T, E>,
        prepared: impl FnOnce(&T) -> &Chart,
    ) -> Result<(T, Ahead), E> {
        let cache = input.cache.clone().unwrap_or_default();
        let bytes = || files(chart).iter().map(|data| data.len()).sum::<usize>();
        if !cache.is_empty() || bytes() < spread::WORTH {
            return Ok((prepare()?, Ahead { cache, parsed: BTreeMap::new() }));
        }
        let set = TemplateSet::with_cache(input.compat, Arc::clone(&cache));
        // A file is known by its address, for charts share their files.
        let wanted: OnceLock<HashSet<usize>> = OnceLock::new();
        let parse = |template: &Waiting| {
            if wanted.get().is_none_or(|wanted| wanted.contains(&template.data.as_ptr().addr()))
                && let Ok(parsed) = set.parse(&template.path, &kept_text(&template.data))
            {
                let _ = template.parsed.set(parsed);
            }
        };
        let prepare = || {
            let made = prepare();
            let taken = made.as_ref().map(|made| files(prepared(made))).unwrap_or_default();
            let _ = wanted.set(taken.iter().map(|data| data.as_ptr().addr()).collect());
            made
        };
        let (made, templates) =
            on_deep_stack(|| spread::beside(|| waiting(chart, input.compat), parse, prepare));
        let parsed = templates
            .into_iter()
            .filter_map(|Waiting { path, data, parsed }| Some((path, (data, parsed.into_inner()?))));
        Ok((made?, Ahead { cache, parsed: parsed.collect() }))
    }

    /// The cache that holds them, too.
    pub(super) fn cache(&self) -> Arc<ParseCache> {
        Arc::clone(&self.cache)
    }

    /// The parsed form of a file. An alias may give its path to another one.
    pub(super) fn parsed(&self, path: &str, data: &Content) -> Option<ParsedText> {
        let (known, parsed) = self.parsed.get(path)?;
        known.is(data).then(|| parsed.clone())
    }
}

/// The templates of a chart and of its subcharts, in the order in which they are defined.
fn waiting(chart: &Chart, compat: Compat) -> Vec<Waiting> {
    let scopes = scope::scopes(chart, compat);
    let templates = scope::templates(&scopes);
    let template = |path: &str| Waiting {
        path: path.to_owned(),
        data: templates[path].data.clone(),
        parsed: OnceLock::new(),
    };
    run::in_order(&templates).into_iter().map(template).collect()
}

/// The template files of a chart and of its subcharts.
fn files(chart: &Chart) -> Vec<&Content> {
    let own = chart.templates.iter().map(|file| &file.data);
    own.chain(chart.subcharts.iter().flat_map(|below| files(below))).collect()
}
