//! Functions and what they take: the standard ones and those of a Kubernetes 1.36 API server. A table in
//! text, read once. What they do is in `functions`, `lists`, `texts` and `library`.

use super::authorizer;
use super::kind::Kind;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// One way to call a function.
#[derive(Debug)]
pub(super) struct Signature {
    /// The first argument stands before the dot.
    pub(super) method: bool,
    pub(super) args: Vec<Kind>,
    pub(super) result: Kind,
}

/// `name: args -> result`, a method's receiver before a dot; `;` between the ways to call one.
const TABLE: &str = "
_==_: A,A -> bool
_!=_: A,A -> bool
!_: bool -> bool
-_: int -> int; double -> double
_+_: int,int -> int; uint,uint -> uint; double,double -> double; string,string -> string; bytes,bytes -> bytes; [A],[A] -> [A]; timestamp,duration -> timestamp; duration,timestamp -> timestamp; duration,duration -> duration
_-_: int,int -> int; uint,uint -> uint; double,double -> double; timestamp,timestamp -> duration; timestamp,duration -> timestamp; duration,duration -> duration
_*_: int,int -> int; uint,uint -> uint; double,double -> double
_/_: int,int -> int; uint,uint -> uint; double,double -> double
_%_: int,int -> int; uint,uint -> uint
@in: A,[A] -> bool; A,{A:B} -> bool
_[_]: [A],int -> A; {A:B},A -> B; ?[A],int -> ?A; ?{A:B},A -> ?B
_[?_]: [A],int -> ?A; {A:B},A -> ?B; ?[A],int -> ?A; ?{A:B},A -> ?B
size: string -> int; bytes -> int; [A] -> int; {A:B} -> int; string. -> int; bytes. -> int; [A]. -> int; {A:B}. -> int
contains: string.string -> bool
startsWith: string.string -> bool
endsWith: string.string -> bool
matches: string,string -> bool; string.string -> bool
type: A -> type(A)
dyn: A -> dyn
int: int -> int; uint -> int; double -> int; string -> int; timestamp -> int; duration -> int
uint: uint -> uint; int -> uint; double -> uint; string -> uint
double: double -> double; int -> double; uint -> double; string -> double
string: string -> string; bool -> string; bytes -> string; int -> string; uint -> string; double -> string; timestamp -> string; duration -> string; IP -> string; CIDR -> string
bytes: bytes -> bytes; string -> bytes
bool: bool -> bool; string -> bool
timestamp: timestamp -> timestamp; string -> timestamp; int -> timestamp
duration: duration -> duration; string -> duration; int -> duration
getFullYear: timestamp. -> int; timestamp.string -> int
getMonth: timestamp. -> int; timestamp.string -> int
getDayOfYear: timestamp. -> int; timestamp.string -> int
getDayOfMonth: timestamp. -> int; timestamp.string -> int
getDate: timestamp. -> int; timestamp.string -> int
getDayOfWeek: timestamp. -> int; timestamp.string -> int
getHours: timestamp. -> int; timestamp.string -> int; duration. -> int
getMinutes: timestamp. -> int; timestamp.string -> int; duration. -> int
getSeconds: timestamp. -> int; timestamp.string -> int; duration. -> int
getMilliseconds: timestamp. -> int; timestamp.string -> int; duration. -> int
charAt: string.int -> string
indexOf: string.string -> int; string.string,int -> int; [A].A -> int
lastIndexOf: string.string -> int; string.string,int -> int; [A].A -> int
lowerAscii: string. -> string
upperAscii: string. -> string
replace: string.string,string -> string; string.string,string,int -> string
split: string.string -> [string]; string.string,int -> [string]
substring: string.int -> string; string.int,int -> string
trim: string. -> string
format: string.[dyn] -> string
strings.quote: string -> string
jsonpatch.escapeKey: string -> string
join: [string]. -> string; [string].string -> string
find: string.string -> string
findAll: string.string -> [string]; string.string,int -> [string]
isSorted: [int]. -> bool; [uint]. -> bool; [double]. -> bool; [bool]. -> bool; [duration]. -> bool; [timestamp]. -> bool; [string]. -> bool; [bytes]. -> bool
sum: [int]. -> int; [uint]. -> uint; [double]. -> double; [duration]. -> duration
max: [int]. -> int; [uint]. -> uint; [double]. -> double; [bool]. -> bool; [duration]. -> duration; [timestamp]. -> timestamp; [string]. -> string; [bytes]. -> bytes
min: [int]. -> int; [uint]. -> uint; [double]. -> double; [bool]. -> bool; [duration]. -> duration; [timestamp]. -> timestamp; [string]. -> string; [bytes]. -> bytes
slice: [A].int,int -> [A]
flatten: [[A]]. -> [A]; [dyn].int -> [dyn]
distinct: [A]. -> [A]
reverse: [A]. -> [A]
sort: [int]. -> [int]; [uint]. -> [uint]; [double]. -> [double]; [bool]. -> [bool]; [duration]. -> [duration]; [timestamp]. -> [timestamp]; [string]. -> [string]; [bytes]. -> [bytes]
lists.range: int -> [int]
first: [A]. -> ?A
last: [A]. -> ?A
sets.contains: [A],[A] -> bool
sets.equivalent: [A],[A] -> bool
sets.intersects: [A],[A] -> bool
optional.of: A -> ?A
optional.ofNonZeroValue: A -> ?A
optional.none: -> ?A
optional.unwrap: [?A] -> [A]
unwrapOpt: [?A]. -> [A]
value: ?A. -> A
hasValue: ?A. -> bool
or: ?A.?A -> ?A
orValue: ?A.A -> A
url: string -> URL
isURL: string -> bool
getScheme: URL. -> string
getHost: URL. -> string
getHostname: URL. -> string
getPort: URL. -> string
getEscapedPath: URL. -> string
getQuery: URL. -> {string:[string]}
ip: string -> IP; CIDR. -> IP
ip.isCanonical: string -> bool
isIP: string -> bool
family: IP. -> int
isUnspecified: IP. -> bool
isLoopback: IP. -> bool
isLinkLocalMulticast: IP. -> bool
isLinkLocalUnicast: IP. -> bool
isGlobalUnicast: IP. -> bool
cidr: string -> CIDR
isCIDR: string -> bool
containsIP: CIDR.string -> bool; CIDR.IP -> bool
containsCIDR: CIDR.string -> bool; CIDR.CIDR -> bool
prefixLength: CIDR. -> int
masked: CIDR. -> CIDR
quantity: string -> Quantity
isQuantity: string -> bool
sign: Quantity -> int
isInteger: Quantity. -> bool
asInteger: Quantity. -> int
asApproximateFloat: Quantity. -> double
add: Quantity.Quantity -> Quantity; Quantity.int -> Quantity
sub: Quantity.Quantity -> Quantity; Quantity.int -> Quantity
isGreaterThan: Quantity.Quantity -> bool; Semver.Semver -> bool
isLessThan: Quantity.Quantity -> bool; Semver.Semver -> bool
compareTo: Quantity.Quantity -> int; Semver.Semver -> int
semver: string -> Semver; string,bool -> Semver
isSemver: string -> bool; string,bool -> bool
major: Semver. -> int
minor: Semver. -> int
patch: Semver. -> int
format.named: string -> ?Format
format.dns1123Label: -> Format
format.dns1123Subdomain: -> Format
format.dns1035Label: -> Format
format.qualifiedName: -> Format
format.dns1123LabelPrefix: -> Format
format.dns1123SubdomainPrefix: -> Format
format.dns1035LabelPrefix: -> Format
format.labelValue: -> Format
format.uri: -> Format
format.uuid: -> Format
format.byte: -> Format
format.date: -> Format
format.datetime: -> Format
validate: Format.string -> ?[string]
serviceAccount: Authorizer.string,string -> Authorizer
path: Authorizer.string -> PathCheck
group: Authorizer.string -> GroupCheck
resource: GroupCheck.string -> ResourceCheck
subresource: ResourceCheck.string -> ResourceCheck
namespace: ResourceCheck.string -> ResourceCheck
name: ResourceCheck.string -> ResourceCheck
check: ResourceCheck.string -> Decision; PathCheck.string -> Decision
allowed: Decision. -> bool
errored: Decision. -> bool
error: Decision. -> string
reason: Decision. -> string
";

/// The ways to call a function; `None` where there is no such function.
pub(super) fn signatures(name: &str) -> Option<&'static [Signature]> {
    table().get(name).map(Vec::as_slice)
}

/// The names of all functions that people write.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    table().keys().copied().filter(|name| !name.contains(['_', '@']))
}

fn table() -> &'static BTreeMap<&'static str, Vec<Signature>> {
    static READ: OnceLock<BTreeMap<&'static str, Vec<Signature>>> = OnceLock::new();
    READ.get_or_init(|| {
        let mut table = BTreeMap::new();
        for line in TABLE.lines().filter(|line| !line.is_empty()) {
            let Some((name, ways)) = line.split_once(": ") else { continue };
            table.insert(name, ways.split("; ").map(signature).collect());
        }
        for operator in ["_<_", "_<=_", "_>_", "_>=_"] {
            table.insert(operator, orders());
        }
        table
    })
}

/// The signatures of an order: between values of one kind, and between numbers of all kinds.
fn orders() -> Vec<Signature> {
    let numbers = [Kind::Int, Kind::Uint, Kind::Double];
    let same = [Kind::Bool, Kind::Text, Kind::Bytes, Kind::Timestamp, Kind::Duration];
    let mut ways: Vec<(Kind, Kind)> = same.into_iter().map(|kind| (kind.clone(), kind)).collect();
    for a in &numbers {
        ways.extend(numbers.iter().map(|b| (a.clone(), b.clone())));
    }
    let way = |(a, b)| Signature { method: false, args: vec![a, b], result: Kind::Bool };
    ways.into_iter().map(way).collect()
}

fn signature(text: &str) -> Signature {
    let (args, result) = text.split_once("-> ").unwrap_or(("", text));
    let args = args.trim();
    let (receiver, args) = args.split_once('.').map_or((None, args), |(head, rest)| (Some(head), rest));
    let mut kinds: Vec<Kind> = receiver.into_iter().map(kind).collect();
    kinds.extend(args.split(',').filter(|arg| !arg.is_empty()).map(kind));
    Signature { method: receiver.is_some(), args: kinds, result: kind(result) }
}

fn kind(text: &str) -> Kind {
    if let Some(inner) = text.strip_prefix('?') {
        return Kind::optional(kind(inner));
    }
    if let Some(inner) = text.strip_prefix('[') {
        return Kind::list(kind(&inner[..inner.len() - 1]));
    }
    if let Some((key, value)) =
        text.strip_prefix('{').and_then(|inner| inner[..inner.len() - 1].split_once(':'))
    {
        return Kind::map(kind(key), kind(value));
    }
    match text {
        "bool" => Kind::Bool,
        "int" => Kind::Int,
        "uint" => Kind::Uint,
        "double" => Kind::Double,
        "string" => Kind::Text,
        "bytes" => Kind::Bytes,
        "timestamp" => Kind::Timestamp,
        "duration" => Kind::Duration,
        "URL" => Kind::Opaque("kubernetes.URL"),
        "IP" => Kind::Opaque("net.IP"),
        "CIDR" => Kind::Opaque("net.CIDR"),
        "Quantity" => Kind::Opaque("kubernetes.Quantity"),
        "Semver" => Kind::Opaque("kubernetes.Semver"),
        "Format" => Kind::Opaque("kubernetes.NamedFormat"),
        "Authorizer" => Kind::Opaque(authorizer::AUTHORIZER),
        "PathCheck" => Kind::Opaque(authorizer::PATH),
        "GroupCheck" => Kind::Opaque(authorizer::GROUP),
        "ResourceCheck" => Kind::Opaque(authorizer::RESOURCE),
        "Decision" => Kind::Opaque(authorizer::DECISION),
        "type(A)" => Kind::Type(Box::new(Kind::Param('A'))),
        "A" => Kind::Param('A'),
        "B" => Kind::Param('B'),
        _ => Kind::Dyn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads() {
        assert_eq!(table().len(), TABLE.lines().filter(|line| !line.is_empty()).count() + 4);
        let join = &signatures("join").unwrap()[1];
        assert!(join.method);
        assert_eq!(join.args, [Kind::list(Kind::Text), Kind::Text]);
        assert_eq!(signatures("optional.none").unwrap()[0].args, []);
        assert_eq!(signatures("getQuery").unwrap()[0].result, Kind::map(Kind::Text, Kind::list(Kind::Text)));
        assert!(signatures("nothing").is_none());
    }
}
