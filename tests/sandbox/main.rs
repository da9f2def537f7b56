//! Commands under control and in the sandbox, with real processes.

#[cfg(test)]
mod support;

#[cfg(test)]
mod battery;
#[cfg(test)]
mod control;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod network;
#[cfg(test)]
mod surroundings;
#[cfg(test)]
mod work;
