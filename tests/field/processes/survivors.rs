//! SPEC 4.13: what outlives a crash is ended before its attempt is called lost, and nothing else.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use engine::ids::{Instance, OwnerId};
use runtime::runner::process::identity::ProcessIdentity;
use runtime::runner::process::registry::{Entry, ProcessRegistry};
use runtime::runner::process::survivors::{Fate, end_survivors};
use runtime::runner::{ProgressSink, Runner, StopHandle};
use uuid::Uuid;

use super::{Asked, block_on, eventually, runner_in, unique};

/// Names the home folder of the owner that this process plays, if it plays one.
const HOME_OF_OWNER: &str = "CYANOTYPE_TEST_HOME_OF_OWNER";

/// A program as a crashed owner left it: nobody waits for it, and it has the marks of an attempt.
struct Survivor {
    child: Child,
    asked: Asked,
}

impl Survivor {
    fn start(script: &str) -> Survivor {
        let asked = Asked::sh(script);
        let request = asked.request();
        let child = Command::new("/bin/sh")
            .args(["-c", script])
            .env("CYANOTYPE_EXECUTION_ID", asked.execution.to_string())
            .env("CYANOTYPE_IDEMPOTENCY_KEY", request.start.idempotency_key.to_string())
            .env("CYANOTYPE_ATTEMPT", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        Survivor { child, asked }
    }

    fn entry(&self) -> Entry {
        let request = self.asked.request();
        Entry {
            execution: request.execution,
            instance: Instance::top("a node".into()),
            attempt: 1,
            idempotency_key: request.start.idempotency_key,
        }
    }

    fn identity(&self) -> ProcessIdentity {
        ProcessIdentity::of(self.child.id()).unwrap()
    }
}

impl Drop for Survivor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Records a survivor for an owner, ends that owner's survivors, and returns what became of it.
fn end_as(survivor: &Survivor, identity: &ProcessIdentity) -> Vec<Fate> {
    let home = tempfile::tempdir().unwrap();
    let owner = OwnerId(Uuid::from_u128(u128::from(unique())));
    let registry = ProcessRegistry::open(home.path(), owner).unwrap();
    drop(registry.record(identity, &survivor.entry()).unwrap());
    let ended = end_survivors(home.path(), owner).unwrap();
    assert!(ended.iter().all(|ended| ended.entry == survivor.entry()));
    assert_eq!(end_survivors(home.path(), owner).unwrap(), [], "the records are used up");
    ended.into_iter().map(|ended| ended.fate).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_survivor_is_ended_with_its_children() {
    let survivor = Survivor::start("sleep 300 & sleep 300");
    eventually("starting", || survivor.asked.processes_left().len() == 3);
    assert_eq!(end_as(&survivor, &survivor.identity()), [Fate::Killed]);
    assert_eq!(survivor.asked.processes_left(), [""; 0]);
}

#[test]
#[cfg(target_os = "linux")]
fn children_are_known_by_their_marks_when_their_leader_is_gone() {
    let mut survivor = Survivor::start("sleep 300 & setsid sleep 300 & sleep 300");
    eventually("starting", || survivor.asked.processes_left().len() == 4);
    let identity = survivor.identity();
    survivor.child.kill().unwrap();
    survivor.child.wait().unwrap();
    eventually("being orphans", || survivor.asked.processes_left().len() == 3);
    assert_eq!(end_as(&survivor, &identity), [Fate::Killed]);
    assert_eq!(survivor.asked.processes_left(), [""; 0]);
}

#[test]
fn a_process_that_only_has_the_number_is_left_alone() {
    let mut survivor = Survivor::start("exec sleep 300");
    let identity = survivor.identity();
    let mut stranger = Survivor::start("exec sleep 300");
    // Both may have been started in the same tick of the clock, which numbers never are again.
    let start_time = identity.start_time - 1;
    let reused = ProcessIdentity { pgid: stranger.child.id(), start_time, ..identity };
    survivor.child.kill().unwrap();
    survivor.child.wait().unwrap();
    assert_eq!(end_as(&survivor, &reused), [Fate::WasGone]);
    assert_eq!(stranger.child.try_wait().unwrap(), None, "a stranger was ended");

    let other_boot = ProcessIdentity { boot_id: "another".to_owned(), ..stranger.identity() };
    assert_eq!(end_as(&stranger, &other_boot), [Fate::WasGone]);
    assert_eq!(stranger.child.try_wait().unwrap(), None, "a stranger was ended");
}

#[test]
fn what_is_gone_and_what_was_never_written_need_nothing() {
    let mut survivor = Survivor::start("exit 0");
    let identity = survivor.identity();
    survivor.child.wait().unwrap();
    assert_eq!(end_as(&survivor, &identity), [Fate::WasGone]);

    let home = tempfile::tempdir().unwrap();
    let owner = OwnerId(Uuid::from_u128(u128::from(unique())));
    assert_eq!(end_survivors(home.path(), owner).unwrap(), []);
    ProcessRegistry::open(home.path(), owner).unwrap();
    std::fs::write(home.path().join(owner.to_string()).join("7.json"), "{\"half").unwrap();
    assert_eq!(end_survivors(home.path(), owner).unwrap(), []);
    assert!(!home.path().join(owner.to_string()).exists());
}

/// The test plays both parts: started again with a home folder in its environment, it is the owner
/// that runs an attempt and is killed.
#[test]
#[cfg(target_os = "linux")]
fn children_of_an_owner_that_is_killed_are_ended() {
    if let Some(home) = std::env::var_os(HOME_OF_OWNER) {
        return run_as_owner(home.as_ref());
    }
    let home = tempfile::tempdir().unwrap();
    let this_test = module_path!().split_once("::").unwrap().1.to_owned()
        + "::children_of_an_owner_that_is_killed_are_ended";
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &this_test])
        .env(HOME_OF_OWNER, home.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let started = home.path().join("started");
    eventually("starting the attempt", || started.exists());
    let read = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap();
    let asked = Asked { execution: read("execution").parse().unwrap(), ..Asked::sh("") };
    eventually("starting both", || asked.processes_left().len() == 2);
    owner.kill().unwrap();
    owner.wait().unwrap();

    let leader = format!("/proc/{}/stat", read("started").trim());
    let is_dead = || std::fs::read_to_string(&leader).map_or(true, |stat| stat.contains(") Z "));
    eventually("dying with the owner", is_dead);
    eventually("leaving an orphan", || asked.processes_left().len() == 1);
    let ended = end_survivors(&home.path().join("processes"), OWNER).unwrap();
    let fates: Vec<Fate> = ended.iter().map(|ended| ended.fate).collect();
    assert_eq!(fates, [Fate::Killed]);
    assert_eq!(asked.processes_left(), [""; 0]);
}

#[cfg(target_os = "linux")]
const OWNER: OwnerId = OwnerId(Uuid::from_u128(77));

#[cfg(target_os = "linux")]
fn run_as_owner(home: &std::path::Path) {
    let asked = Asked::sh("sleep 300 & echo $$ > starting; mv starting started; wait");
    std::fs::write(home.join("execution"), asked.execution.to_string()).unwrap();
    let runner = runner_in(home, OWNER);
    let outcome = block_on(async {
        let (_handle, stop) = StopHandle::new();
        let (progress, _lines) = ProgressSink::channel(10);
        runner.run(asked.request(), progress, stop).await
    });
    panic!("the owner should have been killed: {outcome:?}");
}
