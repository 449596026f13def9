//! The contract of [`Journal`](crate::Journal) as tests, for every journal there is.
//!
//! [`journal_suite!`](crate::journal_suite) makes a test of each case. Time stands still in them
//! until a case moves it, so none of them sleeps.

pub mod calls;
mod kit;
pub mod reading;
pub mod recovery;
pub mod runs;
pub mod snapshots;
pub mod stopping;
pub mod threads;
pub mod upkeep;

pub use kit::ManualClock;

/// Makes a test of each case of the contract, for one journal: its type's name, and an `async fn`
/// from a [`Clock`](crate::Clock) to an empty journal (`Arc<dyn Journal>`) and whatever has to live
/// as long as it, such as a folder.
///
/// The crate that calls it needs `tokio` with `macros`, `rt` and `time`.
#[macro_export]
macro_rules! journal_suite {
    ($journal:ty, $make:path) => {
        $crate::journal_suite! { @cases $journal, $make,
            runs::events_are_numbered_and_kept,
            runs::the_input_is_kept_with_the_messages_that_are_new,
            runs::an_agents_own_echo_is_kept,
            runs::a_state_that_the_client_brings_is_restated,
            runs::a_busy_thread_refuses,
            runs::a_run_may_be_superseded,
            runs::what_breaks_a_rule_is_refused_and_what_came_before_is_kept,
            runs::what_has_no_place_is_refused,
            runs::a_run_that_failed_before_it_began_keeps_what_was_said,
            runs::a_lease_is_lost_with_its_run,
            runs::a_run_id_may_come_twice,
            runs::positions_never_come_twice,
            runs::tenants_are_apart,
            calls::a_run_that_is_broken_off_answers_its_calls,
            calls::calls_of_earlier_runs_stay_open,
            calls::a_call_that_an_interrupt_is_about_is_answered_with_it,
            reading::pages_keep_to_their_limits,
            reading::a_position_that_was_never_reached_is_unknown,
            reading::changes_are_waited_for,
            reading::a_viewer_sees_the_terminal_event_once,
            reading::a_newcomer_sees_all_and_ends,
            reading::a_viewer_can_resume_anywhere,
            reading::a_slow_viewer_misses_nothing,
            reading::viewers_of_a_deleted_thread_get_an_error,
            reading::an_unknown_thread_is_named_as_such,
            snapshots::a_snapshot_in_the_middle_goes_on,
            snapshots::a_snapshot_at_every_place_folds_to_the_same,
            snapshots::interrupts_and_calls_are_facts,
            snapshots::a_failed_run_leaves_what_was_open,
            stopping::a_stop_is_seen,
            stopping::a_stop_may_name_the_run,
            stopping::there_may_be_nothing_to_stop,
            recovery::a_lapsed_run_ends_as_failed_once,
            recovery::a_released_lease_has_lapsed,
            recovery::a_renewed_lease_does_not_lapse,
            recovery::a_run_without_events_keeps_what_was_said,
            recovery::the_next_run_and_a_stop_recover_too,
            threads::lists_are_ordered_and_paged,
            threads::lists_are_filtered,
            threads::threads_are_named_archived_and_deleted,
            threads::clearing_keeps_to_its_tenant_and_owner,
            upkeep::compaction_keeps_the_conversation_and_the_ends,
            upkeep::compaction_spares_what_is_young_or_running,
            upkeep::a_viewer_inside_a_compacted_run_is_told,
            upkeep::threads_are_removed_by_age_number_and_size,
        }
    };
    (@cases $journal:ty, $make:path, $($group:ident::$case:ident,)*) => {
        mod contract {
            use super::*;

            const _: fn() = || {
                fn is_a_journal<J: $crate::Journal>() {}
                is_a_journal::<$journal>();
            };
            $(
                #[tokio::test]
                async fn $case() {
                    let clock = $crate::suite::ManualClock::new();
                    let (journal, _guard) = $make(clock.clock()).await;
                    let case = $crate::suite::$group::$case(journal, clock);
                    let most = std::time::Duration::from_secs(60);
                    tokio::time::timeout(most, case).await.expect("the case hangs");
                }
            )*
        }
    };
}
