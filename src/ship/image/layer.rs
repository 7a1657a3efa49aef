//! Layers: entries as a tar archive in gzip, without anything that differs from run to run.

use super::entries::Entries;
use flate2::{Compression, GzBuilder};
use opdev_os::sha256;
use std::io::{self, Write as _};
use std::sync::Arc;

/// The type of layers that are made here.
const MEDIA_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A layer of an image.
#[derive(Clone, Debug)]
pub struct Layer {
    /// The type that manifests have for it.
    pub media_type: String,
    /// The digest of `bytes`.
    pub digest: String,
    /// The digest of the archive before it was packed.
    pub diff_id: String,
    /// The packed archive.
    pub bytes: Arc<[u8]>,
}

impl Layer {
    /// Packs entries. All of them belong to root and have one time, in seconds since 1970.
    ///
    /// # Errors
    /// A path that does not go into an archive.
    pub fn pack(entries: &Entries, time: u64) -> io::Result<Layer> {
        let mut tar = tar::Builder::new(Vec::new());
        for (path, entry) in entries.iter() {
            let mut header = tar::Header::new_ustar();
            header.set_mode(entry.mode);
            header.set_mtime(time);
            header.set_uid(0);
            header.set_gid(0);
            match &entry.content {
                Some(content) => {
                    header.set_size(content.len() as u64);
                    tar.append_data(&mut header, path, &**content)?;
                }
                None => {
                    header.set_entry_type(tar::EntryType::Directory);
                    header.set_size(0);
                    tar.append_data(&mut header, format!("{path}/"), io::empty())?;
                }
            }
        }
        let archive = tar.into_inner()?;
        // No time, no name, and no word about the system it was made on.
        let mut gzip = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::new(6));
        gzip.write_all(&archive)?;
        let bytes = gzip.finish()?;
        Ok(Layer {
            media_type: MEDIA_TYPE.to_owned(),
            digest: sha256::named(&bytes),
            diff_id: sha256::named(&archive),
            bytes: bytes.into(),
        })
    }

    /// A layer that is packed already; types of Docker's become those of OCI, for the bytes are the same.
    pub fn of_base(media_type: &str, digest: &str, diff_id: &str, bytes: Arc<[u8]>) -> Layer {
        let media_type = match media_type {
            "application/vnd.docker.image.rootfs.diff.tar.gzip" => MEDIA_TYPE,
            "application/vnd.docker.image.rootfs.diff.tar" => "application/vnd.oci.image.layer.v1.tar",
            other => other,
        };
        Layer {
            media_type: media_type.to_owned(),
            digest: digest.to_owned(),
            diff_id: diff_id.to_owned(),
            bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn entries() -> Entries {
        let mut entries = Entries::default();
        entries.file("usr/local/bin/opdev", 0o755, b"program".as_slice());
        entries.file("opt/helm/watches.yaml", 0o644, b"[]".as_slice());
        entries.file(&format!("opt/{}a", "folder/".repeat(40)), 0o644, b"far below".as_slice());
        entries.folder("tmp", 0o1777);
        entries
    }

    #[test]
    fn the_same_entries_are_the_same_bytes_and_can_be_read_again() {
        let layer = Layer::pack(&entries(), 7).unwrap();
        assert_eq!(layer.bytes, Layer::pack(&entries(), 7).unwrap().bytes);
        assert_ne!(layer.digest, Layer::pack(&entries(), 8).unwrap().digest);
        assert_eq!(layer.digest, sha256::named(&layer.bytes));
        let mut archive = Vec::new();
        flate2::read::GzDecoder::new(&*layer.bytes).read_to_end(&mut archive).unwrap();
        assert_eq!(layer.diff_id, sha256::named(&archive));
        let mut again = Entries::default();
        for entry in tar::Archive::new(&*archive).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let header = entry.header();
            assert_eq!((header.mtime().unwrap(), header.uid().unwrap(), header.gid().unwrap()), (7, 0, 0));
            let mode = header.mode().unwrap();
            if header.entry_type().is_dir() {
                again.folder(path.trim_end_matches('/'), mode);
            } else {
                let mut content = Vec::new();
                entry.read_to_end(&mut content).unwrap();
                again.file(&path, mode, content);
            }
        }
        assert_eq!(again, entries());
    }
}
