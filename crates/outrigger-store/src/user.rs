//! Whose sessions are read and written.

use std::fmt;
use std::sync::Arc;

use crate::words;

/// A user, by the name that stands in each row. The one user of a store that has no others has an empty name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct User(Arc<str>);

impl User {
    /// Returns the user of this name.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A session by its id and whose it is: the id alone may be anybody's word.
pub(crate) type OwnId = (User, String);

/// Returns the session of a user that has this id.
pub(crate) fn own_id(user: &User, session: &str) -> OwnId {
    (user.clone(), session.to_owned())
}

/// Whose rows a read is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose<'a> {
    /// One user's.
    Of(&'a User),
    /// Everybody's: for whoever has the store itself.
    Everybodys,
}

impl Whose<'_> {
    /// Returns what a WHERE says of a column, and the parameter's value; `parameter` is how it is named there.
    pub(crate) fn says(&self, column: &str, parameter: &str) -> String {
        match self {
            Self::Of(_) => format!("{column} = {parameter}"),
            Self::Everybodys => format!("{parameter} IS NULL"),
        }
    }

    /// Returns an expression of the index of words that finds the same in what these say.
    pub(crate) fn among(&self, expression: &str) -> String {
        let user = match self {
            Self::Of(user) => words::of_user(user),
            Self::Everybodys => None,
        };
        user.map_or_else(
            || expression.to_owned(),
            |user| format!("\"{user}\" {expression}"),
        )
    }

    /// Returns the value of the parameter.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Of(user) => Some(user.as_str()),
            Self::Everybodys => None,
        }
    }
}
