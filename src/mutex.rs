//! A mutex that knows no poison.
//!
//! The standard one is poisoned where its holder panics, and each `lock` has to say what then. Here it
//! does not matter: what is changed under a lock is changed by a few statements that run no code of a
//! tool, a provider or a client, so that a panic leaves at worst one entry that is missing or too many;
//! and a panic is caught where a call, an exchange or a session runs, which ends it and not the daemon.
//! A daemon that refused every later lock would turn one fault into all of them.
//!
//! It is never held across an await: a holder that waits would block a thread of the runtime.

pub use std::sync::MutexGuard;
use std::sync::PoisonError;

/// Mutual exclusion whose lock cannot fail.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Guards a value.
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    /// Returns the value; nobody else has it any more.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for whoever has the value, and has it until the guard is dropped.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_that_panicked_locks_nobody_out() {
        let value = Mutex::new(1);
        let holder = std::panic::AssertUnwindSafe(|| {
            *value.lock() = 2;
            let _held = value.lock();
            panic!("on purpose");
        });
        std::panic::catch_unwind(holder).unwrap_err();
        assert_eq!(*value.lock(), 2);
        assert_eq!(value.into_inner(), 2);
    }
}
