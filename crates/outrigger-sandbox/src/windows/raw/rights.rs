//! Who may do what: tokens, labels and access lists.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{HANDLE, LocalFree};
use windows_sys::Win32::Security::Authorization::ConvertStringSecurityDescriptorToSecurityDescriptorW;
use windows_sys::Win32::Security::{
    CreateRestrictedToken, CreateWellKnownSid, DACL_SECURITY_INFORMATION, DISABLE_MAX_PRIVILEGE,
    GetKernelObjectSecurity, GetLengthSid, LUA_TOKEN, PSECURITY_DESCRIPTOR, SECURITY_ATTRIBUTES,
    SECURITY_MAX_SID_SIZE, SID_AND_ATTRIBUTES, SetKernelObjectSecurity, SetTokenInformation,
    TOKEN_ADJUST_DEFAULT, TOKEN_ASSIGN_PRIMARY, TOKEN_DUPLICATE, TOKEN_MANDATORY_LABEL,
    TOKEN_QUERY, TokenIntegrityLevel, WinLowLabelSid,
};
use windows_sys::Win32::Storage::FileSystem::CreateDirectoryW;
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use super::super::plan::{Fewer, LOW_LABEL, Level, Lowered, Source};
use super::{done, owned, size, wide};

/// `SE_GROUP_INTEGRITY`: the identifier is a level of integrity.
const IS_INTEGRITY: u32 = 0x20;

/// Largest access list that is copied, in bytes: the system's own limit is 64 KiB.
const MAX_ACCESS_LIST: usize = 128 * 1024;

/// The token of this process, of which copies are made.
#[derive(Debug)]
pub(crate) struct OwnToken(OwnedHandle);

/// A copy of it with fewer rights.
#[derive(Debug)]
pub(crate) struct FewerRights(OwnedHandle);

/// A copy with fewer rights and a level of its own, for a program that is started by it. Nothing else makes one than
/// the last of the steps.
#[derive(Debug)]
pub(crate) struct Token(OwnedHandle);

impl OwnToken {
    pub(crate) fn open() -> io::Result<Self> {
        let mut own: HANDLE = null_mut();
        let access = TOKEN_DUPLICATE | TOKEN_ASSIGN_PRIMARY | TOKEN_QUERY | TOKEN_ADJUST_DEFAULT;
        // SAFETY: the handle of the current process is always valid and needs no closing; the call writes one handle.
        done(unsafe { OpenProcessToken(GetCurrentProcess(), access, &raw mut own) })?;
        owned(own).map(Self)
    }
}

impl Source for OwnToken {
    type Fewer = FewerRights;

    fn restricted(&self, fewer: Fewer) -> io::Result<FewerRights> {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let flags =
            flag(fewer.privileges, DISABLE_MAX_PRIVILEGE) | flag(fewer.administrators, LUA_TOKEN);
        let mut made: HANDLE = null_mut();
        // SAFETY: the token is open with the rights that this takes; the three lists are empty, for which null is allowed;
        // the call writes one handle.
        done(unsafe {
            CreateRestrictedToken(
                self.0.as_raw_handle(),
                flags,
                0,
                null(),
                0,
                null(),
                0,
                null(),
                &raw mut made,
            )
        })?;
        owned(made).map(FewerRights)
    }
}

impl Lowered for FewerRights {
    type Token = Token;

    fn lowered(self, level: Level) -> io::Result<Token> {
        let level = match level {
            Level::Low => WinLowLabelSid,
        };
        let mut sid = [0_u64; (SECURITY_MAX_SID_SIZE as usize).div_ceil(8)];
        let mut bytes = SECURITY_MAX_SID_SIZE;
        let place: *mut c_void = sid.as_mut_ptr().cast();
        // SAFETY: the memory is as large as any identifier, and aligned for one; this kind needs no domain.
        done(unsafe { CreateWellKnownSid(level, null_mut(), place, &raw mut bytes) })?;
        let label = TOKEN_MANDATORY_LABEL {
            Label: SID_AND_ATTRIBUTES {
                Sid: place,
                Attributes: IS_INTEGRITY,
            },
        };
        // SAFETY: the identifier was just made.
        let length = size::<TOKEN_MANDATORY_LABEL>() + unsafe { GetLengthSid(place) };
        // SAFETY: the token is open with the right to change its defaults; the label is the structure of this class, its
        // identifier is alive, and the length is that of both, as the documentation asks for.
        done(unsafe {
            SetTokenInformation(
                self.0.as_raw_handle(),
                TokenIntegrityLevel,
                (&raw const label).cast(),
                length,
            )
        })?;
        Ok(Token(self.0))
    }
}

impl Token {
    pub(super) fn raw(&self) -> HANDLE {
        self.0.as_raw_handle()
    }
}

/// Makes a folder to which, and to what is made in it, programs of low integrity may write. Fails where it exists.
pub(crate) fn create_low(folder: &str) -> io::Result<()> {
    /// The one form that there is of the language.
    const REVISION: u32 = 1;

    let (folder, label) = (wide(folder), wide(LOW_LABEL));
    let mut description: PSECURITY_DESCRIPTOR = null_mut();
    // SAFETY: the text ends with a zero; the call writes the address of memory that it gives to its caller, and the last
    // argument may be null.
    done(unsafe {
        ConvertStringSecurityDescriptorToSecurityDescriptorW(
            label.as_ptr(),
            REVISION,
            &raw mut description,
            null_mut(),
        )
    })?;
    let attributes = SECURITY_ATTRIBUTES {
        nLength: size::<SECURITY_ATTRIBUTES>(),
        lpSecurityDescriptor: description,
        bInheritHandle: 0,
    };
    // SAFETY: the path ends with a zero; the attributes are of the size that they say, and their description is the one just
    // made. The system reads both. It has no list of access, so that this comes from the folder above.
    let made = done(unsafe { CreateDirectoryW(folder.as_ptr(), &raw const attributes) });
    // SAFETY: the memory was given to this function to be freed by this call, and is not used afterwards.
    unsafe { LocalFree(description) };
    made
}

/// Gives a file the list of who may do what with another one. `to` must be open with the right to change that.
pub(crate) fn copy_access_list(from: &impl AsHandle, to: &impl AsHandle) -> io::Result<()> {
    let mut bytes = 0;
    let from = from.as_handle().as_raw_handle();
    // SAFETY: the handle is open; without memory the call only says how many bytes it takes, and fails.
    unsafe {
        GetKernelObjectSecurity(
            from,
            DACL_SECURITY_INFORMATION,
            null_mut(),
            0,
            &raw mut bytes,
        )
    };
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    if length == 0 || length > MAX_ACCESS_LIST {
        return Err(io::Error::last_os_error());
    }
    let mut memory = vec![0_u64; length.div_ceil(8)];
    let place: *mut c_void = memory.as_mut_ptr().cast();
    // SAFETY: the memory has as many bytes as the call before asked for, and is aligned for the structure.
    done(unsafe {
        GetKernelObjectSecurity(
            from,
            DACL_SECURITY_INFORMATION,
            place,
            bytes,
            &raw mut bytes,
        )
    })?;
    // SAFETY: the handle is open; the description is the one that the system has just written there.
    done(unsafe {
        SetKernelObjectSecurity(
            to.as_handle().as_raw_handle(),
            DACL_SECURITY_INFORMATION,
            place,
        )
    })
}
