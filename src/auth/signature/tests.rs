use super::super::{Chain, derive};
use super::*;
use crate::domain::{ApiKey, ConditionId, OrderType, SelfTrade, Side, TokenId};

const DEPOSIT: Address = Address([0xdd; 20]);

fn domains() -> Domains {
    Domains::new(Chain::Amoy)
}

fn owner() -> Signer {
    Signer::new([5; 32]).expect("a key")
}

fn fields(kind: SignatureType) -> OrderFields {
    let owner = *owner().address();
    let (maker, signer) = match kind {
        SignatureType::Eoa => (owner, owner),
        SignatureType::Proxy => (derive::proxy(&owner), owner),
        SignatureType::Safe => (derive::safe(&owner), owner),
        SignatureType::Deposit => (DEPOSIT, DEPOSIT),
    };
    OrderFields {
        salt: Word([1; 32]),
        maker,
        signer,
        token: TokenId([2; 32]),
        maker_amount: 5_000_000,
        taker_amount: 10_000_000,
        side: Side::Buy,
        signature_type: kind,
        timestamp_ms: 1_700_000_000_000,
        metadata: Word::ZERO,
        builder: Word::ZERO,
    }
}

fn signed_by(signer: &Signer, fields: OrderFields, venue: Venue, neg_risk: bool) -> SignedOrder {
    let (signature, signature_len) = sign_order(signer, &domains(), venue, neg_risk, &fields);
    SignedOrder {
        fields,
        signature,
        signature_len,
        expiration_s: 0,
        deadline_ms: 0,
        order_type: OrderType::Gtc,
        post_only: false,
        self_trade: SelfTrade::ExpireTaker,
        owner: ApiKey::ZERO,
        condition: None,
    }
}

const KINDS: [SignatureType; 4] =
    [SignatureType::Eoa, SignatureType::Proxy, SignatureType::Safe, SignatureType::Deposit];

fn judge(order: &SignedOrder, venue: Venue, neg_risk: bool) -> Result<OrderId, Reject> {
    Verifier::new(domains()).order(order, owner().address(), venue, neg_risk, |_| ())
}

#[test]
fn every_type_verifies_in_the_domain_it_was_signed_for() {
    for kind in KINDS {
        for venue in Venue::ALL {
            for neg_risk in [false, true] {
                let order = signed_by(&owner(), fields(kind), venue, neg_risk);
                let hash = domains().order_hash(&order.fields);
                let id = Domains::order_id(domains().orders(venue, neg_risk), &hash);
                let mut told = None;
                let mut verifier = Verifier::new(domains());
                let judged =
                    verifier.order(&order, owner().address(), venue, neg_risk, |known| told = Some(*known));
                assert_eq!((judged, told), (Ok(id), Some(id)), "{kind:?} {venue:?} {neg_risk}");
                assert_eq!(judge(&order, venue, !neg_risk), Err(Reject::SignatureInvalid));
            }
        }
    }
}

#[test]
fn headers_decide_the_venue_except_for_deposit_wallets() {
    for kind in KINDS {
        let order = signed_by(&owner(), fields(kind), Venue::Kuest, false);
        let judged = judge(&order, Venue::Polymarket, false);
        assert_eq!(judged.is_ok(), kind == SignatureType::Deposit, "{kind:?}");
    }
}

#[test]
fn who_goes_on_signing_becomes_known_where_there_is_room_for_a_table() {
    let order = signed_by(&owner(), fields(SignatureType::Eoa), Venue::Kuest, false);
    let mut verifier = Verifier::with_known_signers(domains(), KnownSigners::TABLE_BYTES);
    for _ in 0..80 {
        assert!(verifier.order(&order, owner().address(), Venue::Kuest, false, |_| ()).is_ok());
    }
    let tally = verifier.known_signers().expect("there is room").tally();
    assert!(tally.hits > 0 && tally.hits + tally.misses == 80, "{tally:?}");
    let no_room = Verifier::with_known_signers(domains(), KnownSigners::TABLE_BYTES - 1);
    assert!(no_room.known_signers().is_none());
}

#[test]
fn somebody_elses_signature_is_invalid() {
    let stranger = Signer::new([6; 32]).expect("a key");
    for kind in KINDS {
        let order = signed_by(&stranger, fields(kind), Venue::Kuest, false);
        assert_eq!(judge(&order, Venue::Kuest, false), Err(Reject::SignatureInvalid), "{kind:?}");
    }
}

#[test]
fn the_signer_is_the_caller_or_the_deposit_wallet_itself() {
    let stranger = Address([0x77; 20]);
    for kind in KINDS {
        let order =
            signed_by(&owner(), OrderFields { signer: stranger, ..fields(kind) }, Venue::Kuest, false);
        assert_eq!(judge(&order, Venue::Kuest, false), Err(Reject::SignerMismatch), "{kind:?}");
    }
    let foreign = OrderFields { maker: stranger, ..fields(SignatureType::Eoa) };
    let order = signed_by(&owner(), foreign, Venue::Kuest, false);
    assert_eq!(judge(&order, Venue::Kuest, false), Err(Reject::MakerNotAuthorized));
}

#[test]
fn every_changed_field_breaks_the_signature() {
    let good = fields(SignatureType::Safe);
    let changed = [
        OrderFields { salt: Word([2; 32]), ..good },
        OrderFields { maker: DEPOSIT, ..good },
        OrderFields { token: TokenId([3; 32]), ..good },
        OrderFields { maker_amount: 1, ..good },
        OrderFields { taker_amount: 1, ..good },
        OrderFields { side: Side::Sell, ..good },
        OrderFields { signature_type: SignatureType::Proxy, ..good },
        OrderFields { timestamp_ms: 1, ..good },
        OrderFields { metadata: Word([1; 32]), ..good },
        OrderFields { builder: Word([1; 32]), ..good },
    ];
    for fields in changed {
        let order = SignedOrder { fields, ..signed_by(&owner(), good, Venue::Kuest, false) };
        assert_eq!(judge(&order, Venue::Kuest, false), Err(Reject::SignatureInvalid), "{fields:?}");
    }
}

#[test]
fn a_wrap_is_refused_if_any_byte_of_it_is_changed_or_missing() {
    let order = signed_by(&owner(), fields(SignatureType::Deposit), Venue::Kuest, false);
    for at in 0..SIGNATURE_BYTES_MAX {
        let mut bad = order;
        bad.signature[at] ^= 0x01;
        assert_eq!(judge(&bad, Venue::Kuest, false), Err(Reject::SignatureInvalid), "byte {at}");
    }
    for length in [0, 65, 316] {
        let short = SignedOrder { signature_len: length, ..order };
        assert_eq!(judge(&short, Venue::Kuest, false), Err(Reject::SignatureInvalid), "{length} bytes");
    }
}

#[test]
fn an_order_for_version_3_is_told_from_a_forged_one() {
    let verifier = Verifier::new(domains());
    let owner = owner();
    let plain = signed_by(&owner, fields(SignatureType::Eoa), Venue::Kuest, false);
    let id = Domains::order_id(domains().orders_version_3(), &domains().order_hash(&plain.fields));
    let mut signature = [0; SIGNATURE_BYTES_MAX];
    signature[..SIGNATURE_BYTES].copy_from_slice(&owner.sign(&Word(id.0)));
    let version_3 = SignedOrder { signature, ..plain };

    for order in [&version_3, &SignedOrder { signature: [1; SIGNATURE_BYTES_MAX], ..plain }] {
        assert_eq!(judge(order, Venue::Polymarket, false), Err(Reject::SignatureInvalid));
    }
    assert!(verifier.is_for_another_version(&version_3, owner.address()));
    assert!(!verifier.is_for_another_version(&plain, owner.address()));

    // A deposit wallet's order says itself which exchange it is for.
    let mut wrapped = signed_by(&owner, fields(SignatureType::Deposit), Venue::Kuest, false);
    assert!(!verifier.is_for_another_version(&wrapped, owner.address()));
    assert_eq!(domains().not_served().len(), 3);
    for separator in domains().not_served() {
        wrapped.signature[SEPARATOR_AT..HASH_AT].copy_from_slice(&separator.0);
        assert!(verifier.is_for_another_version(&wrapped, owner.address()));
        for neg_risk in [false, true] {
            assert_eq!(judge(&wrapped, Venue::Kuest, neg_risk), Err(Reject::OrderVersionMismatch));
        }
    }
    let short = SignedOrder { signature_len: 96, ..wrapped };
    assert!(!verifier.is_for_another_version(&short, owner.address()));
}

#[test]
fn an_act_is_signed_by_the_wallets_owner_and_by_nobody_else() {
    let mut verifier = Verifier::new(domains());
    let owner = owner();
    let terms = ActTerms {
        act: 0,
        wallet: DEPOSIT,
        condition: ConditionId([4; 32]),
        amount: 1_000_000,
        salt: Word([1; 32]),
        timestamp_ms: 1_700_000_000_000,
        signature_type: SignatureType::Deposit,
    };
    let id = domains().act_digest(&terms);
    let signature = owner.sign(&Word(id.0));
    assert_eq!(verifier.act(&terms, &signature, owner.address()), Ok(id));
    assert_eq!(verifier.act(&terms, &signature, &DEPOSIT), Err(Reject::SignatureInvalid));
    let changed = [
        ActTerms { act: 1, ..terms },
        ActTerms { act: 2, ..terms },
        ActTerms { wallet: *owner.address(), ..terms },
        ActTerms { condition: ConditionId([5; 32]), ..terms },
        ActTerms { amount: 2_000_000, ..terms },
        ActTerms { salt: Word([2; 32]), ..terms },
        ActTerms { timestamp_ms: 1, ..terms },
        ActTerms { signature_type: SignatureType::Eoa, ..terms },
    ];
    for terms in changed {
        assert_eq!(verifier.act(&terms, &signature, owner.address()), Err(Reject::SignatureInvalid));
    }
}
