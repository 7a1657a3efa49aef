//! When a client certificate ends, for the words of a refusal.

use super::kubeconfig::Target;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use opdev_controlplane::certificate_end;

/// The words about a refused client certificate: that it has expired, or until when it would be valid.
pub(super) fn words(target: &Target) -> String {
    let Some(end) = pem(target).and_then(|pem| certificate_end(&pem)) else {
        return "the client certificate is not accepted".to_owned();
    };
    let day = end.strftime("%Y-%m-%d %H:%M UTC");
    if end < Timestamp::now() {
        format!("the client certificate expired on {day}")
    } else {
        format!("the client certificate, valid until {day}, is not accepted")
    }
}

fn pem(target: &Target) -> Option<String> {
    let user = &target.user;
    let bytes = match (&user.client_certificate_data, &user.client_certificate) {
        (Some(data), _) => STANDARD.decode(data).ok()?,
        (None, Some(path)) => std::fs::read(path).ok()?,
        (None, None) => return None,
    };
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_controlplane::{ControlPlane, Listen};

    #[tokio::test]
    async fn the_end_of_a_certificate_is_read() {
        let plane = ControlPlane::start().await.unwrap();
        let text = plane.listen(Listen::default()).await.unwrap().kubeconfig;
        let data =
            text.lines().find_map(|line| line.trim().strip_prefix("client-certificate-data: ")).unwrap();
        let pem = String::from_utf8(STANDARD.decode(data).unwrap()).unwrap();
        let end = certificate_end(&pem).unwrap().to_string();
        assert!(end.ends_with("-01-01T00:00:00Z"), "{end}");
        assert!(certificate_end(&pem).unwrap() > Timestamp::now());
        plane.stop().await;
        assert_eq!(certificate_end("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"), None);
    }
}
