//! Elements of NPY arrays as numbers: every integer and float type, in both byte orders.

use half::f16;
use npyz::{DType, Endianness, TypeChar};

/// How the elements of a file are read.
#[derive(Clone, Copy)]
pub(super) struct Elements {
    /// Bytes of one.
    pub size: usize,
    /// The number in so many bytes.
    pub read: fn(&[u8]) -> f64,
}

/// A reader of `$size` bytes in the byte order of `$from`.
macro_rules! reader {
    ($kind:ty, $from:ident, $number:expr) => {
        |bytes: &[u8]| {
            bytes
                .try_into()
                .map(<$kind>::$from)
                .map_or(f64::NAN, $number)
        }
    };
}

/// Readers of both byte orders.
macro_rules! both {
    ($kind:ty, $big:expr, $number:expr) => {
        Some(Elements {
            size: size_of::<$kind>(),
            read: match $big {
                true => reader!($kind, from_be_bytes, $number),
                false => reader!($kind, from_le_bytes, $number),
            },
        })
    };
}

impl Elements {
    /// `None` for types that are no numbers.
    pub fn of(kind: &DType) -> Option<Self> {
        let DType::Plain(kind) = kind else {
            return None;
        };
        let big = kind.endianness() == Endianness::Big;
        match (kind.type_char(), kind.size_field()) {
            (TypeChar::Float, 2) => both!(f16, big, f64::from),
            (TypeChar::Float, 4) => both!(f32, big, f64::from),
            (TypeChar::Float, 8) => both!(f64, big, |v| v),
            (TypeChar::Int, 1) => both!(i8, big, f64::from),
            (TypeChar::Int, 2) => both!(i16, big, f64::from),
            (TypeChar::Int, 4) => both!(i32, big, f64::from),
            (TypeChar::Int, 8) => both!(i64, big, |v| v as f64),
            (TypeChar::Uint, 2) => both!(u16, big, f64::from),
            (TypeChar::Uint, 4) => both!(u32, big, f64::from),
            (TypeChar::Uint, 8) => both!(u64, big, |v| v as f64),
            (TypeChar::Uint, 1) => both!(u8, big, f64::from),
            // Any other byte than 0 is true to NumPy.
            (TypeChar::Bool, 1) => both!(u8, big, |v| f64::from(u8::from(v != 0))),
            _ => None,
        }
    }
}
