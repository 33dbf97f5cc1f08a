//! The one thread that starts programs. It lives as long as this process, because on Linux a
//! program is killed when the thread ends that started it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::mpsc;

use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

static JOBS: OnceLock<mpsc::Sender<Job>> = OnceLock::new();

/// Runs `start` on that thread. Fails if `start` panics. If the answer is dropped before `start`
/// has begun, it never begins; if later, what it returned is dropped.
pub fn run<T: Send + 'static>(start: impl FnOnce() -> T + Send + 'static) -> oneshot::Receiver<T> {
    let (answer, receiver) = oneshot::channel();
    let job = Box::new(move || {
        if !answer.is_closed()
            && let Ok(started) = catch_unwind(AssertUnwindSafe(start))
        {
            let _ = answer.send(started);
        }
    });
    // If there is no thread, the job is dropped with its end of the channel.
    let _ = JOBS.get_or_init(begin).send(job);
    receiver
}

fn begin() -> mpsc::Sender<Job> {
    let (sender, jobs) = mpsc::channel::<Job>();
    let work = move || {
        #[cfg(target_os = "linux")]
        super::linux::adopt_orphans();
        jobs.into_iter().for_each(|job| job());
    };
    let thread = std::thread::Builder::new().name("cyanotype-spawn".to_owned()).spawn(work);
    if let Err(error) = thread {
        tracing::error!(%error, "no thread to start programs on");
    }
    sender
}
