//! Go type files that are half typed, damaged or hostile: the project's own types and those of the golden
//! cases, cut, shuffled and filled with what a reader may choke on. Writes no files.

use crate::random::Random;
use std::fs;
use std::path::Path;

/// Tokens with a meaning in a Go file or in a marker.
const TOKENS: [&str; 64] = [
    "type ",
    "struct {",
    "}",
    "(",
    ")",
    "[]",
    "[3]",
    "map[string]",
    "*",
    "interface{}",
    "func (",
    "`json:\"",
    "\"`",
    "`",
    ",inline",
    ",omitempty",
    "omitzero",
    "json:\"-\"",
    "//",
    "/*",
    "*/",
    "\n// +",
    "// +kubebuilder:",
    "+optional",
    "+required",
    "validation:Enum=",
    "validation:Minimum=",
    "validation:XValidation:rule=",
    "validation:Pattern=`",
    "items:",
    "default={a: [1,{b:c}]}",
    "={{{{",
    "=\"",
    "=;;,",
    "XValidation:rule=\"self\",",
    "printcolumn:name=x",
    "storageversion",
    "skipversion",
    "groupName=",
    "+groupName=",
    "+k8s:enum",
    "+listType=map",
    "+listMapKey=",
    "package ",
    "import ",
    "metav1.",
    "TypeMeta",
    "ObjectMeta",
    "Spec",
    "Status",
    "string",
    "int32",
    "float64",
    "any",
    "error",
    "[]byte",
    "\n",
    "\t",
    "\r\n",
    "\0",
    "\u{feff}",
    "\u{2028}",
    "99999999999999999999",
    "-0x1p-2",
];

/// The seeds: whole type files.
pub fn seeds() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for folder in ["config/types", "tests/golden/types/go", "tests/golden/types/errors"] {
        read(&root.join(folder), &mut found);
    }
    found.sort();
    found
}

fn read(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "vendor" {
            read(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "go") {
            found.extend(fs::read_to_string(&path));
        }
    }
}

/// One text. The first ones are every seed cut at every byte, as if it were being typed.
pub fn text(seeds: &[String], count: u64, random: &mut Random) -> Vec<u8> {
    let mut at = usize::try_from(count).unwrap_or(usize::MAX);
    for seed in seeds {
        if at <= seed.len() {
            return seed.as_bytes()[..at].to_vec();
        }
        at -= seed.len() + 1;
    }
    let mut text = if random.chance(12) {
        hostile(random).into_bytes()
    } else {
        seeds[random.below(seeds.len())].clone().into_bytes()
    };
    for _ in 0..random.below(5) {
        damage(random, &mut text);
    }
    text
}

fn damage(random: &mut Random, text: &mut Vec<u8>) {
    let at = random.below(text.len() + 1);
    match random.below(9) {
        0 if at < text.len() => text[at] = random.next() as u8,
        1 => drop(text.splice(at..at, random.pick(&TOKENS).bytes())),
        2 => {
            let tokens = random.pick(&TOKENS).repeat(1 + random.below(3_000));
            drop(text.splice(at..at, tokens.into_bytes()));
        }
        3 => text.truncate(at),
        4 => {
            let end = (at + random.below(40)).min(text.len());
            drop(text.drain(at..end));
        }
        5 => {
            let from = random.below(text.len() + 1);
            let end = (from + random.below(200)).min(text.len());
            let piece = text[from..end].to_vec();
            drop(text.splice(at..at, piece));
        }
        6 => swap_words(random, text),
        7 => drop(text.splice(at..at, [0xff, 0xc3, 0x28, 0xed, 0xa0, 0x80])),
        _ => {
            let comment = format!("// {}\n", "long words ".repeat(1 + random.below(50_000)));
            drop(text.splice(at..at, comment.into_bytes()));
        }
    }
}

fn swap_words(random: &mut Random, text: &mut Vec<u8>) {
    let words: Vec<(usize, usize)> = {
        let word = |byte: &u8| byte.is_ascii_alphanumeric();
        let starts = (0..text.len()).filter(|at| word(&text[*at]) && (*at == 0 || !word(&text[at - 1])));
        starts.map(|at| (at, at + text[at..].iter().take_while(|byte| word(byte)).count())).collect()
    };
    if words.len() < 2 {
        return;
    }
    let (a, b) = (words[random.below(words.len())], words[random.below(words.len())]);
    let (a, b) = if a < b { (a, b) } else { (b, a) };
    if a != b {
        let (first, second) = (text[a.0..a.1].to_vec(), text[b.0..b.1].to_vec());
        drop(text.splice(b.0..b.1, first));
        drop(text.splice(a.0..a.1, second));
    }
}

const KIND: &str = "// +groupName=fuzz.example.com\npackage v1\n\nimport metav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n\n\
    type Thing struct {\n\tmetav1.TypeMeta `json:\",inline\"`\n\tmetav1.ObjectMeta `json:\"metadata,omitempty\"`\n\tSpec T0 `json:\"spec\"`\n}\n\n";

/// Types that nobody would write: nested, recursive, or growing with every step.
fn hostile(random: &mut Random) -> String {
    let many = 1 + random.below(2_000);
    let few = 2 + random.below(30);
    let field = |ty: &str| format!("{KIND}type T0 struct {{\n\tA {ty} `json:\"a\"`\n}}\n");
    match random.below(12) {
        0 => field(&format!("{}string", "[]".repeat(many))),
        1 => field(&format!("{}string", "map[string]".repeat(many))),
        2 => field(&format!("{}string", "*".repeat(many))),
        3 => field(&format!("{}string{}", "(".repeat(many), ")".repeat(many))),
        4 => field(&format!("{}string{}", "struct{ A ".repeat(many), "}".repeat(many))),
        5 => {
            // Each type holds the next one several times: the schema doubles with every step.
            let types = (0..few).map(|n| {
                let fields: String = (0..4).map(|f| format!("\tF{f} T{} `json:\"f{f}\"`\n", n + 1)).collect();
                format!("type T{n} struct {{\n{fields}}}\n")
            });
            format!("{KIND}{}type T{few} string\n", types.collect::<String>())
        }
        6 => {
            let types = (0..many).map(|n| format!("type T{n} T{}\n", (n + 1) % many));
            format!("{KIND}{}", types.collect::<String>())
        }
        7 => {
            let types = (0..many).map(|n| {
                format!("type T{n} struct {{\n\tT{} `json:\",inline\"`\n\tB *T{n} `json:\"b\"`\n}}\n", n + 1)
            });
            format!("{KIND}{}type T{many} struct {{ T0 `json:\",inline\"` }}\n", types.collect::<String>())
        }
        8 => {
            let types = (0..few).map(|n| {
                let fields: String = (0..few).map(|f| format!("\tF{f} *T{f} `json:\"f{f}\"`\n")).collect();
                format!("type T{n} struct {{\n{fields}}}\n")
            });
            format!("{KIND}{}", types.collect::<String>())
        }
        9 => {
            let rules =
                "\t// +kubebuilder:validation:XValidation:rule=\"self.all(x, x.all(y, y.all(z, z == 1)))\"\n";
            format!("{KIND}type T0 struct {{\n{}\tA [][][]int `json:\"a\"`\n}}\n", rules.repeat(many))
        }
        10 => {
            let fields: String = (0..many).map(|n| format!("\tF{n} []T0 `json:\"f{n}\"`\n")).collect();
            format!("{KIND}type T0 struct {{\n{fields}}}\n")
        }
        _ => {
            let marker = format!("// +kubebuilder:default={}\n", "{a: [".repeat(many));
            field("string").replace("\tA ", &format!("\t{marker}\tA "))
        }
    }
}
