//! The arithmetic against exact rational numbers, computed another way: roundings from their
//! definitions by comparing fractions, sums as fractions, encodings from f64 and the `half` crate.
#![allow(missing_docs)]

use mmaprobe_machines::dyadic::Dyadic;
use mmaprobe_machines::generate::Dice;
use mmaprobe_machines::rounding::Rounding;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};

fn power(exponent: i32) -> BigRational {
    let magnitude = BigRational::from_integer(BigInt::one() << exponent.unsigned_abs());
    if exponent < 0 { magnitude.recip() } else { magnitude }
}

/// A random integer of up to 120 bits and a unit, with its fraction.
fn number(dice: &mut Dice, units: usize) -> (Dyadic, BigRational) {
    let bits = dice.below(120) as u32;
    let magnitude = (u128::from(dice.bits()) << 64 | u128::from(dice.bits())) >> (127 - bits) >> 1;
    // Few bits set, now and then, for ties.
    let magnitude = if dice.percent(40) { magnitude & (3 << bits >> 1 | 1) } else { magnitude };
    let value = if dice.percent(50) { magnitude as i128 } else { -(magnitude as i128) };
    let unit = dice.below(units) as i32 - units as i32 / 2;
    (Dyadic::new(value, unit), BigRational::from_integer(BigInt::from(value)) * power(unit))
}

/// Whether `x` is `expected`, by difference: only a zero difference has no leading one.
fn equals(x: &Dyadic, expected: &BigRational) -> bool {
    // x as a fraction, from its decisions alone: leading exponents of x minus powers of two.
    let mut rest = x.clone();
    let mut sum = BigRational::zero();
    while let Some(leading) = rest.leading() {
        let (bit, value) = (Dyadic::power(leading), power(leading));
        if rest.is_negative() {
            sum -= value;
            rest = Dyadic::sum([&rest, &bit].into_iter());
        } else {
            sum += value;
            rest = Dyadic::sum([&rest, &bit.negated()].into_iter());
        }
    }
    sum == *expected
}

/// IEEE 754 and the MMA-Sim paper's Tables I and II, in fractions.
fn defined(x: &BigRational, quantum: i32, rounding: Rounding) -> BigRational {
    let step = power(quantum);
    let scaled = x / &step;
    let (floor, ceil) = (scaled.floor(), scaled.ceil());
    let half = BigRational::new(BigInt::one(), BigInt::from(2));
    let rest = &scaled - &floor;
    let even = |x: &BigRational| (x.to_integer() % BigInt::from(2)).is_zero();
    let toward_zero = if x.is_negative() { ceil.clone() } else { floor.clone() };
    let away = if x.is_negative() { floor.clone() } else { ceil.clone() };
    let odd = if even(&floor) { ceil.clone() } else { floor.clone() };
    let even_one = if even(&floor) { floor.clone() } else { ceil.clone() };
    let nearest = |tie: BigRational| match rest.cmp(&half) {
        std::cmp::Ordering::Less => floor.clone(),
        std::cmp::Ordering::Greater => ceil.clone(),
        std::cmp::Ordering::Equal => tie,
    };
    let rounded = if floor == scaled {
        floor.clone()
    } else {
        match rounding {
            Rounding::Up => ceil.clone(),
            Rounding::Down => floor.clone(),
            Rounding::Zero => toward_zero,
            Rounding::Away => away,
            Rounding::NearestUp => nearest(ceil.clone()),
            Rounding::NearestDown => nearest(floor.clone()),
            Rounding::NearestZero => nearest(toward_zero),
            Rounding::NearestAway => nearest(away),
            Rounding::NearestEven => nearest(even_one),
            Rounding::NearestOdd => nearest(odd),
            Rounding::Sticky => odd,
        }
    };
    rounded * step
}

#[test]
fn roundings_are_as_defined() {
    let mut dice = Dice::new(1, 0, 100);
    for _ in 0..1000 {
        let (x, exact) = number(&mut dice, 40);
        let quantum = dice.below(180) as i32 - 40;
        for rounding in Rounding::TABLES.into_iter().chain([Rounding::Sticky]) {
            let rounded = x.rounded(quantum, rounding);
            let expected = defined(&exact, quantum, rounding);
            assert!(equals(&rounded, &expected), "{exact} to 2^{quantum} {rounding}: {rounded:?}");
            assert!(rounded.is_multiple_of(quantum));
        }
        let is_multiple = (&exact / power(quantum)).is_integer();
        assert_eq!(x.is_multiple_of(quantum), is_multiple, "{exact}, 2^{quantum}");
    }
}

#[test]
fn sums_of_any_width_are_exact_and_round_as_defined() {
    let mut dice = Dice::new(2, 0, 100);
    for round in 0..400 {
        // Units far apart make long integers.
        let units = [30, 300, 2000][round % 3];
        let numbers: Vec<(Dyadic, BigRational)> =
            (0..1 + dice.below(5)).map(|_| number(&mut dice, units)).collect();
        let sum = Dyadic::sum(numbers.iter().map(|(x, _)| x));
        let exact: BigRational = numbers.iter().map(|(_, x)| x).sum();
        assert!(equals(&sum, &exact));
        assert_eq!(sum.is_negative(), exact.is_negative());
        let quantum = dice.below(units) as i32 - units as i32 / 2 + 60;
        let rounding = dice.pick(&Rounding::TABLES);
        assert!(equals(&sum.rounded(quantum, rounding), &defined(&exact, quantum, rounding)));
        let factor = dice.bits() as u32;
        let product = exact * BigRational::from_integer(BigInt::from(factor)) * power(-3);
        assert!(equals(&sum.times(factor, -3), &product));
    }
}

#[test]
fn a_sum_to_round_rounds_as_the_sum_does() {
    let mut dice = Dice::new(3, 0, 100);
    for round in 0..20_000 {
        let units = [100, 300, 2000][round % 3];
        let ((x, _), (y, _)) = (number(&mut dice, units), number(&mut dice, units));
        let (exact, other) = (Dyadic::sum([&x, &y].into_iter()), Dyadic::sum_to_round(&x, &y));
        assert_eq!(exact.leading().is_some(), other.leading().is_some());
        let Some(leading) = exact.leading() else { continue };
        let quantum = leading - 52 + dice.below(60) as i32;
        for rounding in Rounding::TABLES {
            let (x, y) = (exact.rounded(quantum, rounding), other.rounded(quantum, rounding));
            assert!(Dyadic::sum([&x, &y.negated()].into_iter()).is_zero(), "2^{quantum} {rounding}");
        }
    }
}
