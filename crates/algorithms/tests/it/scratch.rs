use konklave_algorithms::Algorithm;
use konklave_testkit::Case;
pub fn run<P: Algorithm>(spec: &str) {
    // n key=value ... ; keys: req, fifo=0, m, prop, count, fence, order, app, dup, loss, crash; others: switches
    let mut words = spec.split_whitespace();
    let n: usize = words.next().unwrap().parse().unwrap();
    let mut case = Case::<P>::complete(n);
    for w in words {
        let (k, v) = w.split_once('=').unwrap();
        case = match k {
            "req" => case.requests(&v.split(',').map(|x| x.parse().unwrap()).collect::<Vec<u32>>()),
            "fifo" => case.no_fifo(),
            "m" => case.mistake(v),
            "prop" => case.judge(&v.split(',').map(|s| match s { "ex" => "mutual exclusion", "q" => "quiescence", "d" => "deadlock", "f" => "growing fences", "o" => "happened-before order", "e"=>"expected inputs", x => panic!("{x}") }).collect::<Vec<_>>()),
            "count" => case.counting(),
            "fence" => case.fenced(),
            "order" => case.ordered(),
            "app" => { case.options.app_messages = v.parse().unwrap(); case }
            "dup" => case.mishaps(0, v.parse().unwrap()),
            "loss" => case.mishaps(v.parse().unwrap(), 0),
            "crash" => case.crashes(v.parse().unwrap(), 0),
            "max" => { case.options.max_states = v.parse().unwrap(); case }
            _ => case.set(k, v),
        };
    }
    let t = std::time::Instant::now();
    let found = case.check();
    let show = std::env::var("SHOW").is_ok();
    let text = format!("{found:?}");
    println!("[{}] {spec}: {} {:?}", P::SHEET.name, if show { &text } else { text.lines().next().unwrap() }, t.elapsed());
}
#[test]
fn scratch() {
    let Ok(spec) = std::env::var("KC") else { return };
    for line in spec.split('|') {
        let (name, rest) = line.trim().split_once(' ').unwrap();
        match name {
            "maekawa" => run::<konklave_algorithms::mutex::maekawa::Maekawa>(rest),
            "sanders" => run::<konklave_algorithms::mutex::sanders::Sanders>(rest),
            "voting" => run::<konklave_algorithms::mutex::voting::Voting>(rest),
            "cs" => run::<konklave_algorithms::mutex::cao_singhal::CaoSinghal>(rest),
            _ => panic!("{name}"),
        }
    }
}
#[test]
fn big() {
    let Ok(spec) = std::env::var("KB") else { return };
    let w: Vec<&str> = spec.split_whitespace().collect();
    let n: usize = w[1].parse().unwrap();
    let every: usize = w[2].parse().unwrap();
    let requests: Vec<u32> = (0..n).map(|i| u32::from(i % every == 0)).collect();
    fn go<P: Algorithm>(n: usize, q: &str, r: &[u32]) -> (u64, f64) {
        let t = std::time::Instant::now();
        let case = Case::<P>::complete(n).set("quorums", q).requests(r);
        let seen = case.simulate();
        seen.well();
        println!("{:?} {:?}", t.elapsed(), seen.kinds);
        (seen.sent, seen.time)
    }
    let r = if w[3] == "cs" { go::<konklave_algorithms::mutex::cao_singhal::CaoSinghal>(n, w[0], &requests) } else { go::<konklave_algorithms::mutex::maekawa::Maekawa>(n, w[0], &requests) };
    println!("{spec}: {r:?} per entry {}", r.0 as f64 / requests.iter().sum::<u32>() as f64);
}
