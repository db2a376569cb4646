//! Enumerates the answers of `choose`.

/// The answers during one step: digits with their bounds. [`Draws::advance`] counts them up like an odometer.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Draws {
    digits: Vec<(u32, u32)>,
    used: usize,
}

impl Draws {
    /// The next answer, below `bound`.
    pub(crate) fn draw(&mut self, bound: u32) -> u32 {
        if self.used == self.digits.len() {
            self.digits.push((0, bound));
        }
        self.used += 1;
        self.digits[self.used - 1].0.min(bound.saturating_sub(1))
    }

    /// Gives these answers, each limited to its bound; after them, 0.
    pub(crate) fn of(answers: Vec<u32>) -> Self {
        Self { digits: answers.into_iter().map(|answer| (answer, u32::MAX)).collect(), used: 0 }
    }

    /// Moves on to the next series of answers; returns false if there is none.
    pub(crate) fn advance(&mut self) -> bool {
        self.digits.truncate(self.used);
        self.used = 0;
        while let Some((digit, bound)) = self.digits.pop() {
            if digit + 1 < bound {
                self.digits.push((digit + 1, bound));
                return true;
            }
        }
        false
    }

    /// The answers given so far.
    pub(crate) fn values(&self) -> Vec<u32> {
        self.digits[..self.used].iter().map(|(digit, _)| *digit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advance_gives_every_series_once() {
        let mut draws = Draws::default();
        let mut seen = Vec::new();
        loop {
            // The second draw happens only after a 1.
            let first = draws.draw(2);
            seen.push(if first == 1 { vec![1, draws.draw(3)] } else { vec![0] });
            if !draws.advance() {
                break;
            }
        }
        assert_eq!(seen, [vec![0], vec![1, 0], vec![1, 1], vec![1, 2]]);
    }
}
