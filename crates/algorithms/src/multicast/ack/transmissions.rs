//! How often a sender has to transmit a message.

/// The mean number of transmissions until all `receivers` have a message, if each transmission misses
/// each receiver with probability `loss`: Σ 1 − (1 − pⁱ)ʳ.
pub fn expected_transmissions(loss: f64, receivers: usize) -> f64 {
    (0..2000).map(|i| 1.0 - (1.0 - loss.powi(i)).powi(receivers as i32)).sum()
}

/// The standard deviation of that number.
pub fn deviation_of_transmissions(loss: f64, receivers: usize) -> f64 {
    let more_than = |i: i32| 1.0 - (1.0 - loss.powi(i)).powi(receivers as i32);
    let square: f64 = (0..2000).map(|i| f64::from(2 * i + 1) * more_than(i)).sum();
    (square - expected_transmissions(loss, receivers).powi(2)).max(0.0).sqrt()
}
