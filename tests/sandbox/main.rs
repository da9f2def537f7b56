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
mod longer;
#[cfg(test)]
mod network;
mod older;
#[cfg(test)]
mod repositories;
mod signals;
#[cfg(test)]
mod surroundings;
#[cfg(test)]
mod through_bash;
#[cfg(test)]
mod work;
