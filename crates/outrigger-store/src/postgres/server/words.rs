//! What a server says, for people: without the names of users, and without what was written.

use deadpool_postgres::PoolError;

use super::tls;

/// Returns why there is no connection, for people. What a server says of a login names the user, so that is said here.
pub(in super::super) fn refused(error: &PoolError) -> String {
    let error = match error {
        PoolError::Backend(error) => error,
        PoolError::Timeout(_) => return "it does not answer".to_owned(),
        error => return error.to_string(),
    };
    let Some(said) = error.as_db_error() else {
        return tls::problem(error).unwrap_or_else(|| chain(error));
    };
    let code = said.code().code();
    let known = match code {
        "28P01" => {
            "password authentication failed: it does not take the user and the password of store.url"
        }
        "28000" => {
            "it does not let the user of store.url in from here: look at the user, and at the server's pg_hba.conf"
        }
        "3D000" => "there is no such database: make it by CREATE DATABASE … OWNER …",
        "42501" => "the user of store.url may not connect to it: GRANT CONNECT ON DATABASE … TO …",
        "53300" => {
            "it has as many connections as it takes: allow more, or end others (max_connections, and CONNECTION LIMIT of the user)"
        }
        // It starts, ends or has no room: no names are in that.
        _ if code.starts_with("57") || code.starts_with("53") => said.message(),
        _ => "it does not let anybody in",
    };
    format!("{known} ({code})")
}

/// Returns an error for people: what the server says, or else what the machine does. Not its details, which may have what
/// was written.
pub(in super::super) fn described(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => chain(error),
    }
}

/// Returns an error with its causes.
pub(super) fn chain(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// Returns whether what was sent is wrong, so that trying again does not help; else the server is not as it should be. A
/// table or a function that is missing, or of another version, is its operator's to mend: what is said waits for that.
pub(in super::super) fn is_refusal(error: &tokio_postgres::Error) -> bool {
    match error.as_db_error() {
        // A parameter that is not what the statement takes.
        None => error.to_string().contains("serializing parameter"),
        Some(said) => is_of_data(said.code().code()),
    }
}

/// Returns whether the server chose a transaction to give way to another one.
pub(in super::super) fn gives_way(error: &tokio_postgres::Error) -> bool {
    let code = error.as_db_error().map(|said| said.code().code());
    matches!(code, Some("40P01" | "40001"))
}

/// Returns whether a code of the server is about data, constraints, or the server's limits.
fn is_of_data(code: &str) -> bool {
    ["22", "23", "54"].iter().any(|it| code.starts_with(it))
}

#[cfg(test)]
mod tests {
    use super::is_of_data;

    #[test]
    fn what_is_wrong_with_the_tables_is_no_fault_of_what_is_written() {
        for (code, expected) in [
            ("22P02", true),
            ("23505", true),
            ("54000", true),
            ("42703", false),
            ("42883", false),
            ("42804", false),
            ("42P01", false),
            ("42501", false),
            ("40001", false),
            ("55P03", false),
            ("57P01", false),
        ] {
            assert_eq!(is_of_data(code), expected, "{code}");
        }
    }
}
