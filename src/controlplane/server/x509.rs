//! The part of an X.509 certificate that is read: its subject and its end. Checks no signature.

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::asn1::{Any, ObjectIdentifier};
use x509_cert::ext::pkix::name::DirectoryString;

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const ORGANIZATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");

/// The subject of a certificate.
pub(super) struct Subject {
    pub(super) common_names: Vec<String>,
    pub(super) organizations: Vec<String>,
}

/// The subject of a certificate; `None` where it is none, or where a name is no text.
pub(super) fn subject(der: &[u8]) -> Option<Subject> {
    let certificate = Certificate::from_der(der).ok()?;
    let mut subject = Subject { common_names: Vec::new(), organizations: Vec::new() };
    for attribute in certificate.tbs_certificate().subject().iter() {
        let texts = match attribute.oid {
            COMMON_NAME => &mut subject.common_names,
            ORGANIZATION => &mut subject.organizations,
            _ => continue,
        };
        texts.push(text(&attribute.value)?);
    }
    Some(subject)
}

/// The text of a name. The library reads the forms of RFC 5280; Go also takes others, such as IA5String,
/// which are ASCII.
fn text(value: &Any) -> Option<String> {
    match DirectoryString::try_from(value) {
        Ok(text) => Some(text.value().into_owned()),
        Err(_) => String::from_utf8(value.value().to_vec()).ok(),
    }
}

/// When the first certificate of a PEM text ends; `None` where there is none that can be read.
pub fn certificate_end(pem: &str) -> Option<Timestamp> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
    let certificate = Certificate::from_der(&der).ok()?;
    let end = certificate.tbs_certificate().validity().not_after.to_unix_duration();
    Timestamp::from_second(i64::try_from(end.as_secs()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair};

    fn certificate(until: i32, name: DnValue) -> rcgen::Certificate {
        let mut params = CertificateParams::default();
        params.not_after = rcgen::date_time_ymd(until, 2, 3);
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::CountryName, "SE");
        params.self_signed(&KeyPair::generate().unwrap()).unwrap()
    }

    #[test]
    fn a_certificate_says_whom_it_names_and_when_it_ends() {
        // From 2050 on, X.509 writes the time in another form.
        for (until, end) in [(2031, "2031-02-03T00:00:00Z"), (2055, "2055-02-03T00:00:00Z")] {
            let certificate = certificate(until, DnValue::Utf8String("jürgen".to_owned()));
            assert_eq!(certificate_end(&certificate.pem()).unwrap().to_string(), end);
            let subject = subject(certificate.der()).unwrap();
            assert_eq!(subject.common_names, ["jürgen"]);
            assert!(subject.organizations.is_empty());
        }
        let other_forms = [
            DnValue::PrintableString("jane".try_into().unwrap()),
            DnValue::Ia5String("jane".try_into().unwrap()),
            DnValue::BmpString("jane".try_into().unwrap()),
        ];
        for name in other_forms {
            assert_eq!(subject(certificate(2031, name).der()).unwrap().common_names, ["jane"]);
        }
        assert_eq!(certificate_end("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"), None);
        assert_eq!(certificate_end("no certificate"), None);
    }
}
