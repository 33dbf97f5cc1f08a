//! O-P01: whatever an agent started ends with its attempt.

use std::time::Duration;

use runtime::runner::process::ProcessLimits;
use runtime::runner::{AttemptOutcome, ProgressSink, StopHandle};

use super::{Asked, World, block_on, eventually};

/// A clock that runs out, or a person who cancels: both raise the stop signal.
const SOON: Duration = Duration::from_millis(150);

#[track_caller]
fn check_stopped(asked: &Asked, at_most: Duration) {
    let world = World::new();
    let ran = world.run_and_stop(asked, SOON);
    assert_eq!(ran.outcome, AttemptOutcome::Stopped);
    assert!(ran.took < SOON + at_most, "{:?}", ran.took);
    assert_eq!(asked.processes_left(), [""; 0]);
    assert_eq!(world.records(), 0, "the record of a program that is gone is removed");
}

#[test]
fn op01a_a_timeout_ends_the_program_and_its_children() {
    check_stopped(&Asked::sh("sleep 300"), Duration::from_secs(3));
    check_stopped(&Asked::sh("sleep 300 & sleep 300; echo 1"), Duration::from_secs(3));
}

#[test]
fn op01b_a_child_that_holds_the_output_open_delays_the_result_only_briefly() {
    let asked = Asked::sh(r#"echo "{\"ok\":1}"; sleep 300 & exit 0"#);
    let ran = World::new().run(&asked);
    assert_eq!(ran.completed(), (r#"{"ok":1}"#, vec!["outputPipeHeldOpen"]));
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
    assert_eq!(asked.processes_left(), [""; 0]);
}

#[test]
fn op01c_a_program_that_ignores_the_polite_signal_is_ended_hard() {
    let stubborn = "trap '' TERM; while :; do sleep 300; done";
    check_stopped(&Asked::sh(stubborn), Duration::from_secs(5));
}

#[test]
fn op01d_a_cancel_that_drops_the_attempt_cleans_up_as_well() {
    let world = World::new();
    let asked = Asked::sh("sleep 300 & sleep 300");
    block_on(async {
        let (_handle, stop) = StopHandle::new();
        let (progress, _lines) = ProgressSink::channel(10);
        tokio::select! {
            outcome = world.start(&asked, progress, stop) => panic!("{outcome:?}"),
            () = async {
                while world.records() == 0 {
                    tokio::task::yield_now().await;
                }
            } => {}
        }
    });
    eventually("ending a dropped attempt", || asked.processes_left().is_empty());
    eventually("removing its record", || world.records() == 0);
}

#[test]
fn a_stop_before_the_start_starts_nothing() {
    let world = World::new();
    let marker = world.home.path().join("marker");
    let asked = Asked::program("/usr/bin/touch", &[marker.to_str().unwrap()]);
    let outcome = block_on(async {
        let (handle, stop) = StopHandle::new();
        handle.stop();
        let (progress, _lines) = ProgressSink::channel(10);
        world.start(&asked, progress, stop).await
    });
    assert_eq!(outcome, AttemptOutcome::Stopped);
    assert!(!marker.exists());
}

#[test]
fn a_program_may_tidy_up_when_it_is_stopped() {
    let world = World::new();
    let script = "trap 'echo tidied > tidied; exit 0' TERM; echo up >&2; sleep 300 & wait";
    let ran = world.run_and_stop(&Asked::sh(script), Duration::from_millis(300));
    assert_eq!(ran.outcome, AttemptOutcome::Stopped);
    assert!(ran.took < Duration::from_millis(1_500), "it did not wait for the hard end");
    assert!(world.home.path().join("tidied").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_that_left_the_group_is_ended_too() {
    check_stopped(&Asked::sh("setsid sleep 300 & sleep 300"), Duration::from_secs(3));
    // Nothing marks this one; it is found because its parent is alive when the attempt stops.
    let unmarked = "env -i setsid sleep 299.25 & sleep 300";
    let asked = Asked::sh(unmarked);
    check_stopped(&asked, Duration::from_secs(3));
    assert!(!is_running("sleep\x00299.25"));
    // This one has long become an orphan, and holds nothing open.
    let daemon = Asked::sh("(setsid sleep 300 >/dev/null 2>&1 &); echo 1");
    let ran = World::new().run(&daemon);
    assert_eq!(ran.completed(), ("1", vec!["processesLeftBehind"]));
    assert_eq!(daemon.processes_left(), [""; 0]);
}

#[cfg(target_os = "linux")]
fn is_running(command: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.map(|process| std::fs::read(process.path().join("cmdline")));
    lines.any(|line| line.is_ok_and(|line| line.starts_with(command.as_bytes())))
}

#[test]
fn a_child_that_never_stops_writing_does_not_hide_the_end_of_its_parent() {
    let asked = Asked::sh("yes complaint >&2 & yes noise & echo 1");
    let ran = World::new().run(&asked);
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
    assert!(ran.completed().1.contains(&"outputPipeHeldOpen"));
    assert_eq!(asked.processes_left(), [""; 0]);
    let ran = World::new().run_and_stop(&Asked::sh("yes complaint >&2"), SOON);
    assert_eq!(ran.outcome, AttemptOutcome::Stopped);
}

#[test]
fn a_quiet_process_left_behind_is_ended_with_a_warning() {
    let asked = Asked::sh("sleep 300 >/dev/null 2>&1 & echo '[1]'");
    let ran = World::new().run(&asked);
    assert_eq!(ran.completed(), ("[1]", vec!["processesLeftBehind"]));
    assert!(ran.took < Duration::from_secs(2), "nothing is drained: {:?}", ran.took);
    assert_eq!(asked.processes_left(), [""; 0]);
}

#[test]
fn a_failing_program_leaves_nothing_either() {
    let asked = Asked::sh("sleep 300 >/dev/null 2>&1 & exit 3");
    let ran = World::new().run(&asked);
    assert_eq!(ran.failure().error_type, "exit:3");
    assert_eq!(asked.processes_left(), [""; 0]);
}

#[test]
#[cfg(target_os = "linux")]
fn attempts_at_the_same_time_do_not_end_each_other() {
    let world = World::new();
    let short = Asked::sh("setsid sleep 300 >/dev/null 2>&1 & echo 1");
    let long = Asked::sh("setsid sleep 300 >/dev/null 2>&1 & read line < gate; echo 2");
    let status = std::process::Command::new("mkfifo").arg(world.home.path().join("gate")).status();
    assert!(status.unwrap().success());
    block_on(async {
        let run = |asked: Asked| {
            let (progress, _lines) = ProgressSink::channel(10);
            let world = &world;
            async move {
                let (_handle, stop) = StopHandle::new();
                world.start(&asked, progress, stop).await
            }
        };
        let mut long_outcome = std::pin::pin!(run(long.clone()));
        tokio::select! {
            outcome = &mut long_outcome => panic!("{outcome:?}"),
            outcome = run(short.clone()) => {
                assert!(matches!(outcome, AttemptOutcome::Completed { .. }), "{outcome:?}");
            }
        }
        assert_eq!(short.processes_left(), [""; 0]);
        assert!(long.processes_left().len() >= 2, "{:?}", long.processes_left());
        std::fs::write(world.home.path().join("gate"), "go\n").unwrap();
        let outcome = long_outcome.await;
        assert!(matches!(outcome, AttemptOutcome::Completed { .. }), "{outcome:?}");
        assert_eq!(long.processes_left(), [""; 0]);
    });
}

/// Seed B: an agent that streams has no fixed timeout, but may not be silent for ever.
#[test]
fn a_streaming_agent_that_falls_silent_fails() {
    let limits = ProcessLimits { idle: Duration::from_millis(400), ..ProcessLimits::default() };
    let world = World::with_limits(limits);
    let asked = Asked::sh("for i in 1 2 3; do echo $i >&2; sleep 0.2; done; sleep 300").streams();
    let ran = world.run(&asked);
    assert_eq!(ran.failure().error_type, "idleTimeout");
    assert_eq!(ran.failure().class.as_str(), "timeout");
    assert!(ran.took > Duration::from_millis(800), "each line resets the clock: {:?}", ran.took);
    assert_eq!(asked.processes_left(), [""; 0]);
}

/// Seed B: an agent that is done but does not exit has not failed.
#[test]
fn a_streaming_agent_that_closes_its_output_and_stays_has_completed() {
    let limits = ProcessLimits { grace: Duration::from_millis(200), ..ProcessLimits::default() };
    let world = World::with_limits(limits);
    let asked = Asked::sh("echo '{\"done\":1}'; exec >&-; sleep 300").streams();
    let ran = world.run(&asked);
    assert_eq!(ran.completed(), (r#"{"done":1}"#, vec!["endedAfterResult"]));
    assert_eq!(asked.processes_left(), [""; 0]);
}
