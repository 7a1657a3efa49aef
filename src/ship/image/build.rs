//! The image of the operator: finds what goes into it, and writes or uploads what `layout` has packed.

pub use crate::contents::{Allowed, project_files};
use crate::{BINARY, Entries, HOME, Image, ImageSettings, Layer, Layout, OCI_LAYOUT, Program, merge_indexes};
use anyhow::{Context as _, Result, anyhow, bail};
use jiff::Timestamp;
use opdev_os::private_folder::{make_folders, write_named};
use opdev_os::read;
use opdev_project::Project;
use opdev_pull::{Access, BaseImage, Homes, ImageReference, download_image, push_image};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The inputs of an image.
#[derive(Clone, Debug)]
pub struct ImageInput {
    /// The files of the project, below the root of the image; `None` makes an image of opdev alone.
    pub project: Option<Entries>,
    /// The title of the image.
    pub title: String,
    /// The programs to pack, one a platform.
    pub binaries: Vec<PathBuf>,
    /// The only platforms to make, such as `linux/amd64`; all that there is a program for where none is
    /// named.
    pub platforms: Vec<String>,
    /// The image below.
    pub base: Option<ImageReference>,
    /// Certificates of authorities to trust, in PEM.
    pub certificates: Option<Vec<u8>>,
    /// The name that the layout has for the image.
    pub name: Option<ImageReference>,
    /// The time of all files and of the image, in seconds since 1970.
    pub time: u64,
}

/// A program that is to be packed.
struct Binary {
    path: PathBuf,
    bytes: Vec<u8>,
    program: Program,
}

/// Packs images, and downloads the image below.
///
/// # Errors
/// Programs that do not run in such an image, platforms without a program, and why the image below cannot be
/// had.
pub fn make(input: &ImageInput, homes: &Homes, access: &Access) -> Result<Layout> {
    let mut binaries: BTreeMap<&str, Binary> = BTreeMap::new();
    for path in &input.binaries {
        let binary = read_binary(path, input.base.is_some())?;
        if let Some(other) = binaries.insert(binary.program.architecture, binary) {
            let (one, two) = (other.path.display(), path.display());
            bail!("{one} and {two} are both for linux/{}; name one", other.program.architecture);
        }
    }
    for platform in &input.platforms {
        let architecture = platform.strip_prefix("linux/").unwrap_or_default();
        if !binaries.contains_key(architecture) {
            let have: Vec<String> = binaries.keys().map(|one| format!("linux/{one}")).collect();
            bail!(
                "there is no program for {platform}, only for {}\n  to do: name an opdev for it with --binary PATH, which may be \
                 repeated; each release has one for linux/amd64 and linux/arm64",
                have.join(", ")
            );
        }
    }
    let created = i64::try_from(input.time).ok().and_then(|time| Timestamp::from_second(time).ok());
    let created = created.context("SOURCE_DATE_EPOCH is too large for a time")?.to_string();
    let project = match &input.project {
        Some(entries) => Some(Layer::pack(entries, input.time).context("the project cannot be packed")?),
        None => None,
    };
    let mut images = Vec::new();
    for (architecture, binary) in binaries {
        if !input.platforms.is_empty() && !input.platforms.iter().any(|one| one[6..] == *architecture) {
            continue;
        }
        let base = match &input.base {
            Some(base) => Some(download_image(base, architecture, homes, access)?),
            None => None,
        };
        let system = system_entries(&binary.bytes, input.certificates.as_deref(), base.is_none());
        let mut layers = vec![Layer::pack(&system, input.time).context("the program cannot be packed")?];
        layers.extend(project.clone());
        let settings = ImageSettings {
            architecture: architecture.to_owned(),
            created: created.clone(),
            labels: labels(input, base.as_ref()),
        };
        images.push(Image::new(&settings, base.as_ref(), layers));
    }
    Ok(Layout::new(images, input.name.clone()))
}

fn labels(input: &ImageInput, base: Option<&BaseImage>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([("org.opencontainers.image.title".to_owned(), input.title.clone())]);
    if let (Some(name), Some(base)) = (&input.base, base) {
        labels.insert("org.opencontainers.image.base.name".to_owned(), name.tagged());
        labels.insert("org.opencontainers.image.base.digest".to_owned(), base.digest.clone());
    }
    labels
}

/// The entries of an image beside the project. Where there is no image below, also a user, and a folder for
/// temporary files.
fn system_entries(binary: &[u8], certificates: Option<&[u8]>, alone: bool) -> Entries {
    let mut entries = Entries::default();
    entries.file(BINARY, 0o755, binary);
    entries.folder(HOME, 0o755);
    if alone {
        let users =
            format!("root:x:0:0:root:/root:/sbin/nologin\nopdev:x:65532:65532:opdev:/{HOME}:/sbin/nologin\n");
        entries.file("etc/passwd", 0o644, users.into_bytes());
        entries.file("etc/group", 0o644, b"root:x:0:\nopdev:x:65532:\n".as_slice());
        entries.folder("tmp", 0o1777);
    }
    if let Some(certificates) = certificates {
        entries.file("etc/ssl/certs/ca-certificates.crt", 0o644, certificates);
    }
    entries
}

/// The paths that an image has beside the project, for a list of what would be packed.
pub fn system_paths(alone: bool, certificates: bool) -> Vec<String> {
    let none: &[u8] = &[];
    let entries = system_entries(none, certificates.then_some(none), alone);
    entries.iter().filter(|(_, entry)| entry.content.is_some()).map(|(path, _)| path.to_owned()).collect()
}

fn read_binary(path: &Path, has_base: bool) -> Result<Binary> {
    let bytes =
        read::bytes_up_to(path, read::LARGE).with_context(|| format!("{} cannot be read", path.display()))?;
    let program = Program::read(&bytes).map_err(|why| {
        anyhow!(
            "{} does not run in an image for Linux: {why}\n  to do: name an opdev for Linux with --binary PATH; each release has \
             one that needs no libraries",
            path.display()
        )
    })?;
    if let Some(loader) = program.loader.as_ref().filter(|_| !has_base) {
        bail!(
            "{} needs {loader} and {}, which an image without a base does not have\n  to do: name an opdev that needs no libraries \
             with --binary PATH (each release has one, and `cargo build --release --target x86_64-unknown-linux-musl` makes one), \
             or an image below that has them with --base REF, such as gcr.io/distroless/cc-debian12",
            path.display(),
            program.libraries.join(", ")
        );
    }
    Ok(Binary { path: path.to_owned(), bytes, program })
}

/// Writes a layout: one archive where the path ends in `.tar`, else a folder. A folder that is a layout
/// already keeps its images of other names.
///
/// # Errors
/// A folder that holds something else, and what cannot be written.
pub fn write(layout: &Layout, path: &Path, time: u64) -> Result<()> {
    if path.extension().is_some_and(|end| end == "tar") {
        return write_named(path, &layout.archive(time)?);
    }
    let is_layout = path.join(OCI_LAYOUT).is_file();
    let is_empty = match read::entries(path) {
        Ok(entries) => entries.is_empty(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
    };
    if !is_layout && !is_empty {
        bail!(
            "{} is a folder with other files in it; --output takes a new folder, one with an OCI layout, or a file that ends in \
             .tar",
            path.display()
        );
    }
    make_folders(path)?;
    for file in layout.files() {
        let target = path.join(&file.path);
        let present = read::bytes_up_to(&target, read::LARGE).ok();
        let content = match &present {
            Some(present) if file.path == "index.json" => merge_indexes(present, &file.content)
                .with_context(|| {
                    format!("{} is no index of images; remove it, or name another folder", target.display())
                })?,
            _ => file.content.to_vec(),
        };
        if present.is_none_or(|present| present != content) {
            write_named(&target, &content)?;
        }
    }
    Ok(())
}

/// Uploads images under a name. Says how many blobs were sent; what the registry has is not sent again.
///
/// # Errors
/// What the registry refuses, and why.
pub fn push(layout: &Layout, name: &ImageReference, homes: &Homes, access: &Access) -> Result<usize> {
    push_image(name, &layout.upload(name), homes, access)
}

/// Where authorities that a system trusts are kept, on the systems that there are.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The certificates for an image: those of a file, else, where reconcilers may reach hosts and no image is
/// below that would have some, those of this system.
///
/// # Errors
/// Where the file cannot be read or is none, or this system has none.
pub fn certificates(
    named: Option<&Path>,
    project: Option<&Project>,
    has_base: bool,
) -> Result<Option<Vec<u8>>> {
    let reaches = project.is_some_and(|project| !project.settings.allow.hosts.is_empty());
    let path = match named {
        Some(path) => path,
        None if !reaches || has_base => return Ok(None),
        None => BUNDLES.iter().map(Path::new).find(|path| path.is_file()).context(
            "reconcilers may reach hosts (allow.hosts in opdev.yaml), and the certificates that this system trusts were not \
             found\n  to do: name a file of them in PEM with --ca-bundle FILE",
        )?,
    };
    let bytes = read::bytes(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    if !text.contains("-----BEGIN CERTIFICATE-----") || text.contains("PRIVATE KEY-----") {
        bail!("{} is no file of certificates in PEM, or holds a key beside them", path.display());
    }
    Ok(Some(bytes))
}
