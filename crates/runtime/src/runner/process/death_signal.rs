//! A child that is killed when this process dies (Linux).
#![allow(unsafe_code)]

use std::io;

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use tokio::process::Command;

/// Has the kernel kill the program when the *thread* that starts it ends; so it is only of use on
/// a thread that lives as long as this process.
pub fn die_with_this_process(command: &mut Command) {
    let this = getpid();
    let arm = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // This process may have died before the signal was armed.
        if getppid() == Some(this) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: `arm` runs in the child between fork and exec, where only async-signal-safe calls
    // are allowed. It makes two system calls, allocates nothing and takes no lock: an
    // `io::Error` made of an `ErrorKind` or an error number does not allocate.
    unsafe {
        command.pre_exec(arm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::testing::block_on;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    #[test]
    fn a_child_dies_with_the_thread_that_started_it() {
        block_on(async {
            let runtime = tokio::runtime::Handle::current();
            let starter = std::thread::spawn(move || {
                let _context = runtime.enter();
                let mut command = Command::new("/bin/sleep");
                command.arg("300").stdin(Stdio::null());
                die_with_this_process(&mut command);
                command.spawn().unwrap()
            });
            let mut child = starter.join().unwrap();
            let limit = std::time::Duration::from_secs(10);
            let status = tokio::time::timeout(limit, child.wait()).await.unwrap().unwrap();
            assert_eq!(status.signal(), Some(9));
        });
    }
}
