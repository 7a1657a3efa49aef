//! `urlParse` and `urlJoin`, after Go's net/url.

use super::super::error::FuncError;
use super::super::host::Ty;
use super::super::value::{Kind, Map, Value};
use super::dicts::map;
use super::{Function, bytes, fixed, string};
use opdev_object::go::quote::quote_bytes as quote;
use std::fmt;

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("urlParse", &[Ty::Str], |_, args| {
        let url = parse(&string(args, 0)).map_err(|reason| {
            FuncError::new(format!("unable to parse url: parse {}: {reason}", quote(bytes(args, 0))))
        })?;
        Ok(Value::Map(Map::from_entries([
            ("scheme", url.scheme.into()),
            ("hostname", hostname(&url.host).into()),
            ("host", url.host.into()),
            ("path", url.path.into()),
            ("query", url.query.into()),
            ("opaque", url.opaque.into()),
            ("fragment", url.fragment.into()),
            ("userinfo", url.user.into()),
        ])))
    }),
    fixed("urlJoin", &[Ty::Dict], |_, args| {
        let dict = map(args, 0);
        let user = part(&dict, "userinfo")?;
        let url = Url {
            scheme: part(&dict, "scheme")?,
            host: part(&dict, "host")?,
            path: part(&dict, "path")?,
            query: part(&dict, "query")?,
            opaque: part(&dict, "opaque")?,
            fragment: part(&dict, "fragment")?,
            user: if user.is_empty() {
                user
            } else {
                parse(&format!("proto://{user}@host"))
                    .map_err(|e| format!("unable to parse userinfo in dict: {e}"))?
                    .user
            },
        };
        Ok(join(&url).into())
    }),
];

#[derive(Default)]
struct Url {
    scheme: String,
    opaque: String,
    user: String,
    host: String,
    path: String,
    query: String,
    fragment: String,
}

fn part(dict: &Map, key: &str) -> Result<String, FuncError> {
    match dict.get(key.as_bytes()) {
        None => Ok(String::new()),
        Some(Value::Str(text)) => Ok(text.text().into_owned()),
        Some(other) => {
            let kind = match other.kind() {
                Kind::Invalid => {
                    return Err("runtime error: invalid memory address or nil pointer dereference".into());
                }
                kind => kind.name(),
            };
            Err(FuncError::new(format!(
                "unable to parse {key} key, must be of type string, but {kind} found"
            )))
        }
    }
}

fn hostname(host: &str) -> String {
    let name = match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    };
    name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name).to_owned()
}

/// Why a text is not a URL, in the words of Go's net/url.
#[derive(Clone, Debug, PartialEq, Eq)]
enum UrlError {
    /// A control character stands in it.
    ControlCharacter,
    /// There is no scheme, and the first part of the path has a colon.
    ColonInFirstSegment,
    /// It begins with a colon.
    NoScheme,
    /// The user's name or password has a character that must be escaped.
    UserInfo,
    /// The address of the host begins with `[` and does not end.
    NoBracket,
    /// The text behind the host is not a port.
    Port {
        /// The rest.
        text: String,
    },
    /// A `%` without two hexadecimal digits.
    Escape {
        /// The `%` and what follows.
        text: String,
    },
    /// A character that no host has.
    HostCharacter {
        /// The character.
        character: char,
    },
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UrlError::ControlCharacter => f.write_str("net/url: invalid control character in URL"),
            UrlError::ColonInFirstSegment => f.write_str("first path segment in URL cannot contain colon"),
            UrlError::NoScheme => f.write_str("missing protocol scheme"),
            UrlError::UserInfo => f.write_str("net/url: invalid userinfo"),
            UrlError::NoBracket => f.write_str("missing ']' in host"),
            UrlError::Port { text } => write!(f, "invalid port {} after host", quote(text.as_bytes())),
            UrlError::Escape { text } => write!(f, "invalid URL escape {}", quote(text.as_bytes())),
            UrlError::HostCharacter { character } => {
                write!(f, "invalid character {} in host name", quote(character.to_string().as_bytes()))
            }
        }
    }
}

fn parse(text: &str) -> Result<Url, UrlError> {
    if text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return Err(UrlError::ControlCharacter);
    }
    let mut url = Url::default();
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    url.fragment = unescape(fragment, Mode::Fragment)?;
    let (scheme, mut rest) = scheme(rest)?;
    url.scheme = scheme.to_ascii_lowercase();
    if let Some((before, query)) = rest.split_once('?') {
        url.query = query.to_owned();
        rest = before;
    }
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        let first = rest.split('/').next().unwrap_or("");
        if first.contains(':') {
            return Err(UrlError::ColonInFirstSegment);
        }
    }
    if let Some(authority) =
        rest.strip_prefix("//").filter(|_| !url.scheme.is_empty() || !rest.starts_with("///"))
    {
        let end = authority.find('/').unwrap_or(authority.len());
        rest = &authority[end..];
        let host = match authority[..end].rsplit_once('@') {
            Some((user, host)) => {
                url.user = userinfo(user)?;
                host
            }
            None => &authority[..end],
        };
        url.host = check_host(host)?;
    }
    url.path = unescape(rest, Mode::Path)?;
    Ok(url)
}

fn scheme(text: &str) -> Result<(&str, &str), UrlError> {
    for (i, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if i > 0 => {}
            ':' if i == 0 => return Err(UrlError::NoScheme),
            ':' => return Ok((&text[..i], &text[i + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn userinfo(text: &str) -> Result<String, UrlError> {
    let ok = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
    if !text.bytes().all(ok) {
        return Err(UrlError::UserInfo);
    }
    let shown = |part: &str| unescape(part, Mode::User).map(|plain| escape(&plain, Mode::User));
    match text.split_once(':') {
        Some((name, password)) => Ok(format!("{}:{}", shown(name)?, shown(password)?)),
        None => shown(text),
    }
}

fn check_host(host: &str) -> Result<String, UrlError> {
    let port_of = |rest: &str| -> Result<(), UrlError> {
        let ok =
            rest.is_empty() || rest.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()));
        if ok { Ok(()) } else { Err(UrlError::Port { text: rest.to_owned() }) }
    };
    if host.starts_with('[') {
        let Some(end) = host.rfind(']') else { return Err(UrlError::NoBracket) };
        port_of(&host[end + 1..])?;
        return Ok(host.to_owned());
    }
    if let Some(colon) = host.rfind(':') {
        port_of(&host[colon..])?;
    }
    unescape(host, Mode::Host)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Path,
    Fragment,
    User,
    Host,
}

fn unescape(text: &str, mode: Mode) -> Result<String, UrlError> {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] == b'%' {
            let digits = text.get(i + 1..i + 3).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
            let Some(byte) = digits.and_then(|d| u8::from_str_radix(d, 16).ok()) else {
                let shown: String = text[i..].chars().take(3).collect();
                return Err(UrlError::Escape { text: shown });
            };
            out.push(byte);
            i += 3;
            continue;
        }
        if mode == Mode::Host && bytes[i] < 0x80 && !plain(bytes[i], mode) {
            return Err(UrlError::HostCharacter { character: char::from(bytes[i]) });
        }
        out.push(bytes[i]);
        i += 1;
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Returns true if a byte stands for itself there.
fn plain(byte: u8, mode: Mode) -> bool {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        return true;
    }
    match mode {
        Mode::Path => b"$&+,/:;=@".contains(&byte),
        Mode::Fragment => b"$&+,/:;=?@!()*".contains(&byte),
        Mode::User => b"$&+,;=".contains(&byte),
        Mode::Host => b"!$&'()*+,;=:[]<>\"".contains(&byte),
    }
}

fn escape(text: &str, mode: Mode) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if plain(byte, mode) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn join(url: &Url) -> String {
    let mut out = String::new();
    if !url.scheme.is_empty() {
        out.push_str(&url.scheme);
        out.push(':');
    }
    if url.opaque.is_empty() {
        if !url.scheme.is_empty() || !url.host.is_empty() || !url.user.is_empty() {
            if !(url.host.is_empty() && url.user.is_empty()) || url.path.starts_with("//") {
                out.push_str("//");
            }
            if !url.user.is_empty() {
                out.push_str(&url.user);
                out.push('@');
            }
            out.push_str(&escape(&url.host, Mode::Host));
        }
        let path = escape(&url.path, Mode::Path);
        if !path.is_empty() && !path.starts_with('/') && !url.host.is_empty() {
            out.push('/');
        }
        if out.is_empty() && path.split('/').next().is_some_and(|first| first.contains(':')) {
            out.push_str("./");
        }
        out.push_str(&path);
    } else {
        out.push_str(&url.opaque);
    }
    if !url.query.is_empty() {
        out.push('?');
        out.push_str(&url.query);
    }
    if !url.fragment.is_empty() {
        out.push('#');
        out.push_str(&escape(&url.fragment, Mode::Fragment));
    }
    out
}
