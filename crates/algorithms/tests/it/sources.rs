//! The sources that data sheets cite.

/// The lectures of the course, by their titles.
const LECTURES: &[&str] =
    &["Gegenseitiger Ausschluss", "Wahlalgorithmen", "Übereinstimmung und Koordination"];

#[test]
fn every_cited_lecture_is_one_of_the_course() {
    let all = [
        konklave_builtin_election::ALGORITHMS,
        konklave_builtin_group::ALGORITHMS,
        konklave_builtin_group::DETECTORS,
        konklave_builtin_multicast::ALGORITHMS,
        konklave_builtin_mutex::ALGORITHMS,
    ];
    let mut cited = 0;
    for sheet in all.concat().iter().map(|algorithm| algorithm.sheet()) {
        for title in sheet.source.split("lecture \"").skip(1) {
            let title = title.split('"').next().unwrap_or_default();
            assert!(LECTURES.contains(&title), "{}: there is no lecture {title:?}", sheet.name);
            cited += 1;
        }
        assert!(!sheet.source.contains("lectures \""), "{}: cite each lecture", sheet.name);
    }
    assert!(cited >= 20, "{cited}");
}
