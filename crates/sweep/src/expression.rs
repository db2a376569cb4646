//! Values that depend on the number of nodes: `think = "exponential:10*n"`.

use serde_json::Value;

/// `value` for `n` nodes: every expression of n in it is replaced by its value. Words without such an expression stay
/// as they are.
pub(crate) fn fill(value: &Value, n: usize) -> Value {
    match value {
        Value::String(text) => match evaluate(text, n) {
            Some(x) => number(x),
            None => Value::String(filled(text, n)),
        },
        Value::Array(values) => values.iter().map(|value| fill_word(value, n)).collect(),
        other => other.clone(),
    }
}

/// As [`fill`], for an element of a list of words.
fn fill_word(value: &Value, n: usize) -> Value {
    value.as_str().map_or_else(|| value.clone(), |text| Value::String(filled(text, n)))
}

/// A whole number as such.
fn number(x: f64) -> Value {
    if x.fract() == 0.0 && x.abs() < 1e15 { Value::from(x as i64) } else { Value::from(x) }
}

/// The parts of a scenario's values stand between these.
const BETWEEN: [&str; 5] = ["..", ":", ",", "@", "="];

fn filled(text: &str, n: usize) -> String {
    let (mut rest, mut out) = (text, String::new());
    loop {
        let cut = BETWEEN.iter().filter_map(|b| Some((rest.find(b)?, *b))).min_by_key(|(i, _)| *i);
        let (part, between) = cut.map_or((rest, ""), |(i, between)| (&rest[..i], between));
        match evaluate(part, n) {
            Some(x) => out += &number(x).to_string(),
            None => out += part,
        }
        out += between;
        rest = &rest[part.len() + between.len()..];
        if between.is_empty() {
            return out;
        }
    }
}

/// The value of an expression of n; none if `text` is no expression, does not mention n, or has no finite value.
fn evaluate(text: &str, n: usize) -> Option<f64> {
    let mut parser = Parser { rest: text.trim(), n: n as f64, uses_n: false };
    let x = parser.sum()?;
    (parser.rest.is_empty() && parser.uses_n && x.is_finite()).then_some(x)
}

struct Parser<'a> {
    rest: &'a str,
    n: f64,
    uses_n: bool,
}

impl Parser<'_> {
    /// Takes one of `signs`, if it comes next.
    fn sign(&mut self, signs: &[char]) -> Option<char> {
        let sign = self.rest.chars().next().filter(|c| signs.contains(c))?;
        self.rest = self.rest[1..].trim_start();
        Some(sign)
    }

    fn sum(&mut self) -> Option<f64> {
        let mut x = self.product()?;
        while let Some(sign) = self.sign(&['+', '-']) {
            let y = self.product()?;
            x = if sign == '+' { x + y } else { x - y };
        }
        Some(x)
    }

    fn product(&mut self) -> Option<f64> {
        let mut x = self.power()?;
        while let Some(sign) = self.sign(&['*', '/']) {
            let y = self.power()?;
            x = if sign == '*' { x * y } else { x / y };
        }
        Some(x)
    }

    fn power(&mut self) -> Option<f64> {
        if self.sign(&['-']).is_some() {
            return self.power().map(|x| -x);
        }
        let base = self.atom()?;
        match self.sign(&['^']) {
            Some(_) => Some(base.powf(self.power()?)),
            None => Some(base),
        }
    }

    fn atom(&mut self) -> Option<f64> {
        if self.sign(&['(']).is_some() {
            let x = self.sum()?;
            return self.sign(&[')']).map(|_| x);
        }
        let inside = |c: char| c.is_ascii_alphanumeric() || c == '.';
        let end = self.rest.find(|c| !inside(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        if word.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return word.parse().ok();
        }
        if word == "n" {
            self.uses_n = true;
            return Some(self.n);
        }
        let function: fn(f64) -> f64 = match word {
            "log2" => f64::log2,
            "ln" => f64::ln,
            "sqrt" => f64::sqrt,
            "ceil" => f64::ceil,
            "floor" => f64::floor,
            "round" => f64::round,
            _ => return None,
        };
        self.sign(&['('])?;
        let x = self.sum()?;
        self.sign(&[')']).map(|_| function(x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_n_have_their_value() {
        for (text, n, x) in [
            ("n", 7, 7.0),
            ("n*10", 4, 40.0),
            ("2 * (n - 1)", 5, 8.0),
            ("n - 1 - 1", 5, 3.0),
            ("-n + 2^3^1", 5, 3.0),
            ("1000/n/2", 4, 125.0),
            ("ceil(log2(n)) + n", 9, 13.0),
            ("sqrt(n)*1.5", 16, 6.0),
        ] {
            assert_eq!(evaluate(text, n), Some(x), "{text}");
        }
    }

    #[test]
    fn words_are_no_expressions() {
        for text in
            ["", "5", "ring", "never", "asc", "n n", "n*", "(n", "nodes", "1/(n-5)", "sin(n)"]
        {
            assert_eq!(evaluate(text, 5), None, "{text}");
        }
    }

    #[test]
    fn expressions_are_found_inside_values() {
        let fill = |value: Value| fill(&value, 5);
        assert_eq!(fill("n*10".into()), Value::from(50));
        assert_eq!(fill("1/n".into()), Value::from(0.2));
        assert_eq!(fill("exponential:10*n".into()), Value::from("exponential:50"));
        assert_eq!(fill("uniform:n..2*n".into()), Value::from("uniform:5..10"));
        assert_eq!(fill("arrivals:n/2".into()), Value::from("arrivals:2.5"));
        let faults = ["crash:n-1@3", "lose:/Token#2"].map(Value::from);
        let filled = ["crash:4@3", "lose:/Token#2"].map(Value::from);
        assert_eq!(fill(Value::from(faults.to_vec())), Value::from(filled.to_vec()));
        assert_eq!(fill("random".into()), Value::from("random"));
        assert_eq!(fill(Value::from(7)), Value::from(7));
    }
}
