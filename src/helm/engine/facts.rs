//! Templates that read the facts of `.Release` about this very revision: `IsInstall`, `IsUpgrade` and
//! `Revision`. A chart that does renders otherwise as the next revision, whatever its values. Pure.

use super::memory::Outputs;
use super::places::file_of;
use super::release_read::ReleaseRead;

/// The reads of the templates of some outputs, in the order of their paths. Outputs of a render without a
/// memory have none.
pub(super) fn release_reads(outputs: &Outputs) -> Vec<ReleaseRead> {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    let mut found = Vec::new();
    for (path, output) in outputs {
        for (&key, place) in &output.seen.release {
            let place = place.as_ref().map(|at| (file_of(&at.file), number(at.line), number(at.column)));
            found.push(ReleaseRead { key, template: path.clone(), place });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::chart::Chart;
    use crate::chart::FileSet;
    use crate::engine::input::{ReleaseInfo, RenderInput};
    use crate::engine::{Capabilities, Compat, Environment, FuncError, Memory, render};
    use serde_json::{Value, json};

    struct Nowhere;

    impl Environment for Nowhere {
        fn now(&self) -> jiff::Timestamp {
            jiff::Timestamp::UNIX_EPOCH
        }

        fn random(&self, buffer: &mut [u8]) {
            buffer.fill(0);
        }

        fn lookup(&self, _: &str, _: &str, _: &str, _: &str) -> Result<Value, FuncError> {
            Ok(json!({}))
        }
    }

    fn reads(chart: &Chart, memory: &Memory) -> Vec<String> {
        let values = json!({});
        let capabilities = Capabilities::default_for(Compat::V3);
        let release = ReleaseInfo::install("site", "default");
        let mut input = RenderInput::new(&values, release, &capabilities, &Nowhere);
        input.memory = Some(memory);
        render(chart, &input).unwrap().release_reads.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_line_that_reads_is_named_wherever_it_stands() {
        let files = [
            ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.1.0\n"),
            ("templates/_names.tpl", "{{ define \"rev\" }}\n{{- $.Release.Revision }}{{ end }}"),
            ("templates/direct.yaml", "a: 1\n{{ if .Release.IsInstall }}b: 2{{ end }}\n"),
            ("templates/helper.yaml", "name: {{ .Release.Name }}\nb: {{ include \"rev\" . }}\n"),
            ("templates/whole.yaml", "{{ .Release | toYaml | nindent 0 }}\n"),
            ("templates/text.yaml", "a: {{ tpl \"{{ .Release.IsUpgrade }}\" . }}\n"),
            (
                "templates/after.yaml",
                "{{ $_ := set .Values \"x\" 1 }}\n{{ $r := .Release }}\na: {{ $r.IsUpgrade }}\n",
            ),
            ("templates/none.yaml", "name: {{ .Release.Name }}\n"),
            ("charts/db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 0.1.0\n"),
            ("charts/db/templates/sub.yaml", "a: {{ .Release.IsUpgrade }}\n"),
        ];
        let files: FileSet = files.into_iter().map(|(path, text)| (path, text.as_bytes())).collect();
        let chart = Chart::load(&files).unwrap();
        let memory = Memory::default();
        let first = reads(&chart, &memory);
        assert_eq!(
            first,
            [
                ".Release.IsUpgrade in charts/db/templates/sub.yaml:1",
                ".Release.IsUpgrade in templates/after.yaml:3",
                ".Release.IsInstall in templates/direct.yaml:2",
                ".Release.Revision in templates/_names.tpl:2",
                ".Release.IsUpgrade in templates/text.yaml",
                ".Release.IsInstall in templates/whole.yaml",
                ".Release.IsUpgrade in templates/whole.yaml",
                ".Release.Revision in templates/whole.yaml",
            ]
        );
        // The kept part of the last render still says what it read.
        assert_eq!(reads(&chart, &memory), first);
    }
}
