//! Passwords and ciphers: `bcrypt`, `htpasswd`, `derivePassword`, `encryptAES`, `decryptAES`.

use aes::cipher::{BlockDecrypt as _, BlockEncrypt as _, KeyInit as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::Mac as _;

use super::super::error::FuncError;
use super::super::host::Ty;
use super::super::value::Value;
use super::{Call, Function, bytes, fixed, string};

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("bcrypt", &[Ty::Str], |call, args| Ok(bcrypt(call, bytes(args, 0)).into())),
    fixed("htpasswd", &[Ty::Str, Ty::Str], |call, args| {
        let user = string(args, 0);
        if user.contains(':') {
            return Ok(format!("invalid username: {user}").into());
        }
        Ok(format!("{user}:{}", bcrypt(call, bytes(args, 1))).into())
    }),
    fixed("derivePassword", &[Ty::Uint32, Ty::Str, Ty::Str, Ty::Str, Ty::Str], |_, args| {
        let Value::Uint(_, counter) = args[0] else { return Err("no counter".into()) };
        let kind = string(args, 1);
        let counter = u32::try_from(counter).unwrap_or(u32::MAX);
        let Some((_, templates)) = TEMPLATES.iter().find(|(name, _)| *name == kind) else {
            return Ok(format!("cannot find password template {kind}").into());
        };
        Ok(derive(counter, templates, bytes(args, 2), bytes(args, 3), bytes(args, 4))?.into())
    }),
    fixed("encryptAES", &[Ty::Str, Ty::Str], |call, args| {
        let text = bytes(args, 1);
        if text.is_empty() {
            return Ok("".into());
        }
        let mut block = [0; 16];
        call.context.outside().random(&mut block);
        let mut out = block.to_vec();
        let padding = 16 - text.len() % 16;
        let padded = [text, &vec![u8::try_from(padding).unwrap_or(16); padding][..]].concat();
        let cipher = aes_key(bytes(args, 0));
        for chunk in padded.chunks(16) {
            for (b, c) in block.iter_mut().zip(chunk) {
                *b ^= c;
            }
            cipher.encrypt_block((&mut block).into());
            out.extend_from_slice(&block);
        }
        Ok(STANDARD.encode(out).into())
    }),
    fixed("decryptAES", &[Ty::Str, Ty::Str], |_, args| {
        if bytes(args, 1).is_empty() {
            return Ok("".into());
        }
        let coded = super::encoding::decode64(bytes(args, 1))
            .map_err(|at| FuncError::new(format!("illegal base64 data at input byte {at}")))?;
        if coded.len() < 16 {
            // The capacity Go tells is what the decoder asked for.
            let capacity = bytes(args, 1).len() / 4 * 3;
            return Err(
                format!("runtime error: slice bounds out of range [:16] with capacity {capacity}").into()
            );
        }
        if coded.len() % 16 != 0 {
            return Err("crypto/cipher: input not full blocks".into());
        }
        if coded.len() == 16 {
            return Err("runtime error: index out of range [-1]".into());
        }
        let cipher = aes_key(bytes(args, 0));
        let mut out = Vec::with_capacity(coded.len());
        for (before, chunk) in coded.chunks(16).zip(coded.chunks(16).skip(1)) {
            let mut block: [u8; 16] = chunk.try_into().map_err(|_| "crypto/cipher: input not full blocks")?;
            cipher.decrypt_block((&mut block).into());
            out.extend(block.iter().zip(before).map(|(b, c)| b ^ c));
        }
        let padding = usize::from(out.last().copied().unwrap_or(0));
        let Some(length) = out.len().checked_sub(padding) else {
            let below = padding - out.len();
            return Err(format!("runtime error: slice bounds out of range [:-{below}]").into());
        };
        out.truncate(length);
        Ok(out.into())
    }),
];

/// The password, cut or filled to 32 bytes.
fn aes_key(password: &[u8]) -> aes::Aes256 {
    let mut key = [0; 32];
    let length = password.len().min(32);
    key[..length].copy_from_slice(&password[..length]);
    aes::Aes256::new(&key.into())
}

/// A bcrypt hash with Go's default cost; as in Sprig, an error is the text.
fn bcrypt(call: &mut Call<'_, '_>, password: &[u8]) -> String {
    const COST: u32 = 10;
    if password.len() > 72 {
        return "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes".to_owned();
    }
    let mut salt = [0; 16];
    call.context.outside().random(&mut salt);
    let hash = bcrypt_hash(password, &salt, COST);
    let config = base64::engine::GeneralPurposeConfig::new().with_encode_padding(false);
    let encoder = base64::engine::GeneralPurpose::new(&base64::alphabet::BCRYPT, config);
    format!("$2a${COST:02}${}{}", encoder.encode(salt), encoder.encode(&hash[..23]))
}

fn bcrypt_hash(password: &[u8], salt: &[u8; 16], cost: u32) -> [u8; 24] {
    let key = [password, &[0]].concat();
    let mut state = blowfish::Blowfish::bc_init_state();
    state.salted_expand_key(salt, &key);
    for _ in 0..1u32 << cost {
        state.bc_expand_key(&key);
        state.bc_expand_key(salt);
    }
    let mut words = [0u32; 6];
    for (word, chunk) in words.iter_mut().zip(b"OrpheanBeholderScryDoubt".chunks(4)) {
        *word = chunk.iter().fold(0, |n, b| n << 8 | u32::from(*b));
    }
    let mut out = [0; 24];
    for (i, pair) in words.chunks(2).enumerate() {
        let mut block = [pair[0], pair[1]];
        for _ in 0..64 {
            block = state.bc_encrypt(block);
        }
        for (j, word) in block.iter().enumerate() {
            out[i * 8 + j * 4..][..4].copy_from_slice(&word.to_be_bytes());
        }
    }
    out
}

/// Shapes of passwords of the Master Password algorithm.
const TEMPLATES: [(&str, &[&str]); 6] = [
    ("maximum", &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"]),
    (
        "long",
        &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
    ),
    ("medium", &["CvcnoCvc", "CvcCvcno"]),
    ("short", &["Cvcn"]),
    ("basic", &["aaanaaan", "aannaaan", "aaannaaa"]),
    ("pin", &["nnnn"]),
];

fn letters(class: u8) -> &'static [u8] {
    match class {
        b'V' => b"AEIOU",
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

fn derive(
    counter: u32,
    templates: &[&str],
    password: &[u8],
    user: &[u8],
    site: &[u8],
) -> Result<Vec<u8>, FuncError> {
    const SCOPE: &[u8] = b"com.lyndir.masterpassword";
    let length = |text: &[u8]| u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes();
    let salt = [SCOPE, &length(user), user].concat();
    let params = scrypt::Params::new(15, 8, 2, 64).map_err(|e| format!("failed to derive password: {e}"))?;
    let mut key = [0; 64];
    scrypt::scrypt(password, &salt, &params, &mut key)
        .map_err(|e| format!("failed to derive password: {e}"))?;
    let message = [SCOPE, &length(site), site, &counter.to_be_bytes()].concat();
    let mut mac = <hmac::Hmac<sha2::Sha256> as hmac::Mac>::new_from_slice(&key).map_err(|e| e.to_string())?;
    mac.update(&message);
    let seed = mac.finalize().into_bytes();
    let template = templates[usize::from(seed[0]) % templates.len()];
    let pick = |(i, class): (usize, u8)| {
        let letters = letters(class);
        letters[usize::from(seed[i + 1]) % letters.len()]
    };
    Ok(template.bytes().enumerate().map(pick).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bcrypt_gives_the_published_hash() {
        // "U*U" with the salt of the reference vectors, cost 5.
        let decoder = base64::engine::GeneralPurpose::new(
            &base64::alphabet::BCRYPT,
            base64::engine::GeneralPurposeConfig::new()
                .with_encode_padding(false)
                .with_decode_padding_mode(base64::engine::DecodePaddingMode::RequireNone)
                .with_decode_allow_trailing_bits(true),
        );
        let salt: [u8; 16] = decoder.decode("CCCCCCCCCCCCCCCCCCCCC.").unwrap().try_into().unwrap();
        let hash = bcrypt_hash(b"U*U", &salt, 5);
        assert_eq!(decoder.encode(&hash[..23]), "E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW");
    }
}
