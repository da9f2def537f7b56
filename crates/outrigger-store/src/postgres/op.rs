//! Statements that are sent one after the other without waiting for each answer.

use std::borrow::Cow;
use std::error::Error;

use bytes::BytesMut;
use deadpool_postgres::ClientWrapper;
use futures::TryStreamExt as _;
use futures::stream::FuturesOrdered;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// A statement with its parameters.
#[derive(Debug)]
pub(super) struct Op<'a> {
    pub(super) sql: &'static str,
    pub(super) parameters: Vec<Param<'a>>,
}

/// A parameter of a statement; what its type is there is said by a cast.
#[derive(Debug)]
pub(super) enum Param<'a> {
    Text(Option<Cow<'a, str>>),
    Texts(Vec<Cow<'a, str>>),
    Number(Option<i64>),
    Is(bool),
    Bytes(Cow<'a, [u8]>),
    ManyBytes(Vec<&'a [u8]>),
}

impl Param<'_> {
    /// Returns a number, as high as it can be kept.
    pub(super) fn natural(number: u64) -> Self {
        Self::Number(Some(integer(number)))
    }
}

pub(super) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns a text as PostgreSQL takes it, which has no NUL.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    match text.contains('\0') {
        true => Cow::Owned(text.replace('\0', "\u{FFFD}")),
        false => Cow::Borrowed(text),
    }
}

impl<'a> From<&'a str> for Param<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Some(clean(text)))
    }
}

impl<'a> From<&'a String> for Param<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Some(clean(text)))
    }
}

impl<'a> From<&'a Option<String>> for Param<'a> {
    fn from(text: &'a Option<String>) -> Self {
        Self::Text(text.as_deref().map(clean))
    }
}

impl<'a> From<Option<&'a str>> for Param<'a> {
    fn from(text: Option<&'a str>) -> Self {
        Self::Text(text.map(clean))
    }
}

impl From<i64> for Param<'_> {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<Option<i64>> for Param<'_> {
    fn from(number: Option<i64>) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Param<'_> {
    fn from(is: bool) -> Self {
        Self::Is(is)
    }
}

impl<'a> From<&'a [u8]> for Param<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl ToSql for Param<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Text(text) => text.as_deref().to_sql(ty, out),
            Self::Texts(texts) => texts.to_sql(ty, out),
            Self::Number(number) => number.to_sql(ty, out),
            Self::Is(is) => is.to_sql(ty, out),
            Self::Bytes(bytes) => bytes.as_ref().to_sql(ty, out),
            Self::ManyBytes(many) => many.to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Sends all of these, one after the other, and waits for their answers; the first error is the one of the statement
/// that came first.
pub(super) async fn run(
    client: &ClientWrapper,
    ops: &[Op<'_>],
) -> Result<(), tokio_postgres::Error> {
    let mut prepared = Vec::with_capacity(ops.len());
    for op in ops {
        prepared.push(client.prepare_cached(op.sql).await?);
    }
    let sent: FuturesOrdered<_> = ops
        .iter()
        .zip(&prepared)
        .map(|(op, statement)| {
            let parameters = op.parameters.iter().map(|it| it as &(dyn ToSql + Sync));
            client.execute_raw(statement, parameters.collect::<Vec<_>>())
        })
        .collect();
    sent.try_for_each(async |_| Ok(())).await
}
