//! Every test of streams, with the feed on the reader's loop and on a loop of its own.

use super::away::*;
use super::held::*;
use super::replaced::*;
use super::rests::*;
use super::*;

macro_rules! on_both_loops {
    ($($test:ident),* $(,)?) => {
        $(mod $test {
            #[test]
            fn beside_the_reader() {
                super::$test("auto");
            }

            #[test]
            fn apart() {
                super::$test("own");
            }
        })*
    };
}

on_both_loops!(
    a_client_that_follows_the_rules_has_the_books_of_the_server_at_every_number,
    whatever_is_dropped_repeated_or_late_is_noticed_or_harmless,
    who_comes_back_gets_what_was_missed_and_otherwise_a_fresh_book,
    numbers_go_on_after_a_snapshot_and_what_lies_before_it_is_a_fresh_book,
    each_start_names_its_streams_anew_and_knows_earlier_names_but_those_of_a_copy,
    trades_ticks_and_modes_are_told_as_the_venues_tell_them,
    listings_say_what_the_import_said_and_a_market_that_pays_both_has_no_winner,
    an_account_hears_of_each_order_and_trade_and_each_order_ends_once,
    a_rest_that_nobody_can_fill_ends_after_the_trade_that_left_it,
    credentials_are_asked_for_and_a_revoked_key_ends_the_stream,
    what_is_said_wrongly_is_refused_and_changes_nothing,
    who_reads_too_slowly_is_cut_and_the_end_of_the_server_is_said,
    who_comes_back_knows_the_tick_and_the_result_that_came_meanwhile,
    the_acknowledgement_says_tick_and_payout_whatever_was_asked_and_however,
    what_a_stream_holds_is_told_among_all_and_given_back_when_it_is_gone,
    the_rest_of_many_first_books_comes_behind_what_is_said_after_their_question,
    a_replace_is_one_change_of_both_books_and_events_without_a_gap,
);
