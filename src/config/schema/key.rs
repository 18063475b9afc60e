//! A key of the run file: what it is called, takes and means stands once, at its field. Errors,
//! `--algorithm` and `docs/reference/run_file.md` follow from there.

/// What is known of a key beside its type.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Type, range and default, in words.
    pub values: &'static str,
    /// The samplers that it belongs to, in the words of an error; empty where it is everybody's.
    pub owner: &'static str,
    /// What it means; Markdown.
    pub meaning: &'static str,
}

impl Key {
    /// Whether some samplers alone have a use for it.
    pub fn is_particular(self) -> bool {
        !self.owner.is_empty()
    }
}

/// Whether a field is as it would be if the run file did not mention it.
pub(super) fn is_unset<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A table of the run file: a field a key, each with its meaning as documentation, what serde must
/// know of it, its type and its values in words.
macro_rules! keyed {
    (
        $(#[doc = $outer:literal])+
        $(#[derive($derive:ident)])?
        $(#[serde($default:ident)])?
        pub struct $name:ident {
            $(
                $(#[doc = $meaning:literal])+
                $(#[serde($($serde:tt)+)])*
                $key:ident $(as $shown:literal)?: $type:ty, $values:literal $(, $owner:literal)?;
            )+
        }
    ) => {
        $(#[doc = $outer])+
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        $(#[derive($derive)])?
        #[serde(deny_unknown_fields)]
        $(#[serde($default)])?
        pub struct $name {
            $(
                $(#[doc = $meaning])+
                $(#[serde($($serde)+)])*
                pub $key: $type,
            )+
        }

        impl $name {
            /// Its keys, in the order of `docs/reference/run_file.md`.
            pub const KEYS: &[$crate::config::schema::key::Key] = &[
                $($crate::config::schema::key::Key {
                    name: [$($shown,)? stringify!($key)][0],
                    values: $values,
                    owner: [$($owner,)? ""][0],
                    meaning: concat!($($meaning),+),
                },)+
            ];
        }
    };
}

/// A table whose every key may be left out, with the samplers that each belongs to.
macro_rules! section {
    (
        $(#[doc = $outer:literal])+
        pub struct $name:ident {
            $(
                $(#[doc = $meaning:literal])+
                $(#[serde($($serde:tt)+)])*
                $key:ident: $type:ty, $values:literal, $owner:literal;
            )+
        }
    ) => {
        $crate::config::schema::key::keyed! {
            $(#[doc = $outer])+
            #[derive(Default)]
            pub struct $name {
                $(
                    $(#[doc = $meaning])+
                    #[serde(
                        default,
                        skip_serializing_if = "crate::config::schema::key::is_unset"
                    )]
                    $(#[serde($($serde)+)])*
                    $key: $type, $values, $owner;
                )+
            }
        }

        impl $name {
            /// Whether the run file sets a key.
            pub fn sets(&self, key: &str) -> bool {
                match key {
                    $(stringify!($key) => !$crate::config::schema::key::is_unset(&self.$key),)+
                    _ => false,
                }
            }

            /// Forgets a key.
            pub fn unset(&mut self, key: &str) {
                match key {
                    $(stringify!($key) => self.$key = Default::default(),)+
                    _ => {}
                }
            }
        }
    };
}

pub(super) use keyed;
pub(super) use section;
