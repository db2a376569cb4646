use konklave_algorithms::mutex::singhal::Singhal as A;
use konklave_algorithms::Algorithm;
use konklave_testkit::Case;
pub(crate) fn show<P: Algorithm>(name: &str, c: &Case<P>) {
    let t = std::time::Instant::now();
    let mut c = c.clone();
    c.options.max_states = 6_000_000;
    let f = c.check();
    println!("{name}: {} {:?} {} | {} states | msgs {:?} | {:?}", f.verdict, f.property, f.length, f.states, f.messages, t.elapsed());
    if std::env::var("W").is_ok_and(|w| name.contains(&w)) { println!("{}", f.witness); }
}
#[test]
fn scratch() {
    show("4 1121 nofifo", &Case::<A>::complete(4).requests(&[1,1,2,1]).no_fifo());
    show("3 333 nofifo", &Case::<A>::complete(3).requests(&[3,3,3]).no_fifo());
    show("4 1222", &Case::<A>::complete(4).requests(&[1,2,2,2]));
}
