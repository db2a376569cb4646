use super::*;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("konklave-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn record() -> Record {
    let members = vec![(3, "a".into())];
    Record { id: 3, key: 4, incarnation: 5, generation: 6, members, ..Record::default() }
}

#[test]
fn saved_record_is_read_again() {
    let folder = folder("store");
    let (store, nothing) = Store::open(&folder).unwrap();
    assert_eq!(nothing, None);
    store.save(&record()).unwrap();
    assert!(Store::open(&folder).is_err(), "one process at a time");
    drop(store);
    let (_, kept) = Store::open(&folder).unwrap();
    assert_eq!(kept, Some(Record { schema: SCHEMA.into(), ..record() }));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn unreadable_record_is_an_error() {
    let folder = folder("garbage");
    fs::create_dir_all(&folder).unwrap();
    let other =
        serde_json::to_vec(&Record { schema: "konklave.node/9".into(), ..record() }).unwrap();
    for bytes in [&b"{"[..], b"", b"[1]", &other] {
        fs::write(folder.join(FILE), bytes).unwrap();
        let error = Store::open(&folder).unwrap_err();
        assert!(matches!(error, Error::Store(ref path, _) if path.ends_with(FILE)), "{error}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn failed_write_keeps_old_record() {
    let folder = folder("full");
    let (store, _) = Store::open(&folder).unwrap();
    store.save(&record()).unwrap();
    // In the way of the temporary file.
    fs::create_dir(folder.join("node.json.new")).unwrap();
    let later = Record { incarnation: 6, ..record() };
    assert!(store.save(&later).is_err());
    fs::remove_dir(folder.join("node.json.new")).unwrap();
    drop(store);
    let (store, kept) = Store::open(&folder).unwrap();
    assert_eq!(kept.unwrap().incarnation, 5);
    store.save(&later).unwrap();
    fs::remove_dir_all(&folder).unwrap();
}
