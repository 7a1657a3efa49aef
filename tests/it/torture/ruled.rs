//! The rules of findings judge a disturbed run, too: a script that goes round in a circle once it was killed
//! between two writes.

use super::{project, told, torture};
use crate::gadget::SAMPLE;

const ARGS: [&str; 7] = [SAMPLE, "--scenario", "recreate", "--only", "crash", "--level", "quick"];

/// Without the marker of a first reconcile all is well. Else the data count each reconcile, where it
/// `loops`, and each write brings the next reconcile.
fn counts(loops: bool) -> String {
    let turn = if loops { "Number(data?.turn ?? 0) + 1" } else { "1" };
    format!(
        r#"import {{ get }} from "opdev";
export const owns = ["v1/ConfigMap"];

export function reconcile(self: any) {{
  const name = self.metadata.name;
  const data = get("v1/ConfigMap", `${{name}}-data`)?.data;
  const killed = data ? data.turn !== "0" : !!get("v1/ConfigMap", `${{name}}-a-marker`);
  const map = (part: string, data: object) => ({{
    apiVersion: "v1", kind: "ConfigMap", metadata: {{ name: `${{name}}-${{part}}` }}, data,
  }});
  const turn = killed ? String({turn}) : "0";
  return {{ children: [map("a-marker", {{}}), map("data", {{ turn }})] }};
}}
"#
    )
}

#[test]
fn a_loop_that_only_a_disturbed_run_has_is_told_by_its_rule() {
    for loops in [true, false] {
        let (_folder, root) = project(&counts(loops));
        let output = torture(&root, &ARGS);
        let text = told(&output);
        assert_eq!(output.status.code(), Some(1), "its end is another one in any case: {text}");
        assert!(text.contains("killed after") && text.contains("-a-marker"), "{text}");
        assert_eq!(text.contains("hot-loop of ConfigMap default/top-data"), loops, "{text}");
    }
}
