use konklave_algorithms::mutex::ricart_agrawala::RicartAgrawala;
use konklave_sim::Delay;
use konklave_testkit::Case;

#[test]
fn twice_the_others_for_each_entry_and_one_delay_between_entries() {
    for n in [1, 2, 3, 10, 50] {
        let seen = Case::<RicartAgrawala>::complete(n).requests(&vec![4; n]).simulate();
        assert_eq!(seen.well().sent, 4 * n as u64 * 2 * (n as u64 - 1), "n = {n}");
        if n > 1 {
            let delay = seen.summary.sync_delay.unwrap();
            assert_eq!((delay.min, delay.max), (1.0, 1.0));
        }
    }
}

#[test]
fn every_run_of_three_is_right_in_any_order_of_messages() {
    let case = Case::<RicartAgrawala>::complete(3).requests(&[2, 2, 1]).fenced();
    case.check().exhausted(19414);
    case.no_fifo().check().exhausted(50627);
}

#[test]
fn every_run_costs_the_same() {
    let case = Case::<RicartAgrawala>::complete(3).requests(&[2, 2, 1]).counting();
    assert_eq!(case.check().messages, Some((20, 20)));
    assert_eq!(case.no_fifo().check().messages, Some((20, 20)));
}

#[test]
fn order_holds_only_if_replies_carry_the_clock() {
    let case = Case::<RicartAgrawala>::complete(3).requests(&[2, 1, 1]).ordered();
    case.check().exhausted(8231);
    case.clone().no_fifo().check().exhausted(20204);
    case.clone().mistake("request-clock").check().violated("happened-before order", 14);
    case.no_fifo().mistake("request-clock").check().violated("happened-before order", 13);
}

#[test]
fn ids_break_ties() {
    let case = Case::<RicartAgrawala>::complete(2).mistake("no-tie-break");
    case.check().violated("mutual exclusion", 6);
}

#[test]
fn a_duplicate_does_no_harm() {
    let case = Case::<RicartAgrawala>::complete(3).requests(&[1, 1, 0]).mishaps(0, 1).no_fifo();
    case.check().exhausted(1868);
    // A copy of the first request comes while the second waits for its reply.
    let case = Case::<RicartAgrawala>::complete(2).requests(&[2, 2]).mishaps(0, 1).no_fifo();
    case.check().exhausted(1979);
}

#[test]
fn random_delays_and_any_order_do_no_harm() {
    for seed in 0..300 {
        let case = Case::<RicartAgrawala>::complete(7).requests(&[5; 7]).no_fifo().config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
        });
        assert_eq!(case.simulate().well().sent, 7 * 5 * 12, "seed {seed}");
    }
}

#[test]
fn a_simple_majority_of_replies_is_not_enough() {
    let case = Case::<RicartAgrawala>::complete(3).requests(&[1, 1, 0]);
    case.check().exhausted(170);
    case.clone().mistake("simple-majority").check().violated("mutual exclusion", 6);
    case.no_fifo().mistake("simple-majority").check().violated("mutual exclusion", 6);
    let case = Case::<RicartAgrawala>::complete(5).requests(&[1, 1, 0, 0, 0]);
    case.check().exhausted(14_474);
    case.clone().mistake("simple-majority").check().violated("mutual exclusion", 10);
    case.no_fifo().mistake("simple-majority").check().violated("mutual exclusion", 10);
}
