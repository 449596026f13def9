//! Steps of a run.

object! {
    /// `STEP_STARTED`: opens a named step.
    attributed event StepStarted = "STEP_STARTED" {
        tags {}
        required {
            /// The step's name, which identifies it among its owner's open steps (P-19).
            step_name "stepName": String,
        }
        optional {}
    }
}

object! {
    /// `STEP_FINISHED`: closes a named step.
    attributed event StepFinished = "STEP_FINISHED" {
        tags {}
        required {
            /// The step's name.
            step_name "stepName": String,
        }
        optional {}
    }
}
