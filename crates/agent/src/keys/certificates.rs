//! `keys tls`: a small authority in a folder, and the certificates that it signs.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

use super::{PUBLIC, SECRET, create, replace};
use crate::args::TlsArgs;
use crate::clock::Day;
use crate::failure::Failure;

/// The name that every certificate of a member has.
const MEMBER: &str = "konklave";
/// The name of the authority. A new certificate needs this name and the authority's key, and nothing else of it.
const AUTHORITY: &str = "Konklave authority";
/// How long the authority is valid, in days.
const AUTHORITY_DAYS: u32 = 3650;
const DAY: Duration = Duration::from_secs(86_400);

/// Begin and end of a certificate. It begins a day early, because clocks differ.
fn validity<T>(from: SystemTime, to: SystemTime, date: impl Fn(i32, u8, u8) -> T) -> (T, T) {
    let date = |moment| {
        let Day { year, month, day } = Day::of(moment);
        date(year, month, day)
    };
    (date(from - DAY), date(to))
}

/// Makes a certificate for each name; first the authority, if there is none.
pub(super) fn make(args: &TlsArgs) -> Result<u8, Failure> {
    for name in &args.names {
        check_name(name).map_err(Failure::Usage)?;
    }
    let folder = &args.folder;
    if !folder.exists() {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(Failure::unwritable(folder))?;
    }
    let now = SystemTime::now();
    let authority = authority(folder, now)?;
    for name in &args.names {
        let ends = now + DAY * args.days;
        let (certificate, key) = certificate(name, &authority, now, ends).map_err(unmakeable)?;
        let (cert, secret) =
            (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
        let write = if args.renew { replace } else { create };
        write(&secret, &key, SECRET)?;
        write(&cert, &certificate, PUBLIC)?;
        let (cert, secret) = (cert.display(), secret.display());
        eprintln!("konklave: {name}: {cert} and {secret}, valid until {}", Day::of(ends));
    }
    let folder = folder.display();
    eprintln!(
        "konklave: on each machine, with its own NAME, start the agent with\n  \
         --tls-certificate NAME.pem --tls-key NAME.key --tls-authority authority.pem\n  \
         and keep {folder}/authority.key off these machines: anyone with this file can make members"
    );
    Ok(0)
}

/// The authority of the folder.
fn authority(folder: &Path, now: SystemTime) -> Result<Issuer<'static, KeyPair>, Failure> {
    let (cert, secret) = (folder.join("authority.pem"), folder.join("authority.key"));
    let mut params = CertificateParams::new(Vec::new()).map_err(unmakeable)?;
    params.distinguished_name = named(AUTHORITY);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    (params.not_before, params.not_after) =
        validity(now, now + DAY * AUTHORITY_DAYS, rcgen::date_time_ymd);
    let key = match fs::read_to_string(&secret) {
        Ok(text) => {
            if !cert.exists() {
                return Err(Failure::Unreadable(format!(
                    "{} exists, but {} does not: restore it, or choose another folder",
                    secret.display(),
                    cert.display()
                )));
            }
            KeyPair::from_pem(&text)
                .map_err(|why| Failure::Data(format!("{}: {why}", secret.display())))?
        }
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            let key = KeyPair::generate().map_err(unmakeable)?;
            let signed = params.self_signed(&key).map_err(unmakeable)?;
            create(&cert, &signed.pem(), PUBLIC)?;
            create(&secret, &key.serialize_pem(), SECRET)?;
            key
        }
        Err(why) => return Err(Failure::unreadable(&secret)(why)),
    };
    Ok(Issuer::new(params, key))
}

/// The certificate of a member and its key, as text.
fn certificate(
    name: &str,
    authority: &Issuer<'_, KeyPair>,
    now: SystemTime,
    ends: SystemTime,
) -> Result<(String, String), rcgen::Error> {
    let mut params = CertificateParams::new(vec![MEMBER.to_owned(), name.to_owned()])?;
    params.distinguished_name = named(name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    (params.not_before, params.not_after) = validity(now, ends, rcgen::date_time_ymd);
    let key = KeyPair::generate()?;
    let signed = params.signed_by(&key, authority)?;
    Ok((signed.pem(), key.serialize_pem()))
}

fn named(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

/// Checks the name of an agent, which becomes a name of DNS.
fn check_name(name: &str) -> Result<(), String> {
    let word = |word: &str| {
        let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !word.is_empty()
            && word.len() <= 63
            && word.chars().all(fine)
            && !word.starts_with('-')
            && !word.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    if name.len() > 200 || !name.split('.').all(word) || last.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!(
            "`{name}` cannot be in a certificate: use small letters, digits, - and dots, such as `a` or `db-1.example`"
        ));
    }
    match name {
        MEMBER | "authority" => {
            Err(format!("`{name}` has another meaning here: choose another name"))
        }
        _ => Ok(()),
    }
}

fn unmakeable(error: rcgen::Error) -> Failure {
    Failure::System { what: "cannot make a certificate".into(), why: io::Error::other(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_agents_are_names_of_dns() {
        for good in ["a", "db-1", "a.b.example", "10-0-0-1"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        let long = "x".repeat(64);
        for wrong in [
            "",
            "A",
            "a b",
            "-a",
            "a-",
            "a..b",
            "*.a",
            "10.0.0.1",
            "ä",
            "a/b",
            "..",
            "konklave",
            "authority",
            &long,
        ] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }
}
