//! The keys that tokens are signed with.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::{hmac, signature};

/// What a token's signature is judged by: a key, and the one algorithm that it is for.
#[derive(Clone)]
pub struct JwtKey(Arc<Key>);

enum Key {
    Hs256(hmac::Key),
    /// The DER of an `RSAPublicKey`.
    Rs256(Vec<u8>),
    /// A point of the curve, uncompressed.
    Es256(Vec<u8>),
}

impl JwtKey {
    /// The shortest secret for HS256, in bytes: 32, as RFC 7518 requires.
    pub const SHORTEST_SECRET: usize = 32;

    /// The smallest RSA key, in bits: 2048, as RFC 7518 requires.
    pub const SMALLEST_RSA: usize = 2048;

    /// A secret that both sides have, for HS256. Fails where it is shorter than
    /// [`SHORTEST_SECRET`](Self::SHORTEST_SECRET).
    pub fn hs256(secret: impl AsRef<[u8]>) -> Result<Self, JwtKeyError> {
        let secret = secret.as_ref();
        if secret.len() < Self::SHORTEST_SECRET {
            return Err(JwtKeyError::ShortSecret);
        }
        Ok(Self(Arc::new(Key::Hs256(hmac::Key::new(hmac::HMAC_SHA256, secret)))))
    }

    /// An RSA public key as PEM (`PUBLIC KEY`), for RS256. Fails where it is none, or one of fewer
    /// than [`SMALLEST_RSA`](Self::SMALLEST_RSA) bits.
    pub fn rs256(pem: &str) -> Result<Self, JwtKeyError> {
        let key = public_key(pem, &[RSA])?;
        let modulus = element(&key, SEQUENCE).and_then(|(numbers, _)| element(numbers, INTEGER));
        let (modulus, _) = modulus.ok_or(JwtKeyError::NoKey)?;
        let modulus = modulus.strip_prefix(&[0]).unwrap_or(modulus);
        if modulus.len() * 8 < Self::SMALLEST_RSA {
            return Err(JwtKeyError::SmallRsa);
        }
        Ok(Self(Arc::new(Key::Rs256(key))))
    }

    /// A public key of the curve P-256 as PEM (`PUBLIC KEY`), for ES256. Fails where it is none.
    pub fn es256(pem: &str) -> Result<Self, JwtKeyError> {
        let key = public_key(pem, &[EC, P256])?;
        // Uncompressed: a mark and two coordinates.
        if key.len() != 65 || key[0] != 4 {
            return Err(JwtKeyError::NoKey);
        }
        Ok(Self(Arc::new(Key::Es256(key))))
    }

    /// The algorithm, as a token's header names it.
    #[must_use]
    pub fn algorithm(&self) -> &'static str {
        match *self.0 {
            Key::Hs256(_) => "HS256",
            Key::Rs256(_) => "RS256",
            Key::Es256(_) => "ES256",
        }
    }

    /// Whether this is the key's signature of a message.
    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let public = |algorithm: &'static dyn signature::VerificationAlgorithm, key: &[u8]| {
            signature::UnparsedPublicKey::new(algorithm, key).verify(message, signature).is_ok()
        };
        match &*self.0 {
            Key::Hs256(key) => hmac::verify(key, message, signature).is_ok(),
            Key::Rs256(key) => public(&signature::RSA_PKCS1_2048_8192_SHA256, key),
            Key::Es256(key) => public(&signature::ECDSA_P256_SHA256_FIXED, key),
        }
    }
}

impl fmt::Debug for JwtKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JwtKey({})", self.algorithm())
    }
}

/// A key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwtKeyError {
    /// The secret is too short.
    #[error("a secret for HS256 has 32 bytes or more")]
    ShortSecret,
    /// There is no public key in the text.
    #[error("the text is no public key as PEM, which begins with -----BEGIN PUBLIC KEY-----")]
    NoPem,
    /// It is a key, but not one of the algorithm's.
    #[error("the public key is of another kind than the algorithm needs")]
    OtherKind,
    /// It is not a whole key.
    #[error("the public key cannot be read")]
    NoKey,
    /// The RSA key is too small.
    #[error("an RSA key has 2048 bits or more")]
    SmallRsa,
}

/// Tags of DER.
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT: u8 = 0x06;
const SEQUENCE: u8 = 0x30;

/// Object identifiers: `rsaEncryption`, `id-ecPublicKey`, `prime256v1`.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

/// The key inside of a `SubjectPublicKeyInfo` whose algorithm begins with these identifiers.
fn public_key(pem: &str, kind: &[&[u8]]) -> Result<Vec<u8>, JwtKeyError> {
    let (_, rest) = pem.split_once("-----BEGIN PUBLIC KEY-----").ok_or(JwtKeyError::NoPem)?;
    let (text, _) = rest.split_once("-----END PUBLIC KEY-----").ok_or(JwtKeyError::NoPem)?;
    let text: String = text.split_ascii_whitespace().collect();
    let der = STANDARD.decode(text).map_err(|_| JwtKeyError::NoKey)?;
    let key = (|| {
        let (info, []) = element(&der, SEQUENCE)? else { return None };
        let (algorithm, rest) = element(info, SEQUENCE)?;
        let (bits, []) = element(rest, BIT_STRING)? else { return None };
        // No bits of the last byte are unused.
        Some((algorithm, bits.strip_prefix(&[0])?))
    })();
    let (mut algorithm, key) = key.ok_or(JwtKeyError::NoKey)?;
    for expected in kind {
        match element(algorithm, OBJECT) {
            Some((object, rest)) if object == *expected => algorithm = rest,
            _ => return Err(JwtKeyError::OtherKind),
        }
    }
    Ok(key.to_vec())
}

/// The contents of an element of DER with this tag, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // Two bytes count more than any key here has.
        0x81 | 0x82 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    (found == tag).then(|| rest.split_at_checked(length)).flatten()
}

#[cfg(test)]
pub(super) mod tests {
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
    use serde_json::Value;

    use super::*;

    /// Who signs tokens.
    pub(in super::super) enum Signer {
        Hmac(hmac::Key),
        Ecdsa(EcdsaKeyPair),
    }

    impl Signer {
        pub(in super::super) fn token(&self, claims: &Value) -> String {
            let header = match self {
                Self::Hmac(_) => r#"{"alg":"HS256","typ":"JWT"}"#,
                Self::Ecdsa(_) => r#"{"alg":"ES256"}"#,
            };
            self.signed(header, &claims.to_string())
        }

        pub(in super::super) fn signed(&self, header: &str, payload: &str) -> String {
            let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
            let message = format!("{}.{}", encode(header.as_bytes()), encode(payload.as_bytes()));
            let signature = match self {
                Self::Hmac(key) => encode(hmac::sign(key, message.as_bytes()).as_ref()),
                Self::Ecdsa(pair) => {
                    let random = SystemRandom::new();
                    encode(pair.sign(&random, message.as_bytes()).unwrap().as_ref())
                }
            };
            format!("{message}.{signature}")
        }
    }

    pub(in super::super) fn hmac() -> (Signer, JwtKey) {
        let secret = "0123456789abcdef0123456789abcdef";
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        (Signer::Hmac(key), JwtKey::hs256(secret).unwrap())
    }

    pub(in super::super) fn ecdsa() -> (Signer, JwtKey) {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pair.as_ref(), &random).unwrap();
        let key = JwtKey::es256(&pem(&[EC, P256], pair.public_key().as_ref())).unwrap();
        (Signer::Ecdsa(pair), key)
    }

    fn tagged(tag: u8, contents: &[u8]) -> Vec<u8> {
        let length = contents.len();
        let bytes = u16::try_from(length).unwrap().to_be_bytes();
        let length = if length < 128 { vec![bytes[1]] } else { [&[0x82][..], &bytes].concat() };
        [&[tag][..], &length, contents].concat()
    }

    fn pem(kind: &[&[u8]], key: &[u8]) -> String {
        let kind: Vec<u8> = kind.iter().flat_map(|object| tagged(OBJECT, object)).collect();
        let bits = tagged(BIT_STRING, &[&[0][..], key].concat());
        let info = tagged(SEQUENCE, &[tagged(SEQUENCE, &kind), bits].concat());
        let text = STANDARD.encode(info);
        let lines: Vec<&str> =
            text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", lines.join("\n"))
    }

    fn decoded(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).unwrap()
    }

    /// The payload of all examples of RFC 7515, appendix A.
    const PAYLOAD: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLm\
                           NvbS9pc19yb290Ijp0cnVlfQ";

    fn agrees(key: &JwtKey, header: &str, signature: &str) {
        let message = format!("{header}.{PAYLOAD}");
        let mut signature = decoded(signature);
        assert!(key.has_signed(message.as_bytes(), &signature), "{key:?}");
        assert!(!key.has_signed(format!("{message}x").as_bytes(), &signature), "{key:?}");
        signature[7] ^= 1;
        assert!(!key.has_signed(message.as_bytes(), &signature), "{key:?}");
        assert!(!key.has_signed(message.as_bytes(), &[]), "{key:?}");
    }

    #[test]
    fn the_examples_of_rfc_7515_agree() {
        // A.1
        let secret = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjA\
                      zZr1Z9CAow";
        let key = JwtKey::hs256(decoded(secret)).unwrap();
        let signature = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        agrees(&key, "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9", signature);
        // A.2
        let modulus = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrc\
                       S2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGz\
                       jb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xs\
                       mtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8\
                       q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
        let key = JwtKey::rs256(&pem(&[RSA], &rsa(&decoded(modulus)))).unwrap();
        let signature = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-\
                         0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrn\
                         byTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi1\
                         2jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs\
                         98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
        agrees(&key, "eyJhbGciOiJSUzI1NiJ9", signature);
        // A.3
        let x = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
        let y = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";
        let point = [vec![4], decoded(x), decoded(y)].concat();
        let key = JwtKey::es256(&pem(&[EC, P256], &point)).unwrap();
        let signature = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJ\
                         qPP3-Kg6NU1Q";
        agrees(&key, "eyJhbGciOiJFUzI1NiJ9", signature);
    }

    fn rsa(modulus: &[u8]) -> Vec<u8> {
        let modulus = tagged(INTEGER, &[&[0][..], modulus].concat());
        tagged(SEQUENCE, &[modulus, tagged(INTEGER, &[1, 0, 1])].concat())
    }

    #[test]
    fn what_is_no_key_is_told_so() {
        let point = [&[4][..], &[1; 64]].concat();
        let ec = pem(&[EC, P256], &point);
        let large = pem(&[RSA], &rsa(&[0x80; 256]));
        assert!(JwtKey::rs256(&large).is_ok() && JwtKey::es256(&ec).is_ok());
        assert_eq!(JwtKey::hs256([7; 31]).unwrap_err(), JwtKeyError::ShortSecret);
        assert!(JwtKey::hs256([7; 32]).is_ok());
        let small = pem(&[RSA], &rsa(&[0x80; 255]));
        assert_eq!(JwtKey::rs256(&small).unwrap_err(), JwtKeyError::SmallRsa);
        assert_eq!(JwtKey::rs256(&ec).unwrap_err(), JwtKeyError::OtherKind);
        assert_eq!(JwtKey::es256(&large).unwrap_err(), JwtKeyError::OtherKind);
        assert_eq!(JwtKey::es256(&pem(&[EC], &point)).unwrap_err(), JwtKeyError::OtherKind);
        for text in ["", "secret", "-----BEGIN PUBLIC KEY-----"] {
            assert_eq!(JwtKey::rs256(text).unwrap_err(), JwtKeyError::NoPem, "{text}");
        }
        let compressed = [&[2][..], &[1; 32]].concat();
        assert_eq!(JwtKey::es256(&pem(&[EC, P256], &compressed)).unwrap_err(), JwtKeyError::NoKey);
        // Any cut of a key is none, and nothing panics.
        let der = STANDARD.decode(ec.lines().skip(1).take(2).collect::<String>()).unwrap();
        for end in 0..der.len() {
            let text = STANDARD.encode(&der[..end]);
            let cut = format!("-----BEGIN PUBLIC KEY-----{text}-----END PUBLIC KEY-----");
            assert_eq!(JwtKey::es256(&cut).unwrap_err(), JwtKeyError::NoKey, "{end}");
        }
    }
}
