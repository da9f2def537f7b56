//! The calls of Windows for which no safe wrapper exists. Nothing else in the crate is `unsafe` there.

#![expect(
    unsafe_code,
    reason = "job objects, tokens, CreateProcess with a list of handles, console events and access lists have no safe wrapper"
)]

mod rights;

use std::ffi::c_void;
use std::io;
use std::mem::size_of;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, HandleOrNull, OwnedHandle};
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{
    HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation, WAIT_OBJECT_0,
};
use windows_sys::Win32::Storage::FileSystem::GetDiskFreeSpaceExW;
use windows_sys::Win32::System::Console::{
    AttachConsole, CTRL_BREAK_EVENT, FreeConsole, GenerateConsoleCtrlEvent,
};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_CPU_RATE_CONTROL_ENABLE,
    JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP, JOB_OBJECT_LIMIT_ACTIVE_PROCESS,
    JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION, JOB_OBJECT_LIMIT_JOB_MEMORY,
    JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOB_OBJECT_LIMIT_PROCESS_TIME, JOB_OBJECT_UILIMIT_DESKTOP,
    JOB_OBJECT_UILIMIT_DISPLAYSETTINGS, JOB_OBJECT_UILIMIT_EXITWINDOWS,
    JOB_OBJECT_UILIMIT_GLOBALATOMS, JOB_OBJECT_UILIMIT_HANDLES, JOB_OBJECT_UILIMIT_READCLIPBOARD,
    JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS, JOB_OBJECT_UILIMIT_WRITECLIPBOARD,
    JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, JOBOBJECT_BASIC_UI_RESTRICTIONS,
    JOBOBJECT_CPU_RATE_CONTROL_INFORMATION, JOBOBJECT_CPU_RATE_CONTROL_INFORMATION_0,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JOBOBJECTINFOCLASS, JobObjectBasicAccountingInformation,
    JobObjectBasicUIRestrictions, JobObjectCpuRateControlInformation,
    JobObjectExtendedLimitInformation, QueryInformationJobObject, SetInformationJobObject,
    TerminateJobObject,
};
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};
use windows_sys::Win32::System::Threading::{
    CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW, CREATE_SUSPENDED, CREATE_UNICODE_ENVIRONMENT,
    CreateProcessAsUserW, CreateProcessW, DeleteProcThreadAttributeList,
    EXTENDED_STARTUPINFO_PRESENT, GetExitCodeProcess, INFINITE, InitializeProcThreadAttributeList,
    OpenProcess, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, PROCESS_INFORMATION, PROCESS_SYNCHRONIZE,
    ResumeThread, STARTF_USESTDHANDLES, STARTUPINFOEXW, STARTUPINFOW, TerminateProcess,
    UpdateProcThreadAttribute, WaitForSingleObject,
};
use windows_sys::core::BOOL;

use super::plan::{JobPlan, Suspended, begin};
pub(crate) use rights::{OwnToken, Token, copy_access_list, create_low};

/// Everything of the desktop that a job can be kept from.
const OFF_DESKTOP: u32 = JOB_OBJECT_UILIMIT_DESKTOP
    | JOB_OBJECT_UILIMIT_DISPLAYSETTINGS
    | JOB_OBJECT_UILIMIT_EXITWINDOWS
    | JOB_OBJECT_UILIMIT_GLOBALATOMS
    | JOB_OBJECT_UILIMIT_HANDLES
    | JOB_OBJECT_UILIMIT_READCLIPBOARD
    | JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS
    | JOB_OBJECT_UILIMIT_WRITECLIPBOARD;

fn done(result: BOOL) -> io::Result<()> {
    match result {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Takes over a handle that a call has just made; null is its failure.
fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    // SAFETY: the callers pass what the system returned to them as a new handle of their own, or null, which
    // `HandleOrNull` turns into an error. No other owner of it exists.
    let handle = unsafe { HandleOrNull::from_raw_handle(handle) };
    OwnedHandle::try_from(handle).map_err(|_| io::Error::last_os_error())
}

fn size<T>() -> u32 {
    u32::try_from(size_of::<T>()).unwrap_or_default()
}

fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

/// A job object: all processes of a command. They end with its last handle, which is here alone.
#[derive(Debug)]
pub(crate) struct Job(OwnedHandle);

/// What the processes of a job have used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    /// Processor time, in units of 100 ns.
    pub(crate) time: i64,
    /// Most memory that one of them had committed.
    pub(crate) memory: usize,
    /// How many are there now.
    pub(crate) active: u32,
}

impl Job {
    /// Makes a job without a process, which holds its processes to a plan.
    pub(crate) fn new(plan: &JobPlan) -> io::Result<Self> {
        // SAFETY: both arguments may be null: a job without a name, with a handle that no process inherits.
        let job = Self(owned(unsafe { CreateJobObjectW(null(), null()) })?);
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        let basic = &mut limits.BasicLimitInformation;
        basic.LimitFlags =
            JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION;
        if let Some(processes) = plan.processes {
            basic.LimitFlags |= JOB_OBJECT_LIMIT_ACTIVE_PROCESS;
            basic.ActiveProcessLimit = processes;
        }
        if let Some(time) = plan.time {
            basic.LimitFlags |= JOB_OBJECT_LIMIT_PROCESS_TIME;
            basic.PerProcessUserTimeLimit = time;
        }
        if let Some(memory) = plan.memory {
            basic.LimitFlags |= JOB_OBJECT_LIMIT_JOB_MEMORY;
            limits.JobMemoryLimit = memory;
        }
        job.set(JobObjectExtendedLimitInformation, &limits)?;
        if let Some(share) = plan.share {
            let rate = JOBOBJECT_CPU_RATE_CONTROL_INFORMATION {
                ControlFlags: JOB_OBJECT_CPU_RATE_CONTROL_ENABLE
                    | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP,
                Anonymous: JOBOBJECT_CPU_RATE_CONTROL_INFORMATION_0 { CpuRate: share },
            };
            job.set(JobObjectCpuRateControlInformation, &rate)?;
        }
        if plan.off_desktop {
            let restrictions = JOBOBJECT_BASIC_UI_RESTRICTIONS {
                UIRestrictionsClass: OFF_DESKTOP,
            };
            job.set(JobObjectBasicUIRestrictions, &restrictions)?;
        }
        Ok(job)
    }

    fn set<T: Copy>(&self, class: JOBOBJECTINFOCLASS, information: &T) -> io::Result<()> {
        let information: *const T = information;
        // SAFETY: the handle is open; the callers pass the plain C structure that belongs to the class, with its own
        // size, and the call reads it before it returns.
        done(unsafe {
            SetInformationJobObject(self.raw(), class, information.cast::<c_void>(), size::<T>())
        })
    }

    /// The callers name the structure that belongs to the class.
    fn get<T: Copy + Default>(&self, class: JOBOBJECTINFOCLASS) -> io::Result<T> {
        let mut information = T::default();
        let place: *mut T = &raw mut information;
        // SAFETY: the handle is open; the structure is a plain C one of integers, so whatever the call writes there is
        // valid, and it writes no more than the size that it is told. A null for the returned length is allowed.
        done(unsafe {
            QueryInformationJobObject(
                self.raw(),
                class,
                place.cast::<c_void>(),
                size::<T>(),
                null_mut(),
            )
        })?;
        Ok(information)
    }

    fn raw(&self) -> HANDLE {
        self.0.as_raw_handle()
    }

    /// Ends all its processes, with this exit code.
    pub(crate) fn terminate(&self, code: u32) -> io::Result<()> {
        // SAFETY: the handle is open, and the call takes no pointer.
        done(unsafe { TerminateJobObject(self.raw(), code) })
    }

    pub(crate) fn used(&self) -> io::Result<Used> {
        let basic: JOBOBJECT_BASIC_ACCOUNTING_INFORMATION =
            self.get(JobObjectBasicAccountingInformation)?;
        // Memory is told where it can be.
        let limits: io::Result<JOBOBJECT_EXTENDED_LIMIT_INFORMATION> =
            self.get(JobObjectExtendedLimitInformation);
        Ok(Used {
            time: basic.TotalUserTime.saturating_add(basic.TotalKernelTime),
            memory: limits.map_or(0, |limits| limits.PeakProcessMemoryUsed),
            active: basic.ActiveProcesses,
        })
    }
}

/// What a program reads and writes.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) stdin: OwnedHandle,
    pub(crate) stdout: OwnedHandle,
    pub(crate) stderr: OwnedHandle,
}

/// Starts a program in a job: it is there before its first instruction runs. It inherits the three streams, and no other
/// handle; it has a console of its own that nobody sees, and a group of its own by which events of a console reach it.
///
/// `application` is its whole path, `line` its command line, `block` its environment as `block` in `line.rs` makes it;
/// without a token it has the rights of the daemon. Returns its handle and its number.
pub(crate) fn start(
    (application, line, directory): (&str, &str, &str),
    block: &[u16],
    streams: &Streams,
    token: Option<&Token>,
    job: &Job,
) -> io::Result<(OwnedHandle, u32)> {
    if !block.ends_with(&[0, 0]) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let handles = [&streams.stdin, &streams.stdout, &streams.stderr];
    for handle in handles {
        // SAFETY: the handle is open, and the call takes no pointer.
        done(unsafe {
            SetHandleInformation(
                handle.as_raw_handle(),
                HANDLE_FLAG_INHERIT,
                HANDLE_FLAG_INHERIT,
            )
        })?;
    }
    let inherited = handles.map(|handle| handle.as_raw_handle());
    let attributes = Attributes::handles(&inherited)?;
    let startup = STARTUPINFOEXW {
        StartupInfo: STARTUPINFOW {
            cb: size::<STARTUPINFOEXW>(),
            dwFlags: STARTF_USESTDHANDLES,
            hStdInput: inherited[0],
            hStdOutput: inherited[1],
            hStdError: inherited[2],
            ..STARTUPINFOW::default()
        },
        lpAttributeList: attributes.place(),
    };
    let startup: *const STARTUPINFOW = (&raw const startup).cast();
    let (application, mut line, directory) = (wide(application), wide(line), wide(directory));
    let block: *const c_void = block.as_ptr().cast();
    let flags = CREATE_SUSPENDED
        | CREATE_UNICODE_ENVIRONMENT
        | CREATE_NO_WINDOW
        | CREATE_NEW_PROCESS_GROUP
        | EXTENDED_STARTUPINFO_PRESENT;
    let mut made = PROCESS_INFORMATION::default();
    let (application, line, directory) =
        (application.as_ptr(), line.as_mut_ptr(), directory.as_ptr());
    // SAFETY: the three texts end with a zero and are alive, the line is in memory of its own that the call may change; the
    // environment ends with two zeros, as was checked; the start-up information is of the form and the size that the flag
    // names, its list of attributes and the handles in that are alive until `attributes` and `streams` go, after this
    // function; null security attributes are allowed; `made` is a plain C structure that the call fills.
    let result = unsafe {
        match token {
            Some(token) => CreateProcessAsUserW(
                token.raw(),
                application,
                line,
                null(),
                null(),
                1,
                flags,
                block,
                directory,
                startup,
                &raw mut made,
            ),
            None => CreateProcessW(
                application,
                line,
                null(),
                null(),
                1,
                flags,
                block,
                directory,
                startup,
                &raw mut made,
            ),
        }
    };
    done(result)?;
    let suspended = Made {
        process: owned(made.hProcess)?,
        thread: owned(made.hThread)?,
        job,
    };
    begin(&suspended)?;
    Ok((suspended.process, made.dwProcessId))
}

/// A process that was made suspended, by the flag with which [`start`] makes each.
struct Made<'a> {
    process: OwnedHandle,
    thread: OwnedHandle,
    job: &'a Job,
}

impl Suspended for Made<'_> {
    fn join_job(&self) -> io::Result<()> {
        // SAFETY: both handles are open, and the call takes no pointer.
        done(unsafe { AssignProcessToJobObject(self.job.raw(), self.process.as_raw_handle()) })
    }

    fn resume(&self) -> io::Result<()> {
        // SAFETY: the handle is open, and the call takes no pointer.
        match unsafe { ResumeThread(self.thread.as_raw_handle()) } {
            u32::MAX => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    fn terminate(&self) {
        // SAFETY: the handle is open, and the call takes no pointer.
        unsafe { TerminateProcess(self.process.as_raw_handle(), 1) };
    }
}

/// A list of attributes for a new process, in memory of its own.
struct Attributes<'a> {
    /// In words, so that it is aligned for pointers.
    memory: Vec<usize>,
    /// The list has their address.
    _handles: &'a [HANDLE; 3],
}

impl<'a> Attributes<'a> {
    /// Makes one of one entry: the handles that are inherited.
    fn handles(handles: &'a [HANDLE; 3]) -> io::Result<Self> {
        let mut bytes = 0;
        // SAFETY: without a list the call only says how many bytes one takes, and fails, as is documented.
        unsafe { InitializeProcThreadAttributeList(null_mut(), 1, 0, &raw mut bytes) };
        let mut memory = vec![0_usize; bytes.div_ceil(size_of::<usize>())];
        let place: *mut c_void = memory.as_mut_ptr().cast();
        // SAFETY: the memory has at least as many bytes as the call before asked for.
        done(unsafe { InitializeProcThreadAttributeList(place, 1, 0, &raw mut bytes) })?;
        let list = Self {
            memory,
            _handles: handles,
        };
        // SAFETY: the list was just made, for one attribute. It keeps the address of the handles, which live as long as
        // it does. Both last arguments must be null.
        done(unsafe {
            UpdateProcThreadAttribute(
                place,
                0,
                PROC_THREAD_ATTRIBUTE_HANDLE_LIST as usize,
                handles.as_ptr().cast(),
                size_of::<[HANDLE; 3]>(),
                null_mut(),
                null(),
            )
        })?;
        Ok(list)
    }

    fn place(&self) -> *mut c_void {
        self.memory.as_ptr().cast_mut().cast()
    }
}

impl Drop for Attributes<'_> {
    fn drop(&mut self) {
        // SAFETY: the list is one that was made in this memory, and is not used afterwards.
        unsafe { DeleteProcThreadAttributeList(self.place()) };
    }
}

/// Waits for the end of a process, and returns its exit code.
pub(crate) fn wait_for_process(process: BorrowedHandle<'_>) -> io::Result<u32> {
    // SAFETY: the handle is open for the length of the call.
    if unsafe { WaitForSingleObject(process.as_raw_handle(), INFINITE) } != WAIT_OBJECT_0 {
        return Err(io::Error::last_os_error());
    }
    let mut code = 0;
    // SAFETY: the handle is open; the call writes one number.
    done(unsafe { GetExitCodeProcess(process.as_raw_handle(), &raw mut code) })?;
    Ok(code)
}

/// Waits for the end of a process that this one did not start; returns at once where it is gone.
pub(crate) fn wait_for_id(id: u32) -> io::Result<()> {
    // SAFETY: the call takes no pointer; it returns a handle of this process's own, or null.
    let process = owned(unsafe { OpenProcess(PROCESS_SYNCHRONIZE, 0, id) })?;
    // SAFETY: the handle is open for the length of the call.
    match unsafe { WaitForSingleObject(process.as_raw_handle(), INFINITE) } {
        WAIT_OBJECT_0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sends Ctrl-Break to a group of processes, in the console of its first one.
///
/// A process has one console, so this is for a process that does nothing else.
pub(crate) fn ask_to_end(group: u32) -> io::Result<()> {
    // SAFETY: the call takes nothing; where there is no console it fails, and nothing was to be done.
    unsafe { FreeConsole() };
    // SAFETY: the call takes a number.
    done(unsafe { AttachConsole(group) })?;
    // SAFETY: the call takes two numbers.
    done(unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, group) })
}

/// Returns the bytes of memory that the machine has.
pub(crate) fn memory_of_the_machine() -> io::Result<u64> {
    let mut status = MEMORYSTATUSEX {
        dwLength: size::<MEMORYSTATUSEX>(),
        ..MEMORYSTATUSEX::default()
    };
    // SAFETY: the structure is a plain C one that says its own size, and the call fills it.
    done(unsafe { GlobalMemoryStatusEx(&raw mut status) })?;
    Ok(status.ullTotalPhys)
}

/// Returns the bytes that this user may still write on the disk of a folder, and all that the disk has.
pub(crate) fn free_space(folder: &str) -> io::Result<(u64, u64)> {
    let (folder, mut free, mut all) = (wide(folder), 0, 0);
    // SAFETY: the text ends with a zero; the call writes two numbers, and the third may be null.
    done(unsafe { GetDiskFreeSpaceExW(folder.as_ptr(), &raw mut free, &raw mut all, null_mut()) })?;
    Ok((free, all))
}
