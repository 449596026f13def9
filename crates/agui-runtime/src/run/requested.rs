//! Which of the runs that an agent sends is the one that was asked for.

use agui_stream::Verifier;
use agui_types::event::RunStarted;
use agui_types::{Event, RunId};

/// Takes what an agent sends and gives what is to be written under the one run that was asked for.
///
/// The requested run has the input's `runId`; a stream may bring others before it, under ids of their
/// own, which replay what was (P-7). The log holds them as the beginning of the requested run: what
/// they restate (P-14) is folded all the same, and the thread's history is in the input as well
/// (P-77). So each run that was asked for is begun once in the log, and ended once. Agents that know
/// no other way give the requested run an id of theirs; where nothing follows such a run, it was the
/// one.
#[derive(Debug)]
pub(crate) struct Requested {
    ours: RunId,
    phase: Phase,
    /// What the log holds, where the agent has begun with another run: what an error leaves open has
    /// to be closed before the next run.
    replayed: Option<Box<Verifier>>,
}

#[derive(Debug)]
enum Phase {
    NotStarted,
    /// In a run that the agent calls so.
    Active(RunId),
    /// A run under another id than the requested one is over: its terminal event, which is ours
    /// unless another run follows.
    Held(Box<Event>),
}

/// What becomes of an event.
#[derive(Debug, PartialEq)]
pub(crate) enum Taken {
    /// It is written.
    Event(Event),
    /// It is written, and ends the run.
    Last(Event),
    /// It ends the run unless another run follows.
    Held,
    /// A replayed run is over and another begins: this is written, which closes what it left open.
    Next(Vec<Event>),
    /// The run was over before: with this event. What came now is behind the end (P-3).
    Over(Event),
    /// It breaks this rule.
    Broken(String),
}

impl Requested {
    /// Nothing has come of this run.
    pub(crate) fn new(ours: RunId) -> Self {
        Self { ours, phase: Phase::NotStarted, replayed: None }
    }

    /// Takes the next event.
    pub(crate) fn take(&mut self, event: Event) -> Taken {
        if self.is_held()
            && !matches!(event, Event::RunStarted(_))
            && let Some(held) = self.held()
        {
            return Taken::Over(held);
        }
        let taken = match event {
            Event::RunStarted(started) => self.begin(*started),
            Event::RunFinished(mut finished) if !matches!(self.phase, Phase::NotStarted) => {
                // Under any other id it breaks a rule, as the log will say (P-6).
                if self.is_in(&finished.run_id) {
                    finished.run_id = self.ours.clone();
                }
                self.end(Event::RunFinished(finished))
            }
            Event::RunError(_) => self.end(event),
            event if matches!(self.phase, Phase::NotStarted) => {
                Taken::Broken(format!("{} before RUN_STARTED (P-1)", event.type_name()))
            }
            event => Taken::Event(event),
        };
        if let Some(replayed) = &mut self.replayed {
            // What breaks a rule is found where it is written.
            match &taken {
                Taken::Event(event) => drop(replayed.try_push(event)),
                Taken::Next(events) => events.iter().for_each(|it| drop(replayed.try_push(it))),
                _ => {}
            }
        }
        taken
    }

    /// Whether the run has ended unless another run follows.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.phase, Phase::Held(_))
    }

    /// The terminal event of a run that nothing has followed.
    pub(crate) fn held(&mut self) -> Option<Event> {
        match std::mem::replace(&mut self.phase, Phase::NotStarted) {
            Phase::Held(event) => Some(*event),
            other => {
                self.phase = other;
                None
            }
        }
    }

    fn begin(&mut self, mut started: RunStarted) -> Taken {
        let theirs = started.run_id.clone();
        let ours = theirs == self.ours;
        match std::mem::replace(&mut self.phase, Phase::Active(theirs.clone())) {
            Phase::NotStarted => {
                if !ours {
                    tracing::warn!(ours = %self.ours, %theirs, "the agent begins with a run of another id (P-7)");
                    started.run_id = self.ours.clone();
                    // What was asked is in the log's own.
                    started.input = None;
                    let thread = started.thread_id.clone();
                    let verifier = Verifier::for_run(thread, self.ours.clone());
                    self.replayed = Some(Box::new(verifier));
                }
                Taken::Event(Event::RunStarted(Box::new(started)))
            }
            Phase::Active(active) => {
                let (active, theirs) = (active.as_str(), theirs.as_str());
                Taken::Broken(format!(
                    "RUN_STARTED of the run {theirs:?} while the run {active:?} is going on (P-2)"
                ))
            }
            Phase::Held(_) => {
                tracing::info!(ours = %self.ours, next = %theirs, "a replayed run was taken into the requested one");
                let closing = self.replayed.as_ref().map(|it| it.closing_events());
                Taken::Next(closing.unwrap_or_default())
            }
        }
    }

    fn end(&mut self, event: Event) -> Taken {
        match &self.phase {
            Phase::Active(theirs) if *theirs != self.ours => {
                self.phase = Phase::Held(Box::new(event));
                Taken::Held
            }
            _ => Taken::Last(event),
        }
    }

    fn is_in(&self, run: &RunId) -> bool {
        matches!(&self.phase, Phase::Active(theirs) if theirs == run)
    }
}

#[cfg(test)]
mod tests {
    use agui_types::event::{RunError, RunFinished, TextMessageEnd, TextMessageStart};

    use super::*;

    fn started(run: &str) -> Event {
        RunStarted::new("t", run).into()
    }

    fn finished(run: &str) -> Event {
        RunFinished::new("t", run).into()
    }

    #[test]
    fn the_requested_run_ends_with_its_terminal_event() {
        let mut runs = Requested::new("r".into());
        assert_eq!(runs.take(started("r")), Taken::Event(started("r")));
        assert_eq!(runs.take(finished("r")), Taken::Last(finished("r")));
    }

    #[test]
    fn a_run_by_another_name_is_the_requested_one_where_nothing_follows() {
        let mut runs = Requested::new("r".into());
        assert_eq!(runs.take(started("theirs")), Taken::Event(started("r")));
        assert_eq!(runs.take(finished("theirs")), Taken::Held);
        assert_eq!(runs.held(), Some(finished("r")));
        assert_eq!(runs.held(), None);
    }

    /// P-7
    #[test]
    fn a_replayed_run_becomes_the_beginning_of_the_requested_one() {
        let mut runs = Requested::new("r".into());
        runs.take(started("old"));
        runs.take(TextMessageStart::new("m").into());
        assert_eq!(runs.take(RunError::new("no").into()), Taken::Held);
        let closed = vec![TextMessageEnd::new("m").into()];
        assert_eq!(runs.take(started("older")), Taken::Next(closed));
        assert_eq!(runs.take(finished("older")), Taken::Held);
        assert_eq!(runs.take(started("r")), Taken::Next(Vec::new()));
        assert_eq!(runs.take(finished("r")), Taken::Last(finished("r")));
    }

    /// P-1, P-2, P-3, P-6
    #[test]
    fn what_has_no_place_is_not_taken_for_an_end() {
        for first in [finished("r"), TextMessageStart::new("m").into()] {
            let mut runs = Requested::new("r".into());
            assert!(matches!(runs.take(first), Taken::Broken(why) if why.contains("P-1")));
        }
        let mut runs = Requested::new("r".into());
        runs.take(started("r"));
        assert!(matches!(runs.take(started("s")), Taken::Broken(why) if why.contains("P-2")));
        let mut runs = Requested::new("r".into());
        runs.take(started("theirs"));
        assert_eq!(runs.take(finished("theirs")), Taken::Held);
        assert_eq!(runs.take(TextMessageStart::new("m").into()), Taken::Over(finished("r")));
        let mut runs = Requested::new("r".into());
        runs.take(started("r"));
        assert_eq!(runs.take(finished("other")), Taken::Last(finished("other")));
    }
}
