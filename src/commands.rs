//! The small commands: they look, print and end.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::process::ExitCode;
use std::time::Duration;

use crate::arguments::{DoctorArguments, HealthcheckArguments, SchemaArguments, ShowArguments};
use crate::config::{Sources, load, show};
use crate::ready::exit;

/// How long a health check may take.
const HEALTHCHECK: Duration = Duration::from_secs(3);
