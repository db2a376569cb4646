use konklave_algorithms::mutex::singhal::Singhal as A;
use konklave_algorithms::Algorithm;
use konklave_testkit::Case;
pub(crate) fn show<P: Algorithm>(name: &str, c: &Case<P>) {
    let t = std::time::Instant::now();
    let mut c = c.clone();
    c.options.max_states = 2_500_000;
    let f = c.check();
    println!("{name}: {} {:?} {} | {} states | msgs {:?} | {:?}", f.verdict, f.property, f.length, f.states, f.messages, t.elapsed());
    if std::env::var("W").is_ok_and(|w| name.contains(&w)) { println!("{}", f.witness); }
}
#[test]
fn scratch() {
    let r = |n| Case::<A>::complete(n).fenced();
    for fifo in [true, false] {
        let f = |c: Case<A>| if fifo { c } else { c.no_fifo() };
        for m in ["as-printed", "only-merge", "only-hints"] {
            for req in [&[1,1,2][..], &[2,2,2], &[1,1,2,1]] {
                for a in ["round-robin", "smallest", "nearest"] {
                    show(&format!("{fifo} {m} {req:?} {a}"), &f(r(req.len()).requests(req).mistake(m).set("arbitration", a)));
                }
            }
        }
        for m in ["no-echo", "no-staircase"] { for req in [&[1,1,1][..], &[0,1,1]] {
            show(&format!("{fifo} {m} {req:?}"), &f(r(3).requests(req).mistake(m)));
        }}
        for req in [&[1,1,1][..], &[1,1,2][..], &[2,2,2]] {
            for a in ["round-robin", "smallest", "nearest"] {
                show(&format!("{fifo} ok {req:?} {a}"), &f(r(req.len()).requests(req).set("arbitration", a)));
            }
            show(&format!("{fifo} ok cnt {req:?}"), &f(r(req.len()).requests(req).counting()));
        }
        show(&format!("{fifo} order"), &f(r(3).requests(&[0,1,1]).ordered()));
        show(&format!("{fifo} printed 1111 cnt"), &f(r(4).mistake("as-printed").counting().judge(&["mutual exclusion"])));
        show(&format!("{fifo} ok 1111 cnt"), &f(r(4).counting().judge(&["mutual exclusion"])));
    }
}
