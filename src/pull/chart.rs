//! One chart from afar, by any of the ways in which Helm names one.

use super::index::{Entry, Index, NotFound};
use super::reference::{Reference, is_registry};
use super::registry::Registry;
use super::repositories::{self, Repository};
use super::web::{Web, shown, shown_text};
use super::{Access, Homes};
use anyhow::{Context as _, Result, anyhow, bail};
use opdev_os::read;
use opdev_os::sha256;
use url::Url;

/// A chart that is wanted.
#[derive(Clone, Debug, Default)]
pub struct ChartRequest {
    /// `oci://host/path`, an address of an archive, `repository/chart`, or a name in `repository`.
    pub reference: String,
    /// The address of a repository; empty where the reference says all.
    pub repository: String,
    /// A version or a range of versions; empty for the newest release.
    pub version: String,
    /// The access to its repository.
    pub access: Access,
}

/// An archive that was downloaded and, where there is a digest, checked.
#[derive(Clone, Debug)]
pub struct Downloaded {
    /// The archive, as it is stored there.
    pub archive: Vec<u8>,
    /// The name of its file, such as `web-1.2.3.tgz`.
    pub file_name: String,
    /// Notes for the user, such as the digest in a registry.
    pub notes: Vec<String>,
}

/// Returns true if a reference that is no path names a chart elsewhere: an address, or `repository/chart`.
pub fn is_far(reference: &str) -> bool {
    let named = || reference.contains('/') && !reference.starts_with(['.', '/', '~']);
    reference.contains("://") || named()
}

/// Downloads a chart. `say` is told of entries of an index that were left out.
///
/// # Errors
/// Why it cannot be found, reached or trusted; never with a password in it.
pub fn download(request: &ChartRequest, homes: &Homes, say: &mut dyn FnMut(&str)) -> Result<Downloaded> {
    let ChartRequest { reference, repository, version, access } = request;
    let known = || repositories::read(&homes.repositories);
    if !repository.is_empty() {
        return from_repository(request, &Web::new(access)?, homes, say);
    }
    if is_registry(reference) {
        return from_registry(reference, version, access, homes);
    }
    if let Ok(url) = Url::parse(reference) {
        // An archive of a repository that the user knows is fetched as that repository is.
        let owner = known()?.into_iter().find(|one| is_below(&url, &one.url));
        let owner_url =
            owner.as_ref().and_then(|one| Url::parse(&one.url).ok()).unwrap_or_else(|| url.clone());
        let web = Web::new(&owner.map_or_else(|| access.clone(), |one| merged(access, one)))?;
        return fetched(&web, &url, &owner_url, "");
    }
    let Some((name, chart)) = reference.split_once('/') else {
        bail!("non-absolute URLs should be in form of repo_name/path_to_chart, got: {reference}");
    };
    let Some(found) = known()?.into_iter().find(|one| one.name == name) else {
        bail!(
            "repo {name} not found: {reference} is no path here, and {} names no repository {name}; `helm repo add {name} URL` \
             writes it down",
            homes.repositories.display()
        );
    };
    let base = address(&found.url)
        .with_context(|| format!("the url of the repository {name} in {}", homes.repositories.display()))?;
    let web = Web::new(&merged(access, found.clone()))?;
    // As Helm does: what `helm repo update` has seen counts. What it never saw is looked up.
    let index = match read::bytes_up_to(homes.cached_index(name), read::LARGE) {
        Ok(bytes) => Index::parse(&bytes)
            .with_context(|| format!("error loading {}", homes.cached_index(name).display()))?,
        Err(_) => index(&web, &base)?,
    };
    index.warn(say);
    let entry = index.choose(chart, version).with_context(|| {
        format!("chart {chart:?} matching {version} not found in {name} index. (try 'helm repo update')")
    })?;
    from_entry(entry, chart, &base, &web, homes)
}

/// Returns true if an address lies below that of a repository. `charts.example.com` does not own
/// `charts.example.com.evil`.
fn is_below(url: &Url, repository: &str) -> bool {
    Url::parse(repository).is_ok_and(|base| {
        let rest = url.path().strip_prefix(base.path().trim_end_matches('/'));
        url.origin() == base.origin()
            && url.username() == base.username()
            && rest.is_some_and(|rest| rest.starts_with('/'))
    })
}

/// Merges the access of the command line with that of the repository's entry. The command line wins.
fn merged(given: &Access, known: Repository) -> Access {
    let of_entry = known.access;
    let with_login = if given.has_login() { given } else { &of_entry };
    Access {
        username: with_login.username.clone(),
        password: with_login.password.clone(),
        ca_file: given.ca_file.clone().or(of_entry.ca_file),
        cert_file: given.cert_file.clone().or(of_entry.cert_file),
        key_file: given.key_file.clone().or(of_entry.key_file),
        skip_verification: given.skip_verification || of_entry.skip_verification,
        plain_http: given.plain_http,
        pass_to_all_hosts: given.pass_to_all_hosts || of_entry.pass_to_all_hosts,
        of_command_line: Some(Box::new(given.clone())),
    }
}

fn from_repository(
    request: &ChartRequest,
    web: &Web,
    homes: &Homes,
    say: &mut dyn FnMut(&str),
) -> Result<Downloaded> {
    let base = address(&request.repository)?;
    let index = index(web, &base)?;
    index.warn(say);
    let entry = choose(&index, &request.reference, &request.version, &shown(&base))?;
    from_entry(entry, &request.reference, &base, web, homes)
}

/// The address of a repository.
///
/// # Errors
/// The text is none.
pub(super) fn address(repository: &str) -> Result<Url> {
    Url::parse(repository)
        .ok()
        .filter(Url::has_host)
        .with_context(|| format!("invalid chart URL format: {}", shown_text(repository)))
}

/// Downloads the index of a repository.
///
/// # Errors
/// `looks like "URL" is not a valid chart repository or cannot be reached: …`
pub(super) fn index(web: &Web, base: &Url) -> Result<Index> {
    let fetched = super::index::below(base, "index.yaml")
        .and_then(|url| web.fetch(&url, base, "*/*"))
        .and_then(|bytes| Index::parse(&bytes));
    fetched.map_err(|why| {
        anyhow!("looks like {:?} is not a valid chart repository or cannot be reached: {why:#}", shown(base))
    })
}

/// The entry of a chart.
///
/// # Errors
/// `chart "x" version "9" not found in URL repository`
pub(super) fn choose<'i>(
    index: &'i Index,
    chart: &str,
    version: &str,
    repository: &str,
) -> Result<&'i Entry> {
    index.choose(chart, version).map_err(|error| {
        if !error.is::<NotFound>() {
            return error;
        }
        let wanted = if version.is_empty() { String::new() } else { format!(" version {version:?}") };
        anyhow!("chart {chart:?}{wanted} not found in {repository} repository")
    })
}

/// Downloads what an entry of an index names, and checks the digest, which Helm does not.
///
/// # Errors
/// It cannot be had, or is another archive.
pub(super) fn from_entry(
    entry: &Entry,
    chart: &str,
    base: &Url,
    web: &Web,
    homes: &Homes,
) -> Result<Downloaded> {
    let url = entry.address(base, chart)?;
    let fallback = format!("{chart}-{}.tgz", entry.version);
    let found = if is_registry(url.as_str()) {
        // The user's access to the repository, the login above all, does not count for another server.
        from_registry(url.as_str(), &entry.version, &web.access.for_registry(), homes)?
    } else {
        fetched(web, &url, base, &fallback)?
    };
    let wanted = entry.digest.strip_prefix("sha256:").unwrap_or(&entry.digest);
    let digest = sha256::digits(&found.archive);
    if !wanted.is_empty() && !wanted.eq_ignore_ascii_case(&digest) {
        bail!(
            "{}: the digest of the archive is {digest}, but the index of the repository says {wanted}; nothing was taken",
            shown(&url)
        );
    }
    Ok(found)
}

fn fetched(web: &Web, url: &Url, owner: &Url, fallback: &str) -> Result<Downloaded> {
    if is_registry(url.as_str()) {
        bail!("could not find protocol handler for: oci");
    }
    let archive = web.fetch(url, owner, "application/gzip,application/octet-stream")?;
    let last = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
    let last = percent_encoding::percent_decode_str(last).decode_utf8_lossy().into_owned();
    let is_name =
        |name: &str| name.ends_with(".tgz") && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
    let file_name = if is_name(&last) { last } else { fallback.to_owned() };
    Ok(Downloaded { archive, file_name, notes: Vec::new() })
}

/// Downloads a chart from a registry.
///
/// # Errors
/// Why it cannot be had.
pub(super) fn from_registry(text: &str, version: &str, access: &Access, homes: &Homes) -> Result<Downloaded> {
    let reference = Reference::parse(text)?;
    let web = &Web::for_registry(access, &reference.host)?;
    let (name, place) = (reference.chart().to_owned(), reference.shown());
    let pulled = Registry::new(web, &homes.logins, reference).pull(version)?;
    let (file_name, tag) = match pulled.version.as_str() {
        "" => (format!("{name}.tgz"), String::new()),
        version => (format!("{name}-{version}.tgz"), format!(":{}", super::reference::tag_of(version))),
    };
    let notes = vec![format!("Pulled: {place}{tag}"), format!("Digest: {}", pulled.digest)];
    Ok(Downloaded { archive: pulled.archive, file_name, notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_owns_only_what_lies_below_it() {
        let owns = |repository: &str, url: &str| is_below(&Url::parse(url).unwrap(), repository);
        assert!(owns("https://a.example", "https://a.example/web-1.tgz"));
        assert!(owns("https://a.example/charts/", "https://a.example:443/charts/x/web-1.tgz"));
        for (repository, url) in [
            ("https://a.example", "https://a.example.evil/web-1.tgz"),
            ("https://a.example", "https://a.example:8443/web-1.tgz"),
            ("https://a.example", "http://a.example/web-1.tgz"),
            ("https://a.example/charts", "https://a.example/charts-of-others/web-1.tgz"),
            ("https://a.example/charts", "https://a.example/charts/../web-1.tgz"),
            ("", "https://a.example/web-1.tgz"),
        ] {
            assert!(!owns(repository, url), "{repository} {url}");
        }
    }
}
