//! Promises of the repository about itself: who imports whom, what documents name, what images are made of.
//!
//! Each is read from the files as they are, with small scanners that know the form this repository has (rustfmt's)
//! and no more.

#![expect(
    clippy::string_slice,
    reason = "the scanners cut at characters that they found"
)]

#[cfg(test)]
mod documents;
#[cfg(test)]
mod image;
#[cfg(test)]
mod imports;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod release;
#[cfg(test)]
mod scripts;
#[cfg(test)]
mod source;
#[cfg(test)]
mod support;
