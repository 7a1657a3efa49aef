//! Prometheus' text format, version 0.0.4: families with their samples.

use opdev_object::go;
use std::fmt::Write as _;

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Counts of values below bounds.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
    count: u64,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Histogram {
        Histogram { bounds, counts: vec![0; bounds.len()], sum: 0.0, count: 0 }
    }

    pub(super) fn observe(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
        for (bound, count) in self.bounds.iter().zip(&mut self.counts) {
            *count += u64::from(value <= *bound);
        }
    }
}

/// A text that grows by families.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
}

impl Exposition {
    pub(super) fn finish(self) -> String {
        self.text
    }

    /// Begins a family.
    pub(super) fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A sample of the family that was begun last.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(name);
        self.labels(labels, None);
        let _ = writeln!(self.text, " {value}");
    }

    /// All samples of a histogram.
    pub(super) fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        let bounds = histogram.bounds.iter().map(|bound| go::number::float(*bound));
        let counts = histogram.counts.iter().copied().chain([histogram.count]);
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(counts) {
            let _ = write!(self.text, "{name}_bucket");
            self.labels(labels, Some(&bound));
            let _ = writeln!(self.text, " {count}");
        }
        let _ = write!(self.text, "{name}_sum");
        self.labels(labels, None);
        let _ = writeln!(self.text, " {}", histogram.sum);
        let _ = write!(self.text, "{name}_count");
        self.labels(labels, None);
        let _ = writeln!(self.text, " {}", histogram.count);
    }

    fn labels(&mut self, labels: &[(&str, &str)], bound: Option<&str>) {
        let all: Vec<String> = labels
            .iter()
            .copied()
            .chain(bound.map(|bound| ("le", bound)))
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        if !all.is_empty() {
            let _ = write!(self.text, "{{{}}}", all.join(","));
        }
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_written_as_prometheus_reads_them() {
        let mut out = Exposition::default();
        out.family("a_total", Kind::Counter, "Number of a.");
        out.sample("a_total", &[("name", "x\"\\\n")], 3.0);
        out.family("t_seconds", Kind::Histogram, "Times.");
        let mut times = Histogram::new(&[0.5, 1.0]);
        [0.25, 1.0, 7.0].into_iter().for_each(|value| times.observe(value));
        out.histogram("t_seconds", &[("c", "m")], &times);
        out.family("g", Kind::Gauge, "A gauge.");
        out.sample("g", &[], 0.5);
        assert_eq!(
            out.finish(),
            "# HELP a_total Number of a.\n# TYPE a_total counter\na_total{name=\"x\\\"\\\\\\n\"} 3\n\
             # HELP t_seconds Times.\n# TYPE t_seconds histogram\nt_seconds_bucket{c=\"m\",le=\"0.5\"} 1\n\
             t_seconds_bucket{c=\"m\",le=\"1\"} 2\nt_seconds_bucket{c=\"m\",le=\"+Inf\"} 3\nt_seconds_sum{c=\"m\"} 8.25\n\
             t_seconds_count{c=\"m\"} 3\n# HELP g A gauge.\n# TYPE g gauge\ng 0.5\n"
        );
    }
}
