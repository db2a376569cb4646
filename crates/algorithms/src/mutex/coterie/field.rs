//! Finite fields: as much arithmetic as projective planes need.

/// The field with q elements, q a power of a prime p. Its elements are 0 to q − 1; the digits of an
/// element to the base p are the coefficients of a polynomial, so 0 is zero and 1 is one.
#[derive(Clone, Debug)]
pub(super) struct Field {
    prime: usize,
    /// The powers of a generator, in order: every element but 0.
    powers: Vec<usize>,
    /// Which power each element is; nothing for 0.
    logs: Vec<usize>,
}

impl Field {
    /// The field with `order` elements; none unless that is a power of a prime.
    pub(super) fn new(order: usize) -> Option<Self> {
        let prime = prime_of(order)?;
        // Polynomials modulo xᵏ − r, r of lower degree: if the powers of x reach every element but
        // 0, they form a field. Such an r exists, for the field exists and has a generator.
        let powers = (1..order).find_map(|r| powers_of_x(r, prime, order))?;
        let mut logs = vec![0; order];
        for (log, &element) in powers.iter().enumerate() {
            logs[element] = log;
        }
        Some(Self { prime, powers, logs })
    }

    /// How many elements there are.
    pub(super) fn order(&self) -> usize {
        self.logs.len()
    }

    pub(super) fn add(&self, a: usize, b: usize) -> usize {
        digitwise(a, b, self.prime, |x, y| x + y)
    }

    pub(super) fn sub(&self, a: usize, b: usize) -> usize {
        digitwise(a, b, self.prime, |x, y| x + self.prime - y)
    }

    pub(super) fn mul(&self, a: usize, b: usize) -> usize {
        if a == 0 || b == 0 {
            return 0;
        }
        self.powers[(self.logs[a] + self.logs[b]) % self.powers.len()]
    }
}

/// The prime that `n` is a power of, if it is one.
pub(super) fn prime_of(n: usize) -> Option<usize> {
    let prime = (2..=n).find(|d| n.is_multiple_of(*d))?;
    let mut rest = n;
    while rest.is_multiple_of(prime) {
        rest /= prime;
    }
    (rest == 1).then_some(prime)
}

/// 1, x, x², … modulo xᵏ − r, if they are all different until there is no further element.
fn powers_of_x(r: usize, prime: usize, order: usize) -> Option<Vec<usize>> {
    let leading = order / prime;
    let mut powers = Vec::with_capacity(order - 1);
    let mut element = 1;
    loop {
        powers.push(element);
        let top = element / leading;
        let shifted = element % leading * prime;
        element = digitwise(shifted, r, prime, |x, y| x + top * y);
        match (element, powers.len() == order - 1) {
            (1, true) => return Some(powers),
            (0 | 1, _) | (_, true) => return None,
            (_, false) => {}
        }
    }
}

/// Combines two elements coefficient by coefficient.
fn digitwise(a: usize, b: usize, prime: usize, f: impl Fn(usize, usize) -> usize) -> usize {
    let (mut a, mut b, mut unit, mut sum) = (a, b, 1, 0);
    while a > 0 || b > 0 {
        sum += f(a % prime, b % prime) % prime * unit;
        (a, b, unit) = (a / prime, b / prime, unit * prime);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_primes_are_told_from_other_numbers() {
        let orders: Vec<usize> = (0..33).filter(|&n| prime_of(n).is_some()).collect();
        assert_eq!(orders, [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32]);
        assert!(Field::new(6).is_none() && Field::new(1).is_none() && Field::new(0).is_none());
    }

    #[test]
    fn the_laws_of_a_field_hold() {
        for q in [2, 3, 4, 5, 7, 8, 9, 16, 25, 27] {
            let f = Field::new(q).unwrap();
            assert_eq!(f.order(), q);
            for a in 0..q {
                assert_eq!((f.add(a, 0), f.mul(a, 1), f.mul(a, 0)), (a, a, 0), "GF({q})");
                assert_eq!(f.sub(a, a), 0);
                assert_eq!((0..q).filter(|&b| f.mul(a, b) == 1).count(), usize::from(a > 0));
                for b in 0..q {
                    assert_eq!(f.add(a, b), f.add(b, a));
                    assert_eq!(f.mul(a, b), f.mul(b, a));
                    assert_eq!(f.add(f.sub(a, b), b), a);
                    for c in 0..q {
                        assert_eq!(f.mul(a, f.add(b, c)), f.add(f.mul(a, b), f.mul(a, c)));
                        assert_eq!(f.mul(a, f.mul(b, c)), f.mul(f.mul(a, b), c));
                    }
                }
            }
        }
    }

    #[test]
    fn larger_fields_exist_too() {
        for q in [49, 64, 81, 97, 101, 121, 125, 128, 243, 256, 317, 343] {
            let f = Field::new(q).unwrap();
            assert!((1..q).all(|a| (1..q).any(|b| f.mul(a, b) == 1)), "GF({q})");
        }
    }
}
