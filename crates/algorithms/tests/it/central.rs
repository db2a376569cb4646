use konklave_algorithms::mutex::central::Central;
use konklave_testkit::Case;

#[test]
fn three_messages_for_each_entry_of_another_and_none_for_the_coordinator() {
    for n in [1, 2, 3, 10, 100] {
        let seen = Case::<Central>::complete(n).requests(&vec![3; n]).simulate();
        assert_eq!(seen.well().sent, 9 * (n as u64 - 1), "n = {n}");
        assert_eq!(seen.summary.entries, 3 * n as u64);
    }
}

#[test]
fn every_run_of_three_is_right_in_any_order_of_messages() {
    Case::<Central>::complete(3).requests(&[1, 2, 1]).check().exhausted(220);
    Case::<Central>::complete(3).requests(&[1, 2, 1]).no_fifo().check().exhausted(242);
    Case::<Central>::complete(3).requests(&[0, 2, 2]).check().exhausted(123);
    Case::<Central>::complete(3).requests(&[0, 2, 2]).fenced().no_fifo().check().exhausted(141);
}

#[test]
fn a_duplicate_does_no_harm_unless_releases_are_unnumbered() {
    let case = Case::<Central>::complete(4).requests(&[0, 1, 1, 1]).mishaps(0, 1);
    case.check().exhausted(1132);
    case.mistake("unnumbered-release").check().violated("mutual exclusion", 13);
}

#[test]
fn order_holds_by_protocol_messages_and_breaks_by_a_message_of_the_application() {
    let mut case = Case::<Central>::complete(3).requests(&[0, 1, 1]).ordered();
    case.check().exhausted(34);
    case.options.app_messages = 1;
    case.check().violated("happened-before order", 6);
}
