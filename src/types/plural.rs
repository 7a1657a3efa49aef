//! The plural of a kind, as gobuffalo/flect gives it to controller-gen, kubebuilder and the Operator SDK. It
//! is flect's answer that counts, not English: `Lambda` stays `Lambda`, `Price` stays `Price`, `Dns` becomes
//! `DnsDNSes`. Knows nothing of CRDs; callers lower the letters.

/// The plural name of a kind's resource, as the Operator SDK forms it: it lowers the letters first,
/// controller-gen last.
pub fn regular(kind: &str) -> String {
    plural(&kind.to_lowercase()).to_lowercase()
}

/// The ways that a word of [`WORDS`] can be used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// As a word of its own and as the end of a longer one, and its plural is known as a plural.
    Any,
    /// Only as a word of its own.
    Whole,
    /// As `Any`, but its plural belongs to another word.
    OneWay,
}

/// A word, its plural, a second plural that is also known as one, and its use. Of several that end a word,
/// the last counts.
const WORDS: &[(&str, &str, &str, Use)] = &[
    // The plural is the word itself.
    ("aircraft", "aircraft", "", Use::Any),
    ("beef", "beef", "beefs", Use::Any),
    ("bison", "bison", "", Use::Any),
    ("blues", "blues", "", Use::OneWay),
    ("chassis", "chassis", "", Use::Any),
    ("deer", "deer", "", Use::Any),
    ("equipment", "equipment", "", Use::Any),
    ("fish", "fish", "fishes", Use::Any),
    ("graffiti", "graffiti", "", Use::Any),
    ("information", "information", "", Use::Any),
    ("jeans", "jeans", "", Use::Any),
    ("media", "media", "", Use::Any),
    ("money", "money", "", Use::Any),
    ("moose", "moose", "", Use::Any),
    ("news", "news", "", Use::Any),
    ("police", "police", "", Use::Any),
    ("rice", "rice", "", Use::Any),
    ("salmon", "salmon", "salmons", Use::Any),
    ("series", "series", "", Use::Any),
    ("sheep", "sheep", "", Use::Any),
    ("shrimp", "shrimp", "shrimps", Use::Any),
    ("species", "species", "", Use::Any),
    ("swine", "swine", "swines", Use::Any),
    ("trout", "trout", "trouts", Use::Any),
    ("tuna", "tuna", "tunas", Use::Any),
    ("you", "you", "", Use::Any),
    // Another vowel, or -en.
    ("child", "children", "", Use::Any),
    ("die", "dice", "", Use::Whole),
    ("foot", "feet", "", Use::Any),
    ("goose", "geese", "", Use::Any),
    ("louse", "lice", "", Use::Whole),
    ("man", "men", "", Use::Any),
    ("mouse", "mice", "", Use::Any),
    ("ox", "oxen", "", Use::Whole),
    ("person", "people", "", Use::Any),
    ("tooth", "teeth", "", Use::Any),
    ("woman", "women", "", Use::Any),
    ("human", "humans", "", Use::Any),
    // -u, -on, -um.
    ("adieu", "adieux", "adieus", Use::Any),
    ("aquarium", "aquaria", "aquariums", Use::Any),
    ("auditorium", "auditoria", "auditoriums", Use::Any),
    ("bureau", "bureaus", "bureaux", Use::Any),
    ("criterion", "criteria", "", Use::Any),
    ("curriculum", "curriculums", "curricula", Use::Any),
    ("fabliau", "fabliaux", "", Use::Any),
    ("ganglion", "ganglia", "ganglions", Use::Any),
    ("lexicon", "lexica", "lexicons", Use::Any),
    ("medium", "media", "mediums", Use::OneWay),
    ("mitochondrion", "mitochondria", "mitochondrions", Use::Any),
    ("noumenon", "noumena", "", Use::Any),
    ("phenomenon", "phenomena", "", Use::Any),
    ("pretorium", "pretoriums", "", Use::Any),
    ("stadium", "stadiums", "stadia", Use::Any),
    ("symposium", "symposia", "symposiums", Use::Any),
    ("taxon", "taxa", "", Use::Any),
    // -us.
    ("alumnus", "alumni", "alumnuses", Use::Any),
    ("bacillus", "bacilli", "", Use::Any),
    ("cactus", "cacti", "cactuses", Use::Any),
    ("coccus", "cocci", "", Use::Any),
    ("corpus", "corpora", "corpuses", Use::Any),
    ("focus", "foci", "focuses", Use::Any),
    ("genus", "genera", "", Use::Any),
    ("locus", "loci", "locuses", Use::Any),
    ("nucleus", "nuclei", "nucleuses", Use::Any),
    ("octopus", "octupuses", "octopi", Use::Any),
    ("radius", "radii", "radiuses", Use::Any),
    ("syllabus", "syllabi", "", Use::Any),
    // -a.
    ("agenda", "agendas", "", Use::Any),
    ("alumna", "alumnae", "", Use::Any),
    ("differentia", "differentiae", "", Use::Any),
    ("formula", "formulas", "formulae", Use::Any),
    ("larva", "larvae", "", Use::Any),
    ("minutia", "minutiae", "", Use::Any),
    ("postcava", "postcavae", "", Use::Any),
    ("praecava", "praecavae", "", Use::Any),
    ("quota", "quotas", "", Use::Any),
    ("uva", "uvae", "", Use::Any),
    ("vedalia", "vedalias", "", Use::Any),
    ("vertebra", "vertebrae", "", Use::Any),
    ("vita", "vitae", "", Use::Any),
    // -ex, -ix.
    ("apex", "apices", "apexes", Use::Any),
    ("appendix", "appendices", "appendixes", Use::Any),
    ("codex", "codices", "codexes", Use::Any),
    ("helix", "helices", "helixes", Use::Any),
    ("index", "indices", "indexes", Use::Any),
    ("latex", "latices", "latexes", Use::Any),
    ("radix", "radices", "radixes", Use::Any),
    ("vertex", "vertices", "vertexes", Use::Any),
    ("vortex", "vortices", "vortexes", Use::Any),
    // -is and its neighbours.
    ("alias", "aliases", "", Use::Whole),
    ("axis", "axes", "", Use::Whole),
    ("basis", "bases", "", Use::OneWay),
    ("base", "bases", "", Use::Any),
    ("crisis", "crises", "", Use::Any),
    ("ellipsis", "ellipses", "", Use::OneWay),
    ("genesis", "geneses", "", Use::Any),
    ("oasis", "oases", "", Use::Any),
    ("testis", "testes", "", Use::Any),
    ("thesis", "theses", "", Use::Any),
    // -use, -che, -az, -o, -oe.
    ("abuse", "abuses", "", Use::Any),
    ("ache", "aches", "", Use::Any),
    ("buffalo", "buffaloes", "buffalos", Use::Any),
    ("cause", "causes", "", Use::Any),
    ("clause", "clauses", "", Use::Any),
    ("cruse", "cruses", "", Use::Any),
    ("excuse", "excuses", "", Use::Any),
    ("fuse", "fuses", "", Use::Any),
    ("house", "houses", "", Use::Any),
    ("misuse", "misuses", "", Use::Any),
    ("muse", "muses", "", Use::Any),
    ("pause", "pauses", "", Use::Any),
    ("potato", "potatoes", "", Use::Any),
    ("shoe", "shoes", "", Use::Any),
    ("toe", "toes", "", Use::Whole),
    ("tomato", "tomatoes", "", Use::Any),
    ("topaz", "topazes", "", Use::Any),
    ("use", "uses", "", Use::Whole),
    // -f, -ve, -ie.
    ("chive", "chives", "", Use::Any),
    ("cookie", "cookies", "", Use::Any),
    ("dwarf", "dwarfs", "dwarves", Use::Any),
    ("hive", "hives", "", Use::Any),
    ("hoof", "hoofs", "hooves", Use::Any),
    ("move", "moves", "", Use::Any),
    ("movie", "movies", "", Use::Any),
    ("thief", "thieves", "", Use::Any),
    ("ID", "IDs", "", Use::Whole),
];

/// Ends of words and what becomes of them, the first that fits counts; before each, a word that already ends
/// in the plural stays.
const ENDINGS: &[(&str, &str)] = &[
    ("tive", "tives"),
    ("eaf", "eaves"),
    ("oaf", "oaves"),
    ("afe", "aves"),
    ("arf", "arves"),
    ("rfe", "rves"),
    ("rf", "rves"),
    ("lf", "lves"),
    ("fe", "ves"),
    ("ay", "ays"),
    ("ey", "eys"),
    ("oy", "oys"),
    ("quy", "quies"),
    ("uy", "uys"),
    ("y", "ies"),
    ("eau", "eaux"),
    ("bula", "bulae"),
    ("dula", "bulae"),
    ("lula", "bulae"),
    ("nula", "bulae"),
    ("vula", "bulae"),
    ("hedron", "hedra"),
    ("ium", "ia"),
    ("seum", "seums"),
    ("eum", "ea"),
    ("oum", "oa"),
    ("stracum", "straca"),
    ("dum", "da"),
    ("elum", "ela"),
    ("ilum", "ila"),
    ("olum", "ola"),
    ("ulum", "ula"),
    ("llum", "lla"),
    ("ylum", "yla"),
    ("imum", "ima"),
    ("ernum", "erna"),
    ("gnum", "gna"),
    ("brum", "bra"),
    ("crum", "cra"),
    ("terum", "tera"),
    ("serum", "sera"),
    ("trum", "tra"),
    ("antum", "anta"),
    ("atum", "ata"),
    ("entum", "enta"),
    ("etum", "eta"),
    ("itum", "ita"),
    ("otum", "ota"),
    ("utum", "uta"),
    ("ctum", "cta"),
    ("ovum", "ova"),
    ("trix", "trices"),
    ("iasis", "iases"),
    ("mesis", "meses"),
    ("kinesis", "kineses"),
    ("resis", "reses"),
    ("gnosis", "gnoses"),
    ("opsis", "opses"),
    ("ysis", "yses"),
    ("ouse", "ouses"),
    ("lause", "lauses"),
    ("us", "uses"),
    ("ch", "ches"),
    ("io", "ios"),
    ("sh", "shes"),
    ("ss", "sses"),
    ("ez", "ezzes"),
    ("iz", "izzes"),
    ("tz", "tzes"),
    ("zz", "zzes"),
    ("ano", "anos"),
    ("lo", "los"),
    ("to", "tos"),
    ("oo", "oos"),
    ("o", "oes"),
    ("x", "xes"),
    ("S", "Ses"),
];

/// Words that are written in capitals when they stand alone in a name.
const ACRONYMS: &str = " ACK ACL ADSL AES ANSI API ARP ATM BGP BSS CCITT CHAP CIDR CIR CLI CMOS CPE CPU CRC CRT CSMA \
    DCE DEC DES DHCP DMI DNS DRAM DSL DSLAM DTE EHA EIA EIGRP EOF ESS FCC FCS FDDI FTP GBIC GEPOF HDLC HTML HTTP HTTPS \
    IANA ICMP ID IDF IDS IEEE IETF IMAP IP IPS ISDN ISP JSON JWT LACP LAN LAPB LAPF LLC MAC MC MDF MIB MPLS MTU NAC NAT \
    NBMA NIC NRZ NRZI NVRAM OK OSI OSPF OUI PAP PAT PC PCM PDU PIM POP3 POTS PPP PPTP PTT PVST RAM RARP RCP RFC RIP RLL \
    ROM RSTP RTP SDLC SFD SFP SLARP SLIP SMTP SNA SNAP SNMP SOF SQL SRAM SSH SSID STP SYN TDM TFTP TIA TOFU UDP URI URL \
    USB UTF8 UTP UUID VC VLAN VLSM VPN W3C WAN WEP WPA WWW ";

/// The plural of a name; only its last word changes.
pub fn plural(name: &str) -> String {
    let last = last_word(name);
    if last.is_empty() {
        return String::new();
    }
    if let Some(many) = many_of(name) {
        return many.to_owned();
    }
    if is_plural(name) {
        return name.to_owned();
    }
    let lower = last.to_lowercase();
    if is_plural(&lower) {
        return name.to_owned();
    }
    if let Some(many) = many_of(&lower) {
        let many = if starts_with_capital(&last) { capitalize(many) } else { many.to_owned() };
        return replace_end(name, &last, &many);
    }
    if let Some(many) = by_rule(&last) {
        return replace_end(name, &last, &many);
    }
    if lower.ends_with('s') { name.to_owned() } else { format!("{name}s") }
}

fn many_of(word: &str) -> Option<&'static str> {
    WORDS.iter().find(|entry| entry.0 == word).map(|entry| entry.1)
}

fn is_plural(word: &str) -> bool {
    WORDS.iter().any(|(_, many, other, usage)| *usage != Use::OneWay && (*many == word || *other == word))
}

/// The plural of a word by rule: a plural stays, a known end is replaced.
fn by_rule(word: &str) -> Option<String> {
    let words = WORDS.iter().rev().filter(|entry| entry.3 != Use::Whole).map(|entry| (entry.0, entry.1));
    for (one, many) in words.chain(ENDINGS.iter().copied()) {
        if word.ends_with(many) {
            return Some(word.to_owned());
        }
        if let Some(stem) = word.strip_suffix(one) {
            return Some(format!("{stem}{many}"));
        }
    }
    None
}

/// An end that the name does not have is added; so names that end in an acronym in small letters grow.
fn replace_end(name: &str, end: &str, new: &str) -> String {
    format!("{}{new}", name.strip_suffix(end).unwrap_or(name))
}

fn starts_with_capital(word: &str) -> bool {
    word.chars().next().is_some_and(|first| !first.is_lowercase())
}

fn capitalize(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn is_acronym(word: &str) -> bool {
    !word.is_empty() && ACRONYMS.split(' ').any(|known| known == word)
}

/// The last word of a name in camel case; acronyms come in capitals.
fn last_word(name: &str) -> String {
    let name = name.trim();
    if is_acronym(&name.to_uppercase()) {
        return name.to_uppercase();
    }
    let (mut last, mut word) = (String::new(), String::new());
    let mut before_upper = false;
    for c in name.chars() {
        let gap = c.is_whitespace() || matches!(c, '_' | ':' | '-' | '/');
        let upper = c.is_uppercase();
        if gap || (upper && (!before_upper || is_acronym(&word.to_uppercase()))) {
            end_word(&mut last, &mut word);
        }
        if !gap {
            word.push(c);
        }
        before_upper = upper;
    }
    end_word(&mut last, &mut word);
    last
}

fn end_word(last: &mut String, word: &mut String) {
    let capitals = word.to_uppercase();
    let ended = std::mem::take(word);
    if !ended.is_empty() {
        *last = if is_acronym(&capitals) { capitals } else { ended };
    }
}

#[cfg(test)]
mod tests {
    use super::plural;

    /// Each line: a name and what flect makes of it.
    #[test]
    fn plurals_are_those_of_flect() {
        let mut count = 0;
        for line in include_str!("../../tests/golden/types/plurals.txt").lines() {
            let (one, many) = line.split_once(' ').unwrap();
            assert_eq!(plural(one), many, "{one}");
            count += 1;
        }
        assert!(count > 300, "{count} names");
    }

    #[test]
    fn names_that_are_no_names_do_not_panic() {
        for name in ["", " ", "_", "é", "ß", "日本", "S", "s", "İ", "a_b_"] {
            plural(name);
        }
    }
}
