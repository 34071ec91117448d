//! Signatures of every kind, answered by a recovery and from a table: whenever the table says yes,
//! the recovery must have found the signer; and unless a formula meets its limits, the two agree.
//!
//! Signatures are also made from the other end: for a key d and any u1, u2, the point
//! R = (u1 + u2 d) G gives r, then s = r / u2 and z = u1 s, which is valid. That reaches every sum
//! that the formulas cannot make, any s, and any z below n.
//!
//! `OUTCRY_SIGNATURES` is the number of random cases, `OUTCRY_SEED` where they begin.

use super::{LAMBDA, borders, coordinates, generator_times};
use crate::auth::known::equation::{self, OF_GENERATOR, OF_SIGNER, Scratch, Tables};
use crate::auth::known::point::Point;
use crate::auth::known::scalar::ORDER;
use crate::auth::known::table::whole_table;
use crate::auth::{Curve, SIGNATURE_BYTES};
use crate::domain::{Address, Word};
use ruint::aliases::U256;

/// Random cases in the normal suite.
const CASES: u64 = 20_000;

/// Cases with one key before the next is drawn: its table takes as long as many checks.
const CASES_PER_KEY: u64 = 500;

/// What a case says, as the bytes that a client would send.
#[derive(Clone, Copy, Debug)]
struct Case {
    digest: Word,
    signature: [u8; SIGNATURE_BYTES],
}

impl Case {
    fn new(z: U256, r: U256, s: U256, v: u8) -> Self {
        let mut signature = [0; SIGNATURE_BYTES];
        signature[..32].copy_from_slice(&r.to_be_bytes::<32>());
        signature[32..64].copy_from_slice(&s.to_be_bytes::<32>());
        signature[64] = v;
        Self { digest: Word(z.to_be_bytes()), signature }
    }

    /// The signature by `secret` in whose check G is multiplied by `u1` and the key by `u2`, or by both
    /// times -1 where s would be too large. None if that is no signature.
    fn from_factors(secret: U256, u1: U256, u2: U256) -> Option<Self> {
        let nonce = u1.add_mod(u2.mul_mod(secret, ORDER), ORDER);
        let (r, y) = coordinates(&generator_times(nonce)?);
        if ORDER <= r {
            return None;
        }
        let s = r.mul_mod(u2.inv_mod(ORDER)?, ORDER);
        let odd = u8::from(y.bit(0));
        let z = u1.mul_mod(s, ORDER);
        if s <= ORDER >> 1 {
            return Some(Self::new(z, r, s, 27 + odd));
        }
        // z / -s, r / -s and so -R: the same x, the other y.
        Some(Self::new(z, r, ORDER - s, 28 - odd))
    }

    /// The signature of `z` by `secret` with the nonce `nonce`.
    fn signed(secret: U256, nonce: U256, z: U256) -> Option<Self> {
        let (x, _) = coordinates(&generator_times(nonce)?);
        let z = z.reduce_mod(ORDER);
        let s = z.add_mod(x.mul_mod(secret, ORDER), ORDER).mul_mod(nonce.inv_mod(ORDER)?, ORDER);
        let inverse = s.inv_mod(ORDER)?;
        let (u1, u2) = (z.mul_mod(inverse, ORDER), x.mul_mod(inverse, ORDER));
        let mut case = Self::from_factors(secret, u1, u2)?;
        case.digest = Word(z.to_be_bytes());
        Some(case)
    }
}

/// A key, its table, and both ways of answering.
struct Both {
    secret: U256,
    curve: Curve,
    signer: Address,
    generator: Box<[Point]>,
    table: Box<[Point]>,
    scratch: Scratch,
    yes: u64,
    no: u64,
}

impl Both {
    fn new(secret: U256) -> Self {
        let generator = whole_table(OF_GENERATOR, Point::GENERATOR);
        let (table, scratch) = (Box::default(), Scratch::default());
        let (curve, signer) = (Curve::default(), Address::ZERO);
        let mut both = Self { secret, curve, signer, generator, table, scratch, yes: 0, no: 0 };
        both.use_key(secret);
        both
    }

    fn use_key(&mut self, secret: U256) {
        let signer = crate::auth::Signer::new(secret.to_be_bytes()).expect("below the order");
        let (x, y) = coordinates(&generator_times(secret).expect("not zero"));
        (self.secret, self.signer) = (secret, *signer.address());
        self.table = whole_table(OF_SIGNER, Point::new(x, y));
    }

    fn answers(&mut self, case: &Case) -> (bool, bool) {
        let recovered = self.curve.recover(&case.digest, &case.signature) == Some(self.signer);
        let tables = Tables { generator: &self.generator, signer: &self.table };
        let held = equation::holds(tables, &case.digest.0, &case.signature, &mut self.scratch);
        assert!(recovered || !held, "a yes that recovery denies: {:#x} {case:x?}", self.secret);
        *(if held { &mut self.yes } else { &mut self.no }) += 1;
        (recovered, held)
    }

    fn agree(&mut self, case: &Case) -> bool {
        let (recovered, held) = self.answers(case);
        assert_eq!(held, recovered, "{:#x} {case:x?}", self.secret);
        held
    }
}

/// `SplitMix64`: enough to draw cases from.
struct Draw(u64);

impl Draw {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.number() % bound as u64).expect("below a usize")
    }

    fn wide(&mut self) -> U256 {
        U256::from_limbs([(); 4].map(|()| self.number()))
    }

    fn scalars(&mut self) -> Vec<U256> {
        (0..12).map(|_| self.wide().reduce_mod(ORDER)).collect()
    }

    /// Any number below n but 0; every fourth at a border of those given.
    fn scalar(&mut self, borders: &[U256]) -> U256 {
        let drawn = if self.below(4) == 0 {
            borders[self.below(borders.len())]
        } else {
            self.wide().reduce_mod(ORDER)
        };
        if drawn.is_zero() { U256::ONE } else { drawn }
    }
}

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// One random case: a good signature, made in one of three ways, and usually something changed.
struct Random {
    case: Case,
    /// Nothing was changed.
    good: bool,
    /// The factors were drawn, so they may be such that no formula makes the sum.
    drawn_factors: bool,
}

impl Random {
    fn new(draw: &mut Draw, secret: U256, borders: &[U256]) -> Self {
        let way = draw.below(3);
        let made = match way {
            0 => Case::from_factors(secret, draw.scalar(borders), draw.scalar(borders)),
            1 => Case::signed(secret, draw.scalar(borders), draw.wide()),
            _ => Case::signed(secret, draw.wide().reduce_mod(ORDER), draw.scalar(borders)),
        };
        let mut case = made.unwrap_or_else(|| Case::new(U256::ONE, U256::ONE, U256::ONE, 27));
        let change = draw.below(8);
        match change {
            0 | 1 => case.signature[draw.below(SIGNATURE_BYTES)] ^= 1 << draw.below(8),
            2 => case.digest.0[draw.below(32)] ^= 1 << draw.below(8),
            3 => case.signature[64] = (27 + 28_u8).wrapping_sub(case.signature[64]),
            4 => {
                let at = 32 * draw.below(2);
                case.signature[at..at + 32].copy_from_slice(&draw.scalar(borders).to_be_bytes::<32>());
            }
            _ => {}
        }
        Self { case, good: made.is_some() && 4 < change, drawn_factors: way == 0 }
    }
}

#[test]
fn random_signatures_are_answered_as_by_recovery() {
    let cases = from_environment("OUTCRY_SIGNATURES", CASES);
    let seed = from_environment("OUTCRY_SEED", 1);
    eprintln!("OUTCRY_SEED={seed} OUTCRY_SIGNATURES={cases}");
    let (borders, mut draw) = (borders(), Draw(seed));
    let mut both = Both::new(U256::from(7));
    let mut left_to_recovery = 0;
    for number in 0..cases {
        if number % CASES_PER_KEY == 0 {
            both.use_key(draw.wide().reduce_mod(ORDER));
        }
        let Random { case, good, drawn_factors } = Random::new(&mut draw, both.secret, &borders);
        let (recovered, held) = both.answers(&case);
        assert!(held == recovered || drawn_factors, "case {number}: {:#x} {case:x?}", both.secret);
        assert!(recovered || !good, "case {number} is good: {case:x?}");
        left_to_recovery += u64::from(recovered && !held);
    }
    eprintln!("yes {}, no {}, of which left to recovery {left_to_recovery}", both.yes, both.no);
    assert!(cases / 4 < both.yes, "{} of {cases}", both.yes);
    assert!(cases / 4 < both.no, "{} of {cases}", both.no);
    assert!(left_to_recovery < cases / 100, "{left_to_recovery} of {cases}");
}

#[test]
fn a_changed_bit_anywhere_is_no_signature_of_the_signer() {
    let mut both = Both::new(U256::from(0x5eed));
    let nonce = U256::from(0x1234_5678_9abc_def0_u64).pow(U256::from(3)).reduce_mod(ORDER);
    let good = Case::signed(both.secret, nonce, U256::MAX - U256::from(5)).expect("a signature");
    assert!(both.agree(&good));
    for bit in 0..8 * SIGNATURE_BYTES {
        let mut case = good;
        case.signature[bit / 8] ^= 1 << (bit % 8);
        assert!(!both.agree(&case), "bit {bit} of the signature");
    }
    for bit in 0..256 {
        let mut case = good;
        case.digest.0[bit / 8] ^= 1 << (bit % 8);
        assert!(!both.agree(&case), "bit {bit} of the digest");
    }
    for v in 0..=255 {
        let mut case = good;
        case.signature[64] = v;
        assert_eq!(both.agree(&case), v == good.signature[64], "v {v}");
    }
    for bit in 0..255 {
        both.use_key(U256::from(0x5eed) ^ (U256::from(1) << bit));
        assert!(!both.agree(&good), "bit {bit} of the key");
    }
}

/// Small numbers, and those next to 0, n/2, n, p and 2^256.
fn around_every_bound() -> Vec<U256> {
    let p = U256::MAX - U256::from(0x1_0000_03d0_u64);
    let bounds = [U256::from(2), ORDER >> 1, ORDER, p, U256::MAX - U256::from(1)];
    bounds.into_iter().flat_map(|bound| [-2, -1, 0, 1].map(|step| add(bound, step))).collect()
}

fn add(number: U256, step: i64) -> U256 {
    let size = U256::from(step.unsigned_abs());
    if step < 0 { number - size } else { number.saturating_add(size) }
}

#[test]
fn values_at_their_bounds_are_answered_as_by_recovery() {
    let mut both = Both::new(U256::from(0xb0b));
    let bounds = around_every_bound();
    for &r in &bounds {
        for &s in &bounds {
            for z in [U256::ZERO, U256::ONE, ORDER, U256::MAX] {
                for v in 26..30 {
                    assert!(!both.agree(&Case::new(z, r, s, v)), "a key that nobody has drawn");
                }
            }
        }
    }
}

#[test]
fn the_key_that_any_values_give_is_held_to_have_signed_them() {
    let mut both = Both::new(U256::from(0xb0b));
    let bounds = around_every_bound();
    let (mut held, mut left) = (0, 0);
    for nonce in [U256::from(0xabcd), LAMBDA, ORDER - LAMBDA] {
        let r = coordinates(&generator_times(nonce).expect("not zero")).0;
        for &s in &bounds {
            for &z in &bounds {
                let case = Case::new(z, r, s, 27 + u8::from(z.bit(0)));
                let Some(key) = both.curve.recover_key(&case.digest, &case.signature) else {
                    continue;
                };
                let (x, y) = key.coordinates();
                both.signer = key.address();
                both.table =
                    whole_table(OF_SIGNER, Point::new(U256::from_be_bytes(x), U256::from_be_bytes(y)));
                let (recovered, yes) = both.answers(&case);
                assert!(recovered, "it is the key that was recovered");
                *(if yes { &mut held } else { &mut left }) += 1;
            }
        }
    }
    // s of 1, 2, 3 and n/2 - 2 to n/2: six, with twenty z each, for three nonces.
    assert_eq!((held, left), (360, 0));
}

/// Makes a key and two factors.
type Factors = fn() -> [U256; 3];

/// Keys and factors whose sum meets two points with the same x, or begins without a term.
const EXCEPTIONS: [(&str, Factors); 7] = [
    ("no term of λ", || [U256::ONE, U256::ONE, U256::from(2)]),
    ("a pair of equal points", || [U256::ONE, both_halves(1, 1), both_halves(1, 1)]),
    ("a pair of opposite points", || [minus_one(), both_halves(7, 1), both_halves(5, 1)]),
    ("equal sums", || [U256::ONE, both_halves(TWO_DIGITS, TWO_DIGITS), both_halves(1, TWO_DIGITS)]),
    ("opposite sums", || [minus_one(), both_halves(TWO_DIGITS, TWO_DIGITS), both_halves(1, TWO_DIGITS)]),
    ("the key is λ G", || [LAMBDA, both_halves(0, 3), both_halves(3, 0)]),
    ("the key is -λ G", || [ORDER - LAMBDA, both_halves(9, 3), both_halves(3, 0)]),
];

/// Bits 0 and 24 are the lowest of a digit in both tables.
const TWO_DIGITS: u64 = 1 | 1 << 24;

fn both_halves(first: u64, of_lambda: u64) -> U256 {
    U256::from(of_lambda).mul_mod(LAMBDA, ORDER).add_mod(U256::from(first), ORDER)
}

fn minus_one() -> U256 {
    ORDER - U256::ONE
}

#[test]
fn sums_that_no_formula_makes_are_left_to_recovery() {
    let mut both = Both::new(U256::from(7));
    for (name, factors) in EXCEPTIONS {
        let [secret, u1, u2] = factors();
        both.use_key(secret);
        let case = Case::from_factors(secret, u1, u2).unwrap_or_else(|| panic!("{name}: no signature"));
        assert_eq!(both.answers(&case), (true, false), "{name}");
    }
}

#[test]
fn special_keys_and_nonces_are_answered_as_by_recovery() {
    let square = LAMBDA.mul_mod(LAMBDA, ORDER);
    let two = U256::from(2);
    let specials = [U256::ONE, two, ORDER >> 1, LAMBDA, square, U256::from(1_u64 << 24)];
    let specials: Vec<_> = specials.into_iter().flat_map(|number| [number, ORDER - number]).collect();
    let mut both = Both::new(U256::from(7));
    let mut draw = Draw(3);
    for &special in &specials {
        for (secret, nonces) in [(special, draw.scalars()), (draw.wide().reduce_mod(ORDER), specials.clone())]
        {
            both.use_key(secret);
            for nonce in nonces {
                let case = Case::signed(secret, nonce, draw.wide()).expect("a signature");
                assert!(both.agree(&case));
            }
        }
        // Where both are special, the halves of λ may cancel, which is left to recovery.
        both.use_key(special);
        for &nonce in &specials {
            let case = Case::signed(special, nonce, draw.wide()).expect("a signature");
            assert!(both.answers(&case).0);
        }
    }
}

/// Whoever sees a signature could else make another one of the same order.
#[test]
fn the_other_form_of_a_good_signature_is_none() {
    let mut both = Both::new(U256::from(0xb0b));
    for (nonce, z) in (1..20_u64).zip(7..).map(|(nonce, z)| (U256::from(nonce * 0xabcd), U256::from(z))) {
        let good = Case::signed(both.secret, nonce, z).expect("a signature");
        assert!(both.agree(&good));
        let mut other = good;
        let s = U256::from_be_slice(&good.signature[32..64]);
        other.signature[32..64].copy_from_slice(&(ORDER - s).to_be_bytes::<32>());
        other.signature[64] = 27 + 28 - good.signature[64];
        assert!(!both.agree(&other));
    }
}

#[test]
fn a_digest_from_the_order_up_is_taken_modulo_it() {
    let mut both = Both::new(U256::from(0xd16e));
    for above in (0..64).map(U256::from).chain([U256::MAX - ORDER]) {
        let mut case = Case::signed(both.secret, U256::from(0xfeed), above).expect("a signature");
        assert!(both.agree(&case));
        case.digest = Word((ORDER + above).to_be_bytes());
        assert!(both.agree(&case), "n + {above}");
    }
}
