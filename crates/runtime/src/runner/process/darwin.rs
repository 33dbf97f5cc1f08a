//! What macOS tells about processes.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::mem::{MaybeUninit, size_of};

/// When a process was started, in µs since the Unix epoch.
pub fn start_time(pid: u32) -> Option<u64> {
    let pid = i32::try_from(pid).ok()?;
    let mut info = MaybeUninit::<libc::proc_bsdinfo>::uninit();
    let size = size_of::<libc::proc_bsdinfo>() as i32;
    let target = info.as_mut_ptr().cast::<c_void>();
    // SAFETY: the buffer is as large as is said and is only written to.
    let written = unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, target, size) };
    if written != size {
        return None;
    }
    // SAFETY: the call has filled all of it, and every bit pattern is valid.
    let info = unsafe { info.assume_init() };
    Some(info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec)
}

/// Identifies the time from the last start of the system to the next.
pub fn boot_id() -> Option<String> {
    let mut text = [0_u8; 64];
    let mut length = text.len();
    let name = c"kern.bootsessionuuid";
    let target = text.as_mut_ptr().cast::<c_void>();
    // SAFETY: the name is a C string, and the buffer is as large as is said.
    let failed =
        unsafe { libc::sysctlbyname(name.as_ptr(), target, &mut length, std::ptr::null_mut(), 0) };
    if failed != 0 {
        return None;
    }
    let text = text.get(..length)?.split(|&b| b == 0).next()?;
    String::from_utf8(text.to_vec()).ok()
}
