//! Numbers, points and tables against other libraries' arithmetic, and which signer gets a place.
//! Whole signatures are in `signatures`.

mod signatures;

use super::scalar::{Half, ORDER, cut};
use super::table::{Layout, terms_of, whole_table};
use super::*;
use crate::auth::{Curve, Signer, keccak};
use field::Field;
use point::{Pair, Sum, add_pairs};
use proptest::prelude::*;
use ruint::aliases::U256;
use secp256k1::{PublicKey, Scalar, Secp256k1, SecretKey};

/// λ: multiplying by it takes (x, y) to (β x, y).
pub(super) const LAMBDA: U256 = U256::from_limbs([
    0xdf02_967c_1b23_bd72,
    0x122e_22ea_2081_6678,
    0xa526_1c02_8812_645a,
    0x5363_ad4c_c05c_30e0,
]);

/// number * G by libsecp256k1; none for the point at infinity.
fn generator_times(number: U256) -> Option<PublicKey> {
    let secret = SecretKey::from_byte_array(number.to_be_bytes()).ok()?;
    Some(PublicKey::from_secret_key(&Secp256k1::new(), &secret))
}

/// number * point by libsecp256k1.
fn times(point: &PublicKey, number: U256) -> Option<PublicKey> {
    let number = Scalar::from_be_bytes(number.to_be_bytes()).ok()?;
    point.mul_tweak(&Secp256k1::new(), &number).ok()
}

fn coordinates(point: &PublicKey) -> (U256, U256) {
    let bytes = point.serialize_uncompressed();
    (U256::from_be_slice(&bytes[1..33]), U256::from_be_slice(&bytes[33..]))
}

fn point_of(point: &PublicKey) -> Point {
    let (x, y) = coordinates(point);
    Point::new(x, y)
}

/// Numbers at the borders of cutting and of digits.
pub(super) fn borders() -> Vec<U256> {
    let digits = |byte: u8| U256::from_be_bytes([byte; 32]);
    let small = [0, 1, 2, 3, 127, 128, 129, 255, 256, 2_047, 2_048, 2_049, 4_095, 4_096].map(U256::from);
    let powers = (1..256).step_by(9).map(|bit| U256::from(1) << bit);
    let patterns = [0x7f, 0x80, 0x81, 0x88, 0x08, 0xf0, 0xff].map(digits);
    let halves = [ORDER >> 1, (ORDER >> 1) + U256::from(1), U256::from(u128::MAX), LAMBDA];
    let mut all: Vec<_> = small.into_iter().chain(powers).chain(patterns).chain(halves).collect();
    all.extend(all.clone().iter().map(|number| number.mul_mod(LAMBDA, ORDER)));
    all.extend(all.clone().iter().map(|number| ORDER - number.reduce_mod(ORDER)));
    all.into_iter().map(|number| number.reduce_mod(ORDER)).collect()
}

#[track_caller]
fn cuts_exactly(number: U256) {
    let value = |half: Half| {
        let magnitude = U256::from(half.magnitude);
        if half.negative { (ORDER - magnitude).reduce_mod(ORDER) } else { magnitude }
    };
    let [first, second] = cut(number).map(value);
    assert_eq!(first.add_mod(second.mul_mod(LAMBDA, ORDER), ORDER), number, "{number:#x}");
}

#[test]
fn a_number_is_the_sum_of_its_halves() {
    borders().into_iter().for_each(cuts_exactly);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]
    #[test]
    fn any_number_is_the_sum_of_its_halves(limbs: [u64; 4]) {
        cuts_exactly(U256::from_limbs(limbs).reduce_mod(ORDER));
    }
}

#[test]
fn every_point_of_a_table_is_the_multiple_that_its_place_says() {
    let key = generator_times(U256::from(0xdead_beef_u64)).expect("not zero");
    for (layout, point) in [(OF_SIGNER, &key), (OF_GENERATOR, &generator_times(U256::ONE).expect("G"))] {
        let table = whole_table(layout, point_of(point));
        assert_eq!(table.len(), layout.points());
        let mut at = 0;
        for window in 0..layout.windows() {
            let last = window + 1 == layout.windows();
            let bits = if last { 128 - layout.width * window } else { layout.width - 1 };
            let first = times(point, U256::from(1) << (layout.width * window)).expect("not zero");
            let mut multiple = first;
            for entry in 1..=1 << bits {
                assert_eq!(table[at].coordinates(), coordinates(&multiple), "{entry} in window {window}");
                at += 1;
                multiple = multiple.combine(&first).expect("not zero");
            }
        }
        assert_eq!(at, table.len());
    }
}

#[test]
fn digits_sum_to_their_half_at_any_width() {
    let magnitudes: Vec<_> = [0, 1, 2, u128::MAX, u128::MAX - 1, 1 << 127, (1 << 127) - 1]
        .into_iter()
        .chain([0x7f, 0x80, 0x81, 0x88, 0xfe].map(|byte| u128::from_be_bytes([byte; 16])))
        .collect();
    for width in [2, 5, 7, 8] {
        let layout = Layout { width };
        let table = whole_table(layout, Point::GENERATOR);
        for &magnitude in &magnitudes {
            for negative in [false, true] {
                let mut terms = [Point::NONE; 64];
                let count = terms_of(layout, &table, Half { magnitude, negative }, &mut terms);
                let number = U256::from(magnitude).reduce_mod(ORDER);
                let number = if negative { (ORDER - number).reduce_mod(ORDER) } else { number };
                let sum = terms[..count].split_first().map(|(first, rest)| {
                    let sum = rest.iter().try_fold(Sum::of(*first), |sum, term| sum.plus(*term));
                    sum.and_then(Sum::coordinates).expect("different powers have different x")
                });
                assert_eq!(
                    sum,
                    generator_times(number).as_ref().map(coordinates),
                    "{magnitude:#x}, negative {negative}, width {width}"
                );
            }
        }
    }
}

#[test]
fn sums_agree_with_libsecp256k1_and_say_when_they_cannot_be_made() {
    let points: Vec<_> = (1..40).map(|number| generator_times(U256::from(number)).expect("some")).collect();
    let mut partial = [Field::ZERO; 1];
    for left in &points {
        for right in points.iter().flat_map(|point| [*point, point.negate(&Secp256k1::new())]) {
            let wanted = left.combine(&right).ok().filter(|_| *left != right);
            let wanted = wanted.as_ref().map(coordinates);
            let sum = Sum::of(point_of(left)).plus(point_of(&right));
            assert_eq!(sum.and_then(Sum::coordinates), wanted, "one after the other");
            let mut pair = [point_of(left), point_of(&right)];
            let added = add_pairs(&mut pair, 1, |_| Pair { left: 0, right: 1, to: 0 }, &mut partial);
            assert_eq!(added.then(|| pair[0].coordinates()), wanted, "as a pair");
        }
        let twice = coordinates(&left.combine(left).expect("odd order"));
        assert_eq!(point_of(left).doubled().coordinates(), twice);
        let times_lambda = coordinates(&times(left, LAMBDA).expect("not zero"));
        assert_eq!(point_of(left).times_lambda().coordinates(), times_lambda);
        assert_eq!(Sum::of(point_of(left)).times_lambda().coordinates(), Some(times_lambda));
        let minus = coordinates(&left.negate(&Secp256k1::new()));
        assert_eq!(point_of(left).negated().coordinates(), minus);
    }
}

/// Signs as number `number` and has it checked, learning from the recovery as `Verifier` does. True
/// if it was vouched for.
fn order(known: &mut KnownSigners, number: u8) -> bool {
    let signer = Signer::new([number; 32]).expect("a small number is a key");
    let digest = keccak(&[number]);
    let signature = signer.sign(&digest);
    let yes = known.vouches(signer.address(), &digest, &signature);
    if !yes {
        let key = Curve::default().recover_key(&digest, &signature).expect("a good signature");
        known.learn(signer.address(), &key);
    }
    yes
}

fn orders_until_known(known: &mut KnownSigners, number: u8) -> usize {
    (0..1_000).position(|_| order(known, number)).expect("a table is whole some time")
}

#[test]
fn a_signer_is_known_after_its_table_has_grown_and_not_before() {
    let mut known = KnownSigners::new(KnownSigners::TABLE_BYTES);
    assert_eq!(orders_until_known(&mut known, 1), 65, "as STEPS_PER_ORDER says");
    let tally = Tally { hits: 1, fallbacks: 0, misses: 65, tables: 1 };
    assert_eq!(known.tally(), tally);
    assert!(order(&mut known, 1));
    let signer = Signer::new([1; 32]).expect("a key");
    let other = Signer::new([2; 32]).expect("a key").sign(&keccak(b"x"));
    assert!(!known.vouches(signer.address(), &keccak(b"x"), &other));
    assert!(!known.vouches(signer.address(), &keccak(b"x"), &other[..64]));
    assert_eq!(known.tally(), Tally { hits: 2, fallbacks: 2, ..tally });
}

#[test]
fn without_room_for_a_table_nobody_is_known() {
    let mut known = KnownSigners::new(KnownSigners::TABLE_BYTES - 1);
    assert!((0..200).all(|_| !order(&mut known, 1)));
    assert_eq!(known.tally(), Tally { misses: 200, ..Tally::default() });
}

#[test]
fn who_signs_often_keeps_its_place_however_many_sign_once() {
    let mut known = KnownSigners::new(4 * KnownSigners::TABLE_BYTES);
    assert_eq!(orders_until_known(&mut known, 1), 65);
    for round in 0..600_u16 {
        let stranger = u8::try_from(2 + round % 120).expect("below 122");
        assert!(!order(&mut known, stranger), "one order in 120 is too few for a table");
        assert!(order(&mut known, 1), "round {round}");
    }
    // Places of strangers are given up, so a signer that stays gets one.
    assert!(orders_until_known(&mut known, 125) < 100);
}

#[test]
fn more_busy_signers_than_places_do_not_push_each_other_out() {
    let mut known = KnownSigners::new(2 * KnownSigners::TABLE_BYTES);
    let mut hits = [0; 5];
    for _ in 0..400 {
        for number in 1..=4 {
            hits[usize::from(number)] += u32::from(order(&mut known, number));
        }
    }
    assert_eq!(hits, [0, 335, 335, 0, 0], "the first two to come");
}

#[test]
fn a_signer_that_falls_silent_gives_its_place_to_another() {
    let mut known = KnownSigners::new(KnownSigners::TABLE_BYTES);
    assert_eq!(orders_until_known(&mut known, 1), 65);
    let silent = usize::try_from(PATIENCE_WHEN_WHOLE).expect("small");
    // The question that finds the patience exhausted takes the place and does the first steps.
    assert_eq!(orders_until_known(&mut known, 2), silent + 65);
    assert!(!order(&mut known, 1), "its table is gone");
    assert!(order(&mut known, 2));
    assert_eq!(known.tally().tables, 2);
}
