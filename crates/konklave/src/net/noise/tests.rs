use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::timeout;

use super::*;

const KEY: &[u8] = b"a key of sixteen bytes, and more";
const OTHER: &[u8] = b"another key of more than 16 bytes";

fn keys(keys: &[&[u8]]) -> SharedKeys {
    SharedKeys::new(keys.iter().copied())
}

fn secret() -> Secret {
    Secret::random().unwrap()
}

type Result2 = Result<Protected<DuplexStream>, HandshakeError>;

/// A caller with `ours` and a called node with `theirs`.
async fn meet(ours: &SharedKeys, theirs: &SharedKeys, refused: u32) -> (Result2, Result2) {
    let (a, b) = duplex(1 << 10);
    let (caller, called) = (secret(), secret());
    let both =
        async { tokio::join!(connect(a, ours, &caller, refused), accept(b, theirs, &called)) };
    timeout(Duration::from_secs(20), both).await.expect("nobody waits for ever")
}

/// The two ends of a protected connection.
async fn connected() -> (NoiseStream<DuplexStream>, NoiseStream<DuplexStream>) {
    let (caller, called) = meet(&keys(&[KEY]), &keys(&[KEY]), 0).await;
    (caller.unwrap().0, called.unwrap().0)
}

#[tokio::test]
async fn both_sides_learn_identity_of_other() {
    let (a, b) = duplex(1 << 10);
    let (caller, called, keys) = (secret(), secret(), keys(&[KEY]));
    let (x, y) = tokio::join!(connect(a, &keys, &caller, 0), accept(b, &keys, &called));
    assert_eq!((x.unwrap().1, y.unwrap().1), (called.identity(), caller.identity()));
    assert_ne!(caller.identity(), called.identity());
    assert_eq!(caller.identity().len(), 32);
}

#[tokio::test]
async fn wrong_key_is_refused_on_both_sides() {
    let (caller, called) = meet(&keys(&[KEY]), &keys(&[OTHER]), 0).await;
    for reason in [caller.map(drop), called.map(drop)] {
        let reason = reason.unwrap_err().to_string();
        assert!(reason.contains("wrong key"), "{reason}");
    }
}

/// Keys change without a pause: a node with both is accepted by nodes with either, and accepts them.
#[tokio::test]
async fn second_key_is_accepted_and_tried_after_refusal() {
    for (ours, theirs, refused, well) in [
        (keys(&[KEY]), keys(&[OTHER, KEY]), 0, true),
        (keys(&[OTHER, KEY]), keys(&[KEY, OTHER]), 0, true),
        (keys(&[OTHER, KEY]), keys(&[KEY]), 0, false),
        (keys(&[OTHER, KEY]), keys(&[KEY]), 1, true),
        (keys(&[OTHER, KEY]), keys(&[OTHER]), 2, true),
    ] {
        let (caller, called) = meet(&ours, &theirs, refused).await;
        assert_eq!((caller.is_ok(), called.is_ok()), (well, well));
    }
}

#[test]
fn one_or_two_long_keys_are_allowed() {
    assert!(keys(&[KEY]).check().is_ok() && keys(&[KEY, OTHER]).check().is_ok());
    for wrong in [keys(&[]), keys(&[KEY, OTHER, KEY]), keys(&[b"short"]), keys(&[KEY, b"short"])] {
        assert!(matches!(wrong.check(), Err(Error::Config(_))));
    }
}

/// A stranger gets nothing from a called node that depends on the key: no guess can be tested.
#[tokio::test]
async fn stranger_gets_no_proof() {
    let mut answers = Vec::new();
    for key in [KEY, OTHER] {
        let (mut stranger, node) = duplex(1 << 10);
        let (keys, secret) = (keys(&[key]), secret());
        let accepting = accept(node, &keys, &secret);
        let asking = async {
            stranger.write_all(&header(KEYED)).await.unwrap();
            stranger.write_all(&[7; FIRST]).await.unwrap();
            stranger.shutdown().await.unwrap();
            let mut answer = Vec::new();
            stranger.read_to_end(&mut answer).await.unwrap();
            answer
        };
        let (refused, answer) = tokio::join!(accepting, asking);
        assert!(refused.is_err());
        answers.push(answer);
    }
    assert_eq!(answers[0], answers[1]);
}

/// A recorded call, repeated to the letter, ends before it reaches the group.
#[tokio::test]
async fn repeated_call_is_refused() {
    let (keys, called, caller) = (keys(&[KEY]), secret(), secret());
    let (a, mut b) = duplex(1 << 10);
    let recording = async {
        let mut first = vec![0; header(KEYED).len() + FIRST];
        b.read_exact(&mut first).await.unwrap();
        drop(b);
        first
    };
    let (_, first) = tokio::join!(connect(a, &keys, &caller, 0), recording);
    let (mut replay, node) = duplex(1 << 10);
    let replaying = async {
        replay.write_all(&first).await.unwrap();
        replay.write_all(&[9; THIRD]).await.unwrap();
        let mut answer = Vec::new();
        let _ = replay.read_to_end(&mut answer).await;
    };
    let (refused, ()) = tokio::join!(accept(node, &keys, &called), replaying);
    let reason = refused.map(drop).unwrap_err().to_string();
    assert!(reason.contains("repeats the call"), "{reason}");
}

#[tokio::test]
async fn bytes_of_all_lengths_pass_in_both_directions() {
    let (mut a, mut b) = connected().await;
    for length in [1, 2, 1000, 16 << 10, (16 << 10) + 1, 300_000] {
        let sent: Vec<u8> = (0..length).map(|i| (i * 7 % 251) as u8).collect();
        for swapped in [false, true] {
            let (from, to) = if swapped { (&mut b, &mut a) } else { (&mut a, &mut b) };
            let mut got = vec![0; length];
            let sending = async {
                from.write_all(&sent).await.unwrap();
                from.flush().await.unwrap();
            };
            // In pieces that fit no message.
            let receiving = async {
                for piece in got.chunks_mut(777) {
                    to.read_exact(piece).await.unwrap();
                }
            };
            let both = async { tokio::join!(sending, receiving) };
            timeout(Duration::from_secs(20), both).await.expect("all of it arrives");
            assert!(got == sent, "{length} bytes");
        }
    }
    a.shutdown().await.unwrap();
    assert_eq!(b.read(&mut [0; 9]).await.unwrap(), 0, "the end arrives");
}

/// A message with its length, encrypted.
fn sealed(cipher: &mut snow::TransportState, plain: &[u8]) -> Vec<u8> {
    let mut message = vec![0; 2 + plain.len() + TAG];
    message[..2].copy_from_slice(&((plain.len() + TAG) as u16).to_be_bytes());
    cipher.write_message(plain, &mut message[2..]).unwrap();
    message
}

#[tokio::test]
async fn changed_repeated_or_missing_message_ends_connection() {
    for fault in 0..6 {
        let mut ours = handshake(KEY, &secret(), true).unwrap();
        let mut theirs = handshake(KEY, &secret(), false).unwrap();
        let (mut message, mut none) = ([0; 200], [0; 200]);
        for turn in 0..3 {
            let (from, to) =
                if turn % 2 == 0 { (&mut ours, &mut theirs) } else { (&mut theirs, &mut ours) };
            let length = from.write_message(&[], &mut message).unwrap();
            to.read_message(&message[..length], &mut none).unwrap();
        }
        let mut cipher = ours.into_transport_mode().unwrap();
        let (mut line, end) = duplex(1 << 16);
        let mut reader = NoiseStream::new(end, theirs.into_transport_mode().unwrap());
        let [one, two, three] = [
            sealed(&mut cipher, b"one"),
            sealed(&mut cipher, b"two"),
            sealed(&mut cipher, b"three"),
        ];
        let mut spoilt = two.clone();
        spoilt[5] ^= 1;
        let bytes = match fault {
            0 => [one, two, three].concat(),
            1 => [&one[..], &spoilt, &three].concat(),
            2 => [&one[..], &one, &two].concat(),
            3 => [one, three].concat(),
            4 => [&one[..], &[0, 0]].concat(),
            _ => [&one[..], &[0xff, 0xff]].concat(),
        };
        line.write_all(&bytes).await.unwrap();
        drop(line);
        let mut got = Vec::new();
        let ended = reader.read_to_end(&mut got).await;
        if fault == 0 {
            assert_eq!((ended.unwrap(), &got[..]), (11, &b"onetwothree"[..]));
        } else {
            assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::InvalidData, "fault {fault}");
            assert!(b"one".starts_with(&got[..]), "fault {fault}: {got:?}");
        }
    }
}

#[test]
fn secret_is_kept_as_text_and_not_shown() {
    let secret = secret();
    let text = serde_json::to_string(&secret).unwrap();
    let again: Secret = serde_json::from_str(&text).unwrap();
    assert_eq!(again, secret);
    assert!(!format!("{secret:?}").contains(&text[1..9]));
    for wrong in ["\"\"", "\"0g\"", "\"é0\"", "7"] {
        assert!(serde_json::from_str::<Secret>(wrong).is_err(), "{wrong}");
    }
}
