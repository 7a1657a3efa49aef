//! Random text and numbers, from the environment's bytes only.

use super::super::error::FuncError;
use super::super::host::Ty;
use super::super::value::Value;
use super::{Call, Function, Outcome, fixed, int, string};

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("randAlphaNum", &[Ty::Int], |call, args| {
        text(call, args, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    }),
    fixed("randAlpha", &[Ty::Int], |call, args| {
        text(call, args, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    }),
    fixed("randNumeric", &[Ty::Int], |call, args| text(call, args, b"0123456789")),
    fixed("randAscii", &[Ty::Int], |call, args| {
        let all: Vec<u8> = (b' '..=b'~').collect();
        text(call, args, &all)
    }),
    fixed("randBytes", &[Ty::Int], |call, args| {
        use base64::Engine as _;
        let Some(count) = length(args)? else {
            return Err("runtime error: makeslice: len out of range".into());
        };
        call.makes(3 * count)?;
        let mut bytes = vec![0; count];
        call.context.outside().random(&mut bytes);
        Ok(base64::engine::general_purpose::STANDARD.encode(bytes).into())
    }),
    fixed("shuffle", &[Ty::Str], |call, args| {
        let mut chars: Vec<char> = string(args, 0).chars().collect();
        for i in (1..chars.len()).rev() {
            let j = below(call, i as u64 + 1);
            chars.swap(i, usize::try_from(j).unwrap_or(0));
        }
        Ok(chars.into_iter().collect::<String>().into())
    }),
    fixed("uuidv4", &[], |call, _| {
        let mut b = [0u8; 16];
        call.context.outside().random(&mut b);
        b[6] = b[6] & 0x0f | 0x40;
        b[8] = b[8] & 0x3f | 0x80;
        let n = u128::from_be_bytes(b);
        Ok(format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            n >> 96,
            n >> 80 & 0xffff,
            n >> 64 & 0xffff,
            n >> 48 & 0xffff,
            n & 0xffff_ffff_ffff
        )
        .into())
    }),
];

/// A number below the limit, each as likely as the others.
pub(super) fn below(call: &mut Call<'_, '_>, limit: u64) -> u64 {
    let env = call.context.outside();
    let usable = u64::MAX - u64::MAX % limit;
    for _ in 0..64 {
        let mut bytes = [0; 8];
        env.random(&mut bytes);
        let n = u64::from_le_bytes(bytes);
        if n < usable {
            return n % limit;
        }
    }
    0
}

fn length(args: &[Value]) -> Result<Option<usize>, FuncError> {
    match usize::try_from(int(args, 0)) {
        Ok(n) if n > 1 << 28 => Err("requested random text is too long".into()),
        Ok(n) => Ok(Some(n)),
        Err(_) => Ok(None),
    }
}

/// So many letters of the alphabet; nothing for a negative count, as Sprig drops that error.
fn text(call: &mut Call<'_, '_>, args: &[Value], alphabet: &[u8]) -> Outcome {
    let Some(count) = length(args)? else { return Ok("".into()) };
    call.makes(2 * count)?;
    let usable = 256 / alphabet.len() * alphabet.len();
    let env = call.context.outside();
    let mut out = Vec::with_capacity(count);
    let mut pool = vec![0u8; count.max(16)];
    for round in 0..1000 {
        env.random(&mut pool);
        for byte in &pool {
            let n = usize::from(*byte);
            // An environment without randomness must not keep this loop running.
            if out.len() < count && (n < usable || round > 100) {
                out.push(alphabet[n % alphabet.len()]);
            }
        }
        if out.len() >= count {
            break;
        }
    }
    Ok(out.into())
}
